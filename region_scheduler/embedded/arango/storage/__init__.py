"""The engine's storage: in-memory collections over a log, one writer at a time.

The model. The whole engine runs one request at a time under one lock, so a request sees and makes
one state; there is nothing torn to read. A *record* is one version of one document and is never
changed: a write puts another record in its place. Every write goes through a transaction, which
keeps what was there before and so can undo any suffix of its own writes.

    request without x-arango-trx-id   writes in place, undone on error      transaction.py
    stream transaction                own writes in an overlay, applied     streaming.py
                                      in one step at commit
    past state (snapshot, follower)   what the records were before later    horizon.py
                                      commits, laid over the present

A stream transaction reads a snapshot: the present, overlaid by what later commits replaced,
overlaid by its own writes. It locks the keys (and unique index entries) that it writes; who comes
second gets 1200. A follower that lags is the present with the not yet arrived commits taken away
again.

Durability. A commit appends to the log's queue; `Log.flush` writes the queue in one SQLite
transaction (WAL). A response may only leave after the flush that follows its commit; hence a crash
loses nothing that was answered, and never half a request. With waitForSync the flush also forces
the disk.

What is not promised: locks do not wait (a busy key answers 1200 at once, where ArangoDB tries up to
a second), nothing is replicated, and DDL takes no part in transactions.
"""
