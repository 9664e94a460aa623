"""What people and processes do in a world, in one line each."""

from __future__ import annotations

from region_scheduler.assembly.instrumented import Hook
from region_scheduler.assembly.services import Services, lease_keeper, region_services
from region_scheduler.domain.admission import Plan
from region_scheduler.domain.ids import Incarnation
from region_scheduler.domain.instance import Instance, Role
from region_scheduler.domain.ownership import Ownership
from region_scheduler.domain.run import Run
from region_scheduler.domain.states import RunState
from region_scheduler.domain.task import (
    Task,
)
from region_scheduler.operations.audit import Auditor
from region_scheduler.operations.runs import give_answer, resume_run
from region_scheduler.scheduling.settings import SchedulerSettings
from region_scheduler.simulation.world import SimulatedRegion, World
from tests.simulation.scenarios import HOME, graph_of


def home(world: World) -> SimulatedRegion:
    return world.regions[HOME]


def admit(world: World, plan: Plan, key: str = "k", region: str = HOME) -> Run:
    return world.regions[region].services.intake.admit(plan, key).run


def task_of(world: World, run: Run, name: str) -> Task:
    found = graph_of(world).tasks.named(run.id, name)
    assert found is not None
    return found


def state_of(world: World, run: Run) -> RunState:
    (found,) = graph_of(world).runs.read([run.id])
    assert found is not None
    return found.state


def effects(world: World) -> list[str]:
    return [effect.name for effect in world.log.effects]


def auditor(world: World, actor: str = "alice") -> Auditor:
    return Auditor(graph_of(world), actor, world.clock, world.chance)


def resumed(world: World, run: Run) -> tuple[Run, list[Task]]:
    region = home(world)
    return resume_run(
        region.ports.graph, region.services.settler, auditor(world), world.clock, run.id
    )


def answered(world: World, task: Task, is_yes: bool, actor: str = "alice") -> Task:
    region = home(world)
    return give_answer(
        region.ports.graph,
        region.services.settler,
        auditor(world, actor),
        world.clock,
        task,
        is_yes=is_yes,
        outputs={},
    )


def another(
    world: World,
    ownership: Ownership,
    hook: Hook | None = None,
    region: str = HOME,
) -> Services:
    """Return the roles of a further serving process of a region, under a lease of its own."""
    ports = world.regions[region].ports
    ports = ports.through(hook) if hook is not None else ports
    instance = Instance(
        id=Incarnation(f"serve+.{region}:{world.chance.new()}"),
        roles=tuple(Role),
        region=region,
        ttl_s=world.timings.ttl_s,
        stamped_at=world.clock.now(),
    )
    keeper = lease_keeper(ports, instance, world.timings)
    keeper.register()
    settings = SchedulerSettings(region, ownership=ownership)
    return region_services(ports, settings, world.timings, keeper)
