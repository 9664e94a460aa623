"""The import contracts of pyproject.toml, and what no import contract can say."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.tree import PACKAGE, ROOT, TESTS, files, shown

VAGUE = {"util", "utils", "common", "core", "base", "helper", "helpers", "manager", "misc"}


PLANTED = {
    "domain/x.py": ("import time", "The domain reaches no clock"),
    "ports/x.py": ("import region_scheduler.scheduling.tick", "Every folder has a layer"),
    "leftovers/x.py": ("", "Every folder has a layer"),
    "scheduling/x.py": ("import subprocess", "The scheduler never runs a step"),
    "worker/x.py": (
        "import region_scheduler.drivers.arango.client",
        "Only assembly imports drivers",
    ),
    "lifecycle/x.py": ("import arango.http", "python-arango lives in"),
    "drivers/arango/x.py": ("import sqlalchemy", "SQLAlchemy and Alembic live in"),
    "drivers/sql/x.py": ("import kombu", "Celery and Redis live in"),
    "admission/x.py": ("from opentelemetry import trace", "OpenTelemetry lives in"),
    "local/x.py": ("from fastapi import FastAPI", "FastAPI lives in"),
    "drivers/celery/x.py": ("import lark", "The AQL parser lives in"),
    "embedded/x.py": ("import region_scheduler.errors", "Every folder has a layer"),
    "resources/x.py": ("import region_scheduler.resources.y", "No two siblings import each other"),
}
SKELETON = {
    "errors.py": "",
    "embedded/engine.py": "",
    "scheduling/tick.py": "",
    "drivers/arango/client.py": "",
    "resources/x.py": "",
    "resources/y.py": "import region_scheduler.resources.x\n",
}


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_import_contracts_hold() -> None:
    ended = lint_imports(ROOT)

    assert ended.returncode == 0, ended.stdout[-4000:] + ended.stderr


@pytest.mark.parametrize("planted", PLANTED)
def test_a_planted_import_breaks_its_contract(planted: str, tmp_path: Path) -> None:
    line, contract = PLANTED[planted]
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for name, text in {**SKELETON, planted: line + "\n"}.items():
        path = tmp_path / "region_scheduler" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        for folder in path.relative_to(tmp_path).parents[:-1]:
            (tmp_path / folder / "__init__.py").touch()

    ended = lint_imports(tmp_path)

    broken = [text for text in ended.stdout.splitlines() if text.endswith("BROKEN")]
    assert any(text.startswith(contract) for text in broken), ended.stdout + ended.stderr


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
