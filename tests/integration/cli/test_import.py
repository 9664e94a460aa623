"""`import` as a process of its own: what it writes, tells and refuses, without a stack."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

DATA = Path(__file__).parents[2] / "data"
GRAPHS = DATA / "graphs"


def run(
    *arguments: str, cwd: Path, path: str = "/usr/bin:/bin", given: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "region_scheduler", "import", *arguments],
        cwd=cwd,
        env={"PATH": path, "HOME": str(cwd), "PYTHONPATH": os.fspath(DATA.parents[1])},
        input=given,
        capture_output=True,
        timeout=60,
        check=False,
    )


def said(ended: subprocess.CompletedProcess[bytes]) -> str:
    return ended.stderr.decode()


def dry(*arguments: str, cwd: Path, code: int = 0) -> dict[str, Any]:
    ended = run(*arguments, "--dry-run", "--json", cwd=cwd)
    assert ended.returncode == code, said(ended)
    (line,) = ended.stdout.decode().splitlines()
    found: dict[str, Any] = json.loads(line)
    assert found["ok"] is (code == 0)
    return found


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("tf-aws-eks", 0),
        ("git-kubespray-commits", 0),
        ("wf-soykb-50fastq-20ch", 0),
        ("tg-gcp-catherinevee", 2),
        ("debian-server-closure", 2),
        ("dbt-like-mozilla-bq-tables", 2),
    ],
)
def test_a_dry_run_counts_and_ends_as_admission_would(tmp_path: Path, name: str, code: int) -> None:
    expected = json.loads((DATA / "graphs_expected.json").read_text())[name]

    found = dry("graph", str(GRAPHS / f"{name}.json"), cwd=tmp_path, code=code)

    for key in ("nodes", "edges", "depth", "width", "self_loops"):
        assert found[key] == expected[key]
    assert len(found["cycles"]) == expected["knots"]
    assert list(tmp_path.iterdir()) == []


def test_a_dry_run_for_people_names_each_edge_of_the_cycle(tmp_path: Path) -> None:
    ended = run("graph", str(GRAPHS / "tg-gcp-catherinevee.json"), "--dry-run", cwd=tmp_path)

    unit = "infrastructure/environments/prod/us-central1"
    armor, balancer = f"{unit}/security/cloud-armor", f"{unit}/networking/load-balancer"
    lines = ended.stdout.decode().splitlines()
    assert ended.returncode == 2
    assert "cycles: 1" in lines
    assert any(f"{armor} -> {balancer}  (edges[" in line for line in lines)
    assert any(f"{balancer} -> {armor}  (edges[" in line for line in lines)
    assert lines[-2:] == ["it would be refused", "nothing was written"]
    (line,) = said(ended).splitlines()
    assert line.startswith("region-scheduler: the graph has a cycle")


def test_loops_and_dangling_edges_are_let_pass_and_counted(tmp_path: Path) -> None:
    document = {
        "name": "x",
        "nodes": [{"id": "a"}, {"id": "b"}],
        "edges": [["a", "a"], ["a", "b"], ["a", "b"], ["z", "b"]],
    }
    (tmp_path / "g.json").write_text(json.dumps(document))

    assert "depends on itself" in dry("graph", "g.json", cwd=tmp_path, code=2)["error"]["message"]
    found = dry("graph", "g.json", "--drop-self-loops", "--ignore-dangling", cwd=tmp_path)
    ended = run("graph", "g.json", "--drop-self-loops", "--ignore-dangling", cwd=tmp_path)

    counted = ("self_loops_dropped", "dangling_ignored", "repeated_edges", "runners_given")
    assert [found[key] for key in counted] == [1, 1, 1, 2]
    assert json.loads(ended.stdout) == {
        "name": "x",
        "nodes": [{"runner": "simulate", "id": "a"}, {"runner": "simulate", "id": "b"}],
        "edges": [["a", "b"]],
        "dangling_edges": [["z", "b"]],
    }
    told = said(ended)
    assert "1 edges from a node to itself were dropped" in told
    assert "1 edges that name no node were ignored" in told
    assert "1 edges came more than once" in told
    (tmp_path / "settled.json").write_bytes(ended.stdout)
    assert dry("graph", "settled.json", cwd=tmp_path)["dangling"] == [["z", "b"]]
    strict = dry("graph", "settled.json", "--strict", cwd=tmp_path, code=2)
    assert "'z', which is no node" in strict["error"]["message"]


@pytest.mark.parametrize("name", ["tf-azure-caf-enterprise-scale", "atmos-stacks"])
def test_strict_refuses_what_a_source_set_aside(tmp_path: Path, name: str) -> None:
    path = str(GRAPHS / f"{name}.json")

    assert dry("graph", path, cwd=tmp_path)["dangling"]
    assert dry("graph", path, "--strict", cwd=tmp_path, code=2)["error"]["code"] == "invalid_graph"


def test_terraform_graph_comes_from_a_file_or_standard_input(tmp_path: Path) -> None:
    dot = DATA / "terraform" / "plan.dot"

    by_file = run("terraform-graph", str(dot), "--out", "g.json", cwd=tmp_path)
    by_pipe = run("terraform-graph", "-", "--name", "plan", cwd=tmp_path, given=dot.read_bytes())

    assert (by_file.returncode, by_pipe.returncode) == (0, 0)
    written = json.loads((tmp_path / "g.json").read_bytes())
    assert written["nodes"] == json.loads(by_pipe.stdout)["nodes"]
    assert written["name"] == json.loads(by_pipe.stdout)["name"] == "plan"
    assert dry("graph", "g.json", cwd=tmp_path)["depth"] == 9


def test_a_tree_is_read_where_no_terragrunt_is_there(tmp_path: Path) -> None:
    shutil.copytree(DATA / "terragrunt" / "estate", tmp_path / "estate")

    ended = run("terragrunt", "estate", cwd=tmp_path)
    strict = run("terragrunt", "estate", "--strict", cwd=tmp_path)

    document = json.loads(ended.stdout)
    assert (document["name"], len(document["nodes"])) == ("estate", 9)
    assert ["values.vpc_path", "live/eu-west-1/odd"] in document["unresolved"]
    assert "odd/terragrunt.hcl:11" in said(ended)
    assert strict.returncode == 2
    assert "values.vpc_path" in said(strict)
    assert strict.stdout == b""


def test_a_terragrunt_on_the_path_is_asked_unless_told_to_read(tmp_path: Path) -> None:
    shutil.copytree(DATA / "terragrunt" / "estate", tmp_path / "estate")
    program = tmp_path / "bin" / "terragrunt"
    program.parent.mkdir()
    units = [{"type": "unit", "path": "a"}, {"type": "unit", "path": "b", "dependencies": ["a"]}]
    program.write_text(f"#!/bin/sh\necho '{json.dumps(units)}'\n")
    program.chmod(0o755)
    path = f"{program.parent}:/usr/bin:/bin"

    asked = run("terragrunt", "estate", cwd=tmp_path, path=path)
    read = run("terragrunt", "estate", "--read", cwd=tmp_path, path=path)

    assert json.loads(asked.stdout)["edges"] == [["a", "b"]]
    assert len(json.loads(read.stdout)["nodes"]) == 9


def test_a_cycle_of_units_is_named_with_files_and_lines(tmp_path: Path) -> None:
    shutil.copytree(DATA / "terragrunt" / "knot", tmp_path / "knot")

    ended = run("terragrunt", "knot", "--ignore-dangling", cwd=tmp_path)

    assert ended.returncode == 2
    assert "a/terragrunt.hcl:2" in said(ended)
    assert "b/terragrunt.hcl:3" in said(ended)
    assert ended.stdout == b""


def test_it_is_drawn(tmp_path: Path) -> None:
    names = ['say "hi"', "back\\slash", "a<b>&#;"]
    document = {"name": "d", "nodes": [{"id": n} for n in names], "edges": [names[:2]]}
    (tmp_path / "g.json").write_text(json.dumps(document))

    dot = run("graph", "g.json", "--format", "dot", cwd=tmp_path).stdout.decode()
    mermaid = run("graph", "g.json", "--format", "mermaid", cwd=tmp_path).stdout.decode()

    assert '  "say \\"hi\\"" -> "back\\\\slash";\n' in dot
    assert mermaid.splitlines()[0] == "flowchart LR"
    assert '  n0["say #34;hi#34;"]' in mermaid
    assert "  n0 --> n1\n" in mermaid
    (tmp_path / "d.dot").write_text(dot)
    back = json.loads(run("terraform-graph", "d.dot", cwd=tmp_path).stdout)
    assert [node["id"] for node in back["nodes"]] == names
    assert back["edges"] == [names[1::-1]]  # its arrows mean the opposite


BAD = [
    (["graph", "none.json"], "no such file"),
    (["graph", "."], "is a directory"),
    (["graph", "cut.json"], "not JSON: line 1, column"),
    (["graph", "typo.json"], "nodes[0].runtime"),
    (["graph", "cut.json", "--regions", "mars"], "not JSON"),
    (["graph", "fine.json", "--regions", "mars"], "known regions are"),
    (["graph", "fine.json", "--out", "none/x.json"], "no such file"),
    (["graph", "fine.json", "--strict", "--ignore-dangling"], "leave out"),
    (["terraform-graph", "fine.json"], "it must begin with digraph"),
    (["terragrunt", "fine.json"], "name a directory"),
    (["terragrunt", "."], "no terragrunt.hcl below"),
    (["helmfile", "."], "is not one of 'graph', 'terraform-graph', 'terragrunt'"),
]


@pytest.mark.parametrize(("arguments", "told"), BAD, ids=[" ".join(a) for a, _ in BAD])
def test_bad_input_is_one_clear_line_and_leaves_nothing(
    tmp_path: Path, arguments: list[str], told: str
) -> None:
    (tmp_path / "cut.json").write_text('{"name": "x", "nodes": [')
    (tmp_path / "fine.json").write_text('{"name": "x", "nodes": [{"id": "a"}], "edges": []}')
    (tmp_path / "typo.json").write_text(
        '{"name": "x", "nodes": [{"id": "a", "runtime": 3}], "edges": []}'
    )
    before = sorted(path.name for path in tmp_path.iterdir())

    ended = run(*arguments, cwd=tmp_path)

    assert ended.returncode == 2
    (line,) = said(ended).splitlines()
    assert line.startswith("region-scheduler: ")
    assert told in line
    assert ended.stdout == b""
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_limits_can_be_set(tmp_path: Path) -> None:
    (tmp_path / "region-scheduler.toml").write_text("[limits]\ntasks_max = 7\n")

    ended = run("graph", str(GRAPHS / "dbt-jaffle-shop-classic.json"), cwd=tmp_path)

    assert ended.returncode == 2
    assert "it has 8 nodes, at most 7 (limit tasks_max)" in said(ended)
