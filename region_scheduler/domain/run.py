"""Runs, and the zones they change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum

from region_scheduler.domain.doubt import StateMark, doubts_after
from region_scheduler.domain.ids import RunId
from region_scheduler.domain.rework import Rework
from region_scheduler.domain.states import RUN_ENDED, RunState, TaskState
from region_scheduler.domain.task import SCHEMA, Json
from region_scheduler.errors import IllegalMove, LostRace


class RunMode(StrEnum):
    """What a run does with its zone."""

    APPLY = "apply"
    PLAN = "plan"
    DESTROY = "destroy"


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One job on a zone, or on a submitted graph without one. Published when its graph is whole.

    Attributes:
        zone: Key of its zone; empty for a submitted graph.
        round: Rises when a resume, retry or rerun opens the next one.
        task_count: Tasks that were counted at the leader before it was published; none if it was
            cancelled before that: then nothing of it can ever start.
        trace: W3C traceparent of the whole run.
        deadline_s: A round that goes on for so many seconds in its judge's eyes is cancelled.
        cause: What made it, if no person did: `schedule NAME@INSTANT`.
        ended_at: Wall time of the end, for display.
        rework: What a person wants done again, until all of it is moved; it cannot end meanwhile.
        is_closed: It has ended for good: its tasks are being removed, and it goes last.
    """

    id: RunId
    rev: str = ""
    schema: int = SCHEMA
    tenant: str
    name: str
    zone: str = ""
    zone_type: str = ""
    mode: RunMode = RunMode.APPLY
    home_region: str
    regions: tuple[str, ...]
    state: RunState = RunState.RUNNING
    round: int = 1
    task_count: int
    edge_count: int
    digest: str
    trace: str = ""
    deadline_s: float | None = None
    cause: str = ""
    created_at: datetime
    ended_at: datetime | None = None
    reason: str = ""
    rework: Rework | None = None
    is_closed: bool = False

    @property
    def is_tombstone(self) -> bool:
        """Whether it was cancelled before it was published: nothing of it can ever start."""
        return self.state is RunState.CANCELLED and not self.task_count

    @property
    def needs_zone(self) -> bool:
        """Whether it changes a zone, so that nothing may start before it holds that zone."""
        return bool(self.zone) and self.mode is not RunMode.PLAN


@dataclass(frozen=True, slots=True, kw_only=True)
class Zone:
    """A landing zone that lives on.

    Attributes:
        id: Key; see `ids.zone_key`.
        parameters: As given; typed by the zone type.
        active_run: The mutating run that holds it; empty while none does.
        active_round: The round of that run; the end of an earlier round does not free the zone.
        doubts: Keys of terraform states that an ended run left in doubt: the next looks first.
    """

    id: str
    rev: str = ""
    schema: int = SCHEMA
    tenant: str
    name: str
    zone_type: str
    catalog_version: str
    parameters: Mapping[str, Json] = field(default_factory=dict)
    regions: tuple[str, ...]
    active_run: str = ""
    active_round: int = 0
    doubts: tuple[str, ...] = ()
    created_at: datetime


def ended(run: Run, state_counts: Mapping[TaskState, int], can_move: bool, at: datetime) -> Run:
    """Return the run with its end, if it has come to one; else the same object.

    Args:
        run: The run as read at the leader.
        state_counts: How many of its tasks are in each state; all tasks counted.
        can_move: Whether any task is active or could be unlocked.
        at: Wall time for display.
    """
    if run.state in RUN_ENDED or run.state is RunState.ADMITTED or can_move or run.rework:
        return run
    total = sum(state_counts.values())
    if total != run.task_count:
        return run
    failed = state_counts.get(TaskState.FAILED, 0)
    cancelled = state_counts.get(TaskState.CANCELLED, 0)
    finished = state_counts.get(TaskState.DONE, 0) + state_counts.get(TaskState.SKIPPED, 0)
    if run.state is RunState.CANCELLING:
        if finished + failed + cancelled != total:
            return run  # the walk over its tasks broke off; the reconciler goes on
        state = RunState.CANCELLED if failed + cancelled else _complete(run)
    elif finished == total:
        state = _complete(run)
    elif failed + cancelled:
        state = RunState.FAILED
    else:
        return run  # pending without a failed predecessor: an unlock is still due
    return replace(run, state=state, ended_at=at)


