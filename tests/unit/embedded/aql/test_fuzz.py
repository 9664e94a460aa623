"""Whatever the text, the parser and the compiler answer with a query or with an error of AQL's."""

from __future__ import annotations

import random
import time
from contextlib import suppress
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from region_scheduler.embedded.arango.aql.query import Compiled
from region_scheduler.embedded.arango.errors import ArangoError
from tests.unit.embedded.aql.memory import MemorySession

WORDS: Final = (
    "FOR x IN c RETURN FILTER SORT LIMIT LET COLLECT INTO KEEP WITH COUNT AGGREGATE WINDOW INSERT"
    " UPDATE REPLACE REMOVE UPSERT OPTIONS OUTBOUND INBOUND ANY ALL NONE AT LEAST SHORTEST_PATH"
    " K_PATHS TO GRAPH PRUNE NOT AND OR LIKE null true 1 2.5 'a' \"b\" @p @@c y e LENGTH( FIRST( ("
    " ) [ ] { } , . .. : ? = == != < >= =~ + - * / % ! [* [** [? `q` // /* */ CURRENT NEW OLD"
).split(" ")
SLOWEST_S: Final = 2.0


def check(text: str) -> None:
    """Compile a text and, if it is a query, run it.

    Raises:
        AssertionError: It took too long; any other error but AQL's own comes through.
    """
    began_at = time.perf_counter()
    with suppress(ArangoError):
        query = Compiled(text)
        session = MemorySession()
        session.create("c", [{"_key": "1", "a": 1}])
        session.create("e", [{"_from": "c/1", "_to": "c/1"}], is_edge=True)
        bind = {name: "c" if name.startswith("@") else 1 for name in query.bind_parameters}
        query.execute(session, bind)
    assert time.perf_counter() - began_at < SLOWEST_S, text


@settings(deadline=None)
@given(st.lists(st.sampled_from(WORDS), max_size=25).map(" ".join))
def test_words_in_any_order_do_no_harm(text: str) -> None:
    check(text)


@settings(deadline=None)
@given(st.text(max_size=40))
def test_any_text_does_no_harm(text: str) -> None:
    check(text)


@pytest.mark.parametrize("piece", ["(", "[", "{a: ", "!", "NOT ", "1 + ", "x.", "f(", "1 ? ", "/*"])
def test_much_of_one_thing_does_no_harm(piece: str) -> None:
    check("RETURN " + piece * 5000)


@pytest.mark.soak
def test_a_hundred_thousand_mutated_queries_do_no_harm() -> None:
    chance = random.Random(7)
    seeds = [
        "FOR d IN c FILTER d.a == 1 AND d.b IN [1, 2] SORT d.a LIMIT 1, 2 RETURN {a: d.a, d}",
        "FOR v, e, p IN 1..2 OUTBOUND 'c/1' e PRUNE v.a OPTIONS {order: 'bfs'} RETURN p",
        "FOR d IN c COLLECT a = d.a AGGREGATE m = MAX(d.b) INTO g KEEP d RETURN [a, m, g[*].d]",
        "UPSERT {a: 1} INSERT {a: 1} UPDATE {a: OLD.a} IN c OPTIONS {keepNull: false} RETURN NEW",
        "LET x = (FOR i IN 1..3 RETURN i ? i : @p) RETURN x[* FILTER CURRENT > 1 RETURN CURRENT]",
    ]
    for _ in range(100_000):
        words = chance.choice(seeds).split(" ")
        for _ in range(chance.randint(1, 4)):
            place = chance.randrange(len(words))
            words[place : place + chance.randint(0, 2)] = [chance.choice(WORDS)]
        check(" ".join(words))
