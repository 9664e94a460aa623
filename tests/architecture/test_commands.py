"""The pages and the command line know the same commands and options."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from typer.core import TyperGroup

from region_scheduler.cli.app import build
from tests.architecture.test_docs import PAGES, page, rows
from tests.architecture.tree import ROOT, shown

EVERYWHERE = {"--state-dir", "--json", "--help"}
"""Told once, at the top of the page."""

NEED_NO_STACK = {"calendars preview", "config show", "schedules preview", "simulate"} | {
    f"{group} {word}"
    for group, words in (
        ("zones", "types show graph order"),
        ("bench", "engine stores admission scheduling contention wide-area"),
    )
    for word in words.split()
}


def commands() -> dict[str, set[str]]:
    """Return the options of every command, by the words that call it."""
    root = typer.main.get_command(build())
    assert isinstance(root, TyperGroup)
    found = {}
    for name, command in root.commands.items():
        inner = command.commands if isinstance(command, TyperGroup) else {"": command}
        for word, one in inner.items():
            options = {text for parameter in one.params for text in parameter.opts}
            found[f"{name} {word}".strip()] = {o for o in options if o.startswith("--")} | {
                "--help"
            }
    return found


COMMANDS = commands()


def told() -> dict[str, set[str]]:
    """Return what docs/commands.md tells: options by command."""
    table = [row for row in rows(page("commands.md")) if row[0].startswith("`")]
    return {
        " ".join(word for word in row[0].strip("`").split() if word.islower()): set(
            re.findall(r"--[a-z-]+", row[2])
        )
        for row in table
    }


def test_the_page_has_every_command_and_no_other() -> None:
    assert sorted(told()) == sorted(COMMANDS)


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_the_page_has_every_option_of_a_command_and_no_other(command: str) -> None:
    assert told()[command] == COMMANDS[command] - EVERYWHERE


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_what_is_told_once_holds_for_all_that_it_says(command: str) -> None:
    assert ("--state-dir" in COMMANDS[command]) == (command not in NEED_NO_STACK)
    assert ("--json" in COMMANDS[command]) == (command not in {"serve", "worker"})


def typed(path: Path) -> Iterator[list[str]]:
    """Return the words of every call of the program that a page shows."""
    text = path.read_text()
    blocks = re.findall(r"^```\w*\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines()]
    lines += re.findall(
        r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    )
    for line in lines:
        called = re.search(r"(?:^|\s|/)region-scheduler ([a-z][^;|&]*)", line)
        if called:
            yield shlex.split(called[1])


@pytest.mark.parametrize("path", PAGES, ids=shown)
def test_every_command_that_a_page_shows_exists_with_its_options(path: Path) -> None:
    for words in typed(path):
        command = next((c for c in (" ".join(words[:2]), words[0]) if c in COMMANDS), None)
        is_group = any(c.startswith(f"{words[0]} ") for c in COMMANDS)
        assert command or (is_group and len(words) == 1), words
        options = {word.partition("=")[0] for word in words if word.startswith("--")}
        assert options <= (COMMANDS[command] if command else set()), words


def test_the_way_to_the_page_is_shown_to_newcomers() -> None:
    assert "(docs/commands.md)" in (ROOT / "README.md").read_text()
    assert "(commands.md)" in page("quick-start.md")
