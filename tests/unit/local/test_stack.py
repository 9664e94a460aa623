"""A stack survives the way into its directory and back, and tells each process what it needs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from region_scheduler.config.load import load, to_environment
from region_scheduler.domain.lease import LOCAL_TIMINGS
from region_scheduler.errors import Misconfigured
from region_scheduler.local.stack import Process, Stack, load_stack, new_stack
from region_scheduler.runtime.system import UuidIds


def fresh(state_dir: Path, port: int = 0, broker_url: str = "") -> Stack:
    return new_stack(state_dir, ["a", "b"], UuidIds(), port, broker_url)


def test_what_was_saved_is_loaded(tmp_path: Path) -> None:
    me = Process(pid=7, started_at=70)
    stack = replace(fresh(tmp_path / "s"), up=me, processes={"engine": me})

    stack.save()

    assert load_stack(tmp_path / "s") == stack
    assert oct((tmp_path / "s" / "secrets.json").stat().st_mode & 0o777) == "0o600"


def test_a_later_save_keeps_the_secrets(tmp_path: Path) -> None:
    first = fresh(tmp_path)
    first.save()

    replace(fresh(tmp_path), regions=first.regions).save()

    loaded = load_stack(tmp_path)
    assert loaded is not None
    assert loaded.secrets == first.secrets


def test_where_nothing_is_there_is_no_stack(tmp_path: Path) -> None:
    assert load_stack(tmp_path) is None
    assert load_stack(tmp_path / "not-there") is None


@pytest.mark.parametrize("name", ["stack.json", "secrets.json"])
@pytest.mark.parametrize("content", ["", "{", "null", '{"schema": 1}', '"text"'])
def test_what_is_no_stack_is_damaged(tmp_path: Path, name: str, content: str) -> None:
    fresh(tmp_path).save()
    (tmp_path / name).write_text(content)

    with pytest.raises(Misconfigured, match="is damaged"):
        load_stack(tmp_path)


def test_missing_secrets_are_damage(tmp_path: Path) -> None:
    fresh(tmp_path).save()
    (tmp_path / "secrets.json").unlink()

    with pytest.raises(Misconfigured, match=r"secrets\.json"):
        load_stack(tmp_path)


def test_ports_come_in_a_row_or_free_and_never_twice(tmp_path: Path) -> None:
    told, free = fresh(tmp_path, port=4000), fresh(tmp_path)

    for stack in (told, free):
        ports = [p for at in stack.regions.values() for p in (at.engine, at.api, at.broker)]
        assert len(set(ports)) == 6
    assert sorted(
        p for at in told.regions.values() for p in (at.engine, at.api, at.broker)
    ) == list(range(4000, 4006))


def test_a_foreign_broker_takes_no_port(tmp_path: Path) -> None:
    stack = fresh(tmp_path, broker_url="redis://elsewhere:6379/0")

    assert [at.broker for at in stack.regions.values()] == [0, 0]
    assert stack.broker_url("a") == stack.broker_url("b") == "redis://elsewhere:6379/0"
    own = fresh(tmp_path)
    assert own.secrets.broker_password in own.broker_url("b")


def test_two_stacks_have_different_secrets(tmp_path: Path) -> None:
    one, other = fresh(tmp_path).secrets, fresh(tmp_path).secrets

    assert one.signing_key != other.signing_key
    assert one.broker_password != other.broker_password
    assert one.signing_key not in repr(one)


def test_a_process_of_a_region_gets_settings_that_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stack = fresh(tmp_path)
    for name, value in to_environment(stack.settings("b")).items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)

    settings = load().settings

    assert settings.region == "b"
    assert settings.regions == ("a", "b")
    assert settings.peers == {"a": stack.api_url("a"), "b": stack.api_url("b")}
    assert settings.arango.url == stack.engine_url("b")
    assert settings.broker.url == stack.broker_url("b")
    assert settings.http.port == stack.regions["b"].api
    assert settings.lease == LOCAL_TIMINGS
    assert settings.signing_key_bytes().decode() == stack.secrets.signing_key
