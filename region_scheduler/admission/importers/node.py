"""One node of the graph form becomes a task."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, Final

from region_scheduler.admission.importers.fields import (
    a_choice,
    a_list,
    a_number,
    a_text,
    a_whole,
    an_object,
    refused,
    texts,
)
from region_scheduler.admission.rules import RUNNERS
from region_scheduler.domain.ids import QUEUE_NAME
from region_scheduler.domain.instant import instant_of
from region_scheduler.domain.slot import CAPACITY_MAX
from region_scheduler.domain.task import (
    ATTEMPTS_MAX,
    Json,
    LockNeed,
    OnLoss,
    RetryPolicy,
    TaskSpec,
    WhenHolderLost,
)

NODE_KEYS: Final = frozenset(
    "id runtime_s region labels purpose runner inputs locks retry priority delay_tolerance_s"
    " not_before regions pool on_loss cap_s memory_mib_max condition is_irreversible"
    " is_resident".split()
)
LOCK_KEYS: Final = frozenset("resource capacity units when_holder_lost".split())
RETRY_KEYS: Final = frozenset("limit delay_s losses_limit inspections_limit".split())
ASSERTION_KEYS: Final = frozenset("path op value".split())
_LOSS_OF_RUNNER: Final = {"simulate": OnLoss.RETRY, "check": OnLoss.RETRY, "verify": OnLoss.RETRY}
_CAP_S: Final = 3_600.0
_CAP_FACTOR: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskOptions:
    """What a node does not say itself.

    Attributes:
        home_region: Where it runs if its target region is not served.
        regions: Scheduler regions that it may run in, unless it says.
        serves: Scheduler region by target region.
        capacities: Units of each resource that exists already.
        declared: Units of each resource that a node of the same graph gives.
        time_scale: Simulate it, its duration multiplied by this; None runs it for real.
    """

    home_region: str
    regions: tuple[str, ...]
    serves: Mapping[str, str]
    capacities: Mapping[str, int]
    declared: Mapping[str, int]
    time_scale: float | None


def task_of(
    node: Mapping[str, Json],
    place: str,
    options: TaskOptions,
    expected_s: float,
    remaining_s: float,
) -> TaskSpec:
    """Return the task of a node.

    Args:
        node: In the graph form.
        place: Where it stands.
        options: What it does not say itself.
        expected_s: Its `runtime_s`, seconds; from `expected_s`.
        remaining_s: Longest expected path from its start to the end, seconds.

    Raises:
        InvalidInput: A field is unknown or not of the form; names the place.
    """
    fields = an_object(node, place, NODE_KEYS)
    runner, inputs = _work(fields, place, options, expected_s)
    allowed = _allowed(fields, place, options)
    target = _text_or_nothing(fields, "region", place)
    is_simulated = options.time_scale is not None
    loss = _LOSS_OF_RUNNER.get(runner, OnLoss.INSPECT)
    if "on_loss" in fields:
        loss = a_choice(fields["on_loss"], f"{place}.on_loss", OnLoss)
    cap_s = _CAP_S
    if "cap_s" in fields:
        cap_s = a_number(fields["cap_s"], f"{place}.cap_s", is_above_zero=True)
    if "labels" in fields:
        for key, value in an_object(fields["labels"], f"{place}.labels").items():
            a_text(value, f"{place}.labels.{key}", may_be_empty=True)
    return TaskSpec(
        name=a_text(fields.get("id"), f"{place}.id"),
        runner=runner,
        inputs=inputs,
        region=_region(target, allowed, place, options, is_free="regions" not in fields),
        allowed_regions=allowed,
        is_pinned="regions" in fields and len(allowed) == 1,
        target_region=target,
        locks=_locks(fields, place, options),
        on_loss=OnLoss.RETRY if is_simulated else loss,
        cap_s=_simulated_cap(cap_s, inputs) if is_simulated else cap_s,
        memory_mib_max=a_whole(fields.get("memory_mib_max", 0), f"{place}.memory_mib_max"),
        expected_s=expected_s,
        remaining_s=remaining_s,
        **{key: read(fields[key], f"{place}.{key}") for key, read in _PLAIN if key in fields},
    )


def expected_s(node: Mapping[str, Json], place: str) -> float:
    """Return how long a node takes, seconds.

    Args:
        node: In the graph form.
        place: What its place begins with.

    Raises:
        InvalidInput: It is no number of at least 0.
    """
    return a_number(node["runtime_s"], f"{place}.runtime_s") if "runtime_s" in node else 0.0


def _work(
    fields: Mapping[str, Any], place: str, options: TaskOptions, expected_s: float
) -> tuple[str, Mapping[str, Json]]:
    runner = _text_or_nothing(fields, "runner", place)
    inputs = an_object(fields["inputs"], f"{place}.inputs") if "inputs" in fields else {}
    if runner and runner not in RUNNERS:
        told = f"there are {', '.join(sorted(RUNNERS))}"
        raise refused(f"{place}.runner", runner, told)
    if options.time_scale is not None:
        return "simulate", {"duration_s": expected_s * options.time_scale}
    if not runner:
        told = "name a runner, or submit with --simulate to run no step for real"
        raise refused(f"{place}.runner", "", told)
    return runner, inputs


def _allowed(fields: Mapping[str, Any], place: str, options: TaskOptions) -> tuple[str, ...]:
    if "regions" not in fields:
        return options.regions
    wanted = tuple(dict.fromkeys(texts(fields["regions"], f"{place}.regions")))
    if not wanted:
        raise refused(f"{place}.regions", "[]", "name at least one, or leave it out")
    for name in wanted:
        if name not in options.regions:
            told = f"the submission's scheduler regions are {', '.join(options.regions)}"
            raise refused(f"{place}.regions", name, told)
    return wanted


def _region(
    target: str, allowed: tuple[str, ...], place: str, options: TaskOptions, *, is_free: bool
) -> str:
    """Return where it runs first: where its target region is served, or else where it may."""
    serving = options.serves.get(target, "")
    if serving and serving not in allowed and not is_free:
        told = (
            f"{serving} serves it, which the node's own regions ({', '.join(allowed)}) forbid;"
            " change either"
        )
        raise refused(f"{place}.region", target, told)
    if serving:
        return serving
    return options.home_region if options.home_region in allowed else allowed[0]


def _locks(fields: Mapping[str, Any], place: str, options: TaskOptions) -> tuple[LockNeed, ...]:
    if "locks" not in fields:
        return ()
    return tuple(
        _lock(lock, f"{place}.locks[{n}]", options)
        for n, lock in enumerate(a_list(fields.get("locks", []), f"{place}.locks"))
    )


def _lock(value: object, place: str, options: TaskOptions) -> LockNeed:
    fields = an_object(value, place, LOCK_KEYS, needed=("resource",))
    resource = a_text(fields["resource"], f"{place}.resource")
    declared = options.declared.get(resource)
    if "capacity" in fields:
        said = a_whole(fields["capacity"], f"{place}.capacity", 1, CAPACITY_MAX)
        if declared is not None and said != declared:
            raise refused(f"{place}.capacity", said, f"{resource} has {declared} elsewhere")
    existing = options.capacities.get(resource)
    capacity = declared if existing is None else existing
    if capacity is None:
        told = "no such resource is known: give its capacity here (1 is an exclusive lock)"
        raise refused(f"{place}.resource", resource, told)
    units = a_whole(fields.get("units", 1), f"{place}.units", 1)
    if units > capacity:
        told = f"{resource} has {capacity}" + ("" if existing is None else " (`resources show`)")
        raise refused(f"{place}.units", units, told)
    lost = fields.get("when_holder_lost", WhenHolderLost.FREE)
    kept = a_choice(lost, f"{place}.when_holder_lost", WhenHolderLost)
    return LockNeed(resource, capacity, units, kept)


def _not_before(value: object, place: str) -> datetime:
    return instant_of(a_text(value, place), place)


def _retry(value: object, place: str) -> RetryPolicy:
    given = an_object(value, place, RETRY_KEYS)
    counts = {
        key: a_whole(given[key], f"{place}.{key}", maximum=ATTEMPTS_MAX)
        for key in RETRY_KEYS - {"delay_s"}
        if key in given
    }
    delay_s = a_number(given.get("delay_s", RetryPolicy().delay_s), f"{place}.delay_s")
    return RetryPolicy(delay_s=delay_s, **counts)


def _condition(value: object, place: str) -> tuple[Mapping[str, Json], ...]:
    """Return the assertions; that they make sense over the predecessors is a rule of admission."""
    return tuple(
        an_object(assertion, f"{place}[{n}]", ASSERTION_KEYS, needed=("path", "op"))
        for n, assertion in enumerate(a_list(value, place))
    )


def _pool(value: object, place: str) -> str:
    pool = a_text(value, place)
    if not re.fullmatch(QUEUE_NAME, pool):
        told = "small letters, digits and inner hyphens, at most 40, as workers name their pools"
        raise refused(place, pool, told)
    return pool


def _flag(value: object, place: str) -> bool:
    if not isinstance(value, bool):
        raise refused(place, value, "true or false is needed here")
    return value


def _text_or_nothing(fields: Mapping[str, Any], key: str, place: str) -> str:
    return a_text(fields[key], f"{place}.{key}", may_be_empty=True) if key in fields else ""


def _simulated_cap(cap_s: float, inputs: Mapping[str, Json]) -> float:
    return max(cap_s, _CAP_FACTOR * float(inputs.get("duration_s", 0)))


_PLAIN: Final[tuple[tuple[str, Callable[[object, str], Any]], ...]] = (
    ("purpose", partial(a_text, may_be_empty=True)),
    ("pool", _pool),
    ("priority", a_whole),
    ("delay_tolerance_s", a_number),
    ("is_irreversible", _flag),
    ("is_resident", _flag),
    ("not_before", _not_before),
    ("retry", _retry),
    ("condition", _condition),
)
"""Fields that a task takes over as they are read. Few nodes have many: only what is there is looked
at, since a graph may have a hundred thousand of them."""
