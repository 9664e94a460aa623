"""Which findings count: those that do not come from having looked at the wrong moment."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from region_scheduler.ports.history import History, Kind
from region_scheduler.verify.invariants import Document, Finding, Invariant

KEPT_MAX: Final = 1_000
"""Findings of one promise that are kept until it is known whether they count."""


class Findings:
    """What was found so far; bounded, whatever is wrong with the store."""

    def __init__(self) -> None:
        self._sure: dict[Invariant, list[Finding]] = defaultdict(list)
        self._open: dict[Invariant, list[Finding]] = defaultdict(list)
        self.counts: Counter[Invariant] = Counter()
        self.unsettled = 0

    def add(self, findings: Iterable[Finding]) -> None:
        """Take what was found."""
        for one in findings:
            is_open = bool(one.documents)
            kept = (self._open if is_open else self._sure)[one.invariant]
            self.counts[one.invariant] += not is_open
            if len(kept) < KEPT_MAX:
                kept.append(one)
            elif is_open:
                self.unsettled += 1

    def of(self, invariant: Invariant) -> list[Finding]:
        """Return what counts of one promise, as far as it was kept."""
        return self._sure[invariant]

    def settle(self, history: History, wait: Callable[[], bool]) -> None:
        """Let those findings count whose documents are all as they were read.

        Args:
            history: Is asked for their revisions.
            wait: Returns when what may be so for a while should be over, or at once with False if
                that cannot be told: then these findings do not count.
        """
        for is_passing in (False, True):
            found = {
                invariant: [one for one in kept if one.is_passing is is_passing]
                for invariant, kept in self._open.items()
            }
            may_count = any(found.values()) and (not is_passing or wait())
            now = _revisions(history, found) if may_count else {}
            for invariant, kept in found.items():
                sure = [one for one in kept if may_count and _is_as_read(one, now)]
                self.unsettled += len(kept) - len(sure)
                self.counts[invariant] += len(sure)
                self._sure[invariant] += sure
        self._open.clear()


def _is_as_read(finding: Finding, now: Mapping[tuple[Kind, str], str]) -> bool:
    return all(now[one.kind, one.id] == one.rev for one in finding.documents)


def _revisions(
    history: History, found: Mapping[Invariant, list[Finding]]
) -> dict[tuple[Kind, str], str]:
    wanted: dict[Kind, dict[str, None]] = defaultdict(dict)
    documents: Iterable[Document] = (
        document for kept in found.values() for one in kept for document in one.documents
    )
    for document in documents:
        wanted[document.kind][document.id] = None
    return {
        (kind, id_): rev
        for kind, ids in wanted.items()
        for id_, rev in zip(ids, history.revisions(kind, list(ids)), strict=True)
    }
