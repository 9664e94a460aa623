"""Regions that stop, and what becomes of their work.

A region is `active`, or an operator has closed it (`cordoned`, `draining`), or it is `down`: given
up by an operator, or by the failover because no process of it has a running lease in an observer's
eyes. What a status does:

- Its schedulers read it at the leader before every batch, and promote only while it is `active`: at
  most one batch follows a change.
- What is claimed or running there is not touched. Attempts end by themselves; those of processes
  that are gone lose their holder as everywhere (`resources.sweep`), and then nobody holds them.
- While it is `down`, or evacuating, each task that nobody holds is moved by a conditional write on
  its `region`, to the allowed region with the most room. The move reads what is there and not what
  it did before, so it may break off anywhere, be done by two at once, or be done again.
- A task that no region may and can take waits where it is, with the reason `waiting-for-region`.

Every serving process watches all regions; one leads (`membership.leader`) and acts. Two leaders at
once cost lost writes.

When a region is back its processes are new incarnations: the old ones were fenced, and end. What
the failover gave up returns by itself, in a new epoch, once a process of it has held its lease for
ttl + grace without a gap, so that a flapping link does not move work to and fro; what an operator
gave up waits for an operator. What was moved stays moved.

Not promised: that a task which was moved does not find the work of its lost attempt half done (it
inspects first, where its step says so), and that a region with processes but no working broker is
found down: it holds leases, and what it does not do is seen by its dispatch time-outs.
"""
