"""The steps log: what is written is read, and damage costs one line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from region_scheduler.domain.ids import ClaimId
from region_scheduler.domain.task import Token
from region_scheduler.worker.steplog import Act, StepEvent, append, read

LINE: dict[str, Any] = {
    "act": "run",
    "task": "tasks/run.a",
    "token": 3,
    "claim_id": "c3",
    "receipt_id": "r1",
    "attempt": 2,
    "region": "eu-west",
    "worker_pid": 10,
    "shim_pid": 11,
    "at": 1.0,
}


def test_records_come_back_typed_and_in_the_order_of_the_machine(tmp_path: Path) -> None:
    one, two = str(tmp_path / "one"), str(tmp_path / "two")
    append(one, LINE | {"event": "end", "boot": 9.0, "exit": "exited", "code": 0})
    append(two, LINE | {"event": "start", "boot": 5.0})

    start, end = read([one, two, tmp_path / "never-written"])

    assert (start.event, start.boot, start.exit, start.code) == (StepEvent.START, 5.0, "", None)
    assert (end.event, end.exit, end.code) == (StepEvent.END, "exited", 0)
    assert start.token == end.token == Token(3, ClaimId("c3"))
    assert start.act is Act.RUN
    assert (start.attempt, start.worker_pid, start.shim_pid) == (2, 10, 11)


def test_a_damaged_line_costs_itself_only(tmp_path: Path) -> None:
    path = tmp_path / "log"
    append(str(path), LINE | {"event": "start", "boot": 5.0})
    with path.open("ab") as file:
        file.write(b'{"event":"sta\n{"event":"start"}\n[1]\n{"event":"nap"}\n')
    append(str(path), LINE | {"event": "end", "boot": 6.0})

    assert [record.boot for record in read([path])] == [5.0, 6.0]
