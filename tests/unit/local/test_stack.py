"""A stack survives the way into its directory and back, and tells each process what it needs."""

from __future__ import annotations

import copy
import json
import operator
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import Any

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


def places(value: Any, place: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Return where the values of a JSON document are, all of them but the whole."""
    for key, inner in value.items() if isinstance(value, dict) else ():
        yield (*place, key)
        yield from places(inner, (*place, key))


def full(state_dir: Path) -> Stack:
    stack = new_stack(state_dir, ["a", "b"], UuidIds(), 4000, "redis://x:1/0", ELSEWHERE)
    me = Process(pid=7, started_at=70)
    return replace(stack, up=me, processes={"serve a": me})


def documents(state_dir: Path) -> dict[str, Any]:
    return {name: json.loads((state_dir / name).read_text()) for name in FILES}


FILES = ("stack.json", "secrets.json")
BAD_VALUES = [-1, 0, 1.5, 999_999, 10**30, 2**64, True, "", "x y\n", None, [], [{}], {}, {"x": 1}]
MAY_BE: dict[str, list[Any]] = {
    "store": [None],
    "up": [None],
    "processes": [{}],
    "is_embedded": [True],
    "engine": [0],
    "broker": [0],
    "broker_url": [""],
    "pid": [999_999],
    "started_at": [0, 999_999],
}
"""Values of `BAD_VALUES` that are no damage of the field itself, by key."""


@pytest.mark.parametrize("value", BAD_VALUES, ids=repr)
def test_every_field_that_is_damaged_is_named_with_its_file(tmp_path: Path, value: Any) -> None:
    full(tmp_path).save()
    for name, document in documents(tmp_path).items():
        for place in places(document):
            may_be = MAY_BE.get(place[-1], [])
            if any(type(value) is type(one) and value == one for one in may_be):
                continue
            damaged = copy.deepcopy(document)
            reduce(operator.getitem, place[:-1], damaged)[place[-1]] = value
            (tmp_path / name).write_text(json.dumps(damaged))

            with pytest.raises(Misconfigured, match="is damaged") as refused:
                load_stack(tmp_path)

            assert f": {name}.{'.'.join(place)}" in str(refused.value)
        (tmp_path / name).write_text(json.dumps(document))


def test_every_field_that_is_missing_or_unknown_is_named(tmp_path: Path) -> None:
    full(tmp_path).save()
    for name, document in documents(tmp_path).items():
        for place in list(places(document)):
            at = reduce(operator.getitem, place[:-1], document)
            kept = at.pop(place[-1])
            if place[-1] not in {"store", "serve a", "b", "a"}:
                (tmp_path / name).write_text(json.dumps(document))
                with pytest.raises(Misconfigured, match=rf"{re.escape('.'.join(place))}"):
                    load_stack(tmp_path)
            at[place[-1]] = kept
        (tmp_path / name).write_text(json.dumps({**document, "colour": 1}))
        with pytest.raises(Misconfigured, match=rf"{name}\.colour is not known"):
            load_stack(tmp_path)
        (tmp_path / name).write_text(json.dumps(document))


def test_a_damaged_secret_is_not_told(tmp_path: Path) -> None:
    fresh(tmp_path).save()
    (tmp_path / "secrets.json").write_text('{"signing_key": "short", "broker_password": "b"}')

    with pytest.raises(Misconfigured, match=r"secrets\.json\.signing_key") as refused:
        load_stack(tmp_path)

    assert "short" not in str(refused.value)


def test_two_parts_on_one_port_are_damage(tmp_path: Path) -> None:
    fresh(tmp_path, port=4000).save()
    text = (tmp_path / "stack.json").read_text()
    (tmp_path / "stack.json").write_text(text.replace("4001", "4000"))

    with pytest.raises(Misconfigured, match=r"stack\.json\.regions\.b\.engine: 4000 .* no other"):
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


@pytest.mark.parametrize("at", ["logs", "engine", "regions", "regions/b", "regions/a/state"])
def test_a_directory_that_cannot_be_written_is_named_before_anything_starts(
    tmp_path: Path, at: str
) -> None:
    (tmp_path / at).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / at).write_text("in the way")

    with pytest.raises(Misconfigured, match=re.escape(f"directory {tmp_path / at}")):
        LocalStack(Wish(state_dir=tmp_path, regions=["a", "b"]), SystemClock(), UuidIds(), print)

    assert not (tmp_path / "stack.json").exists()


@pytest.mark.parametrize(
    "at",
    ["logs/engine.log", "engine/engine.sqlite", "regions/a/region.db", "regions/b/broker/x.conf"],
)
def test_a_file_that_cannot_be_written_is_named_too(tmp_path: Path, at: str) -> None:
    (tmp_path / at).mkdir(parents=True)

    with pytest.raises(Misconfigured, match=re.escape(f"file {tmp_path / at} cannot be written")):
        LocalStack(Wish(state_dir=tmp_path, regions=["a", "b"]), SystemClock(), UuidIds(), print)


def test_more_ports_than_there_are_is_bad_input(tmp_path: Path) -> None:
    wish = Wish(state_dir=tmp_path, regions=["a", "b"], port=65_531)

    with pytest.raises(InvalidInput, match=r"--port: '65531' .* at most 65535"):
        LocalStack(wish, SystemClock(), UuidIds(), print)

    assert list(tmp_path.iterdir()) == []
