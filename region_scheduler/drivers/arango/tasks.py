"""Tasks, their dependencies, and the graph questions asked of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from arango.database import StandardDatabase

from region_scheduler.domain.dag import Dag
from region_scheduler.domain.doubt import StateMark
from region_scheduler.domain.ids import Incarnation, RunId, TaskId, dependency_key, task_id
from region_scheduler.domain.relocation import Site
from region_scheduler.domain.run import Run
from region_scheduler.domain.states import FINAL, HELD, RUN_ENDED, SATISFYING, TaskState
from region_scheduler.domain.task import SCHEMA, Json, Task
from region_scheduler.drivers.arango.codec import Codec, Document
from region_scheduler.drivers.arango.documents import ArangoDocuments, sent_in_parts
from region_scheduler.drivers.arango.query import Queries
from region_scheduler.drivers.arango.schema import DEPENDENCIES, TASKS
from region_scheduler.ports.documents import WriteResult
from region_scheduler.ports.tasks import Related, Unheld, Unlockable

_STATES: Final = frozenset(state.value for state in TaskState)
"""A task in another state was written by a newer version and is left alone."""
_UNHELD: Final = sorted(state for state in TaskState if state not in FINAL | HELD)
_ENDED: Final = sorted(RUN_ENDED)
_DEPTH_MAX: Final = 1_000_000
_IDS_PER_QUESTION: Final = 1_000
_PROBLEMS_MAX: Final = 5


class ArangoTasks(ArangoDocuments[Task]):
    """The tasks of all regions; the promises are the port's."""

    def __init__(self, db: StandardDatabase, queries: Queries) -> None:
        super().__init__(db, queries, Codec(Task, TASKS, has_handle_ids=True))
        self._edges = db.collection(DEPENDENCIES)

    def known(self, ids: Sequence[TaskId]) -> Mapping[TaskId, Task | None]:
        """Return the tasks that exist; None for one that only a newer version understands."""
        answers = zip(ids, self.answers(ids), strict=True)
        return {id_: self._codec.decoded(found) for id_, found in answers if found is not None}

    def glimpse(self, task: TaskId) -> Task | None:
        """Return a task as the local follower shows it; None if it cannot be read there."""
        (found,) = self.answers([task], is_suggesting=True)
        return self._codec.decoded(found) if found is not None else None

    def marks_claimable(self, region: str, limit: int | None = None) -> Mapping[TaskId, int]:
        """Return the `seq` of ready and doubtful tasks of `region`, all or the longest paths."""
        if limit is None:
            return dict(self._queries.rows("marks_claimable", region=region))
        return dict(self._queries.rows("marks_claimable_longest", region=region, limit=limit))

    def marks_of_run(self, run: RunId, region: str) -> Mapping[TaskId, int]:
        """Return the `seq` of every task of `run` that is in `region`."""
        return dict(self._queries.rows("marks_of_run", run=run, region=region))

    def unlocked_by(self, completed: Sequence[TaskId]) -> list[Unlockable]:
        """Return the pending dependents of `completed` that now have all they need."""
        return self._unlockable(self.listed("unlocks", completed=list(completed)))

    def ready(self, run: RunId, limit: int) -> list[Unlockable]:
        """Return every pending task of `run` all of whose predecessors are satisfied."""
        return self._unlockable(self.listed("ready", run=run, limit=limit))

    def held(self, region: str) -> list[Task]:
        """Return the claimed and running tasks whose region is `region`."""
        return self.listed("held", region=region)

    def held_by(self, holders: Sequence[Incarnation]) -> list[Task]:
        """Return the claimed and running tasks, of any region, that `holders` hold."""
        return self.listed("held_by", holders=list(holders))

    def unheld(self, region: str, sites: Sequence[Site], limit: int) -> Unheld:
        """Return what is in `region`, has not ended and is held by nobody."""
        (found,) = self._queries.rows(
            "unheld",
            region=region,
            states=_UNHELD,
            ended=_ENDED,
            sites=[{"region": one.region, "pools": sorted(one.slots)} for one in sites],
            limit=limit,
        )
        return Unheld(self._codec.all_decoded(found["tasks"]), found["stuck"])

    def movable(self, source: str, target: str, pools: Sequence[str], limit: int) -> list[Task]:
        """Return what is ready in `source` and may as well run in `target`."""
        wanted = {"source": source, "target": target, "pools": list(pools), "limit": limit}
        return self.listed("movable", **wanted)

    def load(self) -> Mapping[str, int]:
        """Count the ready, doubtful, claimed and running tasks of each region that has some."""
        return dict(self._queries.rows("load"))

    def state_marks(self, run: RunId) -> list[StateMark]:
        """Return what `run` leaves of each terraform state; one of a newer version is a doubt."""
        return [
            StateMark(
                key,
                TaskState(state) if state in _STATES else TaskState.IN_DOUBT,
                reason,
                bool(is_inspect) or state not in _STATES,
                has_verdict,
            )
            for key, state, reason, is_inspect, has_verdict in self._queries.rows(
                "state_marks", run=run
            )
        ]

    def state_counts(self, run: RunId) -> Mapping[TaskState, int]:
        """Count the tasks of `run` in each state; states of a newer version are left out."""
        rows = self._queries.rows("state_counts", run=run)
        return {TaskState(row["state"]): row["count"] for row in rows if row["state"] in _STATES}

    def has_active(self, run: RunId) -> bool:
        """Say whether any task of `run` is ready, claimed, running, in doubt or awaiting."""
        (is_active,) = self._queries.rows("has_active", run=run)
        return bool(is_active)

    def outputs_before(self, task: TaskId) -> Mapping[str, Mapping[str, Json]]:
        """Return the outputs of the direct predecessors of `task`, by name."""
        rows = self._queries.rows("outputs_before", task=task)
        return {row["name"]: row["outputs"] for row in rows}

    def of_run(
        self, run: RunId, states: Sequence[TaskState] = (), limit: int = 100_000
    ) -> list[Task]:
        """Return the tasks of `run`, in `states` only if any are given."""
        if not states:
            return self.listed("of_run", run=run, limit=limit)
        return self.listed("of_run_in_states", run=run, states=list(states), limit=limit)

    def named(self, run: RunId, name: str) -> Task | None:
        """Return the task of `run` with that name."""
        key = self._codec.key(task_id(run, name))
        return next(iter(self.listed("named", key=key, name=name)), None)

    def insert_edges(self, edges: Sequence[tuple[TaskId, TaskId]]) -> list[bool | None]:
        """Insert dependencies, insert-only; True inserted, False was there, None unknown."""
        documents = [_edge(before, after) for before, after in edges]
        return [_is_new(answer) for answer in sent_in_parts(documents, self._edges.insert_many)]

    def counts(self, run: RunId) -> tuple[int, int]:
        """Count the tasks and the dependencies of `run`."""
        (row,) = self._queries.rows("counts", run=run)
        return row["tasks"], row["edges"]

    def damage(self, run: Run) -> str:
        """Return what is wrong with the graph of a run that nothing can move; empty if nothing."""
        (seen,) = self._queries.rows("damage", run=run.id, limit=_PROBLEMS_MAX)
        counted = {
            "tasks": (seen["tasks"], run.task_count),
            "dependencies": (seen["edges"], run.edge_count),
        }
        problems = [
            f"{found} of {wanted} {what} are there"
            for what, (found, wanted) in counted.items()
            if found != wanted
        ]
        problems += filter(None, map(self._problem, seen["stuck"]))
        return "; ".join(problems)

    def _problem(self, stuck: Document) -> str:
        document, found = stuck["task"], stuck["found"]
        task = self._codec.decoded(document)
        if task is None:
            is_newer = document.get("schema") != SCHEMA
            return "" if is_newer else f"task {document['_key']} cannot be read"
        wanted = f"{found} of its {task.needs} predecessors are there"
        return "" if found == task.needs else f"of task {task.spec.name!r} {wanted}"

    def blocks(self, task: TaskId) -> list[Related]:
        """Return everything that waits, directly or not, for `task` (transitive closure)."""
        return _related(task, self._queries.rows("blocks", task=task, depth_max=_DEPTH_MAX))

    def dependents(self, task: TaskId) -> list[Related]:
        """Return what `blocks` does, for a walk that must miss nothing: nearest first."""
        return _related(task, self._queries.rows("dependents", task=task, depth_max=_DEPTH_MAX))

    def numbers_before(self, tasks: Sequence[TaskId]) -> Mapping[TaskId, Mapping[TaskId, int]]:
        """Return the token numbers of each task's direct predecessors, by id."""
        found: dict[TaskId, Mapping[TaskId, int]] = {}
        for begin in range(0, len(tasks), _IDS_PER_QUESTION):
            part = tasks[begin : begin + _IDS_PER_QUESTION]
            for row in self._queries.rows("predecessors", tasks=list(part)):
                before = row["before"]
                found[row["task"]] = {b["id"]: int(b["token"].partition("/")[0]) for b in before}
        return found

    def failed(self, region: str, limit: int) -> list[Task]:
        """Return the failed tasks of `region`, of the newest runs first."""
        return self.listed("failed", region=region, limit=limit)

    def ancestors(self, task: TaskId) -> list[Related]:
        """Return everything that `task` waits for, directly or not."""
        return _related(task, self._queries.rows("ancestors", task=task, depth_max=_DEPTH_MAX))

    def order(self, run: RunId) -> list[tuple[int, Related]]:
        """Return (wave, task) in topological order; a task's distance is its wave."""
        rows = {row["id"]: row for row in self._queries.rows("order", run=run)}
        waves = _dag(rows).waves
        placed = [(n, id_) for n, wave in enumerate(waves) for id_ in wave]
        return [(n, _seen(rows[id_], n)) for n, id_ in placed if rows[id_]["state"] in _STATES]

    def critical_path(self, run: RunId) -> list[Task]:
        """Return the tasks of the longest expected path of `run`, first to last."""
        # By name: equal paths are settled as they were when the run was planned.
        rows = {row["name"]: row for row in self._queries.rows("critical_path", run=run)}
        path = _dag(rows).critical_path({name: row["expected_s"] for name, row in rows.items()})
        return [task for task in self.read([rows[name]["id"] for name in path]) if task]

    def _unlockable(self, candidates: Sequence[Task]) -> list[Unlockable]:
        """Return the candidates that their predecessors, read after them, still let go."""
        by_id = {task.id: task for task in candidates}
        found: list[Unlockable] = []
        ids = list(by_id)
        for begin in range(0, len(ids), _IDS_PER_QUESTION):
            part = ids[begin : begin + _IDS_PER_QUESTION]
            for row in self._queries.rows("predecessors", tasks=part):
                task, before = by_id[row["task"]], row["before"]
                seen = {b["id"]: b["token"] for b in before if b["state"] in SATISFYING}
                if len(seen) == len(before) == task.needs:
                    found.append(Unlockable(task, seen))
        return found


def _edge(before: TaskId, after: TaskId) -> Document:
    run = after.partition("/")[2].rpartition(".")[0]
    return {"_key": dependency_key(before, after), "_from": before, "_to": after, "run": run}


def _is_new(answer: Document | WriteResult) -> bool | None:
    if answer is WriteResult.UNKNOWN:
        return None
    return not isinstance(answer, WriteResult)


def _related(start: TaskId, rows: Iterable[Document]) -> list[Related]:
    """Count the distances: breadth first, so that `via` always comes before."""
    distances: dict[str, int] = {start: 0}
    found: list[Related] = []
    for row in rows:
        distances[row["id"]] = distances[row["via"]] + 1
        if row["state"] in _STATES:
            found.append(_seen(row, distances[row["id"]]))
    return found


def _seen(row: Mapping[str, Any], distance: int) -> Related:
    return Related(TaskId(row["id"]), row["name"], TaskState(row["state"]), row["region"], distance)


def _dag(rows: Mapping[str, Mapping[str, Any]]) -> Dag:
    edges = ((before, node) for node, row in rows.items() for before in row["before"])
    return Dag.checked(rows, edges)
