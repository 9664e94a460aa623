"""Who asked for what: admissions against runs, and what people did against the audit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final

from region_scheduler.domain.admission import AdmissionState, AdmissionSummary, admission_key
from region_scheduler.domain.ids import RunId
from region_scheduler.domain.instance import Instance
from region_scheduler.domain.region import Region
from region_scheduler.domain.run import Run
from region_scheduler.domain.task import EventKind, Task
from region_scheduler.identity.actors import ActorKind
from region_scheduler.ports.history import Deed, Kind
from region_scheduler.verify.holding import run_of
from region_scheduler.verify.invariants import Document, Finding, Invariant

_NAMESPACES: Final = ("client", "schedule")
_BY_PEOPLE: Final = frozenset(
    {EventKind.ANSWERED, EventKind.RESUMED, EventKind.CANCELLED, EventKind.CLEARED}
)
"""What only a person begins; whatever else bears a person's name is a consequence."""
_PEOPLE: Final = tuple(f"{kind}:" for kind in (ActorKind.OPERATOR, ActorKind.KEY))


class Asked:
    """Which run each admission is of. One short record a run is held in memory.

    Args:
        is_at_rest: Nothing goes on any more.
    """

    def __init__(self, is_at_rest: bool) -> None:
        self._is_at_rest = is_at_rest
        self._runs: dict[RunId, tuple[str, str, str]] = {}
        self._causes: dict[tuple[str, str], RunId] = {}
        self._admitted: dict[RunId, str] = {}

    def run(self, run: Run) -> Iterator[Finding]:
        """Look at a run; all runs come before the admissions: each has one that is older."""
        self._runs[run.id] = (run.rev, run.tenant, run.digest)
        if not run.cause:
            return
        earlier = self._causes.setdefault((run.tenant, run.cause), run.id)
        if earlier != run.id:
            yield Finding(
                invariant=Invariant.IDEMPOTENCY,
                subject=run.id,
                what=f"a second run of {run.cause}",
                evidence=(f"run {earlier}", f"run {run.id}"),
            )

    def admission(self, admission: AdmissionSummary) -> Iterator[Finding]:
        """Look at an admission."""
        if admission.state is AdmissionState.VOID:
            return
        keys = {admission_key(name, admission.tenant, admission.key) for name in _NAMESPACES}
        if admission.id not in keys:
            what = "an admission that does not stand under its key"
            yield _of(admission, what, f"key {admission.key!r} of {admission.tenant}")
        other = self._admitted.setdefault(admission.run, admission.id)
        if other != admission.id:
            yield _of(admission, "a second admission of its run", f"admission {other}")
        rev, tenant, digest = self._runs.get(admission.run, ("", "", ""))
        if rev and digest != admission.body_digest:
            told = f"asked for: {admission.body_digest}", f"run: {digest}"
            yield _of(admission, "its run is of another request", *told)
        if rev and tenant != admission.tenant:
            yield Finding(
                invariant=Invariant.TENANCY,
                subject=admission.id,
                what="its run belongs to another tenant",
                evidence=(f"admission: {admission.tenant}", f"run {admission.run}: {tenant}"),
            )
        if self._is_at_rest and admission.state is AdmissionState.ACCEPTED:
            yield Finding(
                invariant=Invariant.NO_LOSS,
                subject=admission.id,
                what="accepted, and not carried out though nothing goes on any more",
                evidence=(f"run {admission.run}, epoch {admission.epoch}",),
            )

    def end(self) -> Iterator[Finding]:
        """Look for runs without an admission, all of these being taken."""
        for run, (rev, _, _) in self._runs.items():
            if run not in self._admitted:
                yield Finding(
                    invariant=Invariant.IDEMPOTENCY,
                    subject=run,
                    what="a run that no admission asked for",
                    documents=(Document(Kind.RUNS, run, rev),),
                )


class Deeds:
    """What the audit says that people did to which run, or to which region.

    Args:
        entries: All of it; who did something to which thing is held in memory.
    """

    def __init__(self, entries: Iterable[Deed]) -> None:
        self._done: set[tuple[str, str]] = set()
        self._since: datetime | None = None
        for entry in entries:
            self._done.add((entry.actor, run_of(entry.thing)))
            self._since = min(self._since or entry.at, entry.at)

    def of_task(self, task: Task) -> Iterator[Finding]:
        """Look for what a person did to a task, or to one that it follows, without an entry."""
        for entry in task.history:
            if entry.kind in _BY_PEOPLE and self._is_untold(entry.by, task.run, entry.at):
                yield _untold(task.id, f"{task.spec.name} {entry.kind} by {entry.by}")

    def of_region(self, region: Region) -> Iterator[Finding]:
        """Look for a status that a person gave a region without an entry."""
        if self._is_untold(region.status_by, region.id):
            told = f"region {region.id} made {region.status} by {region.status_by}"
            yield _untold(region.id, told)

    def of_instance(self, instance: Instance) -> Iterator[Finding]:
        """Look for a lease that a person ended without an entry about its region."""
        fence = instance.fenced
        if fence is not None and self._is_untold(fence.by, instance.region, fence.at):
            yield _untold(instance.id, f"{instance.id} fenced by {fence.by}")

    def _is_untold(self, actor: str, thing: str, at: datetime | None = None) -> bool:
        if not actor.startswith(_PEOPLE) or (actor, thing) in self._done:
            return False
        is_older = at is not None and self._since is not None and at < self._since
        return not is_older  # what is older than the oldest entry may have had one


def _untold(subject: str, what: str) -> Finding:
    return Finding(
        invariant=Invariant.AUDIT, subject=subject, what=f"{what}: the audit does not know of it"
    )


def _of(admission: AdmissionSummary, what: str, *evidence: str) -> Finding:
    return Finding(
        invariant=Invariant.IDEMPOTENCY,
        subject=admission.id,
        what=what,
        evidence=(*evidence, f"run {admission.run}"),
    )
