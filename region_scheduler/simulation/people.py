"""The people of a seeded world: they submit, answer, cancel, pause and cordon, and ask again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from random import Random  # noqa: TID251 - a world is replayed by its seed
from typing import Final

from region_scheduler.domain.admission import Plan
from region_scheduler.domain.pause import EVERYTHING
from region_scheduler.domain.region import RegionStatus
from region_scheduler.domain.states import RUN_ENDED, TaskState
from region_scheduler.domain.task import Task
from region_scheduler.errors import OutcomeUnknown, RegionSchedulerError, Unavailable
from region_scheduler.lifecycle.settle import Settler
from region_scheduler.operations.audit import Auditor
from region_scheduler.operations.cancel import cancel_run, reprioritise_task
from region_scheduler.operations.pauses import pause, unpause
from region_scheduler.operations.regions import Verb, Wish, carry_out
from region_scheduler.operations.rework import clear_task
from region_scheduler.operations.runs import give_answer, resume_run
from region_scheduler.ports.records import GraphStores
from region_scheduler.simulation.acted import ActedWorld
from region_scheduler.simulation.steps import Crash

_TRIES: Final = 40
_RETRY_S: Final = 2.0


class People:
    """Act through a region's serving process, as its API would let them.

    Args:
        world: Where they live.
        plans: What they submit.
    """

    def __init__(self, world: ActedWorld, plans: Sequence[Plan]) -> None:
        self._world = world
        self._plans = plans
        self._chance = Random(f"people {world.chaos.seed}")  # noqa: S311 - a replayable world

    def start(self) -> None:
        """Let each submit, at some time."""
        for n, plan in enumerate(self._plans):
            submit = partial(self._insist, partial(self._submit, plan, f"key{n}"))
            self._world.hub.spawn(f"client{n}", submit, self._chance.uniform(0, 10))

    def meddle(self) -> Callable[[], object]:
        """Return something that an operator may do now, by chance."""
        return self._chance.choice(
            [self._cancel, self._pause, self._unpause, self._cordon, self._clear, self._resume,
             self._reprioritise]
        )  # fmt: skip

    def act(self, deed: Callable[[], object]) -> None:
        """Let an operator do something, who asks again if nobody answers."""
        self._world.hub.spawn("operator", partial(self._insist, deed))

    def settle(self) -> None:
        """Let them undo what keeps work back, and answer whatever waits from now on."""
        self.act(self._unpause)
        for name in self._world.regions:
            self.act(partial(self._return, name))
        self._world.hub.spawn("answers", self._answer_all)

    def _insist(self, deed: Callable[[], object]) -> None:
        for _ in range(_TRIES):
            try:
                deed()
                return
            except (Unavailable, OutcomeUnknown):
                self._world.hub.sleep(_RETRY_S)
            except RegionSchedulerError:
                return  # it is refused: that is an answer
            except Crash:  # the server died under it
                if (me := self._world.hub.current) is None or me.is_dying:
                    raise
                self._world.hub.sleep(_RETRY_S)

    def _submit(self, plan: Plan, key: str) -> None:
        self._world.regions[plan.home_region].services.intake.admit(plan, key)

    def _cancel(self) -> None:
        graph, auditor = self._graph(), self._auditor()
        runs = [run for run in graph.runs.recent(10) if run.state not in RUN_ENDED]
        if runs:
            run = self._chance.choice(runs)
            cancel_run(graph, self._settler(), auditor, self._world.clock, run, "not wanted")

    def _pause(self) -> None:
        pause(self._graph(), self._auditor(), self._world.clock, EVERYTHING, "a rest", None)

    def _unpause(self) -> None:
        unpause(self._graph(), self._settler(), self._auditor(), EVERYTHING)

    def _cordon(self) -> None:
        name = self._chance.choice(sorted(self._world.regions))
        verb = self._chance.choice([Verb.CORDON, Verb.DRAIN, Verb.EVACUATE])
        self._wish(name, Wish(verb=verb, why="an exercise"))

    def _return(self, name: str) -> None:
        (region,) = self._graph().regions.read([name])
        if region is not None and region.status is not RegionStatus.ACTIVE:
            self._wish(name, Wish(verb=Verb.RETURN))

    def _wish(self, name: str, wish: Wish) -> None:
        clock = self._world.clock
        carry_out(self._graph(), self._settler(), self._auditor(), clock, name, wish)

    def _clear(self) -> None:
        if task := self._some_task():
            clear_task(self._graph(), self._settler(), self._auditor(), self._world.clock, task)

    def _reprioritise(self) -> None:
        if task := self._some_task():
            reprioritise_task(self._graph(), self._settler(), self._auditor(), task, 5, "soon")

    def _resume(self) -> None:
        graph = self._graph()
        if runs := [run for run in graph.runs.recent(10) if run.state in RUN_ENDED]:
            run = self._chance.choice(runs)
            clock = self._world.clock
            resume_run(graph, self._settler(), self._auditor(), clock, run.id)

    def _answer_all(self) -> None:
        while True:
            self._insist(self._answer)
            self._insist(self._open)
            self._world.hub.sleep(1.0)

    def _open(self) -> None:
        """Undo also what somebody has done since who had to ask for long."""
        if self._graph().pauses.on():
            self._unpause()
        for name in self._world.regions:
            self._return(name)

    def _answer(self) -> None:
        graph = self._graph()
        for run in graph.runs.unended():
            for task in graph.tasks.of_run(run.id, [TaskState.AWAITING]):
                give_answer(
                    graph,
                    self._settler(),
                    self._auditor(),
                    self._world.clock,
                    task,
                    is_yes=True,
                    outputs={},
                )

    def _some_task(self) -> Task | None:
        graph = self._graph()
        tasks = [task for run in graph.runs.recent(10) for task in graph.tasks.of_run(run.id)]
        return self._chance.choice(tasks) if tasks else None

    @property
    def _server(self) -> str:
        return self._chance.choice(sorted(self._world.regions))

    def _graph(self) -> GraphStores:
        return self._world.regions[self._server].ports.graph

    def _settler(self) -> Settler:
        return self._world.regions[self._server].services.settler

    def _auditor(self) -> Auditor:
        return Auditor(self._graph(), "operator:anna", self._world.clock, self._world.chance)
