"""A stack survives the way into its directory and back, and tells each process what it needs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from region_scheduler.cli.session import flags_for
from region_scheduler.config.load import load, to_environment
from region_scheduler.config.settings import Arango
from region_scheduler.domain.lease import LOCAL_TIMINGS, LeaseTimings
from region_scheduler.errors import InvalidInput, Misconfigured
from region_scheduler.local.parts import programs
from region_scheduler.local.stack import Process, Stack, Store, load_stack, new_stack, store_of
from region_scheduler.local.up import LocalStack, Wish
from region_scheduler.runtime.system import SystemClock, UuidIds

ELSEWHERE = Store(url="http://elsewhere:8529", user="us", database="ours", is_embedded=False)


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


def on_store(state_dir: Path, store: Store = ELSEWHERE) -> Stack:
    return new_stack(state_dir, ["a", "b"], UuidIds(), 4000, "redis://elsewhere:6379/0", store)


def test_a_foreign_store_takes_the_place_of_our_engine(tmp_path: Path) -> None:
    stack = on_store(tmp_path)
    stack.save()

    assert load_stack(tmp_path) == stack
    assert [(at.engine, at.api) for at in stack.regions.values()] == [(0, 4000), (0, 4001)]
    assert {program.name for program in programs(stack, 1)} == {
        f"{kind} {region}" for kind in ("serve", "worker") for region in stack.regions
    }


def test_a_foreign_store_is_reached_with_the_password_of_the_settings_and_long_leases(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("REGION_SCHEDULER_ARANGO_PASSWORD", "a-password")
    stack = on_store(tmp_path)
    stack.save()

    settings = load(stack.settings("b")).settings

    assert store_of(settings.arango) == ELSEWHERE
    assert settings.arango.password.get_secret_value() == "a-password"
    assert settings.lease == LeaseTimings()
    assert not any("a-password" in path.read_text() for path in tmp_path.iterdir())


def test_leases_are_short_on_an_embedded_engine_of_somebody_else(tmp_path: Path) -> None:
    stack = on_store(tmp_path, replace(ELSEWHERE, is_embedded=True))

    assert load(stack.settings("b")).settings.lease == LOCAL_TIMINGS


def test_settings_that_name_no_store_leave_it_to_us() -> None:
    assert store_of(Arango()) is None


@pytest.mark.parametrize(
    ("url", "is_found"), [("http://elsewhere:8529", True), ("http://other:8529", False)]
)
def test_a_stack_is_found_without_its_directory_if_it_uses_the_store_that_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str, is_found: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    on_store(tmp_path / ".state").save()
    for name, value in {"URL": url, "USER": "us", "DATABASE": "ours"}.items():
        monkeypatch.setenv(f"REGION_SCHEDULER_ARANGO_{name}", value)

    assert ("broker" in flags_for(None, None)) is is_found


def test_a_directory_with_a_stack_on_another_store_is_refused(tmp_path: Path) -> None:
    fresh(tmp_path).save()

    with pytest.raises(InvalidInput, match="uses an engine of its own") as refused:
        LocalStack(Wish(state_dir=tmp_path, store=ELSEWHERE), SystemClock(), UuidIds(), print)

    assert "database ours at http://elsewhere:8529" in str(refused.value)
