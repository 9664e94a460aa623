"""The measurement of the stores: what it fills, what it tells, and what it refuses."""

from __future__ import annotations

import pytest
from sqlalchemy.exc import NoResultFound

from region_scheduler.assembly.relational import probed
from region_scheduler.bench.stores import measure
from region_scheduler.errors import InvalidInput, Unavailable
from tests.contract.backlog.test_backlog import NOW, row


def test_a_probe_fills_an_empty_store_with_rows_of_many_tenants(url: str) -> None:
    with probed(url) as (backlog, probe):
        probe.fill(2_000, 50)

        assert backlog.depth() == 2_000
        tenants = backlog.tenants()
        assert len(tenants) == 50
        found = backlog.top(dict.fromkeys(tenants, 3), NOW)
        assert len(found) == 150
        assert {r.priority for r in found} == {2}
        probe.round_trip()
        probe.look_up(1_999)
        with pytest.raises(NoResultFound):
            probe.look_up(2_000)
        with pytest.raises(Unavailable):
            probe.fill(1, 1)


def test_each_store_is_measured_beside_what_limits_it(url: str) -> None:
    figures = measure(0.05, "" if url.startswith("sqlite") else url, rows=2_000)

    stores = 1 if url.startswith("sqlite") else 2
    assert len(figures) == 3 * stores
    assert [f.target for f in figures if f.target] == [2.0, 5.0][:stores]
    assert all(0 < f.value < 1_000 and f.unit == "ms" for f in figures)
    assert all("round trip" in f.limit and "key lookup" in f.limit for f in figures)


def test_a_store_with_rows_is_refused_and_left_as_it_is(url: str) -> None:
    with probed(url) as (backlog, _):
        backlog.add([row("a")], NOW)

        with pytest.raises(InvalidInput, match="has rows"):
            measure(0.05, url, rows=2_000)

        assert backlog.depth() == 1
