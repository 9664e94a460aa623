"""The engine over HTTP: one loopback port per region, one process, one thread.

Everything that a turn of the event loop reads is executed at once; then the log is flushed once,
and only then the answers leave. So the cost of a commit is shared by all that came together, and
nothing is answered that a crash could take back.
"""
