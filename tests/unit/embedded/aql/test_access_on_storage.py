"""The engine's own storage under the planner: its indexes change no answer either."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from region_scheduler.embedded.arango.aql import compile_query
from region_scheduler.embedded.arango.engine import Engine
from region_scheduler.embedded.arango.session import WriteOptions
from region_scheduler.embedded.arango.storage.properties import CollectionProperties
from tests.unit.embedded.aql.test_access import CONDITIONS, DOCUMENTS, INDEXES, SORTS

NUMBERS = count()


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    engine = Engine(is_cluster=False, seed=1)
    yield engine
    engine.close()


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(DOCUMENTS, st.lists(CONDITIONS, max_size=3), SORTS, INDEXES)
def test_an_index_of_the_engine_never_changes_an_answer(
    engine: Engine,
    documents: list[dict[str, Any]],
    conditions: list[str],
    sort: str,
    indexes: list[tuple[list[str], bool]],
) -> None:
    filters = " ".join(f"FILTER {condition}" for condition in conditions)
    query = f"FOR d IN c {filters} {sort} RETURN [d.a, d.b, d._key]"

    plain = answer(engine, query, documents, [])
    indexed = answer(engine, query, documents, indexes)

    assert sorted(map(repr, plain)) == sorted(map(repr, indexed))
    counting = f"RETURN LENGTH(FOR d IN c {filters} RETURN 1)"
    assert answer(engine, counting, documents, indexes) == [len(plain)]
    if sort:
        places = slice(0, sort.count("d."))
        assert [row[places] for row in plain] == [row[places] for row in indexed]


def answer(
    engine: Engine,
    query: str,
    documents: list[dict[str, Any]],
    indexes: list[tuple[list[str], bool]],
) -> list[Any]:
    store = engine.store
    database = store.catalog.create_database(f"d{next(NUMBERS)}", {})
    collection = store.catalog.create_collection(database, CollectionProperties(name="c"))
    for fields, is_sparse in indexes:
        body = {"type": "persistent", "fields": fields, "sparse": is_sparse}
        store.catalog.create_index(collection, body)
    transaction = store.begin(database)
    for place, document in enumerate(documents):
        transaction.collection("c").insert({**document, "_key": str(place)}, WriteOptions())
    store.finish(transaction.commit())
    rows = compile_query(query).execute(store.begin(database)).rows
    store.catalog.drop_database(database.name)
    return rows
