"""ArangoDB's own answers to AQL queries, asked of the engine."""

from __future__ import annotations

from tests.conformance.aql_runner import load_cases, run_case
from tests.conformance.engine_sender import engine_sender
from tests.conformance.ratchet import known_misses, misses


def test_every_query_is_answered_as_arangodb_does_but_for_the_known_misses() -> None:
    found = misses(load_cases(), run_case, engine_sender())

    assert {name: found[name] for name in found if name not in known_misses("aql")} == {}
    assert sorted(found) == sorted(known_misses("aql")), "a known miss passes: take it off the list"


def test_the_cases_are_all_there() -> None:
    assert len({case["id"] for case in load_cases()}) == 520
