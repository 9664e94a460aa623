"""A task: one node of a run, with the immutable spec that a worker needs and its changing state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from region_scheduler.domain.ids import (
    NO_CLAIM,
    NO_RECEIPT,
    ClaimId,
    Incarnation,
    ReceiptId,
    RunId,
    TaskId,
)
from region_scheduler.domain.states import TaskState

SCHEMA = 1
"""Version of task documents and messages; a document of another version is left alone."""

ATTEMPTS_MAX: Final = 100
"""Most that a submission may set as a limit of retries, losses or inspections: the document of a
task keeps the history of them all."""

Json = Any
"""A JSON value; the name says that nothing else may stand there."""


class OnLoss(StrEnum):
    """What follows when the holder of a running step is lost."""

    INSPECT = "inspect"
    RETRY = "retry"
    HOLD = "hold"


class WhenHolderLost(StrEnum):
    """What becomes of a slot whose task lost its holder while running."""

    KEEP = "keep"
    FREE = "free"


@dataclass(frozen=True, slots=True)
class LockNeed:
    """One scarce thing that a step holds while it runs.

    Attributes:
        resource: Name with scope, e.g. `acme/aws:organizations`.
        capacity: Units to create if the resource was never seen; 1 is an exclusive lock.
        units: How many of them the step takes, at least 1.
        when_holder_lost: Whether a doubtful holder goes on blocking others.
    """

    resource: str
    capacity: int = 1
    units: int = 1
    when_holder_lost: WhenHolderLost = WhenHolderLost.FREE


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often, and how far apart, an attempt that ended retryable is repeated.

    Attributes:
        limit: Attempts after the first that may end retryable or capped.
        delay_s: Pause before each, in seconds.
        losses_limit: Attempts whose holder may be lost.
        inspections_limit: Inspections of a doubt before a person is asked.
    """

    limit: int = 3
    delay_s: float = 30.0
    losses_limit: int = 5
    inspections_limit: int = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSpec:
    """What a task is; never changes after admission.

    Attributes:
        name: Id within the run, any Unicode, as given.
        purpose: One sentence for people.
        runner: `terraform`, `command`, `verify`, `check`, `approval`, `external-wait`, `simulate`.
        inputs: What the runner needs; JSON.
        step: The catalogue step it came from, without a region; empty for a submitted graph.
        region: Where it is to run first.
        allowed_regions: Where residency lets it go; contains `region`.
        is_pinned: Whether it stays in `region` while that lives and is not evacuated.
        target_region: The cloud region that the step works on; may be empty.
        pool: Queue pool within the region.
        locks: Scarce things that it holds while it runs.
        on_loss: What follows a lost holder.
        is_repeatable: Running it twice is harmless.
        is_irreversible: It cannot be undone by `destroy`.
        is_resident: Its inputs, outputs and log stay in the own storage of the regions that it may
            run in; documents hold references (`domain.residence`).
        cap_s: Longest time that one attempt may run, seconds.
        memory_mib_max: Most memory of all processes of its step, MiB; 0 leaves it to the worker.
        expected_s: Median duration, seconds.
        remaining_s: Longest expected path from its start to the run's end, seconds.
        priority: Higher is sooner, within a tenant; see `Task.priority_now`.
        delay_tolerance_s: How long after it is ready it may wait before it is overdue, seconds.
        not_before: No attempt is promoted before this instant; why it waits is a reason, no state.
        retry: Limits.
        condition: Assertions over the direct predecessors' outputs (`catalog.assertions`; paths
            begin with `/upstream/NAME`); unless all hold, the task is skipped.
        state_key: Where its terraform state lives (tenant/zone/step@region); empty if it has none.
    """

    name: str
    purpose: str = ""
    runner: str
    inputs: Mapping[str, Json] = field(default_factory=dict)
    step: str = ""
    region: str
    allowed_regions: tuple[str, ...]
    is_pinned: bool = False
    target_region: str = ""
    pool: str = "default"
    locks: tuple[LockNeed, ...] = ()
    on_loss: OnLoss = OnLoss.RETRY
    is_irreversible: bool = False
    is_resident: bool = False
    cap_s: float = 3600.0
    memory_mib_max: int = 0
    expected_s: float = 0.0
    remaining_s: float = 0.0
    priority: int = 0
    delay_tolerance_s: float = 0.0
    not_before: datetime | None = None
    retry: RetryPolicy = RetryPolicy()
    condition: tuple[Mapping[str, Json], ...] = ()
    state_key: str = ""


def units_needed(spec: TaskSpec) -> Counter[str]:
    """Return how many units of each resource a task holds while it runs."""
    units: Counter[str] = Counter()
    for need in spec.locks:
        units[need.resource] += need.units
    return units


