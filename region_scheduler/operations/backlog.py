"""Rebuilding a region's relational store from the graph."""

from __future__ import annotations

from region_scheduler.errors import InvalidInput
from region_scheduler.operations.audit import Auditor
from region_scheduler.ports.records import GraphStores
from region_scheduler.scheduling.mend import Mended, Mender


def rebuild_backlog(graph: GraphStores, mender: Mender, auditor: Auditor, region: str) -> Mended:
    """Drop all rows of the region's relational store and refill it; return what was put in.

    May be called while schedulers work: every row carries the `seq` of its task, and a claim is
    decided in the graph. Due times count anew from now.

    Args:
        graph: The graph store.
        mender: Of `region`, on its relational store.
        auditor: Is told before anything is dropped.
        region: One that the graph store knows.

    Raises:
        InvalidInput: There is no such region; nothing was done.
        Unavailable, OutcomeUnknown: Part of it may be done; call again, or leave the rest to the
            region's serving process.
        Misconfigured: The relational store is damaged.
    """
    known = [found.id for found in graph.regions.all()]
    if region not in known:
        expected = f"there are {', '.join(known)}" if known else "no region has been started yet"
        raise InvalidInput(field="--region", value=region, expected=expected)
    auditor.record("backlog.rebuild", region)
    return mender.rebuild()
