"""For measuring: a backlog of any size at once, and the least that one question can cost."""

from __future__ import annotations

from typing import Final

from sqlalchemy import Engine, text

from region_scheduler.drivers.sql.engine import writing

# Neighbours in the order of promotion lie far apart in the table, as they do in real life.
_ROWS: Final = """
  INSERT INTO backlog (
    task, run, tenant, pool, seq, spell, priority, delay_tolerance_s, remaining_s, locks, due_s,
    rests_until_s, passport, bucket
  )
"""
_VALUES: Final = """
  SELECT 'tasks/' || (n * 7919 % 1000003), 'run', 'tenant-' || (10000 + n % :tenants), 'default',
    1, '1.0', n % 3, 0, n * 104729 % 9973, '[]', n * 31 % 3600, 0, '', n % 256
"""
_FILL: Final = {
    "sqlite": " ".join(
        (
            _ROWS,
            "WITH RECURSIVE s (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM s WHERE n < :last)",
            _VALUES,
            "FROM s",
        )
    ),
    "postgresql": " ".join(
        (_ROWS, _VALUES, "FROM generate_series(0, CAST(:last AS bigint)) AS s (n)")
    ),
}
ROWS_MAX: Final = 1_000_003


class Probe:
    """Fills the backlog of an empty store, and asks it the cheapest questions there are."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._connection = engine.connect()

    def close(self) -> None:
        """Give the connection back."""
        self._connection.close()

    def fill(self, rows: int, tenants: int) -> None:
        """Insert rows that may all be promoted, shared evenly between tenants.

        Args:
            rows: At most `ROWS_MAX`.
            tenants: How many there are.

        Raises:
            Unavailable: Nothing was written, e.g. because rows are there already.
        """
        name = self._engine.dialect.name
        with writing(self._engine) as connection:
            if name == "postgresql":
                connection.execute(text("SET LOCAL statement_timeout = 0"))
            connection.execute(text(_FILL[name]), {"last": rows - 1, "tenants": tenants})
            connection.execute(text("ANALYZE"))

    def round_trip(self) -> None:
        """Ask for nothing."""
        self._connection.execute(text("SELECT 1")).scalar()
        self._connection.rollback()

    def look_up(self, number: int) -> None:
        """Ask for one row by its primary key."""
        key = f"tasks/{number * 7919 % ROWS_MAX}"
        asked = text("SELECT * FROM backlog WHERE task = :key")
        self._connection.execute(asked, {"key": key}).one()
        self._connection.rollback()
