"""Instants and durations as people write them: an instant with its offset, always."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final

from region_scheduler.errors import InvalidInput

_UNITS_S: Final = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
_DURATION: Final = re.compile("".join(rf"(?:([0-9]{{1,9}}){unit})?" for unit in _UNITS_S))


def instant_of(text: str, field: str) -> datetime:
    """Return the instant (UTC) that `text` names.

    Args:
        text: ISO 8601 with an offset, e.g. `2027-03-14T02:30:00+01:00` or `…Z`.
        field: Where it stands, for the refusal.

    Raises:
        InvalidInput: It is no instant, or says no offset: nobody's local time is assumed.
    """
    try:
        found = datetime.fromisoformat(text)
        if found.tzinfo is not None:
            return found.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        told = "write an instant like 2027-03-14T02:30:00Z"
        raise InvalidInput(field=field, value=text, expected=told) from error
    told = f"say the offset from UTC, e.g. {text}Z or {text}+01:00"
    raise InvalidInput(field=field, value=text, expected=told)


def duration_of(text: str, field: str) -> int:
    """Return the seconds that `text` names, at least 1.

    Args:
        text: Days, hours, minutes and seconds, largest first: `8h`, `90m`, `2d12h`.
        field: Where it stands, for the refusal.

    Raises:
        InvalidInput: It is no duration.
    """
    found = _DURATION.fullmatch(text)
    numbers = found.groups() if found else ()
    total = sum(int(n or 0) * unit_s for n, unit_s in zip(numbers, _UNITS_S.values(), strict=False))
    if not total:
        told = "write a duration like 8h, 90m or 2d12h"
        raise InvalidInput(field=field, value=text, expected=told)
    return total
