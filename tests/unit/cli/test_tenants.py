"""What is refused before a stack is looked for."""

from __future__ import annotations

import pytest

from region_scheduler.cli.app import run


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ("tenants set acme --level gold", "--level"),
        ("tenants set acme --zones many", "--zones"),
        ("tenants set acme --runs-a-day=-1", "--runs-a-day"),
        ("tenants set a/b --zones 1", "TENANT"),
        ("tenants set acme", "tenants set"),
        ("tenants show a/b", "TENANT"),
        ("audit list --since yesterday", "--since"),
        ("audit list --since 2027-03-14T02:30:00", "--since"),
        ("audit list --since 0h", "--since"),
        ("audit list --limit 0", "command line"),
    ],
)
def test_bad_input_names_what_is_wrong_and_ends_with_2(
    arguments: str, field: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments.split()) == 2

    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith(f"region-scheduler: {field}: ")
