"""Who acts, and from where."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class ActorKind(StrEnum):
    """What stands behind an act."""

    OPERATOR = "operator"
    KEY = "key"
    ROLE = "role"


@dataclass(frozen=True, slots=True)
class Actor:
    """Someone, or something, that is answerable for what it does.

    Attributes:
        kind: A person at a shell, a client with an API key, or a process of ours.
        name: Log-in, name of the key, or incarnation.
        source: From where: the surface and the machine.
    """

    kind: ActorKind
    name: str
    source: str = ""

    @property
    def id(self) -> str:
        """The name under which the audit knows it."""
        return f"{self.kind}:{self.name}"
