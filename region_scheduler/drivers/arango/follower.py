"""The local follower, as the coordinator of this region reaches it."""

from __future__ import annotations

from collections.abc import Mapping

from region_scheduler.domain.ids import Incarnation
from region_scheduler.drivers.arango.query import Queries
from region_scheduler.ports.consistency import Reads


class ArangoFollower:
    """`ports.follower.Follower` of one connection."""

    def __init__(self, queries: Queries) -> None:
        self._queries = queries

    def beats(self) -> Mapping[Incarnation, int]:
        """Return the beat of every unfenced incarnation as the follower shows it."""
        rows = self._queries.rows_at_follower("instances_beats")
        return {Incarnation(row["id"]): int(row["beat"]) for row in rows}

    def trust(self, is_trusted: bool) -> None:
        """Let suggesting reads of this process come from it, or from the leader."""
        self._queries.reads = Reads.AS_STATED if is_trusted else Reads.AT_LEADER
