"""What the pages name exists: folders, links, targets, states, exit codes, packages."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from region_scheduler.domain.states import RunState, TaskState
from region_scheduler.errors import RegionSchedulerError
from tests.architecture.test_errors import classes
from tests.architecture.test_pins import PROJECT, name_of
from tests.architecture.tree import PACKAGE, ROOT, files, shown

PAGES = [path for path in files(".md") if "tests" not in path.parts]
BOXES = [
    "task submitter cluster",
    "cluster manager",
    "relational store",
    "graph store",
    "batching layer",
    "queue manager",
    "resource manager",
    "workers",
    "monitoring",
]


def test_each_test_that_the_page_on_queues_names_is_there() -> None:
    named = re.findall(r"`(test_\w+)`", page("queues.md"))
    texts = [path.read_text() for path in files(".py") if "tests" in path.parts]

    assert len(named) > 5
    assert [name for name in named if not any(f"def {name}(" in text for text in texts)] == []


def page(name: str) -> str:
    return (ROOT / "docs" / name).read_text()


def rows(text: str) -> list[list[str]]:
    """Return the cells of every table row, without the lines that only draw."""
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


@pytest.mark.parametrize("path", PAGES, ids=shown)
def test_every_link_leads_somewhere(path: Path) -> None:
    targets = re.findall(r"\]\(([^)#\s]+)", path.read_text())
    local = [target for target in targets if "://" not in target]

    assert [target for target in local if not (path.parent / target).exists()] == []


@pytest.mark.parametrize("path", PAGES, ids=shown)
def test_every_make_target_that_a_page_names_exists(path: Path) -> None:
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    named = re.findall(r"(?:^|`)(?:PYTHON=\S+ )?make ([a-z-]+)", path.read_text(), re.MULTILINE)

    assert sorted(set(named) - set(targets)) == []


@pytest.mark.parametrize("box", BOXES)
def test_every_box_of_the_picture_has_a_folder_that_exists(box: str) -> None:
    row = next(cells for cells in rows(page("architecture.md")) if cells[0] == box)
    folders = re.findall(r"`([\w/]+)/`", row[1])

    assert folders
    assert [folder for folder in folders if not (PACKAGE / folder).is_dir()] == []
    assert box in page("architecture.svg")


def test_every_folder_that_the_picture_names_exists() -> None:
    named = re.findall(r'class="folder"[^>]*>([^<]+)<', page("architecture.svg"))
    folders = [folder.strip(" /") for text in named for folder in text.split(",")]

    missing = [
        f for f in folders if not any((PACKAGE / f).with_suffix(s).exists() for s in ("", ".py"))
    ]
    assert missing == []


@pytest.mark.parametrize("state", [*TaskState, *RunState], ids=lambda s: f"{type(s).__name__}-{s}")
def test_the_glossary_has_every_state(state: str) -> None:
    assert f"`{state}`" in page("glossary.md").partition("## States of a task")[2]


def test_the_exit_codes_are_those_of_the_errors() -> None:
    told = {int(cells[0]) for cells in rows(page("operations.md")) if cells[0].isdigit()}
    raised = {error.exit_code for error in classes() if error is not RegionSchedulerError}

    assert raised <= told


def test_every_direct_dependency_has_its_reason() -> None:
    project = PROJECT["project"]
    direct = [*project["dependencies"], *PROJECT["dependency-groups"]["dev"]]
    direct += [one for extra in project["optional-dependencies"].values() for one in extra]
    told = page("dependencies.md")

    names = {name_of(one) for one in direct if not one.startswith("types-")}
    assert sorted(name for name in names if name not in told) == []


def test_the_readme_tells_what_continuous_integration_runs() -> None:
    assert "\nmake test\n" in (ROOT / "README.md").read_text()
    assert "step make test\n" in (ROOT / ".ci" / "run").read_text()


def test_every_section_of_the_protocol_that_the_code_names_exists() -> None:
    sections = set(re.findall(r"^## (\d+)\.", page("protocol.md"), re.MULTILINE))
    named = {
        f"{shown(path)}: section {number}"
        for path in files(".py", under=PACKAGE)
        for numbers in re.findall(r"docs/protocol\.md sections? ([\d, and]+)", path.read_text())
        for number in re.findall(r"\d+", numbers)
        if number not in sections
    }

    assert sorted(named) == []


def test_every_command_of_the_readme_names_tests_that_exist() -> None:
    commands = re.findall(r"`\.venv/bin/pytest ([^`]+)`", (ROOT / "README.md").read_text())
    named = [path for command in commands for path in command.split()]

    assert len(named) > 5
    assert [path for path in named if not (ROOT / path.partition("::")[0]).exists()] == []


def test_every_page_that_the_code_names_exists() -> None:
    named = {
        f"{shown(path)}: {name}"
        for path in files(".py", under=PACKAGE)
        for name in re.findall(r"[\w./-]+\.md\b", path.read_text())
        if not (ROOT / name).exists()
    }

    assert sorted(named) == []