@dataclass(frozen=True, slots=True)
class Token:
    """Names the current holder; rises with every claim and every loss of it. Compared whole.

    Attributes:
        number: Rises by one each time.
        claim_id: The try that won it; empty while nobody holds the task. A restored store may issue
            a number again, never an id.
    """

    number: int = 0
    claim_id: ClaimId = NO_CLAIM

    def __str__(self) -> str:
        """Return `number/claim_id`."""
        return f"{self.number}/{self.claim_id}"

    def left(self) -> Token:
        """Return the token after its holder was left: nobody's, and one higher."""
        return Token(self.number + 1)

    def claimed(self, claim_id: ClaimId) -> Token:
        """Return the token of a new claim."""
        return Token(self.number + 1, claim_id)


@dataclass(frozen=True, slots=True)
class Holder:
    """Who holds a task: a scheduler once claimed, a worker under a receipt once running."""

    incarnation: Incarnation
    receipt_id: ReceiptId = NO_RECEIPT


class EventKind(StrEnum):
    """What a history entry records."""

    UNLOCKED = "unlocked"
    CLAIMED = "claimed"
    STARTED = "started"
    ENDED = "ended"
    REQUEUED = "requeued"
    LOST = "lost"
    MOVED = "moved"
    VERDICT = "verdict"
    ANSWERED = "answered"
    RESUMED = "resumed"
    CANCELLED = "cancelled"
    CLEARED = "cleared"


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryEntry:
    """One transition of the current submission, written by the same conditional write.

    Attributes:
        at: Wall time of the writer, for display only.
        by: Incarnation or actor that wrote it.
        seen: At unlock, the completion token of each predecessor by task id.
        detail: Exit kind, reason or verdict.
    """

    kind: EventKind
    at: datetime
    by: str
    region: str
    token: Token
    state: TaskState
    receipt_id: ReceiptId = NO_RECEIPT
    attempt: int = 0
    seen: Mapping[TaskId, str] = field(default_factory=dict)
    detail: str = ""


class ExitKind(StrEnum):
    """How an attempt ended."""

    OK = "ok"
    UNCHANGED = "unchanged"
    RETRYABLE = "retryable"
    PERMANENT = "permanent"
    FENCED = "fenced"
    CANCELLED = "cancelled"
    CAPPED = "capped"
    IN_DOUBT = "in-doubt"
    AWAIT = "await"
    HAND_BACK = "hand-back"


class Verdict(StrEnum):
    """What an inspection found that a lost attempt had done."""

    DONE = "done"
    NOT_DONE = "not-done"
    PARTLY = "partly"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True, kw_only=True)
class Exit:
    """The end of one attempt, as its runner reports it.

    Attributes:
        kind: What happened.
        message: One line for people; no secrets.
        outputs: What dependents may read; JSON, at most 64 KiB in all.
        log_tail: Last lines of its log, at most 8 KiB.
        log_ref: Where the whole log is.
    """

    kind: ExitKind
    message: str = ""
    outputs: Mapping[str, Json] = field(default_factory=dict)
    log_tail: str = ""
    log_ref: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StopRequest:
    """A wish that the holder of a running task stop it; only the holder moves the token."""

    reason: str
    by: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A task as its document says at revision `rev`.

    Attributes:
        id: Handle; `rev` the store's revision, empty before it was inserted.
        run: Its run.
        needs: How many distinct predecessors it has.
        submission: Rises when the task is cleared.
        seq: Rises with every write of the commit gate.
        region: Where it runs now; moves within `spec.allowed_regions`.
        attempt: Starts so far in this submission.
        is_inspect: The next attempt must look before it does anything.
        reason: Why it is in this state, for people; also `skipped`'s reason.
        priority: Set after admission; None leaves it to the spec.
        passport: Of a pause that does not keep it from promotion: it was released by a step.
        retry_after_s: After a retryable end, how long its region's scheduler lets it rest, seconds.
    """

    id: TaskId
    rev: str = ""
    schema: int = SCHEMA
    run: RunId
    tenant: str
    zone: str = ""
    spec: TaskSpec
    needs: int
    trace: str = ""

    region: str
    state: TaskState = TaskState.PENDING
    submission: int = 1
    seq: int = 0
    token: Token = Token()
    holder: Holder | None = None
    attempt: int = 0
    retries_used: int = 0
    losses: int = 0
    inspections: int = 0
    slots_lost: int = 0
    is_inspect: bool = False
    reason: str = ""
    priority: int | None = None
    passport: str = ""
    retry_after_s: float = 0.0
    stop_requested: StopRequest | None = None
    outputs: Mapping[str, Json] = field(default_factory=dict)
    log_tail: str = ""
    log_ref: str = ""
    history: tuple[HistoryEntry, ...] = ()

    @property
    def priority_now(self) -> int:
        """The priority that counts."""
        return self.spec.priority if self.priority is None else self.priority
