"""The clauses that read, order, group and count."""

from __future__ import annotations

from typing import Any

import pytest

from region_scheduler.embedded.arango.aql import QueryOptions
from region_scheduler.embedded.arango.errors import ArangoError
from tests.unit.embedded.aql.asking import error, rows, run_with
from tests.unit.embedded.aql.memory import MemorySession

PEOPLE: list[dict[str, Any]] = [
    {"_key": "a", "city": "Bonn", "age": 30},
    {"_key": "b", "city": "Ulm", "age": 20},
    {"_key": "c", "city": "Bonn", "age": 10},
    {"_key": "d", "city": None, "age": 40},
]


@pytest.fixture
def people() -> MemorySession:
    session = MemorySession()
    session.create("people", PEOPLE)
    return session


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("FOR p IN people COLLECT city = p.city RETURN city", [None, "Bonn", "Ulm"]),
        (
            "FOR p IN people COLLECT city = p.city WITH COUNT INTO n RETURN [city, n]",
            [[None, 1], ["Bonn", 2], ["Ulm", 1]],
        ),
        ("FOR p IN people COLLECT WITH COUNT INTO n RETURN n", [4]),
        ("FOR p IN people FILTER p.age > 99 COLLECT WITH COUNT INTO n RETURN n", [0]),
        ("FOR p IN people FILTER p.age > 99 COLLECT c = p.city RETURN c", []),
        (
            "FOR p IN people COLLECT AGGREGATE lo = MIN(p.age), hi = MAX(p.age), n = COUNT()"
            " RETURN [lo, hi, n]",
            [[10, 40, 4]],
        ),
        (
            "FOR p IN people FILTER p.age > 99 COLLECT AGGREGATE s = SUM(p.age), n = LENGTH(p)"
            " RETURN [s, n]",
            [[None, 0]],
        ),
        (
            "FOR p IN people SORT p.age COLLECT city = p.city INTO ages = p.age RETURN ages",
            [[40], [10, 30], [20]],
        ),
        (
            "FOR p IN people LET a = p.age LET b = 1 SORT a COLLECT c = p.city INTO g KEEP a"
            " RETURN g",
            [[{"a": 40}], [{"a": 10}, {"a": 30}], [{"a": 20}]],
        ),
        (
            "FOR p IN people COLLECT c = p.city AGGREGATE u = SORTED_UNIQUE(p.age) INTO k = p._key"
            " RETURN [c, u, k]",
            [[None, [40], ["d"]], ["Bonn", [10, 30], ["a", "c"]], ["Ulm", [20], ["b"]]],
        ),
        ("LET k = 7 FOR p IN people COLLECT x = 1 RETURN [k, x]", [[7, 1]]),
        ("FOR p IN people RETURN DISTINCT p.city", ["Bonn", "Ulm", None]),
        ("FOR p IN people SORT p.city DESC, p.age RETURN p._key", ["b", "c", "a", "d"]),
        ("FOR p IN people SORT p._key LIMIT 1, 2 RETURN p._key", ["b", "c"]),
        ("FOR p IN people SORT p._key LIMIT 2, null RETURN p._key", ["c", "d"]),
        ("FOR p IN people FILTER p.age > 15 AND p.city != null RETURN p._key", ["a", "b"]),
        (
            "FOR p IN people FOR q IN people FILTER p.city == q.city AND p._key < q._key"
            " RETURN [p._key, q._key]",
            [["a", "c"]],
        ),
        (
            "FOR i IN [1, 2, 3, 4] WINDOW {preceding: 1, following: 1} AGGREGATE s = SUM(i)"
            " RETURN s",
            [3, 6, 9, 7],
        ),
        (
            "FOR i IN [4, 1, 10] WINDOW i WITH {preceding: 3, following: 0}"
            " AGGREGATE l = PUSH(i) RETURN l",
            [[1], [1, 4], [10]],
        ),
    ],
)
def test_a_query_over_people(people: MemorySession, text: str, answer: list[Any]) -> None:
    assert rows(text, people) == answer


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("FOR p IN people COLLECT c = p.city RETURN p", 1203),
        ("FOR p IN people COLLECT c = p.city KEEP p RETURN c", 1501),
        ("FOR p IN people COLLECT AGGREGATE m = ROUND(p.age) RETURN m", 1574),
        ("FOR p IN people COLLECT AGGREGATE m = MIN(p.age, 1) RETURN m", 1541),
        ("FOR p IN people COLLECT c = p.city INTO g KEEP nothing RETURN c", 1512),
        ("FOR p IN nowhere RETURN p", 1203),
        ("FOR p IN people WINDOW {preceding: p} AGGREGATE n = COUNT() RETURN n", 1575),
    ],
)
def test_a_clause_that_cannot_be(people: MemorySession, text: str, number: int) -> None:
    assert error(text, people) == number


def test_full_count_looks_behind_the_last_limit(people: MemorySession) -> None:
    options = QueryOptions(full_count=True)

    result = run_with(options, "FOR p IN people FILTER p.city LIMIT 1, 1 RETURN p", people)

    assert len(result.rows) == 1
    assert result.statistics.full_count == 3


def test_a_query_is_asked_whether_to_go_on() -> None:
    asked = []

    def check() -> None:
        asked.append(1)
        if len(asked) == 3:
            raise ArangoError(1500)

    with pytest.raises(ArangoError) as failure:
        run_with(QueryOptions(check=check), "FOR i IN 1..1000000 FILTER i < 0 RETURN i")
    assert failure.value.number == 1500
    assert len(asked) == 3


def test_a_query_that_keeps_too_much_is_stopped() -> None:
    with pytest.raises(ArangoError) as failure:
        run_with(QueryOptions(memory_limit=10_000), "FOR i IN 1..100000 RETURN CONCAT('x', i)")
    assert failure.value.number == 32


def test_warnings_are_counted_and_can_fail() -> None:
    result = run_with(QueryOptions(max_warning_count=2), "FOR i IN 1..9 RETURN i / 0")
    assert result.warnings == [(1562, "division by zero")] * 2

    with pytest.raises(ArangoError) as failure:
        run_with(QueryOptions(fail_on_warning=True), "RETURN 1 / 0")
    assert failure.value.number == 1562


def test_now_is_one_instant() -> None:
    ticks = iter([1000.0, 2000.0])
    options = QueryOptions(clock=lambda: next(ticks))

    (row,) = run_with(options, "RETURN [DATE_NOW(), DATE_NOW()]").rows

    assert row == [1_000_000, 1_000_000]
