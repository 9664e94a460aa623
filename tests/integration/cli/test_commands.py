"""Commands that need no stack, as processes of their own: what they print, and how they refuse."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

GRAPHS = Path(__file__).parents[2] / "data" / "graphs"
TYPES = 18


def cli(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "region_scheduler", *arguments],
        cwd=cwd,
        env={"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(cwd)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def as_json(*arguments: str, cwd: Path) -> dict[str, Any]:
    ended = cli(*arguments, "--json", cwd=cwd)
    assert ended.returncode == 0, ended.stderr
    (line,) = ended.stdout.splitlines()
    found: dict[str, Any] = json.loads(line)
    return found


def test_help_names_every_command_at_once(tmp_path: Path) -> None:
    times = []
    for _ in range(3):
        began_at = time.perf_counter()
        ended = cli("--help", cwd=tmp_path)
        times.append(time.perf_counter() - began_at)

    assert ended.returncode == 0
    commands = (
        "demo up serve worker submit watch resume doctor rebuild-backlog bench zones runs tasks"
        " admissions schedules calendars config"
    ).split()
    assert [name for name in commands if f"\n  {name} " not in ended.stdout] == []
    assert min(times) < 1.0  # 0.15 s on a machine that does nothing else


def test_a_group_without_a_command_prints_its_help(tmp_path: Path) -> None:
    ended = cli("tasks", cwd=tmp_path)

    assert (ended.returncode, ended.stderr) == (0, "")
    assert "approve" in ended.stdout


def test_all_zone_types_are_listed(tmp_path: Path) -> None:
    items = as_json("zones", "types", cwd=tmp_path)["items"]

    assert isinstance(items, list)
    assert len(items) == TYPES
    assert {"type", "steps", "terraform", "waves"} <= set(items[0])


def test_a_type_is_shown_drawn_and_ordered(tmp_path: Path) -> None:
    shown = as_json("zones", "show", "aws-pci_dss", cwd=tmp_path)
    graph = as_json("zones", "graph", "aws-pci_dss", "--regions", "eu-west,us-east", cwd=tmp_path)
    waves = as_json("zones", "order", "aws-pci_dss", "--regions", "eu-west,us-east", cwd=tmp_path)

    assert shown["type"] == "aws-pci_dss"
    names = [task["id"] for task in graph["tasks"]]
    ordered = [name for wave in waves["items"] for name in wave["tasks"]]
    assert sorted(names) == sorted(ordered)
    place = {name: n for n, name in enumerate(ordered)}
    assert all(place[before] < place[after] for before, after in graph["edges"])
    assert "digraph" in cli("zones", "graph", "aws-pci_dss", cwd=tmp_path).stdout


def test_a_dry_run_of_a_graph_needs_no_stack(tmp_path: Path) -> None:
    graph = str(GRAPHS / "wf-1000genome-22ch.json")

    found = as_json("submit", "--graph", graph, "--simulate", "--dry-run", cwd=tmp_path)

    assert (found["tasks"], found["dependencies"]) == (902, 1166)
    assert [len(wave) for wave in found["waves"]] == [572, 22, 308]
    assert list(tmp_path.iterdir()) == []


def test_a_dry_run_of_a_type_tells_approvals_and_locks(tmp_path: Path) -> None:
    found = as_json("submit", "z", "--type", "aws-pci_dss", "--dry-run", cwd=tmp_path)

    assert "c.change-approval" in found["approvals"]
    assert found["locks"][0]["resource"] == "acme/aws:organizations"
    assert found["critical_path"]["seconds"] == 16560
    assert set(found["regions"]) == {"eu-west", "us-east", "ap-south"}
    assert list(tmp_path.iterdir()) == []


def test_every_setting_is_shown_with_its_source(tmp_path: Path) -> None:
    (tmp_path / "region-scheduler.toml").write_text('signing_key = "a secret of 16 bytes"\n')

    items = as_json("config", "show", cwd=tmp_path)["items"]

    rows = {row["setting"]: row for row in items}
    assert rows["signing_key"] == {
        "setting": "signing_key",
        "value": "***",
        "source": "region-scheduler.toml",
    }
    assert rows["lease.ttl_s"]["source"] == "default"


def test_a_preview_tells_the_times_and_what_is_odd_about_them(tmp_path: Path) -> None:
    spring = ("--tz", "America/Chicago", "--after", "2027-03-13T12:00Z", "--next", "2")
    autumn = ("--tz", "America/Chicago", "--after", "2026-11-01T00:00-05:00", "--next", "2")

    shifted = as_json("schedules", "preview", "30 2 * * *", *spring, cwd=tmp_path)
    skipped = as_json("schedules", "preview", "30 2 * * *", *spring, "--gap", "skip", cwd=tmp_path)
    twice = as_json(
        "schedules", "preview", "30 1 * * *", *autumn, "--repeat", "twice", cwd=tmp_path
    )

    assert (shifted["gap"], shifted["repeat"], shifted["follows"]) == (
        "shift", "once", "times of day",
    )  # fmt: skip
    assert [one["local"] for one in shifted["items"]] == [
        "2027-03-14T03:00:00-05:00",
        "2027-03-15T02:30:00-05:00",
    ]
    assert shifted["items"][0]["note"].startswith("shifted")
    assert skipped["items"][0]["at"] == "2027-03-15T07:30:00+00:00"
    assert [one["note"] for one in twice["items"]] == ["first of two", "second of two"]
    told = cli("schedules", "preview", "30 2 * * *", *spring, cwd=tmp_path).stdout
    assert "2027-03-14T03:00:00-05:00" in told
    assert list(tmp_path.iterdir()) == []


def test_a_preview_of_nights_tells_how_long_each_really_is(tmp_path: Path) -> None:
    night = ("0 22 * * *", "--for", "8h", "--tz", "Europe/Berlin", "--next", "2")

    seen = as_json("calendars", "preview", *night, "--after", "2027-03-27T12:00Z", cwd=tmp_path)

    assert [(one["end"], one["hours"]) for one in seen["items"]] == [
        ("2027-03-28T06:00:00+02:00", 7.0),
        ("2027-03-29T06:00:00+02:00", 8.0),
    ]
    assert list(tmp_path.iterdir()) == []


BAD = [
    (["zones", "show", "aws-nothing"], 2, "zone type 'aws-nothing' does not exist"),
    (["zones", "order", "aws-soc2", "--regions", "eu_west"], 2, "eu_west"),
    (["zones", "graph", "aws-soc2", "--format", "svg"], 2, "--format"),
    (["submit", "z", "--type", "aws-soc2", "--dry-run", "--regions", "mars"], 2, "mars"),
    (["submit", "z", "--type", "aws-soc2", "--dry-run", "--set", "cidr=8"], 2, "cidr"),
    (["submit", "z", "--type", "aws-soc2", "--dry-run", "--set", "contact"], 2, "key=value"),
    (["submit", "a/b", "--type", "aws-soc2", "--dry-run"], 2, "a/b"),
    (["submit"], 2, "ZONE"),
    (["submit", "z", "--graph", "x.json"], 2, "ZONE"),
    (["submit", "--graph", "not-there.json"], 2, "not-there.json"),
    (["submit", "--graph", "."], 2, "directory"),
    (["submit", "--graph", "cut.json"], 2, "line 1, column"),
    (["submit", "--graph", "list.json", "--dry-run"], 2, "graph"),
    (["submit", "--graph", "empty.json", "--dry-run", "--simulate"], 2, "nodes"),
    (["submit", "--graph", "typo.json", "--dry-run", "--simulate"], 2, "nodes[0].runtime"),
    (["submit", "--graph", "loop.json", "--dry-run", "--simulate"], 2, "depends on itself"),
    (["submit", "--graph", "no.json", "--dry-run", "--time-scale", "-1"], 2, "--time-scale"),
    (["submit", "--graph", "huge.json", "--dry-run", "--simulate"], 2, "64 bits"),
    (["submit", "--graph", "runner.json", "--dry-run", "--simulate"], 2, "nodes[0].runner"),
    (["submit", "--graph", "far.json", "--dry-run", "--regions", "eu-west"], 2, "us-east"),
    (["submit", "z", "--type", "aws-soc2", "--dry-run", "--regions", ","], 2, "--regions: ','"),
    (["submit", "z", "--type", "aws-soc2", "--dry-run", "--regions", ""], 2, "--regions: ''"),
    (["submit", "z", "--type", "aws-soc2", "--dry-run", "--regions="], 2, "--regions: ''"),
    (["submit", "z", "--type", "aws-soc2", "--dry-run", "--key", " "], 2, "--key: ' '"),
    (["zones", "order", "aws-soc2", "--regions", "eu-west,eu-west"], 2, "eu-west once"),
    (["up", "--regions", "eu-west,"], 2, "--regions: 'eu-west,'"),
    (["worker", "--pool", "a,,b"], 2, "--pool: 'a,,b'"),
    (["tasks", "list", "r", "--state", ","], 2, "--state: ','"),
    (["watch", ""], 2, "command line: ''"),
    (["schedules", "preview", "61 * * * *"], 2, "bad minute"),
    (["calendars", "preview", "0 22 * * *", "--for", "8"], 2, "like 8h"),
    (["calendars", "preview", "* * * * *", "--for", "1h"], 2, "never ends"),
    (["schedules", "preview", "@daily"], 2, "five fields"),
    (["schedules", "preview", "0 0 31 2 *"], 2, "bad day-of-month"),
    (["schedules", "preview", "* * * * *", "--tz", "Mars/Olympus"], 2, "IANA"),
    (["schedules", "preview", "* * * * *", "--gap", "fall"], 2, "shift, skip"),
    (["schedules", "preview", "* * * * *", "--repeat", "thrice"], 2, "once, twice"),
    (["schedules", "preview", "* * * * *", "--next", "0"], 2, "--next"),
    (["schedules", "preview", "* * * * *", "--after", "2027-03-14T02:30"], 2, "offset from UTC"),
    (["schedules", "create", "s", "* * * * *"], 2, "--zone or a --graph"),
    (["schedules", "create", "a\tb", "* * * * *", "--zone", "z"], 2, "NAME"),
    (["schedules", "create", "s", "* * *", "--zone", "z"], 2, "five fields"),
    (["schedules", "create", "s", "* * * * *", "--zone", "z", "--mode", "destroy"], 2, "--mode"),
    (["schedules", "create", "s", "* * * * *", "--zone", "z", "--mode", "x"], 2, "--mode"),
    (["schedules", "create", "s", "* * * * *", "--zone", "z", "--overlap", "x"], 2, "queue"),
    (["schedules", "create", "s", "* * * * *", "--zone", "z", "--catch-up", "last:2"], 2, "all:5"),
    (["schedules", "create", "s", "* * * * *", "--zone", "z", "--queue-max", "0"], 2, "1 to 1000"),
    (["schedules", "create", "s", "* * * * *", "--zone", "z", "--regions", "eu"], 2, "--regions"),
    (["schedules", "list"], 78, "no stack"),
    (["submit", "z", "--deadline", "0"], 2, "--deadline"),
    (["submit", "z", "--deadline", "nan"], 2, "--deadline"),
    (["submit", "z", "--not-before", "2027-03-14T02:30"], 2, "offset from UTC"),
    (["runs", "list"], 78, "no stack"),
    (["up", "--regions", "Mars!"], 2, "--regions"),
    (["worker"], 78, "no stack"),
    (["runs", "list", "--state-dir", "x" * 300], 78, "too long"),
    (["runs", "list", "--state-dir", "cut.json"], 78, "is no directory"),
    (["doctor", "--state-dir", "nowhere"], 78, "up --state-dir nowhere`"),
    (["frobnicate"], 2, "frobnicate"),
]


@pytest.mark.parametrize(("arguments", "code", "told"), BAD, ids=[" ".join(a) for a, _, _ in BAD])
def test_bad_input_is_one_clear_line(
    tmp_path: Path, arguments: list[str], code: int, told: str
) -> None:
    (tmp_path / "cut.json").write_text('{"name": "x", "nodes": [')
    (tmp_path / "list.json").write_text("[]")
    (tmp_path / "empty.json").write_text('{"name": "x", "nodes": [], "edges": []}')
    (tmp_path / "typo.json").write_text(
        '{"name": "x", "nodes": [{"id": "a", "runtime": 3}], "edges": []}'
    )
    (tmp_path / "loop.json").write_text(
        '{"name": "x", "nodes": [{"id": "a"}], "edges": [["a", "a"]]}'
    )
    nodes = {
        "huge": {"id": "a", "inputs": {"n": 10**30}},
        "runner": {"id": "a", "runner": "nothing"},
        "far": {"id": "a", "runner": "simulate", "region": "us-east"},
    }
    for name, node in nodes.items():
        (tmp_path / f"{name}.json").write_text(
            json.dumps({"name": "x", "nodes": [node], "edges": []})
        )
    before = sorted(path.name for path in tmp_path.iterdir())

    ended = cli(*arguments, cwd=tmp_path)

    assert ended.returncode == code, ended.stdout + ended.stderr
    (line,) = ended.stderr.splitlines()
    assert line.startswith("region-scheduler: ")
    assert told in line
    assert ended.stdout == ""
    assert sorted(path.name for path in tmp_path.iterdir()) == before


INTERRUPTED_AT_IMPORT = """
import os, signal, sys
from region_scheduler.cli import main
left = int(sys.argv.pop(1))

