"""Lines for people, objects for programs, and nothing for a terminal to obey."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from region_scheduler.catalog import compose
from region_scheduler.cli import INTERRUPTED
from region_scheduler.cli.app import run
from region_scheduler.cli.edge import guarded
from region_scheduler.cli.output import Output, table
from region_scheduler.domain.states import TaskState
from region_scheduler.domain.task import Token
from region_scheduler.errors import BrokenInvariant, NotFound, RegionSchedulerError, Unavailable

Captured = pytest.CaptureFixture[str]


def test_a_list_is_one_object_for_programs(capsys: Captured) -> None:
    at = datetime(2026, 11, 30, tzinfo=UTC)
    row = {"state": TaskState.DONE, "token": Token(3), "at": at, "of": ("a", "b")}

    Output(as_json=True).items([row], ["state"], "nothing")

    assert json.loads(capsys.readouterr().out) == {
        "items": [
            {
                "state": "done",
                "token": {"number": 3, "claim_id": ""},
                "at": "2026-11-30T00:00:00+00:00",
                "of": ["a", "b"],
            }
        ]
    }


def test_a_list_is_a_table_for_people() -> None:
    rows: list[dict[str, object]] = [
        {"name": "one", "done": 3, "minutes": 2.50, "reason": ""},
        {"name": "another", "done": None, "minutes": 10.0, "reason": "why"},
    ]

    assert list(table(rows, ["name", "done", "minutes", "reason"])) == [
        "NAME     DONE  MINUTES  REASON",
        "one      3     2.5      -",
        "another  -     10       why",
    ]


def test_an_empty_list_is_a_sentence(capsys: Captured) -> None:
    Output().items([], ["name"], "there are no runs")

    assert capsys.readouterr().out == "there are no runs\n"


def test_a_foreign_text_cannot_command_a_terminal(capsys: Captured) -> None:
    Output().note("red \x1b[31m and \x07 bell \ud800")

    assert capsys.readouterr().out == "red \ufffd[31m and \ufffd bell \ufffd\n"


def test_notes_leave_standard_output_to_the_object(capsys: Captured) -> None:
    Output(as_json=True).note("under way")

    assert capsys.readouterr() == ("", "under way\n")


@pytest.fixture
def _signals_as_before() -> Iterator[None]:
    before = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_signals_as_before")
def test_an_interrupt_of_a_command_is_a_line_and_an_object(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(compose, "zone_types", interrupt)

    assert run(["zones", "types", "--json"]) == INTERRUPTED

    out, err = capfd.readouterr()
    assert json.loads(out)["ok"] is False
    assert err == "region-scheduler: interrupted\n"


@pytest.mark.usefixtures("_signals_as_before")
@pytest.mark.parametrize(
    ("error", "code"),
    [
        (NotFound(thing="run", id="x\ny"), 4),
        (Unavailable(dependency="engine", detail="gone"), 69),
        (BrokenInvariant("one holder"), 70),
        (KeyboardInterrupt(), INTERRUPTED),
        (ZeroDivisionError("division by zero"), 70),
    ],
)
def test_whatever_happens_is_an_exit_code_and_at_most_a_line(
    capsys: Captured, error: BaseException, code: int
) -> None:
    def fail() -> int:
        raise error

    assert guarded(fail) == code

    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.splitlines()) == (0 if code == INTERRUPTED else 1)


def test_a_program_is_told_of_an_error_by_its_code(capsys: Captured) -> None:
    def fail() -> int:
        raise NotFound(thing="run", id="x")

    guarded(fail, as_json=True)

    said = json.loads(capsys.readouterr().out)
    error = {"code": "not_found", "message": "run 'x' does not exist"}
    assert said == {"ok": False, "error": error}
    assert issubclass(NotFound, RegionSchedulerError)
