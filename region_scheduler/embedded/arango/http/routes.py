"""Which module answers which area of the API."""

from __future__ import annotations

from region_scheduler.embedded.arango.http import (
    accounts,
    collections,
    cursors,
    documents,
    edges,
    graphs,
    imports,
    jobs,
    misfortune,
    queries,
    server,
    streams,
)
from region_scheduler.embedded.arango.http.router import Router

ROUTER = Router(
    {
        **server.AREAS,
        "_open/auth": accounts.AUTH_TABLE,
        "_api/user": accounts.TABLE,
        "_api/collection": collections.TABLE,
        "_api/index": collections.INDEX_TABLE,
        "_api/document": documents.TABLE,
        "_api/import": imports.TABLE,
        "_api/edges": edges.TABLE,
        "_api/gharial": graphs.TABLE,
        "_api/cursor": cursors.TABLE,
        "_api/query": queries.TABLE,
        "_api/query-cache": queries.CACHE_TABLE,
        "_api/query-plan-cache": queries.PLAN_CACHE_TABLE,
        "_api/key-generators": collections.GENERATORS_TABLE,
        "_api/explain": queries.EXPLAIN_TABLE,
        "_api/transaction": streams.TABLE,
        "_api/job": jobs.TABLE,
        "_admin/faults": misfortune.TABLE,
    }
)
