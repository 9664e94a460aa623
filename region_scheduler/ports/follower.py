"""The local follower of the graph store, from which suggesting reads come."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from region_scheduler.domain.ids import Incarnation
from region_scheduler.ports.consistency import Suggesting


class Follower(Protocol):
    """How far it is, and whether anything is read from it."""

    def beats(self) -> Suggesting[Mapping[Incarnation, int]]:
        """Return the beat of every unfenced incarnation as the follower shows it, trusted or not.

        Raises:
            Unavailable: No answer.
        """
        ...

    def trust(self, is_trusted: bool) -> None:
        """Let suggesting reads of this process come from it, or from the leader."""
        ...
