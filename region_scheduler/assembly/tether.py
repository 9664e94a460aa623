"""Ties a process to the one that started it: killed when that one dies, however it dies.

As a program, `python -I -S tether.py PARENT ARGV…` ties itself to process PARENT and becomes ARGV;
the tie survives the change. The kernel fires it when the *thread* that started the process ends, so
processes are started from a thread that lives as long as they should. Where there is no prctl, the
program is started untied.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def tie(parent: int) -> None:
    """Have this process killed when `parent` dies; end it at once if that has happened already."""
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    if prctl is None:
        return
    prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def main(arguments: list[str]) -> None:
    """Tie this process to the first argument, and become the others."""
    tie(int(arguments[0]))
    try:
        os.execvp(arguments[1], arguments[1:])  # noqa: S606 - an argv list, no shell
    except OSError as refused:
        sys.stderr.write(f"cannot start {arguments[1]}: {refused.strerror}\n")
        os._exit(127)


if __name__ == "__main__":
    main(sys.argv[1:])
