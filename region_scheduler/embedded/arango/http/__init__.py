"""ArangoDB's HTTP API over the storage: one function a request, no sockets.

`routes.py` finds the handler by method and path; each area of the API is a module with its own
table of handlers. A handler gets a `Call` and the rest of the path, and returns a `Response` or
raises `ArangoError`; the engine turns the error into ArangoDB's error body and undoes what was
written.
"""
