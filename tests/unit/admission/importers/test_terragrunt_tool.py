"""The graph that a terragrunt tells; a small program stands in, with its documented output."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from region_scheduler.admission.importers.terragrunt_tool import found_by_terragrunt
from region_scheduler.errors import InvalidInput, Unavailable
from tests.unit.admission.importers.forms import admissible

UNITS: list[dict[str, Any]] = [
    {"type": "unit", "path": "live/eu-west-1/vpc"},
    {"type": "unit", "path": "live/eu-west-1/db", "dependencies": ["live/eu-west-1/vpc"]},
    {"type": "unit", "path": "live/app", "dependencies": ["live/eu-west-1/db", "../shared/dns"]},
    {"type": "stack", "path": "live/stacks"},
]


def stand_in(tmp_path: Path, body: str) -> str:
    program = tmp_path / "terragrunt"
    program.write_text(f"#!{sys.executable}\nimport os, sys\n{body}\n")
    program.chmod(0o755)
    return str(program)


def test_units_and_dependencies_are_what_it_says(tmp_path: Path) -> None:
    output = json.dumps(UNITS)
    program = stand_in(
        tmp_path,
        f"open('asked', 'w').write(' '.join(sys.argv[1:]) + ' in ' + os.getcwd())\n"
        f"print({output!r})",
    )
    root = tmp_path / "estate"
    root.mkdir()

    graph = found_by_terragrunt(program, root)

    assert (root / "asked").read_text() == f"find --dag --json --dependencies in {root}"
    assert [node["id"] for node in graph.nodes] == [unit["path"] for unit in UNITS[:3]]
    assert [node.get("region") for node in graph.nodes] == ["eu-west-1", "eu-west-1", None]
    assert graph.edges == (
        ("live/eu-west-1/vpc", "live/eu-west-1/db"),
        ("live/eu-west-1/db", "live/app"),
        ("../shared/dns", "live/app"),
    )
    assert graph.notes == ("stack live/stacks is no unit and was left out",)
    with pytest.raises(Exception, match=r"'\.\./shared/dns', which is no node"):
        admissible(graph.document())


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("sys.stderr.write('a\\nno such flag: --dag\\n'); sys.exit(1)", "no such flag: --dag"),
        ("sys.exit(3)", "exit code 3"),
        ("print('not json')", "not JSON"),
        ("print('{}')", "a list is needed"),
        ("print('[{}]')", r"\[0\]\.path"),
        ('print(\'[{"path": "a", "dependencies": [1]}]\')', r"dependencies\[0\]"),
    ],
)
def test_what_it_refuses_is_refused_with_its_words(tmp_path: Path, body: str, told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        found_by_terragrunt(stand_in(tmp_path, body), tmp_path)


def test_one_that_cannot_be_started_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="terragrunt"):
        found_by_terragrunt(str(tmp_path / "none"), tmp_path)
    with pytest.raises(InvalidInput, match="name a directory"):
        found_by_terragrunt("terragrunt", tmp_path / "none")
