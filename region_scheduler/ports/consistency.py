"""The two kinds of read, as markers in return types."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, TypeVar

T = TypeVar("T")

Suggesting = Annotated[T, "suggesting"]
"""Read from the local follower: may be stale, may never be what a decision rests on."""

Deciding = Annotated[T, "deciding"]
"""Read at the leader."""


class Reads(StrEnum):
    """Where the reads of one connection go."""

    AS_STATED = "as-stated"
    """Each as its type says."""
    AT_LEADER = "at-leader"
    """All to the leader: the local follower is not to be trusted."""
    AT_FOLLOWER = "at-follower"
    """All to the local follower: for views only, nothing may be written that rests on them."""
