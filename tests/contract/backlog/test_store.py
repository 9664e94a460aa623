"""The store beneath: its schema, its plans, and what its failures mean."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, event, inspect, text
from sqlalchemy.exc import OperationalError

from region_scheduler.drivers.sql import schema
from region_scheduler.drivers.sql.backlog import SqlBacklog
from region_scheduler.drivers.sql.engine import open_engine
from region_scheduler.drivers.sql.metadata import SqlMetadata
from region_scheduler.drivers.sql.schema import HEAD, downgrade, prepare, upgrade
from region_scheduler.drivers.sql.tables import METADATA
from region_scheduler.errors import Misconfigured, OutcomeUnknown, RegionSchedulerError, Unavailable
from region_scheduler.ports.backlog import BacklogRow
from tests.contract.backlog.test_backlog import NOW, row
from tests.contract.backlog.test_metadata import row as metadata_row


def differences(connection: Connection) -> list[Any]:
    context = MigrationContext.configure(connection, opts={"compare_type": True})
    return list(compare_metadata(context, METADATA))


def indexes(engine: Engine) -> set[str]:
    if engine.dialect.name == "sqlite":
        query = "SELECT lower(sql) FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL"
    else:
        query = "SELECT indexdef FROM pg_indexes WHERE schemaname = 'public'"
    with engine.connect() as connection:
        return set(connection.execute(text(query)).scalars())


def test_the_migrations_make_what_the_tables_say(url: str, empty_engine: Engine) -> None:
    upgrade(url)

    with empty_engine.connect() as connection:
        assert differences(connection) == []


def test_a_fresh_store_is_the_same_as_a_migrated_one(url: str, empty_engine: Engine) -> None:
    prepare(empty_engine)
    made = indexes(empty_engine)
    with empty_engine.connect() as connection:
        assert differences(connection) == []
        config = schema.alembic_config(connection)
        assert ScriptDirectory.from_config(config).get_heads() == [HEAD]
        assert MigrationContext.configure(connection).get_current_revision() == HEAD

    downgrade(url)
    assert inspect(empty_engine).get_table_names() == ["alembic_version"]
    upgrade(url)
    assert indexes(empty_engine) == made
    downgrade(url, "0001")
    assert "backlog_by_promotion" in "".join(indexes(empty_engine))
    upgrade(url)
    assert indexes(empty_engine) == made
    prepare(empty_engine)
    assert SqlBacklog(empty_engine).depth() == 0


def test_a_store_that_went_down_is_brought_up_by_the_next_start(
    url: str, empty_engine: Engine
) -> None:
    prepare(empty_engine)
    downgrade(url)

    prepare(empty_engine)

    assert SqlBacklog(empty_engine).depth() == 0


def test_a_store_that_is_started_again_keeps_its_rows_and_their_due_times(
    url: str, engine: Engine
) -> None:
    SqlBacklog(engine).add([row("late", delay_tolerance_s=9), row("soon")], NOW)
    SqlMetadata(engine).record([metadata_row("late")])

    again = open_engine(url)
    prepare(again)
    upgrade(url)

    assert [r.task for r in SqlBacklog(again).top({"acme": 9}, NOW)] == [
        "tasks/soon",
        "tasks/late",
    ]
    assert SqlMetadata(again).count() == 1
    again.dispose()


OLD_BACKLOG = """
    INSERT INTO backlog (task, run, tenant, pool, seq, priority, delay_tolerance_s, remaining_s,
      locks, due_s, rests_until_s) VALUES ('tasks/old', 'run', 'acme', 'p', 7, 0, 0, 0, '[]', 0, 0)
"""
OLD_METADATA = """
    INSERT INTO task_metadata (task, run, tenant, name, region, state, runner, pool, seq, priority,
      delay_tolerance_s, expected_s, remaining_s, cap_s, retry_limit, retries_used, locks)
    VALUES ('tasks/old', 'run', 'acme', 'old', 'eu', 'ready', 'x', 'p', 7, 0, 0, 0, 0, 0, 0, 0, '')
