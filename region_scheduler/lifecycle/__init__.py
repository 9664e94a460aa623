"""What follows when a task has ended: one idempotent `settle`, and the end of its run.

`settle` unlocks dependents, releases slots, ends the run when nothing can move, and wakes
schedulers. The worker calls it after its completion was acknowledged; the reconciler calls the
same code for whatever a crash left undone. An unlock is a query of its own after the completion's
answer, never part of its write: inside one snapshot two predecessors that complete together would
each miss the other, and the dependent would wait for ever (docs/protocol.md section 5).

What each crash does. After the completion, before the unlock: the reconciler's scan of the run
finds every pending task whose predecessors are satisfied. After the unlock, before the wake-up:
the scheduler's slow poll finds the ready task. Before the slots are free: the slot sweep finds
their holder final. Before the run's end is written: the scan finds a run that cannot move.
"""
