"""What a plan must keep to before it is accepted. Nothing is written here, whatever it says.

The limits are the intersection of what both stores hold: neither may meet a value that the other
took already.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import orjson

from region_scheduler.catalog.assertions import OPS, UPSTREAM
from region_scheduler.domain.admission import Plan
from region_scheduler.domain.dag import Dag, Edge
from region_scheduler.domain.limits import LIMITS, Limits
from region_scheduler.domain.task import Json, TaskSpec, units_needed
from region_scheduler.errors import InvalidGraph

RUNNERS: Final = frozenset(
    "approval check command external-wait simulate terraform terragrunt verify".split()
)
"""What a task may name as its runner."""
_PROBLEMS_MAX: Final = 20
_LOOKED_AT_TOGETHER: Final = 200


def checked(
    plan: Plan,
    limits: Limits = LIMITS,
    capacities: Mapping[str, int] | None = None,
    places: Mapping[Edge, str] | None = None,
) -> Dag:
    """Return the plan's graph, or refuse the plan; nothing is written either way.

    Args:
        plan: Expanded.
        limits: How big it may be.
        capacities: Units of each resource that exists already, by name.
        places: Where the source says that an edge is.

    Raises:
        InvalidGraph: All that is wrong with sizes, tasks and dependencies, each with its place.
        CyclicGraph: A cycle, with its edges.
    """
    refuse(size_problems(len(plan.tasks), len(plan.edges), limits))
    refuse(_tasks_problems(plan, limits, capacities or {}))
    dag = Dag.checked([spec.name for spec in plan.tasks], plan.edges, places)
    refuse(shape_problems(dag, limits))
    if dag.repeated_edges:
        repeated = [edge for edge, count in Counter(plan.edges).items() if count > 1]
        refuse(f"edge {before!r} -> {after!r} occurs twice" for before, after in repeated)
    refuse(
        problem
        for spec in plan.tasks
        if spec.condition
        for problem in _condition_problems(spec, dag.before[spec.name])
    )
    return dag


def refuse(problems: Iterable[str]) -> None:
    """Go on if there are none.

    Raises:
        InvalidGraph: There are; the first of them are told.
    """
    found = list(problems)
    if found:
        hidden = len(found) - _PROBLEMS_MAX
        more = [f"and {hidden} more"] if hidden > 0 else []
        raise InvalidGraph(problems=found[:_PROBLEMS_MAX] + more)


def size_problems(tasks: int, edges: int, limits: Limits) -> Iterator[str]:
    """Return what is wrong with how many there are."""
    if not tasks:
        yield "it has no nodes"
    if tasks > limits.tasks_max:
        yield f"it has {tasks} nodes, at most {limits.tasks_max} (limit tasks_max)"
    if edges > limits.edges_max:
        yield f"it has {edges} edges, at most {limits.edges_max} (limit edges_max)"


def shape_problems(dag: Dag, limits: Limits) -> Iterator[str]:
    """Return what is wrong with how deep it is, and how many come together."""
    if dag.depth > limits.depth_max:
        yield (
            f"its longest path has {dag.depth} tasks, at most {limits.depth_max} (limit depth_max)"
        )
    for name, before in dag.before.items():
        if len(before) > limits.predecessors_max:
            yield (
                f"{name!r} has {len(before)} direct predecessors,"
                f" at most {limits.predecessors_max} (limit predecessors_max)"
            )


def value_problem(value: Json, bytes_max: int) -> str:
    """Return why a JSON value cannot be kept by both stores; empty if it can.

    The document store keeps NUL and the relational one does not; neither keeps half of a surrogate
    pair, a whole number beyond 64 bits, or a number that is not finite.
    """
    try:
        text = orjson.dumps(value)
    except TypeError as error:
        return _unkept(value) or f"is no JSON: {error}"
    if len(text) > bytes_max:
        return f"takes {len(text)} bytes, at most {bytes_max} (limit task_bytes_max)"
    return _unkept(value) if _may_be_unkept(text) else ""


def _may_be_unkept(text: bytes) -> bool:
    """Say whether a value that was written as `text` is worth a look at its parts.

    A number that is not finite is written as null.
    """
    return b"\\u0000" in text or b"null" in text


def id_problem(name: str, limits: Limits) -> str:
    """Return why `name` cannot be an id; empty if it can."""
    if problem := value_problem(name, limits.body_bytes_max):
        return problem
    size = len(name.encode()) if len(name) * 4 > limits.id_bytes_max else 0
    if size > limits.id_bytes_max:
        return f"takes {size} bytes, at most {limits.id_bytes_max} (limit id_bytes_max)"
    return "" if name else "is empty"


def _unkept(value: Json, path: str = "") -> str:
    """Return which text or number in `value` a store cannot keep."""
    todo = [(path, value)]
    while todo:
        path, value = todo.pop()
        if isinstance(value, float) and not math.isfinite(value):
            return f"holds {value}, which is no finite number{' in ' + path if path else ''}"
        if isinstance(value, str):
            bad = next((c for c in value if c == "\0" or "\ud800" <= c <= "\udfff"), None)
            if bad is not None:
                what = "the character NUL" if bad == "\0" else "half of a surrogate pair"
                return f"holds {what}{' in ' + path if path else ''}"
        elif isinstance(value, Mapping):
            todo += [(f"{path}.{key!a}", key) for key in value]
            todo += [(f"{path}.{key!a}", item) for key, item in value.items()]
        elif isinstance(value, list | tuple):
            todo += [(f"{path}[{i}]", item) for i, item in enumerate(value)]
    return ""


def are_kept(values: Sequence[Json], bytes_max: int) -> bool:
    """Say whether one look finds that `value_problem` has nothing to say of any of them."""
    try:
        text = orjson.dumps(values)
    except TypeError:
        return False
    return len(text) <= bytes_max and not _may_be_unkept(text)


def _tasks_problems(plan: Plan, limits: Limits, capacities: Mapping[str, int]) -> Iterator[str]:
    """Return what is wrong with the tasks; one by one only where a look at many finds something."""
    for begin in range(0, len(plan.tasks), _LOOKED_AT_TOGETHER):
        tasks = plan.tasks[begin : begin + _LOOKED_AT_TOGETHER]
        if not _are_plain(tasks, plan, limits):
            for spec in tasks:
                yield from _task_problems(spec, plan, limits, capacities)


def _are_plain(tasks: Sequence[TaskSpec], plan: Plan, limits: Limits) -> bool:
    runs = {(spec.runner, spec.region, spec.allowed_regions) for spec in tasks}
    return (
        all(
            runner in RUNNERS and region in allowed and set(allowed) <= set(plan.regions)
            for runner, region, allowed in runs
        )
        and all(spec.name and len(spec.name) * 4 <= limits.id_bytes_max for spec in tasks)
        and not any(spec.locks for spec in tasks)
        and are_kept([_kept(spec) for spec in tasks], limits.task_bytes_max)
    )


def _kept(spec: TaskSpec) -> tuple[Json, ...]:
    """Return what a task holds that may be of any size and content."""
    return (
        spec.purpose,
        spec.inputs,
        spec.pool,
        spec.target_region,
        spec.condition,
        spec.locks,
        spec.cap_s,
        spec.expected_s,
        spec.remaining_s,
        spec.delay_tolerance_s,
        spec.retry.delay_s,
        spec.name,
    )


def _task_problems(
    spec: TaskSpec, plan: Plan, limits: Limits, capacities: Mapping[str, int]
) -> Iterator[str]:
    if problem := id_problem(spec.name, limits):
        yield f"id {_short(spec.name)} {problem}"
    if problem := value_problem(_kept(spec)[:-1], limits.task_bytes_max):
        yield f"{_short(spec.name)} {problem}"
    if spec.runner not in RUNNERS:
        yield (
            f"{_short(spec.name)} names runner {spec.runner!r}; there are"
            f" {', '.join(sorted(RUNNERS))}"
        )
    if spec.region not in spec.allowed_regions:
        yield (
            f"{_short(spec.name)} would run in {spec.region!r}, which residency forbids; it may run"
            f" in {', '.join(spec.allowed_regions)}"
        )
    if not set(spec.allowed_regions) <= set(plan.regions):
        beyond = sorted(set(spec.allowed_regions) - set(plan.regions))
        yield (
            f"{_short(spec.name)} may run in {beyond[0]!r}, which the run may not:"
            f" {', '.join(plan.regions)}"
        )
    if spec.locks:
        yield from _lock_problems(spec, capacities)


def _lock_problems(spec: TaskSpec, capacities: Mapping[str, int]) -> Iterator[str]:
    units = units_needed(spec)
    for need in spec.locks:
        capacity = capacities.get(need.resource, need.capacity)
        if not (need.units >= 1 and units[need.resource] <= capacity):
            yield (
                f"{spec.name!r} takes {units[need.resource]} units of {need.resource!r},"
                f" which has {capacity}"
            )


def _condition_problems(spec: TaskSpec, before: Iterable[str]) -> Iterator[str]:
    known = set(before)
    for number, assertion in enumerate(spec.condition):
        place = f"condition[{number}] of {_short(spec.name)}"
        if assertion.keys() - {"path", "op", "value"}:
            yield f"{place} is no assertion of path, op and value"
            continue
        path, op = assertion.get("path"), assertion.get("op")
        name = UPSTREAM.match(path) if isinstance(path, str) else None
        if name is None:
            yield f"{place} must have a path like /upstream/TASK/OUTPUT, not {path!r}"
        elif _unescaped(name.group(1)) not in known:
            yield (
                f"{place} looks at {_unescaped(name.group(1))!r}, which is no direct predecessor"
            )
        if op == "matches":
            # A scheduler evaluates conditions for everybody; an expression can take it for ever.
            yield f"{place} has op matches, which only a check may use"
        elif op not in OPS:
            yield f"{place} has op {op!r}; there are {', '.join(sorted(OPS - {'matches'}))}"
        elif (op == "present") is ("value" in assertion):
            yield f"{place} needs a value, but for the op present, which takes none"


def _unescaped(token: str) -> str:
    return re.sub("~[01]", lambda found: "/" if found.group() == "~1" else "~", token)


def _short(name: str) -> str:
    """Return a name as one shows it, whatever it holds."""
    return repr(name if len(name) <= 120 else name[:117] + "...")
