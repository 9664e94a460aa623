"""The contention bench as it is called, small, with a violation of each kind planted."""

from __future__ import annotations

import json

from tests.integration.local.running import command


def test_schedulers_contend_and_nothing_is_wrong_but_what_was_planted() -> None:
    sizes = ["--schedulers", "2", "--regions", "1", "--tasks", "60", "--locks", "2"]
    planted = ["--stale-ms", "200", "--plant", "done-twice,overrun"]

    ended = command("bench", "contention", *sizes, *planted, "--json")

    assert ended.returncode == 1, ended.stdout + ended.stderr
    (line,) = ended.stdout.splitlines()
    found = json.loads(line)
    assert found["done"] == found["tasks"] == 60
    assert (found["done_twice"], found["capacity_overruns"]) == (1, 1)
    conflicts = found["conflicts"]
    assert conflicts.keys() == {"claims", "assignments", "requeued"}
    assert conflicts["requeued"] >= conflicts["assignments"]
    assert found["claims_per_s"] > 0


def test_a_contest_that_cannot_be_is_refused_before_anything_starts() -> None:
    ended = command("bench", "contention", "--schedulers", "1", "--regions", "3", "--json")

    assert ended.returncode == 2
    assert "--schedulers" in ended.stderr
