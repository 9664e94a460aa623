"""What writes, when it is refused, and that a failed query leaves nothing."""

from __future__ import annotations

import pytest

from tests.unit.embedded.aql.asking import error, rows, run
from tests.unit.embedded.aql.memory import MemorySession


@pytest.fixture
def session() -> MemorySession:
    session = MemorySession()
    session.create("c", [{"_key": "a", "n": 1}, {"_key": "b", "n": 2, "o": {"x": 1}}])
    session.create("d")
    session.create("e", is_edge=True)
    return session


def test_each_kind_of_write_gives_old_and_new(session: MemorySession) -> None:
    assert rows("INSERT {_key: 'i', n: 3} INTO c RETURN NEW.n", session) == [3]
    assert rows("UPDATE 'a' WITH {n: 5, m: 6} IN c RETURN [OLD.n, NEW.n, NEW.m]", session) == [
        [1, 5, 6]
    ]
    assert rows("REPLACE {_key: 'b'} WITH {z: 1} IN c RETURN [OLD.n, NEW.n, NEW.z]", session) == [
        [2, None, 1]
    ]
    assert rows("REMOVE {_key: 'a'} IN c RETURN OLD.m", session) == [6]
    assert rows("FOR x IN c SORT x._key RETURN x._key", session) == ["b", "i"]


def test_an_update_merges_objects_and_keeps_null_unless_told(session: MemorySession) -> None:
    assert rows("UPDATE 'b' WITH {o: {y: null}} IN c RETURN NEW.o", session) == [
        {"x": 1, "y": None}
    ]
    assert rows(
        "UPDATE 'b' WITH {o: {z: 1, x: null}} IN c OPTIONS {keepNull: false} RETURN NEW.o", session
    ) == [{"y": None, "z": 1}]
    assert rows(
        "UPDATE 'b' WITH {o: {q: 1}} IN c OPTIONS {mergeObjects: false} RETURN NEW.o", session
    ) == [{"q": 1}]


@pytest.mark.parametrize(
    ("text", "was_there"),
    [
        ("UPSERT {_key: 'a'} INSERT {n: 9} UPDATE {n: OLD.n + 1} IN c RETURN [OLD.n, NEW.n]", True),
        ("UPSERT {n: 77} INSERT {n: 9} REPLACE {n: 0} IN c RETURN [OLD.n, NEW.n]", False),
        ("UPSERT @s INSERT {n: 9} UPDATE {n: 2} IN c RETURN [OLD.n, NEW.n]", True),
        (
            "UPSERT FILTER $CURRENT.n IN [1] INSERT {n: 9} UPDATE {n: 2} IN c"
            " RETURN [OLD.n, NEW.n]",
            True,
        ),
    ],
)
def test_an_upsert_writes_what_the_lookup_asks_for(
    session: MemorySession, text: str, was_there: bool
) -> None:
    bind = {"s": {"n": 1}} if "@s" in text else {}

    assert rows(text, session, **bind) == [[1, 2] if was_there else [None, 9]]


def test_an_upsert_sees_what_the_query_wrote(session: MemorySession) -> None:
    result = run(
        "FOR i IN 1..5 UPSERT {k: 1} INSERT {k: 1, n: 1} UPDATE {n: OLD.n + 1} IN d", session
    )

    assert result.statistics.writes_executed == 5
    assert rows("FOR x IN d RETURN x.n", session) == [5]


def test_a_loop_never_meets_its_own_writes(session: MemorySession) -> None:
    run("FOR x IN c INSERT {n: x.n} INTO c", session)

    assert rows("RETURN LENGTH(c)", session) == [4]


@pytest.mark.parametrize(
    "text",
    [
        "INSERT {} INTO c INSERT {} INTO c",
        "INSERT {} INTO c FOR x IN c RETURN x",
        "REMOVE 'a' IN c RETURN LENGTH(c)",
        "FOR x IN d INSERT x INTO c RETURN DOCUMENT('d/1')",
        "INSERT {} INTO d FOR v IN 1..1 OUTBOUND 'c/a' e RETURN v",
        "LET s = (INSERT {} INTO c) FOR x IN c RETURN x",
    ],
)
def test_what_was_written_to_is_not_touched_again(session: MemorySession, text: str) -> None:
    assert error(text, session) == 1579


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("REMOVE 'zzz' IN c", 1202),
        ("UPDATE {n: 1} IN c", 1226),
        ("UPDATE 5 WITH {} IN c", 1227),
        ("UPDATE 'a' WITH 5 IN c", 1227),
        ("INSERT [] INTO c", 1227),
        ("INSERT {_key: 'a'} INTO c", 1210),
        ("INSERT {} INTO e", 1233),
        ("UPDATE {_key: 'a', _rev: 'x'} WITH {n: 1} IN c OPTIONS {ignoreRevs: false}", 1200),
        ("FOR x IN c UPDATE x WITH {} IN c OPTIONS {ignoreErrors: x.n}", 1575),
        ("REMOVE 'a' IN c RETURN NEW", 1203),
        ("INSERT {} INTO c RETURN OLD", 1203),
    ],
)
def test_a_write_that_cannot_be(session: MemorySession, text: str, number: int) -> None:
    assert error(text, session) == number


def test_a_failed_query_leaves_nothing(session: MemorySession) -> None:
    assert error("FOR k IN ['n', 'm', 'a'] INSERT {_key: k} INTO c", session) == 1210

    assert rows("FOR x IN c SORT x._key RETURN x._key", session) == ["a", "b"]


def test_ignored_errors_are_counted_and_give_no_row(session: MemorySession) -> None:
    result = run(
        "FOR k IN ['n', 'a', 'm'] INSERT {_key: k} INTO c OPTIONS {ignoreErrors: true}"
        " RETURN NEW._key",
        session,
    )

    assert result.rows == ["n", "m"]
    assert result.statistics.writes_executed == 2
    assert result.statistics.writes_ignored == 1


def test_a_limit_behind_a_write_limits_the_output_only(session: MemorySession) -> None:
    assert rows(
        "FOR x IN c SORT x.n UPDATE x WITH {n: 0} IN c LIMIT 1 RETURN NEW._key", session
    ) == ["a"]
    assert rows("FOR x IN c RETURN x.n", session) == [0, 0]


def test_overwriting_inserts(session: MemorySession) -> None:
    insert = "INSERT {_key: 'a', m: 1} INTO c OPTIONS {overwriteMode: @mode} RETURN [OLD.n, NEW]"

    assert rows(insert, session, mode="ignore") == [[1, None]]
    ((old, new),) = rows(insert, session, mode="update")
    assert (old, new["n"], new["m"]) == (1, 1, 1)
    ((old, new),) = rows(insert, session, mode="replace")
    assert (old, new.get("n"), new["m"]) == (1, None, 1)
