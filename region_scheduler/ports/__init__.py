"""Every promise that the core relies on, one module each; drivers keep them, contract suites check.

A read says in its return type whether it may only suggest or may support a decision:
`Suggesting` comes from the local follower and can be stale; `Deciding` comes from the leader.
"""
