"""The best rows of many tenants, each tenant's by one range of an index.

No sort over all of them and no window over the table: the cost is that of the rows returned, and of
one descent of the index a tenant, however many rows there are. SQLite is asked by a UNION ALL with
a part a tenant. PostgreSQL would plan such a statement for longer than it runs; a lateral join asks
it for the same ranges and is one small plan for any number of tenants. Both are plain SQL, because
SQLAlchemy takes longer to compile them, anew for every number of tenants, than a store to answer.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from sqlalchemy import Connection, CursorResult

from region_scheduler.drivers.sql.tables import escaped, unescaped
from region_scheduler.ports.backlog import BacklogRow, Eligible

_WRITTEN_ONLY: Final = frozenset({"rest_s", "not_before_s"})
FIELDS: Final = tuple(name for name in BacklogRow._fields if name not in _WRITTEN_ONLY)
PARTS_MAX: Final = 100
"""Tenants in one question; SQLite takes 500 parts of a UNION at most."""


def _best(tenant: str, share: str, conditions: Sequence[str]) -> str:
    """Return one tenant's question, the places of its parameters given."""
    return " ".join(
        (
            "SELECT",
            ", ".join(FIELDS),
            "FROM backlog WHERE",
            " AND ".join((f"tenant = {tenant}", *conditions)),
            "ORDER BY priority DESC, remaining_s DESC, due_s, task LIMIT",
            share,
        )
    )


_UNION_CONDITIONS: Final = {
    "now_s": "rests_until_s <= :now_s",
    "pools": "pool IN ({pools})",
    "closed": "(run NOT IN ({closed}) OR passport IN ({passports}))",
    "buckets": "bucket IN ({buckets})",
}
_LATERAL_CONDITIONS: Final = {
    "now_s": "rests_until_s <= %(now_s)s",
    "pools": "pool = ANY(%(pools)s::text[])",
    "closed": "(run <> ALL(%(closed)s::text[]) OR passport = ANY(%(passports)s::text[]))",
    "buckets": "bucket = ANY(%(buckets)s::int[])",
}


def best_rows(
    connection: Connection, shares: Sequence[tuple[str, int]], now_s: float, eligible: Eligible
) -> list[BacklogRow]:
    """Return each tenant's best eligible rows that do not rest.

    Args:
        connection: Of either store.
        shares: Tenants, each with the number of its rows; at most `PARTS_MAX` of them.
        now_s: What rests until later is left out.
        eligible: What else is left out.
    """
    values: dict[str, Any] = {"now_s": now_s}
    if eligible.pools is not None:
        values["pools"] = sorted(eligible.pools)
    if eligible.closed_runs:
        values |= {"closed": sorted(eligible.closed_runs), "passports": sorted(eligible.passports)}
    if eligible.buckets is not None:
        values["buckets"] = sorted(eligible.buckets)
    is_postgresql = connection.dialect.name == "postgresql"
    ask = _lateral if is_postgresql else _union
    return [_row(found) for found in ask(connection, shares, values).all()]


def _lateral(
    connection: Connection, shares: Sequence[tuple[str, int]], values: Mapping[str, Any]
) -> CursorResult[Any]:
    conditions = [text for name, text in _LATERAL_CONDITIONS.items() if name in values]
    best = _best("asked.tenant", "asked.share", conditions)
    asked = "unnest(%(tenants)s::text[], %(shares)s::bigint[]) AS asked (tenant, share)"
    tenants = {"tenants": [escaped(name) for name, _ in shares], "shares": [n for _, n in shares]}
    statement = " ".join(("SELECT best.* FROM", asked, "CROSS JOIN LATERAL (", best, ") AS best"))
    return connection.exec_driver_sql(statement, {**values, **tenants})


def _union(
    connection: Connection, shares: Sequence[tuple[str, int]], values: Mapping[str, Any]
) -> CursorResult[Any]:
    lists = {name: value for name, value in values.items() if isinstance(value, list)}
    given = {name: value for name, value in values.items() if name not in lists}
    places: dict[str, str] = {}
    for name, members in lists.items():
        numbered = {f"{name}_{n}": member for n, member in enumerate(members)}
        places[name] = ",".join(f":{key}" for key in numbered)
        given |= numbered
    texts = [text for name, text in _UNION_CONDITIONS.items() if name in values]
    conditions = [text.format(**places) for text in texts]
    parts: list[str] = []
    for number, (name, count) in enumerate(shares):
        given |= {f"tenant_{number}": escaped(name), f"share_{number}": count}
        best = _best(f":tenant_{number}", f":share_{number}", conditions)
        parts.append(" ".join(("SELECT * FROM (", best, ")")))
    return connection.exec_driver_sql(" UNION ALL ".join(parts), given)


def _row(values: Sequence[Any]) -> BacklogRow:
    given = list(values)
    given[_TENANT] = unescaped(given[_TENANT])
    given[_LOCKS] = tuple(json.loads(given[_LOCKS])) if given[_LOCKS] != "[]" else ()
    return BacklogRow(*given)


_TENANT: Final = FIELDS.index("tenant")
_LOCKS: Final = FIELDS.index("locks")
