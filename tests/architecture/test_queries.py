"""Every query is a file with a header; the README quotes the one that everything is about."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.architecture.tree import PACKAGE, ROOT, files, shown

QUERIES = list(files(".aql", under=PACKAGE))
TOLD = ("parameters", "result", "consistency")


def header(text: str) -> str:
    lines = text.splitlines()
    end = next((n for n, line in enumerate(lines) if not line.startswith("//")), len(lines))
    return "\n".join(lines[:end])


def test_there_are_queries() -> None:
    assert "ready.aql" in {path.name for path in QUERIES}


@pytest.mark.parametrize("path", QUERIES, ids=shown)
def test_a_query_says_its_parameters_its_result_and_its_consistency(path: Path) -> None:
    head = header(path.read_text()).lower()

    assert [word for word in TOLD if word not in head] == []


@pytest.mark.parametrize("path", QUERIES, ids=shown)
def test_a_traversal_declares_its_collections(path: Path) -> None:
    """A cluster refuses a traversal without WITH."""
    body = path.read_text().removeprefix(header(path.read_text()))
    is_traversal = any(word in body for word in ("OUTBOUND", "INBOUND", " ANY "))

    assert not is_traversal or body.lstrip().startswith("WITH ")


def test_the_readme_quotes_the_ready_query() -> None:
    ready = next(path for path in QUERIES if path.name == "ready.aql").read_text()
    quoted = (ROOT / "README.md").read_text().partition("```aql\n")[2].partition("\n```")[0]

    assert quoted.strip() == ready.removeprefix(header(ready)).strip()
