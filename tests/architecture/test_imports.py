"""The import contracts of pyproject.toml, and what no import contract can say."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

from tests.architecture.tree import PACKAGE, ROOT, TESTS, files, shown

VAGUE = {"util", "utils", "common", "core", "base", "helper", "helpers", "manager", "misc"}


def test_the_import_contracts_hold() -> None:
    ended = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert ended.returncode == 0, ended.stdout[-4000:] + ended.stderr


def test_every_folder_with_code_is_a_package_that_the_contracts_see() -> None:
    folders = {path.parent for path in files(".py", under=PACKAGE)}

    # Migration scripts are loaded by Alembic by path, and are no package.
    bare = [shown(f) for f in folders if not (f / "__init__.py").exists() and f.name != "versions"]

    assert sorted(bare) == []


def test_no_module_or_folder_has_a_vague_name() -> None:
    named = set(files(".py", under=PACKAGE))
    named |= {path.parent for path in named}

    assert sorted(shown(path) for path in named if path.stem in VAGUE) == []


def test_no_test_mocks_a_port() -> None:
    """The engine with faults switched on stands in for a store, never a mock."""
    found = []
    for path in files(".py", under=TESTS):
        for node in ast.walk(ast.parse(path.read_text())):
            modules = (
                [alias.name for alias in node.names]
                if isinstance(node, ast.Import)
                else [f"{node.module}.{alias.name}" for alias in node.names]
                if isinstance(node, ast.ImportFrom)
                else []
            )
            if any(module.startswith("unittest.mock") for module in modules):
                found.append(f"{shown(path)}:{node.lineno}")  # type: ignore[attr-defined]

    assert found == []
