"""What `rebuild-backlog` refuses before it opens anything."""

from __future__ import annotations

from pathlib import Path

from tests.integration.cli.test_commands import cli


def test_without_a_stack_or_settings_it_says_so(tmp_path: Path) -> None:
    ended = cli("rebuild-backlog", cwd=tmp_path)

    assert ended.returncode == 78
    assert "there is no stack in" in ended.stderr
    assert list(tmp_path.iterdir()) == []


def test_the_store_of_one_region_is_not_filled_with_the_tasks_of_another(tmp_path: Path) -> None:
    (tmp_path / "region-scheduler.toml").write_text(
        'region = "eu-west"\n'
        "[arango]\n"
        'url = "http://127.0.0.1:1"\n'
        "[relational]\n"
        f'url = "sqlite:///{tmp_path}/eu.db"\n'
    )

    ended = cli("rebuild-backlog", "--region", "us-east", cwd=tmp_path)

    assert ended.returncode == 2
    (line,) = ended.stderr.splitlines()
    assert "--region: 'us-east' is not accepted; relational.url is the store of eu-west" in line
    assert not (tmp_path / "eu.db").exists()
