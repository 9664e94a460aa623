"""The directories of a stack: made before anything is started, and found to be ours to write."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from region_scheduler.errors import Misconfigured
from region_scheduler.local.stack import Stack


def prepare(stack: Stack) -> None:
    """Make every directory of the stack that is missing, and see that all can be written.

    Raises:
        Misconfigured: Names each directory and file that cannot; nothing was started.
    """
    problems = [problem for path in _directories(stack) for problem in _directory_problems(path)]
    problems += [problem for path in _files(stack) for problem in _file_problems(path)]
    if problems:
        raise Misconfigured(problems=problems)


def _directories(stack: Stack) -> Iterator[Path]:
    yield stack.logs
    if stack.store is None:
        yield stack.state_dir / "engine"
    for region, at in stack.regions.items():
        directory = stack.directory(region)
        yield directory
        yield from (directory / name for name in ("state", "work", "logs"))
        if at.broker:
            yield directory / "broker"


def _files(stack: Stack) -> Iterable[Path]:
    """Return what the parts write, as far as it is there already."""
    found = [*stack.logs.glob("*.log"), *(stack.state_dir / "engine").glob("*.sqlite*")]
    for region in stack.regions:
        directory = stack.directory(region)
        found += [*directory.glob("region.db*"), *directory.glob("broker/*.conf")]
    return found


def _directory_problems(path: Path) -> Iterator[str]:
    trial = path / f".trial.{os.getpid()}"
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        trial.touch(mode=0o600)
        trial.unlink()
    except OSError as refused:
        yield f"directory {path} cannot be written: {_why(refused)}"


def _file_problems(path: Path) -> Iterator[str]:
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_APPEND))
    except OSError as refused:
        yield f"file {path} cannot be written: {_why(refused)}"


def _why(refused: OSError) -> str:
    return (refused.strerror or str(refused)).lower()
