from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from region_scheduler.config.load import FILE, PREFIX, load, show, to_environment
from region_scheduler.config.settings import Settings
from region_scheduler.domain.lease import LOCAL_TIMINGS, LeaseTimings
from region_scheduler.errors import Misconfigured

SECRET = "a-key-that-nobody-may-see"


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import os

    for name in [name for name in os.environ if name.startswith(PREFIX)]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


def problems_of(flags: dict[str, Any] | None = None) -> str:
    with pytest.raises(Misconfigured) as refused:
        load(flags)
    return "\n".join(refused.value.problems)


def test_without_anything_the_defaults_hold() -> None:
    loaded = load()

    assert loaded.settings == Settings()
    assert loaded.settings.lease == LeaseTimings()
    assert {source for _, _, source in show(loaded)} == {"default"}


def test_each_layer_beats_the_one_below_and_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / FILE).write_text(
        'region = "one"\n[arango]\nurl = "http://file"\nuser = "file"\ndatabase = "file"\n'
    )
    monkeypatch.setenv("REGION_SCHEDULER_ARANGO_URL", "http://environment")
    monkeypatch.setenv("REGION_SCHEDULER_ARANGO_USER", "environment")

    loaded = load({"arango": {"user": "flag", "database": None}})

    arango = loaded.settings.arango
    assert (arango.url, arango.user, arango.database) == ("http://environment", "flag", "file")
    sources = {key: (value, source) for key, value, source in show(loaded)}
    assert sources["region"] == ("one", FILE)
    assert sources["arango.url"] == ("http://environment", "environment")
    assert sources["arango.user"] == ("flag", "flag")
    assert sources["arango.database"] == ("file", FILE)
    assert sources["http.port"] == ("8080", "default")


def test_lists_and_tables_are_words_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REGION_SCHEDULER_REGIONS", "eu-west, us-east")
    monkeypatch.setenv("REGION_SCHEDULER_PEERS", "eu-west=http://a:1,us-east=http://b:2/x=y")
    monkeypatch.setenv("REGION_SCHEDULER_WORKER_POOLS", "default,big")
    monkeypatch.setenv("REGION_SCHEDULER_WORKER_CONCURRENCY", "8")

    settings = load().settings

    assert settings.regions == ("eu-west", "us-east")
    assert settings.peers == {"eu-west": "http://a:1", "us-east": "http://b:2/x=y"}
    assert settings.worker.pools == ("default", "big")
    assert settings.worker.concurrency == 8


def test_the_file_that_the_environment_names_must_be_there(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("REGION_SCHEDULER_CONFIG", str(tmp_path / "elsewhere.toml"))
    assert "elsewhere.toml: No such file" in problems_of()

    (tmp_path / "elsewhere.toml").write_text('region = "here"')
    assert load().settings.region == "here"


def test_every_problem_of_every_layer_is_told_at_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / FILE).write_text('regoin = "x"\n[arango]\nurll = "x"\n[lease]\nttl_s = 10\n')
    monkeypatch.setenv("REGION_SCHEDULER_BROKER_LURL", "redis://x")
    monkeypatch.setenv("REGION_SCHEDULER_HTTP_PORT", "eighty")

    told = problems_of({"worker": {"concurrency": 0}, "region": "Not A Name"})

    assert "regoin is not a setting" in told
    assert "arango.urll is not a setting" in told
    assert "REGION_SCHEDULER_BROKER_LURL is not a setting" in told
    assert "http.port: input should be a valid integer" in told
    assert "worker.concurrency: " in told
    assert "region: " in told
    assert "lease.ttl_s=10 must be at least" in told


def test_a_file_that_is_no_toml_is_one_problem(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("region = \n")

    assert problems_of().startswith(f"{FILE}: ")


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        ({"broker": {"visibility_timeout_s": 14400}}, "must be above worker.cap_s_max=14400"),
        ({"lease": dataclasses.asdict(LOCAL_TIMINGS)}, "only the embedded engine can keep"),
        ({"region": "a", "regions": ["b"]}, "region=a is not among"),
        ({"regions": ["a", "a"]}, "twice"),
        ({"regions": ["a"], "peers": {"b": "http://b"}}, "peers names b"),
        ({"peers": {"b": "ftp://b"}}, "peers.b must begin with"),
        ({"broker": {"url": "memory://"}}, "broker.url must begin"),
        ({"arango": {"url": "host:8529"}}, "arango.url must begin"),
        ({"arango": {"url": "http://root:secret@host"}}, "say arango.user and arango.password"),
        ({"signing_key": "short"}, "at least 16 bytes"),
        ({"lease": {"renew_every_s": 3}}, "lease.renew_every_s is not a setting"),
    ],
    ids=lambda case: "" if isinstance(case, dict) else case,
)
def test_an_impossible_relation_stops_the_start(flags: dict[str, Any], told: str) -> None:
    assert told in problems_of(flags)


def test_short_leases_are_allowed_on_the_embedded_engine() -> None:
    flags = {"lease": dataclasses.asdict(LOCAL_TIMINGS), "arango": {"is_embedded": True}}

    assert load(flags).settings.lease == LOCAL_TIMINGS


def test_secrets_are_shown_to_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REGION_SCHEDULER_SIGNING_KEY", SECRET)
    loaded = load({"arango": {"password": SECRET}, "broker": {"url": f"redis://:{SECRET}@h"}})

    assert SECRET not in str(show(loaded))
    assert SECRET not in repr(loaded)
    assert ("signing_key", "***", "environment") in show(loaded)
    assert loaded.settings.signing_key_bytes() == SECRET.encode()


def test_a_signing_key_is_asked_for_when_it_is_needed() -> None:
    with pytest.raises(Misconfigured, match="signing_key"):
        load().settings.signing_key_bytes()


def test_a_child_process_is_handed_the_same_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    flags = {
        "region": "eu-west",
        "regions": ["eu-west", "us-east"],
        "peers": {"us-east": "http://b:1"},
        "signing_key": SECRET,
        "time_scale": 0.5,
        "arango": {"url": "http://a:1", "is_embedded": True, "user": None},
        "lease": dataclasses.asdict(LOCAL_TIMINGS),
        "worker": {"pools": ("default", "big")},
    }
    here = load(flags)

    for name, value in to_environment(flags).items():
        monkeypatch.setenv(name, value)

    assert load().settings == here.settings
