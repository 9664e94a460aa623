"""One region's scheduler: ready -> backlog -> top K -> claim -> assign -> dispatch.

A scheduler decides for its own region only, on views that may be stale. What makes that safe is
the conditional claim: of all schedulers that want a task, one write succeeds. K is what the
region's workers can take now plus a small look-ahead, less what is in flight; nothing beyond K is
ever in a queue, so that reprioritising, cancelling and cordoning act in the database.

It is woken when a task becomes ready, a slot is freed or a worker is done, and looks by itself
every `reconcile_every` in case the wake-up was lost. Beside it the reconciler finishes whatever a
crash left between two writes.

What each crash does. After the claim: the claimant's lease or the dispatch time-out gives the task
back. After the publish: the worker's start is a conditional write, so a message without a claim,
or one delivered twice, is dropped.
"""
