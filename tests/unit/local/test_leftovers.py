"""What a killed demo left is removed by the next one; everything else stays."""

from __future__ import annotations

import os
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from region_scheduler.local.leftovers import PREFIX, demo_directory, remove_dead_demos
from region_scheduler.local.lock import StateLock
from region_scheduler.local.stack import Process, new_stack
from region_scheduler.runtime.system import UuidIds
from region_scheduler.worker.processes import started_at

DEAD = f"{PREFIX}{os.getpid()}-1-abc"
"""The process of that id was another one then."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def left(path: Path, up: Process | None) -> Path:
    replace(new_stack(path, ["a"], UuidIds()), up=up).save()
    return path


def removed(folder: Path) -> list[str]:
    before, said = set(folder.iterdir()), list[str]()
    remove_dead_demos(said.append)
    gone = sorted(path.name for path in before - set(folder.iterdir()))
    assert len(said) == (1 if gone else 0)
    assert all(name in said[0] for name in gone)
    return gone


def test_what_a_killed_demo_left_is_removed(folder: Path) -> None:
    left(folder / DEAD, Process(pid=os.getpid(), started_at=1))
    (folder / f"{DEAD}2").mkdir()  # killed before it wrote anything

    assert removed(folder) == [DEAD, f"{DEAD}2"]


def test_a_living_demo_keeps_its_directory(folder: Path) -> None:
    mine = demo_directory()

    assert mine.parent == folder
    assert mine.name.startswith(f"{PREFIX}{os.getpid()}-{started_at(os.getpid())}-")
    assert removed(folder) == []


def test_a_demo_that_ended_in_order_is_kept_for_people(folder: Path) -> None:
    left(folder / DEAD, None)

    assert removed(folder) == []


def test_a_directory_that_somebody_holds_is_kept(folder: Path) -> None:
    lock = StateLock(left(folder / DEAD, Process(pid=7, started_at=1)))

    assert removed(folder) == []

    lock.release()
    assert removed(folder) == [DEAD]


def test_what_is_not_ours_is_kept(folder: Path) -> None:
    (folder / f"{PREFIX}own-notes").mkdir()
    (folder / f"{DEAD}file").write_text("a file")
    (folder / "elsewhere").mkdir()
    (folder / f"{DEAD}link").symlink_to(folder / "elsewhere")
    (folder / f"{DEAD}damaged").mkdir()
    (folder / f"{DEAD}damaged" / "stack.json").write_text("{")

    assert removed(folder) == []
