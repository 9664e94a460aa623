"""Words that do not belong in the tree: hosts to download from, and one machine's places."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.architecture.tree import files, shown

# In pieces, so that this file does not name what it forbids.
HOSTS = [
    r"pythonhosted" + r"\.org",
    r"pypi" + r"\.org",
    r"registry\.npm" + r"js",
    r"deb\.debian" + r"\.org",
    r"(releases|checkpoint)\.hashi" + r"corp\.com",
    r"git" + r"hub\.com/[^\s]*/(releases|archive)/",
    r"raw\.git" + r"hubusercontent",
    r"huggingface" + r"\.co",
    r"docker" + r"\.io",
    r"cdn\.jsdel" + r"ivr",
    r"unpkg" + r"\.com",
    r"cdnjs\.cloud" + r"flare",
]
PLACES = [
    r"/wo" + r"rk/(main|shared|notes)\b",
    r"/ro" + r"ot/",
    r"/ho" + r"me/[a-z]",
    r"BRI" + r"EF\.md",
]
FORBIDDEN = re.compile("|".join(HOSTS + PLACES))
BINARY = {".png", ".ico", ".woff2", ".gz", ".db"}


def forbidden_in(path: Path) -> list[str]:
    lines = path.read_text(encoding="utf-8").splitlines()
    hits = [(number, FORBIDDEN.search(line)) for number, line in enumerate(lines, start=1)]
    return [f"{shown(path)}:{number}: {hit.group()}" for number, hit in hits if hit]


def test_no_file_names_a_download_host_or_a_place_on_one_machine() -> None:
    found = [hit for path in files() if path.suffix not in BINARY for hit in forbidden_in(path)]

    assert found == []


@pytest.mark.parametrize(
    "line",
    ["https://files.pythonhosted" + ".org/packages/x", "cd /wo" + "rk/main", "/ho" + "me/anna/x"],
)
def test_the_pattern_finds_what_it_should(line: str) -> None:
    assert FORBIDDEN.search(line)
