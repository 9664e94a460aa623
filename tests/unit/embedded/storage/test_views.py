"""Every view of a collection against a dictionary: present, snapshot, own writes, follower."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from region_scheduler.embedded.arango.session import Range, WriteOptions
from region_scheduler.embedded.arango.storage.access import CollectionAccess
from region_scheduler.embedded.arango.storage.horizon import SlidingHorizon
from region_scheduler.embedded.arango.storage.transaction import PastReader
from region_scheduler.embedded.arango.values import sort_key
from tests.unit.embedded.storage.stores import Time, make_collection, make_store

OPTIONS = WriteOptions()
KEYS = [f"k{n}" for n in range(8)]
INDEXES = (
    {"fields": ["a", "b"]},
    {"fields": ["b"], "sparse": True},
    {"fields": ["tags[*]"]},
    {"fields": ["deep.x"]},
)
SMALL = st.sampled_from([None, 0, 1, 2, "x"])


@dataclass(frozen=True)
class Act:
    """One write: what, where, and the new content."""

    kind: str
    key: str
    body: dict[str, Any] = field(default_factory=dict)


BODIES = st.fixed_dictionaries(
    {},
    optional={
        "a": SMALL,
        "b": SMALL,
        "tags": st.lists(st.sampled_from(["p", "q", "r"]), max_size=3),
        "deep": st.fixed_dictionaries({"x": SMALL}),
    },
)
ACTS = st.lists(
    st.builds(
        Act,
        kind=st.sampled_from(["insert", "update", "replace", "remove"]),
        key=st.sampled_from(KEYS),
        body=BODIES,
    ),
    max_size=25,
)
Model = dict[str, dict[str, Any]]


def apply(access: CollectionAccess, model: Model, act: Act) -> None:
    """Write to the collection and to the model; writes that must fail are left out of both."""
    if (act.kind == "insert") == (act.key in model):
        return
    body = {"_key": act.key, **act.body}
    if act.kind == "insert":
        access.insert(body, OPTIONS)
        model[act.key] = dict(act.body)
    elif act.kind == "replace":
        access.replace(body, OPTIONS)
        model[act.key] = dict(act.body)
    elif act.kind == "update":
        access.update(body, OPTIONS)
        merged = {**model[act.key], **act.body}
        before = model[act.key].get("deep")
        if "deep" in act.body and before is not None:
            merged["deep"] = {**before, **act.body["deep"]}
        model[act.key] = merged
    else:
        access.remove({"_key": act.key}, OPTIONS)
        del model[act.key]


def assert_shows(access: CollectionAccess, model: Model) -> None:
    plain = {d["_key"]: {n: v for n, v in d.items() if n[0] != "_"} for d in access.scan()}
    assert plain == model
    assert access.count() == len(model)
    for key in KEYS:
        found = access.get(key)
        assert (found is not None) == (key in model)
    compound, sparse, tags, deep = (i for i in access.indexes if i.type == "persistent")
    assert [d["_key"] for d in compound.lookup([])] == ordered(model, lambda d: d.get("a"), "b")
    backwards = [d["_key"] for d in compound.lookup([], is_reverse=True)]
    assert sorted(backwards) == sorted(model)
    for value in (None, 0, 2, "x"):
        assert keys_of(compound.lookup([value])) == having(model, lambda d: d.get("a"), value)
        with_b = [] if value is None else having(model, lambda d: d.get("b"), value)
        assert keys_of(sparse.lookup([value])) == with_b
        assert keys_of(deep.lookup([value])) == having(
            model, lambda d: d.get("deep", {}).get("x"), value
        )
    between = Range(low=0, has_low=True, is_low_inclusive=False, high="x", has_high=True)
    assert keys_of(compound.lookup([], between)) == where(
        model, lambda d: sort_key(0) < sort_key(d.get("a")) <= sort_key("x")
    )
    tagged = [d["_key"] for d in tags.lookup(["p"])]
    assert sorted(tagged) == where(model, lambda d: "p" in d.get("tags", []))


def ordered(model: Model, first: Callable[[dict[str, Any]], Any], then: str) -> list[str]:
    # Equal entries follow insertion order, which the model's order is not after removals.
    by_fields: dict[Any, list[str]] = {}
    for key, document in model.items():
        by_fields.setdefault((sort_key(first(document)), sort_key(document.get(then))), []).append(
            key
        )
    return [key for fields in sorted(by_fields) for key in by_fields[fields]]


def having(model: Model, part: Callable[[dict[str, Any]], Any], wanted: Any) -> list[str]:
    return where(model, lambda document: sort_key(part(document)) == sort_key(wanted))


def where(model: Model, holds: Callable[[dict[str, Any]], bool]) -> list[str]:
    return sorted(key for key, document in model.items() if holds(document))


def keys_of(documents: Any) -> list[str]:
    return sorted(document["_key"] for document in documents)


@given(ACTS)
@settings(max_examples=60, deadline=None)
def test_the_present_is_what_was_written_and_an_undo_takes_back_all(acts: list[Act]) -> None:
    store = make_store()
    database, _ = make_collection(store, "c", *INDEXES)
    transaction, model = store.begin(database), Model()
    access = transaction.collection("c")
    half = len(acts) // 2
    for act in acts[:half]:
        apply(access, model, act)
    assert_shows(access, model)
    mark, before = transaction.savepoint(), dict(model)
    for act in acts[half:]:
        apply(access, model, act)
    assert_shows(access, model)

    transaction.rollback(mark)

    assert_shows(access, before)


@given(ACTS, ACTS, ACTS)
@settings(max_examples=60, deadline=None)
def test_a_stream_transaction_sees_its_begin_and_its_own_writes(
    early: list[Act], late: list[Act], own: list[Act]
) -> None:
    store = make_store()
    database, _ = make_collection(store, "c", *INDEXES)
    present = Model()
    for act in early:
        commit(store, database, present, act)
    stream = store.begin_stream(database, {"c": "write"}, may_read_all=True)
    inside, seen = stream.collection("c"), dict(present)
    for act in late:
        commit(store, database, present, act)
    assert_shows(inside, seen)
    changed = {act.key for act in late}
    for act in own:
        if act.key not in changed:
            apply(inside, seen, act)
    assert_shows(inside, seen)
    assert_shows(store.begin(database).collection("c"), present)

    store.end_stream(stream, is_commit=True)

    for act in own:
        if act.key not in changed:
            present.pop(act.key, None)
            if act.key in seen:
                present[act.key] = seen[act.key]
    after = store.begin(database).collection("c")
    assert {d["_key"] for d in after.scan()} == set(present)
    assert not store.horizons
    assert store.locks.is_idle


@given(st.lists(st.tuples(ACTS.map(lambda acts: acts[:4]), st.integers(0, 3)), max_size=8))
@settings(max_examples=60, deadline=None)
def test_a_follower_shows_exactly_what_was_committed_longer_ago_than_its_lag(
    bursts: list[tuple[list[Act], int]],
) -> None:
    lag_s = 2.0
    clock = Time()
    store = make_store(clock=clock)
    database, _ = make_collection(store, "c", *INDEXES)
    follower = SlidingHorizon(lambda collection, shard: lag_s)
    store.horizons.append(follower)
    present, states = Model(), [(float("-inf"), Model())]
    for acts, pause_s in bursts:
        for act in acts:
            commit(store, database, present, act)
        states.append((clock.now, dict(present)))
        clock.now += pause_s
        follower.advance(clock.now)
        expected = [state for at, state in states if at <= clock.now - lag_s][-1]
        reader = PastReader(database, store.ticks, is_cluster=False, horizon=follower)
        assert_shows(reader.collection("c"), expected)
    clock.now += lag_s
    follower.advance(clock.now)
    assert follower.is_level


def commit(store: Any, database: Any, model: Model, act: Act) -> None:
    transaction = store.begin(database)
    apply(transaction.collection("c"), model, act)
    store.finish(transaction.commit())
