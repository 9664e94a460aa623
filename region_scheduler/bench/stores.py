"""Measure the relational stores: `region-scheduler bench stores [--postgres URL]`.

How long the best 100 of a million rows take, shared between 50 tenants, beside what the same store
needs for one row by its primary key and for no row at all.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from itertools import count

from region_scheduler.assembly.relational import probed
from region_scheduler.bench.figures import Figure
from region_scheduler.bench.rounds import percentile
from region_scheduler.errors import InvalidInput
from region_scheduler.ports.backlog import Eligible
from region_scheduler.runtime.system import SystemClock

ROWS = 1_000_000
TENANTS = 50
TOP = 100
POOL = "default"
SQLITE_MS = 2.0
POSTGRES_MS = 5.0


def measure(seconds: float, postgres_url: str = "", rows: int = ROWS) -> list[Figure]:
    """Return the figures of SQLite, and of PostgreSQL where an address is given.

    Args:
        seconds: Of each measured round.
        postgres_url: An empty database; it is emptied again.
        rows: Rows of the backlog.

    Raises:
        InvalidInput: The database is not empty; nothing was written.
        Unavailable: A store does not answer.
    """
    if postgres_url:
        _require_empty(postgres_url)
    with tempfile.TemporaryDirectory() as directory:
        figures = list(_of("SQLite", f"sqlite:///{directory}/bench.db", SQLITE_MS, seconds, rows))
    if postgres_url:
        figures += _of("PostgreSQL", postgres_url, POSTGRES_MS, seconds, rows)
    return figures


def _require_empty(url: str) -> None:
    with probed(url) as (backlog, _):
        depth = backlog.depth()
    if depth:
        expected = "the database's backlog has rows; name an empty one"
        raise InvalidInput(field="--postgres", value=f"{depth:,} rows", expected=expected)


def _of(store: str, url: str, target_ms: float, seconds: float, rows: int) -> Iterator[Figure]:
    with probed(url) as (backlog, probe):
        try:
            probe.fill(rows, TENANTS)
            number = count()
            limits = {
                "round trip": _ms(probe.round_trip, seconds / 4),
                "key lookup": _ms(lambda: probe.look_up(next(number) % rows), seconds / 4),
            }
            beside = ", ".join(
                f"{name} {best:.2f} ms (median {median:.2f})"
                for name, (best, median) in limits.items()
            )
            shares = dict.fromkeys(backlog.tenants(), TOP // TENANTS)

            def top() -> None:
                if len(backlog.top(shares, 1.0, Eligible(pools=frozenset({POOL})))) != TOP:
                    raise RuntimeError(f"{store}: not {TOP} rows")

            best, median = _ms(top, seconds)
            title = f"{store}: top {TOP} of {rows:,}"
            yield Figure(f"{title}, best", best, "ms", None, beside)
            yield Figure(f"  its median, {TENANTS} tenants", median, "ms", target_ms, beside)
            _, median = _ms(backlog.tenants, seconds / 4)
            yield Figure(f"  which tenants wait, median of {TENANTS}", median, "ms", None, beside)
        finally:
            backlog.clear()


def _ms(act: Callable[[], object], seconds: float) -> tuple[float, float]:
    """Return the best and the median of as many calls as fit into `seconds`, milliseconds."""
    clock = SystemClock()
    taken: list[float] = []
    ends_at = clock.monotonic() + seconds
    while (began_at := clock.monotonic()) < ends_at:
        act()
        taken.append(clock.monotonic() - began_at)
    taken.sort()
    return taken[0] * 1e3, percentile(taken, 0.5) * 1e3
