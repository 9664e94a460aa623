"""Which applies really happened, by terraform's own states and what dependents have of them."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from region_scheduler.domain.ids import TaskId
from region_scheduler.domain.task import Json, Task

State = Mapping[str, Any]
"""A terraform state, version 4, as its backend keeps it."""


def applied(
    states: Mapping[str, State], tasks: Sequence[Task], before: Mapping[TaskId, Sequence[TaskId]]
) -> list[str]:
    """Return the state keys that were applied and made use of, sorted, each once.

    A key counts if its state has a serial and a managed resource one of whose attributes is an
    output of the state, and that value stands in what a dependent made of it: in the resources of
    the dependent's own state, or in its outputs.

    Args:
        states: By state key, read from the backend.
        tasks: The tasks that may own them, with their outputs.
        before: Direct predecessors of each task.
    """
    dependents: dict[TaskId, list[Task]] = defaultdict(list)
    for task in tasks:
        for predecessor in before.get(task.id, ()):
            dependents[predecessor].append(task)
    return sorted(
        {
            task.spec.state_key
            for task in tasks
            if (state := states.get(task.spec.state_key)) is not None
            and _is_read(state, [_made(dependent, states) for dependent in dependents[task.id]])
        }
    )


def _is_read(state: State, readers: Sequence[str]) -> bool:
    if not isinstance(state.get("serial"), int) or state["serial"] < 1:
        return False
    return any(json.dumps(value) in text for value in _handed_on(state) for text in readers)


def _handed_on(state: State) -> set[str]:
    """Return the texts that are both an output of the state and an attribute of a resource."""
    attributes = {
        text
        for resource in state.get("resources", ())
        if resource.get("mode") == "managed"
        for instance in resource.get("instances", ())
        for text in _texts(instance.get("attributes"))
    }
    return attributes & {
        text for output in state.get("outputs", {}).values() for text in _texts(output.get("value"))
    }


def _made(task: Task, states: Mapping[str, State]) -> str:
    own = states.get(task.spec.state_key, {})
    return json.dumps([own.get("resources", []), dict(task.outputs)])


def _texts(value: Json) -> Iterator[str]:
    if isinstance(value, str):
        if value:
            yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _texts(inner)
