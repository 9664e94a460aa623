"""Scarce things: slots, assignments, conflicts, the resource manager (docs/protocol.md section 4).

A resource is a name with a scope and a capacity; each unit is a slot document, free or held by
(task, token). A task's slots are taken one after another in key order, so that of contending tasks
one always gets all; whoever loses one lets go of the others in reverse and goes back to the
backlog. The lost assignment is written down as a conflict, because cheap conflicts are what lets
schedulers decide on stale views without coordination.

The resource manager watches what the queue cannot: leases that ran out, dispatches that nobody
took, pool children that died under a living master, slots whose holder has moved on.

What each crash does. Between two slots of one task: its token moves by dispatch time-out or fence,
and the sweep finds slots below the task's token. After the release was sent: repeating it frees
only what exactly that (task, token) holds.
"""
