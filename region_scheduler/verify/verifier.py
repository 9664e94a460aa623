"""All promises held against one source, in one pass over what it has recorded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from region_scheduler.domain.ids import RunId
from region_scheduler.domain.instance import Instance, Role
from region_scheduler.ports.history import History
from region_scheduler.verify.counters import StepFact
from region_scheduler.verify.graph import RunLook
from region_scheduler.verify.holding import Holding, fenced_ones
from region_scheduler.verify.invariants import Finding, Invariant
from region_scheduler.verify.records import Asked, Deeds
from region_scheduler.verify.replay import findings_of
from region_scheduler.verify.report import Report, Status, Verdict, verdict_of
from region_scheduler.verify.settling import Findings
from region_scheduler.verify.steps import Steps

_MENDERS: Final = frozenset({Role.SCHEDULER, Role.RESOURCES})


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """What there is to look at.

    Attributes:
        history: A live store, a simulated one, a copy of one.
        steps: Lines of all workers' steps logs, read before anything else; None if they are not at
            hand.
        alive: Those of the lines' `shim_pid` that live.
        is_at_rest: Nothing goes on any more: whatever is to happen has happened.
        wait: Lets so much time pass that whatever may be so for a while is over; None if it
            cannot.
    """

    history: History
    steps: Sequence[StepFact] | None = None
    alive: Collection[int] = ()
    is_at_rest: bool = False
    wait: Callable[[], None] | None = None


def verify(source: Source, run: RunId | None = None) -> Report:
    """Hold every promise against what is recorded.

    Args:
        source: What there is to look at; nothing of it is changed.
        run: Look at this run only, and at what it holds.

    Raises:
        Unavailable: The store does not answer.
    """
    return _Verifier(source, run).report()


class _Verifier:
    def __init__(self, source: Source, only: RunId | None) -> None:
        self._source = source
        self._history = source.history
        self._only = only
        self._findings = Findings()
        self._looked_at: Counter[str] = Counter(dict.fromkeys(("runs", "tasks"), 0))

    def report(self) -> Report:
        """Look at everything once, and then again at what was found in several documents."""
        source, history, found = self._source, self._history, self._findings
        steps = Steps(source.steps or (), source.alive, self._only)
        deeds = Deeds(history.audit())
        asked = Asked(source.is_at_rest)
        holding = Holding(fenced_ones(history.instances()))
        for run in history.runs(self._only):
            self._looked_at["runs"] += 1
            found.add(asked.run(run))
            look = RunLook(
                run, history.zone(run.zone) if run.needs_zone else None, source.is_at_rest
            )
            for page in history.tasks(run.id):
                self._looked_at["tasks"] += len(page)
                found.add(look.take(page))
                found.add(steps.take(page))
                for record in page:
                    found.add(findings_of(record.task))
                    found.add(holding.take(record.task))
                    found.add(deeds.of_task(record.task))
            found.add(look.end(history.counts(run.id)))
            found.add(steps.run_ended())
        found.add(holding.slots(history, self._only))
        self._looked_at["slots"] = holding.units.total()
        found.add(steps.end(holding.units))
        found.add(self._of_requests(asked))
        found.add(self._of_people(deeds))
        found.settle(history, self._wait)
        return Report(
            verdicts=tuple(self._verdict(invariant) for invariant in Invariant),
            looked_at=dict(self._looked_at),
            unsettled=found.unsettled,
        )

    def _of_requests(self, asked: Asked) -> Iterator[Finding]:
        for admission in self._history.admissions():
            if self._only in {None, admission.run}:
                self._looked_at["admissions"] += 1
                yield from asked.admission(admission)
        yield from asked.end()

    def _of_people(self, deeds: Deeds) -> Iterator[Finding]:
        if self._only is None:
            for region in self._history.regions():
                yield from deeds.of_region(region)
            for instance in self._history.instances():
                yield from deeds.of_instance(instance)

    def _wait(self) -> bool:
        """Wait for whoever has to act; say whether somebody was there to do so."""
        if self._source.is_at_rest:
            return True
        if self._source.wait is None:
            return False
        before = _beats(self._history.instances())
        self._source.wait()
        after = _beats(self._history.instances())
        return any(after.get(id_, beat) != beat for id_, beat in before.items())

    def _verdict(self, invariant: Invariant) -> Verdict:
        source, found = self._source, self._findings
        if invariant is Invariant.FAIRNESS:
            why = "shares are a matter of time, of which nothing is recorded"
            return Verdict(invariant=invariant, status=Status.NOT_CHECKABLE, limits=(why,))
        return verdict_of(
            invariant,
            found.counts[invariant],
            found.of(invariant),
            list(_limits(invariant, source)),
        )


def _limits(invariant: Invariant, source: Source) -> Iterator[str]:
    """Yield what of a promise cannot be seen in a source, and why."""
    has_steps = {
        Invariant.ONE_HOLDER,
        Invariant.ORDER,
        Invariant.ONCE,
        Invariant.CAPACITY,
        Invariant.RESIDENCY,
    }
    if invariant in has_steps and source.steps is None:
        yield "what the steps did: their own logs are not at hand"
    passing = {Invariant.NO_STUCK, Invariant.NO_LEAK, Invariant.FENCING}
    if invariant in passing and source.wait is None and not source.is_at_rest:
        yield "what stays so for too long: one look does not tell"
    match invariant:
        case Invariant.NO_LOSS if not source.is_at_rest:
            yield "whether what goes on comes to its end: that lies ahead"
        case Invariant.RESIDENCY:
            yield "blobs in the regions' own storage: they are not part of the store"
        case Invariant.NO_STUCK:
            yield "rows of the backlogs: each is in a store of its region"
        case Invariant.AUDIT:
            yield "who submitted a run: it does not say"
        case _:
            return


def _beats(instances: Iterable[Instance]) -> dict[str, int]:
    return {
        one.id: one.beat for one in instances if one.fenced is None and _MENDERS & set(one.roles)
    }
