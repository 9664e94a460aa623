"""A test and single-machine server for ArangoDB's HTTP API.

It is not ArangoDB: one process, one writer, nothing replicated (docs/embedded-engine.md begins with
what it is not). It imports nothing of the scheduler.

The model. A request goes through `network` (which may delay, lose or spoil it), is executed by
`engine` under one lock, one at a time, and is answered after the log was flushed. `http` turns it
into calls on a transaction of `storage`; queries are compiled and run by `aql`, which sees storage
only through the protocols of `session`. Regions are not copies: there is one present state, and a
follower that lags is that state with the not yet arrived commits taken away again.

What each crash does. Killed before the flush: the request was not answered and did not happen, as a
whole. Killed after the flush: it happened, and its sender may not know. Open cursors, stream
transactions and jobs end with the process; transactions that were not committed leave nothing.
A log that cannot be written ends the process, for memory would be ahead of the disk.

What is not promised: that a lock is waited for, that anything survives the loss of the disk, that a
cluster behaves as kindly as this does. Under cluster rules a failed query may leave writes on other
shards, as the worst case of ArangoDB is; arrays of documents are never atomic.
"""
