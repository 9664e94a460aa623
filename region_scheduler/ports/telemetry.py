"""Where facts go. The default drops them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """Something that happened; named once, in `name`."""

    name: ClassVar[str] = "fact"


class Telemetry(Protocol):
    """Takes facts."""

    def emit(self, fact: Fact) -> None:
        """Record `fact`; never raise, never block."""
        ...


class Silence:
    """Telemetry that drops every fact."""

    def emit(self, fact: Fact) -> None:
        """Drop `fact`."""


SILENCE: Telemetry = Silence()
"""Where facts go unless somebody wants them."""
