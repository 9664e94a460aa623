"""Quotas, capacities and the audit on a real stack, by commands as people type them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.local.running import RunningStack

pytestmark = pytest.mark.timeout(300)
NEVER = ("--not-before", "2999-01-01T00:00:00Z")


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningStack]:
    folder = tmp_path_factory.mktemp("stack")
    stack = RunningStack(folder / "state", folder / "up.log", ("--regions", "solo"))
    try:
        stack.start()
        yield stack
    finally:
        stack.stop()


def a_graph(path: Path, *locks: dict[str, Any]) -> str:
    """Write a graph of two tasks whose only edge comes three times."""
    first = {"id": "a", "runner": "simulate", "locks": list(locks)}
    nodes = [first, {"id": "b", "runner": "simulate"}]
    edges = [["a", "b"]] * 3
    path.write_text(json.dumps({"name": path.stem, "nodes": nodes, "edges": edges}))
    return str(path)


def test_a_tenant_at_its_quota_is_told_when_to_come_back(
    running: RunningStack, tmp_path: Path
) -> None:
    graph = a_graph(tmp_path / "g.json")
    whose = ("--tenant", "umbrella")
    submit = ("submit", "--graph", graph, *whose, *NEVER)
    made = running.json("tenants", "set", "umbrella", "--level", "trial", "--runs-in-flight", "1")
    assert (made["level"], made["runs_in_flight"], made["zones"]) == ("trial", 1, 3)

    first = running.json(*submit, "--key", "k1")
    told = running.json(*submit, "--key", "k2", code=75)["error"]
    again = running.json(*submit, "--key", "k1")

    assert first["repeated_edges"] == 2
    assert (told["code"], told["quota"], told["limit"], told["used"], told["retry_after_s"]) == (
        "throttled", "runs in flight", 1, 1, 30,
    )  # fmt: skip
    assert (again["run"], again["is_repeat"]) == (first["run"], True)
    assert running.json("tenants", "show", "umbrella")["in_use"]["runs_in_flight"] == 1

    audited = running.json("audit", "list", *whose, "--since", "1h")["items"]
    assert [one["action"] for one in audited] == ["runs.submit", "tenants.set"]
    assert audited[0]["thing"] == first["run"]
    assert audited[0]["actor"].startswith("operator:")
    assert audited[0]["source"].startswith("cli on ")


@pytest.mark.slow
def test_the_zones_of_a_tenant_are_bounded(running: RunningStack) -> None:
    create = ("zones", "create", "--type", "aws-soc2", "--tenant", "few")
    running.json("tenants", "set", "few", "--zones", "1")
    running.json(*create, "one")

    refused = running.run(*create, "two")

    assert (refused.returncode, refused.stdout) == (75, "")
    assert refused.stderr == (
        "region-scheduler: tenant few is at its quota of zones: 1 in use, 1 at most;"
        " try again in 3600 s\n"
    )


@pytest.mark.slow
def test_what_needs_more_than_there_is_of_a_resource_is_refused_with_the_place(
    running: RunningStack, tmp_path: Path
) -> None:
    running.json("resources", "set", "acme/lock", "--capacity", "2")
    graph = a_graph(tmp_path / "g.json", {"resource": "acme/lock", "capacity": 9, "units": 3})
    commands = (
        ("submit", "--graph", graph),
        ("import", "graph", graph, "--dry-run"),
        ("schedules", "create", "s", "0 0 1 1 *", "--graph", graph),
    )

    told = [running.json(*command, code=2)["error"]["message"] for command in commands]

    assert set(told) == {
        "nodes[0].locks[0].units: '3' is not accepted; acme/lock has 2 (`resources show`)"
    }
    running.json("resources", "set", "acme/lock", "--capacity", "3")
    assert running.json("submit", "--graph", graph, "--dry-run")["repeated_edges"] == 2
