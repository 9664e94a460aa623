"""Bringing a store to the schema that this code knows, and back.

A fresh store is made from the tables at once; Alembic is loaded only where a store must move.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sqlalchemy import Column, Connection, Engine, MetaData, String, Table, inspect, select, text
from sqlalchemy.exc import SQLAlchemyError

from region_scheduler.drivers.sql.engine import is_damaged, open_engine, writing
from region_scheduler.drivers.sql.tables import METADATA
from region_scheduler.errors import Misconfigured, Unavailable

if TYPE_CHECKING:
    from alembic.config import Config

HEAD: Final = "0003"
"""The newest migration; a test holds it to the files."""
MIGRATIONS: Final = Path(__file__).parent / "migrations"
_LOCK: Final = 0x7265_6769  # one number for all who prepare a PostgreSQL store
_version: Final = Table(
    "alembic_version", MetaData(), Column("version_num", String(32), primary_key=True)
)


def prepare(engine: Engine) -> None:
    """Make the store ready for this code; several processes may try at once.

    Raises:
        Misconfigured: The file is no store, or was made by a newer version.
        Unavailable: No connection, or another holds it.
    """
    if _is_ready(engine):
        return
    with _alone(engine) as connection:
        current = _current(connection)
        if current not in {None, HEAD}:
            _migrate(connection, HEAD)
            return
        METADATA.create_all(connection)
        if current is None:
            _version.create(connection, checkfirst=True)
            connection.execute(_version.insert().values(version_num=HEAD))


def upgrade(url: str, revision: str = HEAD) -> None:
    """Run migrations up to `revision` by Alembic, also on a fresh store.

    Raises:
        Misconfigured: The file is no store, or was made by a newer version.
        Unavailable: No connection, or another holds it.
    """
    _move(url, revision, is_up=True)


def downgrade(url: str, revision: str = "base") -> None:
    """Run migrations down to `revision`; `base` drops all tables.

    Raises:
        Misconfigured: The file is no store, or was made by a newer version.
        Unavailable: No connection, or another holds it.
    """
    _move(url, revision, is_up=False)


def _move(url: str, revision: str, *, is_up: bool) -> None:
    engine = open_engine(url)
    try:
        with _alone(engine) as connection:
            _migrate(connection, revision, is_up=is_up)
    finally:
        engine.dispose()


@contextmanager
def _alone(engine: Engine) -> Iterator[Connection]:
    """Yield a connection in a transaction that no other preparing process shares."""
    try:
        with writing(engine) as connection:
            if engine.dialect.name == "sqlite":
                connection.exec_driver_sql("BEGIN IMMEDIATE")
            else:
                connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
            yield connection
    except Unavailable as failed:
        cause = failed.__cause__
        if isinstance(cause, SQLAlchemyError) and is_damaged(cause):
            raise Misconfigured(
                problems=[
                    f"{engine.url.database} is damaged ({failed.detail}); move it away: it is"
                    " made anew and filled from the graph store"
                ]
            ) from failed
        raise


def _is_ready(engine: Engine) -> bool:
    """Say whether there is nothing to do, without keeping others from writing."""
    try:
        with engine.connect() as connection:
            is_whole = METADATA.tables.keys() <= set(inspect(connection).get_table_names())
            return is_whole and _current(connection) == HEAD
    except SQLAlchemyError:
        return False  # why not is found, and told, by the one who prepares


def _current(connection: Connection) -> str | None:
    if not inspect(connection).has_table(_version.name):
        return None
    return connection.execute(select(_version.c.version_num)).scalar()


def _migrate(connection: Connection, revision: str, *, is_up: bool = True) -> None:
    from alembic import command
    from alembic.util import CommandError

    move = command.upgrade if is_up else command.downgrade
    try:
        move(alembic_config(connection), revision)
    except CommandError as refused:
        raise Misconfigured(
            problems=[f"the relational store cannot be brought to {revision}: {refused}"]
        ) from refused


def alembic_config(connection: Connection) -> Config:
    """Return what Alembic needs to run our migrations on `connection`."""
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config
