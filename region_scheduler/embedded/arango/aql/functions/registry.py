"""Where AQL's functions are looked up by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from inspect import signature
from typing import Any, Final, TypeVar

Implementation = Callable[..., Any]
F = TypeVar("F", bound=Implementation)


@dataclass(frozen=True, slots=True)
class Function:
    """One AQL function.

    Attributes:
        call: Takes the arguments; before them the run, if its first parameter has that name.
        maximum: Most arguments allowed; None means any number.
        takes_collection: A collection's name may stand as first argument and is passed as a string.
        reads_documents: It looks up documents that its arguments name at run time.
    """

    name: str
    call: Implementation
    minimum: int
    maximum: int | None
    takes_run: bool = False
    takes_collection: bool = False
    reads_documents: bool = False


REGISTRY: Final[dict[str, Function]] = {}


def function(
    names: str,
    minimum: int,
    maximum: int | None = -1,
    *,
    takes_collection: bool = False,
    reads_documents: bool = False,
) -> Callable[[F], F]:
    """Register the decorated implementation under one or more names, parted by blanks.

    Args:
        names: The function's name and its aliases, upper case.
        minimum: Fewest arguments.
        maximum: Most arguments; None means any number; left out means `minimum`.
        takes_collection: See Function.
        reads_documents: See Function.
    """
    most = minimum if maximum == -1 else maximum

    def register(call: F) -> F:
        takes_run = next(iter(signature(call).parameters), "") == "run"
        for name in names.split():
            REGISTRY[name] = Function(
                name, call, minimum, most, takes_run, takes_collection, reads_documents
            )
        return call

    return register
