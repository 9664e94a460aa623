"""Who admitted what: admissions found by what people type, and who is at them."""

from __future__ import annotations

from region_scheduler.domain.admission import AdmissionSummary
from region_scheduler.domain.ids import Incarnation
from region_scheduler.errors import InvalidInput, NotFound
from region_scheduler.ports.records import GraphStores

_RECENT = 10_000


def find_admission(graph: GraphStores, text: str) -> AdmissionSummary:
    """Return the admission whose id or run begins or ends with `text`, or whose key it is.

    Raises:
        NotFound: None of the newest ones fits.
        InvalidInput: More than one fits.
    """
    recent = graph.admissions.recent(_RECENT)
    exact = [a for a in recent if text in {a.id, a.run}]
    fitting = exact or [
        a
        for a in recent
        if text == a.key or any(id_.startswith(text) or id_.endswith(text) for id_ in (a.id, a.run))
    ]
    if not fitting:
        raise NotFound(thing="admission", id=text)
    if len(fitting) > 1:
        expected = f"{len(fitting)} admissions fit: type more"
        raise InvalidInput(field="ADMISSION", value=text, expected=expected)
    return fitting[0]


def state_of_instance(graph: GraphStores, incarnation: Incarnation) -> str:
    """Return whether the lease of an incarnation is `live`, over and why, or `unknown`."""
    (found,) = graph.instances.read([incarnation])
    if found is None:
        return "unknown"
    return "live" if found.fenced is None else found.fenced.kind.value
