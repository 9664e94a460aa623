"""ArangoDB's error numbers, and the HTTP status each is answered with."""

from __future__ import annotations

from typing import Any


class ArangoError(Exception):
    """A failure that ArangoDB would report with an error number.

    Args:
        number: ArangoDB's `errorNum`.
        message: `errorMessage`; the number's standard text when empty.
        status: HTTP status where the handler sets it itself; else it follows from the number.
        extra: Further attributes of the error body (`_id`, `_key`, `_rev` of a conflict).
    """

    def __init__(
        self, number: int, message: str = "", status: int | None = None, **extra: Any
    ) -> None:
        super().__init__(message)
        self.number = number
        self.message = message
        self.status = status
        self.extra = extra
