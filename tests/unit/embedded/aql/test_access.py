"""Indexes: that they are used, and that they never change an answer."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from region_scheduler.embedded.arango.aql import compile_query
from tests.unit.embedded.aql.asking import run
from tests.unit.embedded.aql.memory import MemoryIndex, MemorySession

FIELDS = ("a", "b", "o.x", "tags[*]")
VALUES: st.SearchStrategy[Any] = st.none() | st.integers(0, 2) | st.sampled_from(["x", True])
DOCUMENTS = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "a": VALUES,
            "b": VALUES,
            "o": st.fixed_dictionaries({"x": VALUES}),
            "tags": st.lists(VALUES, max_size=2),
        },
    ),
    max_size=8,
)
CONDITIONS = st.one_of(
    st.tuples(
        st.sampled_from(["d.a", "d.b", "d.o.x", "d['a']"]),
        st.sampled_from(["==", "<", "<=", ">", ">=", "!="]),
        st.sampled_from(["null", "0", "1", "2", "'x'", "true"]),
    ).map(" ".join),
    st.sampled_from(
        [
            "d.a IN [1, 2, 1]",
            "d.b IN ['x', null]",
            "d.a IN 5",
            "1 IN d.tags",
            "'x' IN d.tags[*]",
            "2 >= d.a",
            "(d.a == 1 OR d.a == 2)",
            "(d.a == 1 OR d.b == 1)",
            "d.a == d.b",
            "NOT d.a",
        ]
    ),
)
SORTS = st.sampled_from(
    [
        "",
        "SORT d.a",
        "SORT d.a DESC",
        "SORT d.a, d.b",
        "SORT d.a DESC, d.b DESC",
        "SORT d.a DESC, d.b",
    ]
)
INDEXES = st.lists(
    st.tuples(
        st.lists(st.sampled_from(FIELDS), min_size=1, max_size=3, unique=True), st.booleans()
    ),
    min_size=1,
    max_size=2,
)


@settings(deadline=None)
@given(DOCUMENTS, st.lists(CONDITIONS, max_size=3), SORTS, INDEXES)
def test_an_index_never_changes_an_answer(
    documents: list[dict[str, Any]],
    conditions: list[str],
    sort: str,
    indexes: list[tuple[list[str], bool]],
) -> None:
    filters = " ".join(f"FILTER {condition}" for condition in conditions)
    query = f"FOR d IN c {filters} {sort} RETURN [d.a, d.b, d._key]"
    answers = []
    for is_indexed in (False, True):
        session = MemorySession()
        collection = session.create("c", documents)
        for fields, is_sparse in indexes if is_indexed else ():
            collection.add_index(*fields, sparse=is_sparse)
        answers.append(run(query, session).rows)

    plain, indexed = answers
    key = "d.a, d.b" if sort.count("d.") == 2 else "d.a"
    assert sorted(map(repr, plain)) == sorted(map(repr, indexed))
    if sort:
        places = slice(0, key.count("d."))
        assert [row[places] for row in plain] == [row[places] for row in indexed]


@pytest.fixture
def session() -> MemorySession:
    session = MemorySession()
    collection = session.create("c", [{"_key": str(n), "a": n % 3, "b": n} for n in range(30)])
    collection.add_index("a", "b")
    session.create("e", [{"_from": "c/1", "_to": "c/2"}], is_edge=True)
    return session


@pytest.mark.parametrize(
    ("text", "index", "is_sorted"),
    [
        ("FOR d IN c FILTER d._key == '1' RETURN d", "primary", False),
        ("FOR d IN c FILTER d._id IN ['c/1', 'd/2'] RETURN d", "primary", False),
        ("FOR d IN c FILTER d.a == 1 AND d.b > 3 SORT d.b LIMIT 2 RETURN d", "persistent", True),
        ("FOR d IN c FILTER d.a == 1 SORT d.b DESC RETURN d", "persistent", True),
        ("FOR d IN c SORT d.a, d.b RETURN d", "persistent", True),
        ("FOR d IN c FILTER d.a IN [0, 1] SORT d.b RETURN d", "persistent", False),
        ("FOR d IN c FILTER d.@p == 1 RETURN d", "persistent", False),
        ("FOR d IN e FILTER d._to == 'c/2' RETURN d", "edge", False),
        ("FOR x IN e FOR d IN c FILTER d._id == x._to RETURN d", "primary", False),
    ],
)
def test_the_plan_names_the_index(
    session: MemorySession, text: str, index: str, is_sorted: bool
) -> None:
    bind = {"p": "a"} if "@p" in text else {}

    plan = compile_query(text).explain(session, bind)

    node = next(node for node in plan["nodes"] if node["type"] == "IndexNode")
    assert node["indexes"][0]["type"] == index
    assert node["sorted"] is is_sorted
    assert "use-indexes" in plan["rules"]
    assert [node["type"] for node in plan["nodes"]].count("SortNode") == (
        text.count("SORT") - is_sorted
    )
    assert run(text, session, **bind).statistics.scanned_index > 0


@pytest.mark.parametrize(
    "text",
    [
        "FOR d IN c FILTER d.b == 1 RETURN d",
        "FOR d IN c OPTIONS {disableIndex: true} FILTER d.a == 1 RETURN d",
        "FOR d IN c FILTER d.a == d.b RETURN d",
        "FOR d IN c FILTER d.a != 1 RETURN d",
    ],
)
def test_where_no_index_helps_all_is_scanned(session: MemorySession, text: str) -> None:
    plan = compile_query(text).explain(session)

    assert [node["type"] for node in plan["nodes"]][:2] == [
        "SingletonNode",
        "EnumerateCollectionNode",
    ]
    assert run(text, session).statistics.scanned_full == 30


def test_a_condition_moves_up_to_the_loop_it_is_about(session: MemorySession) -> None:
    result = run(
        "FOR d IN c FOR x IN 1..100 LET y = x FILTER d.a == 1 AND y == 1 RETURN d._key", session
    )

    assert len(result.rows) == 10
    assert result.statistics.scanned_index == 10
    assert result.statistics.filtered == 10 * 99


@pytest.mark.parametrize(
    ("text", "is_seen"),
    [
        ("RETURN LENGTH(FOR d IN c FILTER d.a == 1 RETURN 1)", False),
        ("FOR d IN c FILTER d.a == 1 COLLECT WITH COUNT INTO n RETURN n", False),
        ("FOR d IN c FILTER d.a == 1 AND d.c != 7 COLLECT WITH COUNT INTO n RETURN n", True),
        ("FOR d IN c FILTER d.a == 1 COLLECT x = 1 INTO group RETURN LENGTH(group[*].d.a)", True),
        ("FOR d IN c FILTER d.a == 1 COLLECT b = d.b WITH COUNT INTO n RETURN n", True),
    ],
)
def test_what_only_counts_is_counted_in_the_index(
    session: MemorySession, text: str, is_seen: bool
) -> None:
    looked_up = [index for index in session.collection("c").indexes if index.type == "persistent"]
    plain = run(text.replace("IN c ", "IN c OPTIONS {disableIndex: true} "), session).rows
    for index in looked_up:
        assert isinstance(index, MemoryIndex)
        index.count_count = 0

    assert run(text, session).rows == plain
    counted = sum(index.count_count for index in looked_up if isinstance(index, MemoryIndex))
    assert counted == (0 if is_seen else 1)


def test_an_index_that_comes_later_is_used(session: MemorySession) -> None:
    query = compile_query("FOR d IN c FILTER d.b == 7 RETURN d._key")
    assert query.execute(session).statistics.scanned_full == 30

    session.collection("c").add_index("b")

    assert query.execute(session).statistics.scanned_full == 0
