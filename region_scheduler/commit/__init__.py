"""The commit gate: the one function through which anything decided is written.

A decision is a pure function from the value read to the value wanted. The gate reads at the leader,
asks, writes on the revision read, and reads again on a conflict until the decision says that there
is nothing (more) to do or that the race is lost. When an answer is lost it repeats the very same
write, on the same revision, until the answer is definite: a read that shows an unchanged revision
decides nothing, because the first request may still be travelling (docs/protocol.md section 1).

Not promised: that two documents change together; that a decision is asked only once.
"""
