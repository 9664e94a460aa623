"""From a request to a published run: accepted once, whatever dies (docs/protocol.md section 6).

A request is expanded and checked first; a refusal writes nothing. Then the admission document is
inserted under a key derived from the idempotency key: from here on it is accepted. Rows, tasks and
edges follow, insert-only and derived from that document alone, so that whoever continues writes
the same documents. The run is published only after tasks and edges were counted at the leader; its
roots become ready after that. A run that nobody can see yet cannot start, half of it or at all.

What each crash does. Before the admission document: nothing exists. After it: the cluster manager
sees a dead instance, takes the admission over one epoch higher and goes on where it stopped.
"""