def _complete(run: Run) -> RunState:
    return RunState.PLANNED if run.mode is RunMode.PLAN else RunState.DONE


def damaged(run: Run, what: str, at: datetime) -> Run:
    """End a run that nothing can move because its graph is not whole any more.

    It is failed, not refused: once the graph is restored it can be resumed.

    Args:
        run: The run as read at the leader.
        what: What is wrong.
        at: Wall time for display.
    """
    if run.state not in {RunState.RUNNING, RunState.CANCELLING} or run.rework:
        return run
    state = RunState.FAILED if run.state is RunState.RUNNING else RunState.CANCELLED
    return replace(run, state=state, ended_at=at, reason=f"its graph is damaged: {what}")


def cancelling(run: Run, reason: str) -> Run:
    """Begin to cancel a run, also one whose next round is just being opened.

    Raises:
        LostRace: It has ended; its end stands.
    """
    if run.state is RunState.CANCELLING:
        return run
    if run.state in RUN_ENDED:
        raise LostRace(thing=f"cancel of run {run.id}", winner=f"its end: it is {run.state}")
    return replace(run, state=RunState.CANCELLING, reason=reason, rework=None)


def reopened(run: Run) -> Run:
    """Begin the next round of an ended run; nothing becomes ready before this is written.

    It stays `admitted`, and cannot end, until `opened` says that its tasks are moved.

    Raises:
        IllegalMove: The run has not ended, was refused for good, never published, or is removed.
    """
    is_over_for_good = run.state is RunState.REFUSED or run.is_tombstone or run.is_closed
    if run.state not in RUN_ENDED or is_over_for_good:
        raise IllegalMove(thing=f"run {run.id}", current=run.state.value, target="a further round")
    return replace(run, state=RunState.ADMITTED, round=run.round + 1, ended_at=None, reason="")


def closed_for_good(run: Run, seen: Run) -> Run:
    """Close an ended run, so that nobody can open it again while it is removed.

    Raises:
        LostRace: It was opened since it was `seen`.
    """
    if run.is_closed:
        return run
    if run.state not in RUN_ENDED or run.round != seen.round:
        raise LostRace(thing=f"removal of run {run.id}", winner=f"round {run.round}")
    return replace(run, is_closed=True)


def opened(run: Run, round_: int) -> Run:
    """Let round `round_` run, its tasks being moved; a later or ended round stays as it is."""
    is_opening = run.state is RunState.ADMITTED and run.round == round_
    return replace(run, state=RunState.RUNNING) if is_opening else run


def zone_taken(zone: Zone, run: str, round_: int) -> Zone:
    """Give a free zone to a round of a mutating run; a run may keep it for its next round.

    Raises:
        LostRace: Another run holds it.
    """
    if zone.active_run and zone.active_run != run:
        raise LostRace(thing=f"zone {zone.name}", winner=zone.active_run)
    if zone.active_run and zone.active_round >= round_:
        return zone
    return replace(zone, active_run=run, active_round=round_)


def zone_freed(zone: Zone, run: str, round_: int, marks: Sequence[StateMark] = ()) -> Zone:
    """Free the zone if `run` holds it for `round_` or an earlier one; keep what is in doubt.

    Args:
        zone: As read.
        run: Which has ended.
        round_: In which round.
        marks: What its tasks leave of each state, read after its end.
    """
    if zone.active_run != run or zone.active_round > round_:
        return zone
    doubts = doubts_after(zone.doubts, marks)
    return replace(zone, active_run="", active_round=0, doubts=doubts)
