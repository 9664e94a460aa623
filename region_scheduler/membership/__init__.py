"""Who is alive: leases, beats, observers, fences (docs/protocol.md section 3).

Every process that holds anything has one document per incarnation and renews it every third of its
ttl. The holder must have stopped by the sending time of its last acknowledged renewal plus ttl, by
its own clock. An observer calls an incarnation dead once it has seen the same beat for ttl + grace
by its own monotonic clock, and only while its own lease was renewed without a gap: a judge that was
paused counts anew. No clock is ever compared with another machine's.

What each crash does. The holder dies: its beat stands still, an observer fences it, the sweep moves
its tasks. The observer dies: another one counts on its own. The fence is written and its writer
dies: the sweep is level-triggered, anybody's next sweep finds the fence. A fenced holder wakes up:
its renewal is refused, and what it still writes carries a token that has moved.

Not promised: that a dead process is noticed before ttl + grace, or that a fenced one knows it.
"""
