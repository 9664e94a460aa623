"""The best rows of many tenants, each tenant's by one range of an index.

No sort over all of them and no window over the table: the cost is that of the rows returned, and of
one descent of the index a tenant, however many rows there are. SQLite is asked by a UNION ALL with
a part a tenant. PostgreSQL would plan such a statement for longer than it runs; a lateral join asks
it for the same ranges and is one small plan for any number of tenants. Both are plain SQL, because
SQLAlchemy takes longer to compile them, anew for every number of tenants, than a store to answer.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Sequence
from typing import Any, Final

from sqlalchemy import Connection

from region_scheduler.drivers.sql.tables import escaped, unescaped
from region_scheduler.ports.backlog import BacklogRow

FIELDS: Final = tuple(f.name for f in dataclasses.fields(BacklogRow) if f.name != "rest_s")
PARTS_MAX: Final = 100
"""Tenants in one question; SQLite takes 500 parts of a UNION at most."""


def _best(tenant: str, now_s: str, pools: str, share: str) -> str:
    """Return one tenant's question, the places of its parameters given."""
    return " ".join(
        (
            "SELECT",
            ", ".join(FIELDS),
            "FROM backlog WHERE tenant =",
            tenant,
            "AND rests_until_s <=",
            now_s,
            "AND pool",
            pools,
            "ORDER BY priority DESC, remaining_s DESC, due_s, task LIMIT",
            share,
        )
    )


_PART: Final = " ".join(("SELECT * FROM (", _best("?", "?", "IN ({})", "?"), ")"))
_LATERAL: Final = " ".join(
    (
        "SELECT best.* FROM",
        "unnest(%(tenants)s::text[], %(shares)s::bigint[]) AS asked (tenant, share)",
        "CROSS JOIN LATERAL (",
        _best("asked.tenant", "%(now_s)s", "= ANY(%(pools)s::text[])", "asked.share"),
        ") AS best",
    )
)


def best_rows(
    connection: Connection, shares: Sequence[tuple[str, int]], now_s: float, pools: Sequence[str]
) -> list[BacklogRow]:
    """Return each tenant's best rows that do not rest.

    Args:
        connection: Of either store.
        shares: Tenants, each with the number of its rows; at most `PARTS_MAX` of them.
        now_s: What rests until later is left out.
        pools: What belongs to another pool is left out; at least one.
    """
    if connection.dialect.name == "postgresql":
        names, counts = [escaped(name) for name, _ in shares], [count for _, count in shares]
        values = {"tenants": names, "shares": counts, "now_s": now_s, "pools": list(pools)}
        found = connection.exec_driver_sql(_LATERAL, values)
    else:
        asked = [v for name, count in shares for v in (escaped(name), now_s, *pools, count)]
        part = _PART.format(",".join("?" * len(pools)))
        found = connection.exec_driver_sql(" UNION ALL ".join([part] * len(shares)), tuple(asked))
    return [_row(values) for values in found]


def _row(values: Sequence[Any]) -> BacklogRow:
    given = dict(zip(FIELDS, values, strict=True))
    for name, decode in _DECODED.items():
        given[name] = decode(given[name])
    return BacklogRow(**given)


_DECODED: Final[dict[str, Callable[[str], Any]]] = {
    "tenant": unescaped,
    "locks": lambda text: tuple(json.loads(text)),
}
