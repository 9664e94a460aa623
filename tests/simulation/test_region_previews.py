"""What a verb would do is foretold with the time that it costs, and nothing is written."""

from __future__ import annotations

from pathlib import Path

from region_scheduler.domain.tenant import LEVELS
from region_scheduler.operations.regions import (
    Foretelling,
    Outlook,
    Verb,
    Wish,
    find_region,
    outlook,
)
from region_scheduler.simulation.world import World
from tests.simulation.acts import admit
from tests.simulation.scenarios import HOME, a_plan, graph_of, spec

AWAY = "us-east"


def seen(world: World, verb: Verb) -> Outlook:
    graph = graph_of(world)
    told = Foretelling(graph, LEVELS["standard"], world.clock)
    return outlook(graph, find_region(graph, HOME), Wish(verb=verb, why="fire"), "anna", told)


def test_a_preview_tells_the_new_makespan(tmp_path: Path) -> None:
    world = World(tmp_path, (HOME, AWAY), slots=4)
    tasks = [
        spec(f"t{n}", HOME if n < 4 else AWAY, allowed_regions=(HOME, AWAY), expected_s=10.0)
        for n in range(8)
    ]
    bound = spec("only-here", allowed_regions=(HOME,), expected_s=10.0)
    admit(world, a_plan([*tasks, bound], regions=(HOME, AWAY)))

    gone = seen(world, Verb.FAIL)
    assert gone.now is not None
    assert gone.then is not None
    assert (gone.now.makespan_s, gone.now.stuck) == (20.0, 0)  # five tasks, four slots
    assert (gone.then.makespan_s, gone.then.stuck) == (20.0, 1)  # eight on four slots
    assert gone.moves == {AWAY: 4}

    shut = seen(world, Verb.CORDON)
    assert shut.then is not None
    assert (shut.then.makespan_s, shut.then.stuck) == (10.0, 5)
    assert find_region(graph_of(world), HOME).status == "active"
