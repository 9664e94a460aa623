"""The steps log: what the step processes themselves say about who ran, from when to when.

It is the evidence that the scheduler cannot colour: a step run by the shim notes its own start just
before its program begins, and the shim notes the end once the last process of the tree is gone.
Each record is one line of JSON, appended by one write, so writers need no lock.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

import orjson

from region_scheduler.domain.ids import ClaimId, ReceiptId, TaskId
from region_scheduler.domain.step import StepJob
from region_scheduler.domain.task import Json, Token


class Act(StrEnum):
    """What an execution was for."""

    RUN = "run"
    INSPECT = "inspect"


class StepEvent(StrEnum):
    """Which end of an execution a record marks."""

    START = "start"
    END = "end"


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRecord:
    """One line of a steps log.

    Attributes:
        at: Wall time of the writer, seconds since 1970; for display.
        boot: CLOCK_BOOTTIME of the writer, seconds; compared on one machine only.
        worker_pid: The process that answers for the step.
        shim_pid: Its shim; the worker's own id for a step that runs inside it.
        exit: How it ended: `exited`, `stop`, `cap`, `memory`, `lease`, `parent`, `not-started`,
            `lost`; empty at a start.
        code: Exit code of the step's process, negative for a signal; None where there is none.
    """

    event: StepEvent
    act: Act
    task: TaskId
    token: Token
    receipt_id: ReceiptId
    attempt: int
    region: str
    worker_pid: int
    shim_pid: int
    at: float
    boot: float
    exit: str = ""
    code: int | None = None


def identity(job: StepJob, act: Act) -> dict[str, Json]:
    """Return the part of a record that says whose it is."""
    return {
        "act": act.value,
        "task": job.task,
        "token": job.token.number,
        "claim_id": job.token.claim_id,
        "receipt_id": job.receipt_id,
        "attempt": job.attempt,
        "region": job.region,
        "worker_pid": os.getpid(),
    }


def append(path: str, record: dict[str, Json]) -> None:
    """Add one record.

    Raises:
        OSError: Nothing, or at worst a part of the line, was written.
    """
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        os.write(fd, orjson.dumps(record) + b"\n")
    finally:
        os.close(fd)


def read(paths: Iterable[str | os.PathLike[str]]) -> list[StepRecord]:
    """Return the records of all `paths`, oldest first by `boot`; files that do not exist are empty.

    A line cut short by a full disk or a crash of the machine is passed over.
    """
    records: list[StepRecord] = []
    for path in paths:
        try:
            with open(path, "rb") as file:
                lines = file.readlines()
        except FileNotFoundError:
            continue
        for line in lines:
            try:
                records.append(_record(orjson.loads(line)))
            except (orjson.JSONDecodeError, KeyError, TypeError, ValueError):
                continue
    return sorted(records, key=lambda record: record.boot)


def _record(fields: dict[str, Json]) -> StepRecord:
    return StepRecord(
        event=StepEvent(fields["event"]),
        act=Act(fields["act"]),
        task=TaskId(fields["task"]),
        token=Token(fields["token"], ClaimId(fields["claim_id"])),
        receipt_id=ReceiptId(fields["receipt_id"]),
        attempt=fields["attempt"],
        region=fields["region"],
        worker_pid=fields["worker_pid"],
        shim_pid=fields["shim_pid"],
        at=fields["at"],
        boot=fields["boot"],
        exit=fields.get("exit", ""),
        code=fields.get("code"),
    )