def interrupt(event, arguments):
    global left
    if event == "import":
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGINT)

sys.addaudithook(interrupt)
main()
"""
"""Press Ctrl-C at the import of the given number."""


@pytest.mark.parametrize("number", [2, 5, 20, 60, 100, 150, 200])
def test_an_interrupt_at_any_time_is_one_line_and_one_object(tmp_path: Path, number: int) -> None:
    (tmp_path / "g.json").write_text('{"name": "x", "nodes": [{"id": "a"}], "edges": []}')
    command = ["submit", "--graph", "g.json", "--simulate", "--dry-run", "--json"]

    ended = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_AT_IMPORT, str(number), *command],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert (ended.returncode, ended.stderr) == (130, "region-scheduler: interrupted\n")
    (line,) = ended.stdout.splitlines()
    assert json.loads(line)["ok"] is False


def test_a_refusal_is_an_object_too(tmp_path: Path) -> None:
    ended = cli("zones", "show", "aws-nothing", "--json", cwd=tmp_path)

    assert ended.returncode == 2
    assert json.loads(ended.stdout.splitlines()[-1])["error"]["code"] == "unknown_zone_type"


def test_a_cycle_is_refused_by_naming_its_members(tmp_path: Path) -> None:
    graph = str(GRAPHS / "tg-gcp-catherinevee.json")

    ended = cli("submit", "--graph", graph, "--simulate", "--dry-run", cwd=tmp_path)

    assert ended.returncode == 2
    (line,) = ended.stderr.splitlines()
    unit = "infrastructure/environments/prod/us-central1"
    assert f"{unit}/security/cloud-armor" in line
    assert f"{unit}/networking/load-balancer" in line


def test_impossible_settings_stop_the_start_with_every_problem(tmp_path: Path) -> None:
    (tmp_path / "region-scheduler.toml").write_text(
        "colour = 1\n[lease]\nttl_s = 5\n[worker]\nconcurrency = 0\n"
    )

    ended = cli("doctor", cwd=tmp_path)

    assert ended.returncode == 78
    (line,) = ended.stderr.splitlines()
    assert all(told in line for told in ("colour", "lease.ttl_s", "worker.concurrency"))
