"""One wrapper for every port: each call passes a named point where faults and facts can enter."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar, cast

P = TypeVar("P")

Hook = Callable[[str, "partial[Any]"], Any]
"""Given the point's name (`tasks.write`) and the call with its arguments; makes it, or raises
before or after it."""


class _Instrumented:
    """Forwards every method of a port through a hook."""

    def __init__(self, port: object, name: str, hook: Hook) -> None:
        self._port = port
        self._name = name
        self._hook = hook

    def __getattr__(self, attribute: str) -> Any:
        """Return the port's attribute; a method comes back wrapped."""
        found = getattr(self._port, attribute)
        if not callable(found):
            return found
        point, hook = f"{self._name}.{attribute}", self._hook

        def call(*args: Any, **kwargs: Any) -> Any:
            return hook(point, partial(found, *args, **kwargs))

        return call


def instrumented(port: P, name: str, hook: Hook) -> P:
    """Return `port` with every call named `name.method` and passed through `hook`."""
    return cast("P", _Instrumented(port, name, hook))
