"""What is installed is what was looked at: exact versions, hashes, no addresses."""

from __future__ import annotations

import re
import tomllib

import pytest

from tests.architecture.tree import ROOT

FILES = ["requirements.txt", "requirements-dev.txt", "requirements-docs.txt"]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def name_of(requirement: str) -> str:
    match = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert match, requirement
    return re.sub(r"[-_.]+", "-", match.group()).lower()


def pinned(file: str) -> dict[str, str]:
    """Return each pinned requirement, with its hashes, by name."""
    text = (ROOT / file).read_text().replace("\\\n", " ")
    return {name_of(line): line for line in text.splitlines() if line.strip()}


@pytest.mark.parametrize("file", FILES)
def test_every_requirement_is_exact_and_hashed(file: str) -> None:
    lines = pinned(file).values()

    assert [line for line in lines if not re.match(r"[\w.-]+(\[[\w,]+\])?==", line)] == []
    assert [line for line in lines if "--hash=sha256:" not in line] == []
    assert "://" not in (ROOT / file).read_text()


@pytest.mark.parametrize("file", FILES)
def test_every_dependency_of_the_demo_is_pinned(file: str) -> None:
    extras = PROJECT["project"]["optional-dependencies"]
    needed = [
        *PROJECT["project"]["dependencies"],
        *(one for extra in extras.values() for one in extra),
    ]

    assert {name_of(one) for one in needed} - set(pinned(file)) == set()


def test_the_development_set_holds_the_demo_set_at_the_same_versions() -> None:
    demo, dev = pinned("requirements.txt"), pinned("requirements-dev.txt")

    assert {name: line for name, line in demo.items() if dev.get(name) != line} == {}
    wanted = {name_of(one) for one in PROJECT["dependency-groups"]["dev"]}
    assert wanted - set(dev) == set()
