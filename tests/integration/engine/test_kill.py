"""kill -9 in a storm of writes: what was answered is there, and no request is there by half."""

from __future__ import annotations

import http.client
import random
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.integration.engine.server import Client, EngineProcess

WRITERS = 4
GROUP = 20


@dataclass
class Storm:
    """What the writers know: the last value that was answered, and the last that was sent."""

    answered: dict[str, int] = field(default_factory=dict)
    sent: dict[str, int] = field(default_factory=dict)
    requests: int = 0


@pytest.mark.parametrize(
    "kills",
    [pytest.param(4, id="4-kills"), pytest.param(50, id="50-kills", marks=pytest.mark.soak)],
)
def test_a_kill_loses_nothing_that_was_answered_and_tears_nothing(
    make_engine: Callable[..., EngineProcess], tmp_path: Path, kills: int
) -> None:
    engine = make_engine(tmp_path / "data")
    chance = random.Random(kills)
    engine.start()
    prepare(engine.client())
    storm = Storm()
    for _ in range(kills):
        rage(engine, storm, chance.uniform(0.2, 1.2))
        engine.start()
        check(engine.client(), storm)
    assert storm.requests > kills * 20
    assert engine.end() == 0


def prepare(client: Client) -> None:
    assert client("POST", "/_api/collection", {"name": "singles"})[0] == 200
    assert client("POST", "/_api/collection", {"name": "groups"})[0] == 200
    index = {"type": "persistent", "fields": ["n"]}
    assert client("POST", "/_api/index?collection=singles", index)[0] == 201
    for writer in range(WRITERS):
        documents = [{"_key": f"g{writer}-{n}", "n": -1} for n in range(GROUP)]
        assert client("POST", "/_api/document/groups", documents)[0] == 202


def rage(engine: EngineProcess, storm: Storm, seconds: float) -> None:
    threads = [
        threading.Thread(target=write, args=(engine.client(), writer, storm))
        for writer in range(WRITERS)
    ]
    for thread in threads:
        thread.start()
    time.sleep(seconds)
    assert engine.end(signal.SIGKILL) == -signal.SIGKILL
    for thread in threads:
        thread.join(timeout=20)
        assert not thread.is_alive()
    engine.close_clients()


def write(client: Client, writer: int, storm: Storm) -> None:
    """Insert, update by revision and update a group by one query, until the connection breaks."""
    n = storm.answered.get(f"s{writer}", -1) + 1
    try:
        while True:
            storm.sent[f"s{writer}"] = n
            one_round(client, writer, n)
            storm.answered[f"s{writer}"] = n
            storm.requests += 3
            n += 1
    except (OSError, http.client.HTTPException):
        return


def one_round(client: Client, writer: int, n: int) -> None:
    path = f"/_api/document/singles/s{writer}-{n}"
    status, made = client("POST", "/_api/document/singles", {"_key": f"s{writer}-{n}", "n": 0})
    assert status in (202, 409)  # the round that a kill ended is begun again
    if status == 409:
        made = client("GET", path)[1]
    change = {"_rev": made["_rev"], "n": n, "text": "x" * (n % 700)}
    assert client("PATCH", f"{path}?ignoreRevs=false", change)[0] == 202
    query = "FOR i IN 0..@last UPDATE CONCAT(@prefix, i) WITH {n: @n} IN groups"
    bind = {"last": GROUP - 1, "prefix": f"g{writer}-", "n": n}
    status, answer = client("POST", "/_api/cursor", {"query": query, "bindVars": bind})
    assert (status, answer["extra"]["stats"]["writesExecuted"]) == (201, GROUP)


def check(client: Client, storm: Storm) -> None:
    singles = rows(client, "FOR d IN singles RETURN [d._key, d.n]")
    known = dict(map(tuple, singles))
    for writer in range(WRITERS):
        name = f"s{writer}"
        for n in range(storm.answered.get(name, -1) + 1):
            assert known.get(f"{name}-{n}") == n
        values = {
            n
            for key, n in rows(client, "FOR d IN groups RETURN [d._key, d.n]")
            if key.startswith(f"g{writer}-")
        }
        assert len(values) == 1
        (value,) = values
        assert storm.answered.get(name, -1) <= value <= storm.sent.get(name, -1)
    by_index = rows(client, "FOR d IN singles FILTER d.n >= 0 SORT d.n RETURN d._key")
    assert sorted(by_index) == sorted(known)


def rows(client: Client, query: str) -> list[Any]:
    status, answer = client("POST", "/_api/cursor", {"query": query, "batchSize": 1_000_000})
    assert status == 201, answer
    result: list[Any] = answer["result"]
    return result
