"""What steps are run by: one runner a kind, built by `registry.runners`.

A runner that starts a program does so through `worker.execute`, in a shim. Those that only wait or
compare (`simulate`, `check`) run inside the worker and note their start and end themselves.
`poll_until` and `terraform_phases` are programs: they run in the shim, on the standard library.
"""
