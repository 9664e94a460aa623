"""The two kinds of read, as markers in return types."""

from __future__ import annotations

from typing import Annotated, TypeVar

T = TypeVar("T")

Suggesting = Annotated[T, "suggesting"]
"""Read from the local follower: may be stale, may never be what a decision rests on."""

Deciding = Annotated[T, "deciding"]
"""Read at the leader."""