"""


def test_a_store_with_rows_goes_up_and_down_and_takes_rows_again_each_time(
    url: str, empty_engine: Engine
) -> None:
    """What an old row meant is not guessed: the mender refills what a migration empties."""
    upgrade(url, "0001")
    with empty_engine.begin() as connection:
        connection.execute(text(OLD_BACKLOG))
        connection.execute(text(OLD_METADATA))

    prepare(empty_engine)
    backlog, metadata = SqlBacklog(empty_engine), SqlMetadata(empty_engine)
    assert backlog.depth() == metadata.count() == 0
    backlog.add([row("old", seq=7)], NOW)
    metadata.record([metadata_row("old", seq=7)])
    assert (backlog.depth(), metadata.count()) == (1, 1)

    downgrade(url, "0001")
    with empty_engine.begin() as connection:
        connection.execute(text(OLD_BACKLOG))
        connection.execute(text(OLD_METADATA))
    upgrade(url)
    assert backlog.depth() == metadata.count() == 0
    downgrade(url)
    assert inspect(empty_engine).get_table_names() == ["alembic_version"]


def test_tables_that_were_dropped_are_made_anew(engine: Engine) -> None:
    with engine.begin() as connection:
        connection.execute(text("DROP TABLE backlog"))
    SqlMetadata(engine).record([metadata_row("stays")])

    prepare(engine)

    assert SqlBacklog(engine).depth() == 0
    assert SqlMetadata(engine).count() == 1


def test_a_store_of_a_newer_version_is_refused(engine: Engine) -> None:
    with engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))

    with pytest.raises(Misconfigured, match="9999"):
        prepare(engine)


def test_many_processes_may_prepare_one_store_at_once(url: str) -> None:
    engines = [open_engine(url) for _ in range(6)]
    failures: list[Exception] = []

    def run(engine: Engine) -> None:
        try:
            prepare(engine)
        except RegionSchedulerError as failed:
            failures.append(failed)

    threads = [threading.Thread(target=run, args=(engine,)) for engine in engines]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert failures == []
    for engine in engines:
        engine.dispose()


_EXPLAIN = "EXPLAIN (COSTS OFF) "


def plans_of(engine: Engine) -> list[str]:
    """Return a list that fills with the plan of every question about the backlog from now on."""
    plans: list[str] = []

    @event.listens_for(engine, "before_cursor_execute", retval=True)
    def explain(
        connection: Connection, _cursor: Any, statement: str, parameters: Any, *_rest: Any
    ) -> tuple[str, Any]:
        if statement.startswith(("SELECT", "WITH")):
            prefix = "EXPLAIN QUERY PLAN " if connection.dialect.name == "sqlite" else _EXPLAIN
            asked = connection.connection.cursor()
            asked.execute(prefix + statement, parameters)
            plans.append("\n".join(str(line[-1]) for line in asked.fetchall()))
        return statement, parameters

    return plans


def test_each_tenants_share_is_one_range_of_an_index(engine: Engine) -> None:
    tenants = [f"tenant-{n:02}" for n in range(50)]
    backlog = SqlBacklog(engine)
    many = [row(f"{n:05}", tenant=tenants[n % 50], remaining_s=n % 97) for n in range(20_000)]
    backlog.add(many, NOW)
    with engine.begin() as connection:
        connection.execute(text("ANALYZE"))  # as the server does by itself
    plans = plans_of(engine)

    assert len(backlog.top(dict.fromkeys(tenants, 2), NOW)) == 100
    assert backlog.tenants() == tenants

    shares, distinct = plans
    # A range for each tenant: written out in one store, an inner loop in the other.
    assert shares.count("backlog_by_tenant") == (50 if engine.dialect.name == "sqlite" else 1)
    assert "backlog_by_tenant" in distinct
    for plan in plans:
        assert "Sort" not in plan
        assert "TEMP B-TREE" not in plan
        assert "Seq Scan" not in plan
        assert "SCAN backlog" not in plan.replace("SCAN backlog USING COVERING INDEX", "")


def test_a_file_that_is_removed_under_a_process_is_made_anew(tmp_path: Path) -> None:
    path = tmp_path / "region.db"
    engine = open_engine(f"sqlite:///{path}")
    backlog = SqlBacklog(engine)
    backlog.prepare()
    backlog.add([row("a")], NOW)
    for file in tmp_path.glob("region.db*"):
        file.unlink()

    with pytest.raises(Unavailable, match="no such table"):
        backlog.depth()
    backlog.prepare()
    backlog.prepare()
    assert backlog.depth() == 0

    backlog.add([row("b")], NOW)
    other = open_engine(f"sqlite:///{path}")
    assert SqlBacklog(other).depth() == 1, "the process writes where others read"
    for opened in (engine, other):
        opened.dispose()


def test_a_store_that_is_gone_is_unavailable(engine: Engine, tmp_path: Path) -> None:
    backlog = SqlBacklog(engine)
    with engine.begin() as connection:
        connection.execute(text("DROP TABLE backlog"))

    with pytest.raises(Unavailable, match="backlog"):
        backlog.depth()
    with pytest.raises(Unavailable, match="nothing was done"):
        backlog.add([row("a")], NOW)


def test_a_lost_answer_to_a_commit_is_an_unknown_outcome(engine: Engine) -> None:
    backlog = SqlBacklog(engine)

    @event.listens_for(engine, "commit")
    def lose(connection: Connection) -> None:
        connection.connection.commit()
        raise OperationalError("COMMIT", {}, Exception("connection reset"))

    with pytest.raises(OutcomeUnknown):
        backlog.add([row("a")], NOW)

    event.remove(engine, "commit", lose)
    assert backlog.depth() == 1
    backlog.add([row("a")], NOW + 5)
    assert backlog.depth() == 1


def test_a_locked_store_is_unavailable_and_wrote_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("region_scheduler.drivers.sql.engine.BUSY_S", 0.2)
    engine = open_engine(f"sqlite:///{tmp_path}/region.db")
    prepare(engine)
    backlog = SqlBacklog(engine)
    with engine.connect() as other:
        other.exec_driver_sql("BEGIN IMMEDIATE")
        with pytest.raises(Unavailable, match="locked"):
            backlog.add([row("a")], NOW)
        assert backlog.depth() == 0
    engine.dispose()


def test_a_damaged_file_stops_the_start_and_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "region.db").write_bytes(b"this is no database, whatever it says\n" * 200)
    engine = open_engine(f"sqlite:///{tmp_path}/region.db")

    with pytest.raises(Misconfigured, match="move it away: it is made anew"):
        prepare(engine)
    engine.dispose()


@pytest.mark.parametrize(
    "address", ["", "nonsense", "sqlite://", "sqlite:///:memory:", "mysql://host/db"]
)
def test_an_address_of_no_store_is_refused(address: str) -> None:
    with pytest.raises(Misconfigured, match="relational"):
        open_engine(address)


def test_a_server_that_does_not_answer_is_unavailable() -> None:
    engine = open_engine("postgresql://nobody@127.0.0.1:1/nothing")

    with pytest.raises(Unavailable):
        prepare(engine)
    engine.dispose()


def test_acknowledged_rows_survive_a_kill(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/region.db"
    script = (
        "import os\n"
        "from region_scheduler.drivers.sql.backlog import SqlBacklog\n"
        "from region_scheduler.drivers.sql.engine import open_engine\n"
        "from region_scheduler.drivers.sql.schema import prepare\n"
        "from tests.contract.backlog.test_backlog import NOW, row\n"
        f"engine = open_engine({url!r})\n"
        "prepare(engine)\n"
        "SqlBacklog(engine).add([row(str(n)) for n in range(100)], NOW)\n"
        "os.kill(os.getpid(), 9)\n"
    )
    ended = subprocess.run([sys.executable, "-c", script], timeout=60, check=False)
    assert ended.returncode == -9

    engine = open_engine(url)
    prepare(engine)
    rows: list[BacklogRow] = SqlBacklog(engine).top({"acme": 1000}, NOW)
    assert len(rows) == 100
    engine.dispose()


def test_preparing_a_fresh_store_does_not_load_alembic(tmp_path: Path) -> None:
    script = (
        "import sys\n"
        "from region_scheduler.drivers.sql.engine import open_engine\n"
        "from region_scheduler.drivers.sql.schema import prepare\n"
        f"engine = open_engine('sqlite:///{tmp_path}/sub/region.db')\n"
        "prepare(engine)\n"
        "prepare(engine)\n"
        "assert 'alembic' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", script], timeout=60, check=True)
