"""What tests of cancelling share: the acts, a look, and a person who acts at one write of a run."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from region_scheduler.domain.run import Run
from region_scheduler.domain.states import RUN_ENDED, TaskState
from region_scheduler.domain.task import Task
from region_scheduler.lifecycle.settle import Settler
from region_scheduler.operations.cancel import (
    cancel_run,
    cancel_task,
)
from region_scheduler.ports.records import GraphStores
from region_scheduler.simulation.faults import Faults, FaultyWorld
from region_scheduler.simulation.world import World
from tests.simulation.acts import (
    auditor,
    home,
    task_of,
)
from tests.simulation.scenarios import HOME, a_zone, graph_of

PATIENCE_S = 60.0


def zone_in(world: World) -> None:
    graph_of(world).zones.insert([a_zone()])


def run_of(world: World, run: Run) -> Run:
    (found,) = graph_of(world).runs.read([run.id])
    assert found is not None
    return found


def cancelled(world: World, run: Run, graph: GraphStores | None = None) -> tuple[Run, list[Task]]:
    settler = home(world).services.settler
    stores = graph or home(world).ports.graph
    return cancel_run(
        stores, settler, auditor(world), world.clock, run_of(world, run), "not needed"
    )


def task_cancelled(world: World, run: Run, name: str) -> Task:
    region = home(world)
    task = task_of(world, run, name)
    return cancel_task(
        region.ports.graph, region.services.settler, auditor(world), world.clock, task
    )


def until_over(world: World, run: Run) -> Run:
    waited_s = 0.0
    while not is_at_rest(world, run) and waited_s < PATIENCE_S:
        world.pass_time(world.timings.renew_every_s / 2)
        waited_s += world.timings.renew_every_s / 2
    return run_of(world, run)


def is_at_rest(world: World, run: Run) -> bool:
    graph = graph_of(world)
    is_over = run_of(world, run).state in RUN_ENDED
    return is_over and graph.slots.taken() == [] and graph.zones.held() == []


def states(world: World, run: Run) -> dict[str, TaskState]:
    return {task.spec.name: task.state for task in graph_of(world).tasks.of_run(run.id)}


def plainly(world: World) -> tuple[GraphStores, Settler]:
    """Return stores and settler of a person's own process, which no fault meets."""
    graph = graph_of(world)
    return graph, Settler(graph, home(world).broker, world.clock, "person")


class Moment(Faults):
    """Counts the writes of a run; just before or after one of them a person acts."""

    def __init__(self, number: int, is_after: bool) -> None:
        super().__init__()
        self.number, self.is_after, self.count = number, is_after, 0
        self.act: Callable[[], None] = lambda: None

    def __call__(self, point: str, call: partial[Any]) -> Any:
        is_write = point.rpartition(".")[2] in {"insert", "write", "publish", "insert_edges"}
        if not self.is_armed or not is_write or point.startswith("instances"):
            return call()
        self.count += 1
        is_now = self.count == self.number
        if is_now and not self.is_after:
            self.act()
        done = call()
        if is_now and self.is_after:
            self.act()
        return done


class MomentWorld(FaultyWorld):
    def __init__(self, directory: Path, moment: Moment) -> None:
        self.faults = moment
        World.__init__(self, directory, (HOME, "us-east"), hook=moment)
