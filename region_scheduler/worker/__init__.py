"""A region's worker: take a message, start the attempt, run its step in a shim, complete, settle.

The worker trusts nothing that a message says except which task and token it is about. The start is
a conditional write under a fresh receipt; a message that comes twice, late, or to the wrong region
starts nothing. The step runs in a shim that ends it at the lease's deadline even if the worker is
paused; the completion is a conditional write on the token, so that a late one changes nothing.

What each crash does. Before the start: the message comes again, or the dispatch time-out gives the
task back. Between start and completion: the beat lacks the receipt, or the lease runs out, and the
task goes back by its `on_loss`. After the completion: the reconciler settles.
"""
