"""What an answer of the store means for the one who asked (docs/protocol.md section 1).

For a write there are three meanings and no fourth: nothing was done, it is definite, nobody knows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from arango.exceptions import ArangoServerError
from requests import RequestException

from region_scheduler.errors import InvalidInput, RegionSchedulerError, Unavailable

DEPENDENCY: Final = "graph store"

CONFLICTS: Final = frozenset({1200, 1210})
"""Stale revision, write-write conflict, or a key that is taken."""
MISSING: Final = 1202
NOT_DONE: Final = frozenset({1004, 1496})
"""Too few replicas in sync, or no longer the leader: the store says that it did nothing."""
MALFORMED: Final = frozenset({10, 600, 1205, 1221, 1226, 1227, 1233, 1466, 1468, 1469, 1620, 1621})
"""A document that no repetition makes acceptable."""

_NOT_NOW_STATUS: Final = frozenset({401, 403, 404, 412, 429})
"""Refused as a whole for something that an operator, or time, can change."""
_NOT_EVER_STATUS: Final = frozenset({400, 405, 413, 415, 422})
"""Refused as a whole for what it says."""

T = TypeVar("T")


class NotSent(Exception):
    """The request never reached the store as a whole: nothing was done."""


class AnswerLost(Exception):
    """The request was sent and its answer did not come: nobody knows what was done.

    Attributes:
        is_stale: The connection had been idle and died before a byte of the answer: most likely
            the server had closed it. Only a read may be repeated on this hint.
    """

    def __init__(self, detail: str, is_stale: bool = False) -> None:
        super().__init__(detail)
        self.is_stale = is_stale


LOST: Final = (AnswerLost, ArangoServerError, RequestException, OSError)
"""All ways in which a request that may have been executed can fail."""


def refusal(error: Exception) -> RegionSchedulerError | None:
    """Return why a write request as a whole did nothing, or None if nobody can know.

    A definite conflict of a single document is no failure of the request and must be looked for
    before.
    """
    if isinstance(error, NotSent):
        return Unavailable(dependency=DEPENDENCY, detail=str(error))
    if not isinstance(error, ArangoServerError):
        return None
    status = error.http_code or 0
    if error.error_code in NOT_DONE or status in _NOT_NOW_STATUS:
        return Unavailable(dependency=DEPENDENCY, detail=str(error))
    if status in _NOT_EVER_STATUS:
        return InvalidInput(
            field="request to the graph store",
            value=f"error {error.error_code}",
            expected=str(error.error_message),
        )
    return None


def reading(call: Callable[[], T]) -> T:
    """Return what `call`, which only reads, returns; asked once more over a connection gone stale.

    Raises:
        Unavailable: No answer, whatever the reason; reading again is safe.
    """
    try:
        return call()
    except AnswerLost as error:
        if not error.is_stale:
            raise _unavailable(error) from error
    except (NotSent, *LOST) as error:
        raise _unavailable(error) from error
    try:
        return call()
    except (NotSent, *LOST) as error:
        raise _unavailable(error) from error


def _unavailable(error: Exception) -> Unavailable:
    return Unavailable(dependency=DEPENDENCY, detail=str(error) or type(error).__name__)
