"""Each test gets a fresh store on each driver; PostgreSQL is started once a session."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine, create_engine, text
from sqlalchemy.engine import make_url

from region_scheduler.drivers.sql.backlog import SqlBacklog
from region_scheduler.drivers.sql.engine import open_engine
from region_scheduler.drivers.sql.metadata import SqlMetadata
from region_scheduler.drivers.sql.schema import prepare
from region_scheduler.ports.backlog import Backlog, Metadata
from tests.services import postgres

_NUMBERS = itertools.count(1)


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    with postgres() as url:
        yield url


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Yield the address of an empty store."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/region.db"
        return
    name = f"store_{next(_NUMBERS)}"
    address = make_url(request.getfixturevalue("postgres_url"))
    server = create_engine(
        address.set(drivername="postgresql+psycopg"), isolation_level="AUTOCOMMIT"
    )
    with server.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
    yield address.set(database=name).render_as_string(hide_password=False)
    with server.connect() as connection:
        connection.execute(text(f"DROP DATABASE {name} WITH (FORCE)"))
    server.dispose()


@pytest.fixture
def empty_engine(url: str) -> Iterator[Engine]:
    engine = open_engine(url)
    yield engine
    engine.dispose()


@pytest.fixture
def engine(empty_engine: Engine) -> Engine:
    prepare(empty_engine)
    return empty_engine


@pytest.fixture
def backlog(engine: Engine) -> Backlog:
    return SqlBacklog(engine)


@pytest.fixture
def metadata(engine: Engine) -> Metadata:
    return SqlMetadata(engine)
