"""Instants as people write them: with an offset, always."""

from __future__ import annotations

from datetime import UTC, datetime

from region_scheduler.errors import InvalidInput


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
