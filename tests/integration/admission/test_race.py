"""Two instances of two regions admit the same key at the same moment: one run a key."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from region_scheduler.assembly.production import open_graph
from region_scheduler.config.load import load
from region_scheduler.domain.admission import AdmissionState, Plan
from region_scheduler.domain.ids import RunId
from region_scheduler.ports.records import GraphStores
from tests.integration.admission.racer import Racer, race
from tests.integration.admission.submitter import CONTEXT
from tests.integration.engine.server import EngineProcess
from tests.simulation.scenarios import a_plan, spec

REGIONS = ("eu-west", "us-east")
EVERY_WITH_ANOTHER_BODY = 10


@contextmanager
def engine(directory: Path) -> Iterator[EngineProcess]:
    server = EngineProcess(directory, regions=",".join(REGIONS))
    server.start()
    try:
        yield server
    finally:
        server.end()


@contextmanager
def graph_of(url: str) -> Iterator[GraphStores]:
    with ExitStack() as closing:
        settings = load({"region": REGIONS[0], "arango": {"url": url}}).settings
        yield open_graph(settings, closing)


def plan_for(number: int, region: str) -> Plan:
    """Return what a region submits; for some keys each region submits another graph."""
    is_another = number % EVERY_WITH_ANOTHER_BODY == 0
    first = spec(region if is_another else "a", allowed_regions=REGIONS)
    return a_plan([first, spec("b", REGIONS[1], allowed_regions=REGIONS)], regions=REGIONS)


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "count",
    [
        pytest.param(100, id="100 keys"),
        pytest.param(1_000, id="1,000 keys", marks=pytest.mark.soak),
    ],
)
def test_ADM_010_the_same_key_at_once_is_one_run_and_another_body_is_refused(
    count: int, tmp_path: Path
) -> None:
    with engine(tmp_path / "data") as server:
        urls = {name: f"http://127.0.0.1:{server.ports[name]}" for name in REGIONS}
        racers = [
            Racer(
                region,
                urls[region],
                f"sqlite:///{tmp_path / region}.db",
                {f"key {n}": plan_for(n, region) for n in range(count)},
            )
            for region in REGIONS
        ]
        with graph_of(urls[REGIONS[0]]) as graph:
            results = in_two_processes(racers)
            check(graph, count, *results)


def in_two_processes(racers: list[Racer]) -> list[dict[str, tuple[str, bool]]]:
    with CONTEXT.Manager() as manager:
        start = manager.Barrier(len(racers))
        with CONTEXT.Pool(len(racers)) as pool:
            waiting = [pool.apply_async(race, (racer, start)) for racer in racers]
            return [one.get(timeout=500) for one in waiting]


def check(
    graph: GraphStores,
    count: int,
    ours: dict[str, tuple[str, bool]],
    theirs: dict[str, tuple[str, bool]],
) -> None:
    runs = {run.id: run for run in graph.runs.recent(2 * count)}
    assert len(runs) == count
    for n in range(count):
        answers = [ours[f"key {n}"], theirs[f"key {n}"]]
        if n % EVERY_WITH_ANOTHER_BODY == 0:
            (refused,) = [answer for answer in answers if answer[0] == "KeyReused"]
            ((run, is_repeat),) = [answer for answer in answers if answer is not refused]
            assert not is_repeat
        else:
            assert answers[0][0] == answers[1][0]
            assert sorted(repeat for _, repeat in answers) == [False, True]
            run = answers[0][0]
        assert graph.tasks.counts(runs.pop(RunId(run)).id) == (2, 0)
    assert runs == {}
    admissions = graph.admissions.recent(2 * count)
    assert [a.state for a in admissions] == [AdmissionState.DONE] * count
