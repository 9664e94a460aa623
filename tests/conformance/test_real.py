"""`make real`, on the embedded server in place of ArangoDB: all of it but the containers."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance.real import OUT, ROOT
from tests.integration.engine.server import EngineProcess

COMMAND = [sys.executable, "-m", "tests.conformance.real"]


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    engine = EngineProcess(tmp_path / "data")
    engine.start()
    yield f"http://root:@127.0.0.1:{engine.ports['local']}"
    client = engine.client()
    assert client("GET", "/_api/database")[1]["result"] == ["_system"]
    client.close()
    assert engine.end() == 0


def run(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *arguments],
        cwd=ROOT,
        env=environ or None,
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )


@pytest.mark.timeout(300)
def test_a_server_at_a_url_is_asked_everything_and_only_differences_are_printed(
    url: str, tmp_path: Path
) -> None:
    out = tmp_path / "real.json"
    ended = run("--url", url, "--only", "aql,http,contract", "--out", str(out))

    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert ended.stdout.count("\n") == 1
    (server,) = json.loads(out.read_text())["servers"]
    assert (server["version"], server["role"]) == ("3.12.10-embedded", "SINGLE")
    figures = {name: (one["passed"], one["total"]) for name, one in server["suites"].items()}
    assert all(passed == total for passed, total in figures.values())
    assert figures["aql"][1] > 520
    assert figures["http"][1] > 99
    assert figures["contract"][1] > 100


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_demo_and_local_stack_run_on_a_server_at_a_url(url: str, tmp_path: Path) -> None:
    out = tmp_path / "real.json"
    ended = run("--url", url, "--only", "product,demo", "--out", str(out))

    assert ended.returncode == 0, ended.stdout + ended.stderr
    (server,) = json.loads(out.read_text())["servers"]
    figures = {name: (one["passed"], one["total"]) for name, one in server["suites"].items()}
    assert figures["demo"] == (1, 1)
    assert figures["product"][0] == figures["product"][1] > 10


def test_what_differs_is_named_and_the_file_is_for_arangodb_only(url: str) -> None:
    before = OUT.read_bytes()
    ended = run("--url", url.replace("root:@", "root:wrong@"), "--only", "http")
    assert ended.returncode == 2
    assert ended.stderr.count("\n") == 1

    ended = run("--url", url, "--only", "http")
    assert ended.returncode == 0
    assert "nothing written" in ended.stdout
    assert OUT.read_bytes() == before


def test_without_containers_and_url_there_is_one_line_and_2() -> None:
    ended = run(PATH="/nowhere")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.count("\n") == 1


def test_readme_and_page_quote_the_file() -> None:
    told = json.loads(OUT.read_text())
    assert not any("embedded" in server["version"] for server in told["servers"])
    versions = ", ".join(server["version"] for server in told["servers"])
    quoted = f"by ArangoDB {versions}, {told['at']}" if versions else "not yet by us"
    assert told["status"] == ("done" if versions else quoted)
    for page in ("README.md", "docs/embedded-engine.md"):
        assert f"**{quoted}**" in (ROOT / page).read_text()
