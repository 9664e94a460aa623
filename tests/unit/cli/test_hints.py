"""A command that is told to a person does as it stands."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from region_scheduler.cli.hints import Hints, program


@pytest.fixture
def on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put a program of ours on PATH, and return it."""
    found = tmp_path / "bin" / "region-scheduler"
    found.parent.mkdir()
    found.write_text("#!/bin/sh\n")
    found.chmod(0o755)
    monkeypatch.setenv("PATH", str(found.parent))
    return found


def called_as(monkeypatch: pytest.MonkeyPatch, text: str) -> list[str]:
    monkeypatch.setattr(sys, "argv", [text])
    return program()


def test_the_program_is_called_as_it_was(on_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert called_as(monkeypatch, str(on_path)) == ["region-scheduler"]
    assert called_as(monkeypatch, ".venv/bin/region-scheduler") == [".venv/bin/region-scheduler"]
    module = [sys.executable, "-m", "region_scheduler"]
    assert called_as(monkeypatch, "/x/region_scheduler/__main__.py") == module


def test_state_directory_and_tenant_are_carried_on_where_they_were_typed(
    on_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", [str(on_path)])

    assert Hints().command("watch", "r 1") == "region-scheduler watch 'r 1'"
    there = Hints(Path("my stack"), "globex")
    assert there.command("watch", "r") == "region-scheduler watch r --state-dir 'my stack'"
    assert there.of_tenant("submit", "z") == (
        "region-scheduler submit z --tenant globex --state-dir 'my stack'"
    )
