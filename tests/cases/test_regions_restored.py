"""The handed case about a store that is set back while schedulers run, by its id."""

from __future__ import annotations

from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from region_scheduler.domain.pause import EVERYTHING
from region_scheduler.domain.run import Run
from region_scheduler.domain.states import RunState, TaskState
from region_scheduler.domain.task import Token
from region_scheduler.embedded.arango.control import FaultControl
from region_scheduler.errors import Fenced
from region_scheduler.operations.pauses import unpause
from tests.cases.troubled import Moments, TroubledWorld
from tests.simulation.acts import admit, auditor, home, state_of
from tests.simulation.scenarios import HOME, a_plan, graph_of, spec

AWAY = "us-east"
NAMES = [f"t{n:02}" for n in range(60)]


class Written:
    """What was written and acknowledged: how many writes, and every token by its task."""

    def __init__(self) -> None:
        self.count = 0
        self.tokens: list[tuple[str, Token]] = []

    def note(self, call: partial[Any], answers: Any) -> None:
        self.count += len(answers)
        for (before, after), answer in zip(call.args[0], answers, strict=True):
            if answer.value is not None and before.token != after.token and after.token.claim_id:
                self.tokens.append((after.id, after.token))


@pytest.fixture
def written() -> Written:
    return Written()


@pytest.fixture
def world(tmp_path: Path, written: Written) -> TroubledWorld:
    moments = Moments()
    moments.after["tasks.write"] = written.note
    world = TroubledWorld(tmp_path, (HOME, AWAY), hook=moments)
    return world


def busy(world: TroubledWorld, written: Written, count: int, is_renewing: bool) -> None:
    """Let two regions work until so many writes were acknowledged."""
    begin = written.count
    for _ in range(200):
        if written.count - begin >= count:
            return
        world.clock.advance(0.01)
        for region in world.regions.values():
            region.services.promote()
            while any(worker.work() for worker in region.workers):
                pass
        if is_renewing:
            world.renew()
    raise AssertionError(f"only {written.count - begin} writes")


def pauses(world: TroubledWorld) -> list[str]:
    return [one.reason for one in graph_of(world).pauses.on() if one.scope == EVERYTHING]


def begun(world: TroubledWorld) -> Run:
    """Admit a run of both regions' tasks, and let time pass without a renewal since then."""
    half = len(NAMES) // 2
    tasks = [spec(name, allowed_regions=(HOME,)) for name in NAMES[:half]]
    tasks += [spec(name, AWAY, allowed_regions=(AWAY,)) for name in NAMES[half:]]
    run = admit(world, a_plan(tasks, regions=(HOME, AWAY)))
    world.renew()
    return run


@pytest.mark.parametrize("is_renewing", [True, False], ids=["leases", "tasks"])
def test_stl_004_a_store_that_was_set_back_is_noticed_and_nothing_more_is_claimed(
    world: TroubledWorld, written: Written, is_renewing: bool
) -> None:
    """A beat that is older than acknowledged tells, or a task that its scheduler had taken."""
    run = begun(world)
    busy(world, written, 10, is_renewing)
    control = FaultControl(world.engine)
    backup = control.mark()
    busy(world, written, 100, is_renewing)
    issued = len(written.tokens)
    control.restore(backup)
    ran = Counter(effect.name for effect in world.log.effects)
    world.woken.clear()

    for name in (HOME, AWAY):  # whoever looks first
        if is_renewing:
            assert world.regions[name].services.promote().dispatched == ()
        else:
            look(world, name)
    world.pass_time(3)

    assert len(written.tokens) == issued, "nothing was claimed"
    (reason,) = pauses(world)
    assert "was at" in reason
    assert "unpause" in reason
    world.pass_time(2 * world.timings.lease_s)
    assert Counter(effect.name for effect in world.log.effects) == ran
    assert state_of(world, run) is RunState.RUNNING

    region = home(world)
    unpause(region.ports.graph, region.services.settler, auditor(world), EVERYTHING)
    world.pass_time(30)
    assert pauses(world) == []
    assert state_of(world, run) is RunState.DONE
    assert max(Counter(written.tokens).values()) == 1, "no token was issued twice"
    counts = graph_of(world).tasks.state_counts(run.id)
    assert counts == {TaskState.DONE: len(NAMES)}


def look(world: TroubledWorld, name: str) -> None:
    """Let a scheduler look while no lease was renewed: it meets what it had taken itself."""
    world.regions[name].services.mender.tick()
    if pauses(world):
        assert world.regions[name].services.promote().dispatched == ()
        return
    with pytest.raises(Fenced, match="is at"):
        world.regions[name].services.promote()


def test_a_deposed_leader_s_answer_is_no_older_store(
    world: TroubledWorld, written: Written
) -> None:
    run = begun(world)
    control = FaultControl(world.engine)
    control.depose(HOME)
    busy(world, written, 20, is_renewing=True)
    assert pauses(world) == []
    control.heal_leader(HOME)
    world.pass_time(20)

    assert pauses(world) == []
    assert state_of(world, run) is RunState.DONE
    assert Counter(effect.name for effect in world.log.effects) == dict.fromkeys(NAMES, 1)
