"""Data that must not leave a task's allowed regions: what stands for it everywhere else.

The inputs of a resident task, its outputs, its log and what it says of its end lie in the own
storage of a region that it may run in, each as a *blob* under its hash. Documents, messages and
other regions hold a reference: the hash, the size and the regions. A blob carries a salt, so that
nobody can find out what is in it by trying.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import orjson

from region_scheduler.domain.admission import Plan
from region_scheduler.domain.task import Exit, Json, Task

MARK: Final = "$resident"
_PEOPLES: Final = frozenset({"approval", "external-wait"})


def blob_of(value: Json, regions: Sequence[str], salt: str) -> bytes:
    """Return what is stored of a value that may lie in `regions` only.

    Args:
        value: JSON.
        regions: Where it may lie.
        salt: Not to be guessed.
    """
    whole = {"regions": sorted(regions), "salt": salt, "value": value}
    return orjson.dumps(whole, option=orjson.OPT_SORT_KEYS)


def reference_to(blob: bytes) -> dict[str, Json]:
    """Return what stands for a blob."""
    regions = sorted(regions_of(blob))
    return {MARK: key_of(blob), "bytes": len(blob), "regions": regions}


def key_of(blob: bytes) -> str:
    """Return the name of a blob: its hash."""
    return hashlib.sha256(blob).hexdigest()


def regions_of(blob: bytes) -> frozenset[str]:
    """Return where a blob may lie; nowhere if it is none."""
    try:
        said = orjson.loads(blob)["regions"]
        return frozenset(str(name) for name in said)
    except (ValueError, KeyError, TypeError):
        return frozenset()


def value_in(blob: bytes) -> Json:
    """Return the value that a blob keeps."""
    return orjson.loads(blob)["value"]


def is_reference(value: Mapping[str, Json]) -> bool:
    """Say whether a mapping stands for resident data."""
    return set(value) == {MARK, "bytes", "regions"}


def residence_problems(plan: Plan, region: str) -> Iterator[str]:
    """Yield why a plan cannot be kept as its resident tasks ask, one clause each.

    Args:
        plan: As expanded.
        region: Where it is submitted, so that its inputs lie there first.
    """
    resident = {spec.name: spec for spec in plan.tasks if spec.is_resident}
    for name, spec in resident.items():
        if region not in spec.allowed_regions:
            where = ", ".join(spec.allowed_regions)
            yield f"{name} is resident in {where}: submit it there, not in {region}"
        if spec.runner in _PEOPLES:
            yield f"{name} is resident: what people answer is kept everywhere, {spec.runner} too"
    if not resident:
        return
    before: dict[str, list[str]] = {}
    for earlier, later in plan.edges:
        if earlier in resident:
            before.setdefault(later, []).append(earlier)
    for spec in plan.tasks:
        if spec.condition and spec.name in before:
            names = ", ".join(before[spec.name])
            yield f"{spec.name} has a condition over the outputs of {names}, which are resident"


def without_resident(ended: Exit, outputs: Mapping[str, Json], region: str) -> Exit:
    """Return the end of a resident task's attempt as it may be written down everywhere.

    Args:
        ended: As its runner told.
        outputs: A reference to its outputs; empty if it has none.
        region: Where its log is, and what it said.
    """
    told = f"{ended.kind}; what it said stays in {region}" if ended.message else ""
    return replace(ended, outputs=outputs, message=told, log_tail="")


def resident_bytes(task: Task) -> list[str]:
    """Return which attributes of a resident task's document hold data instead of a reference."""
    if not task.spec.is_resident:
        return []
    kept: list[tuple[str, Any]] = [("spec.inputs", task.spec.inputs), ("outputs", task.outputs)]
    bare = [name for name, value in kept if value and not is_reference(value)]
    return [*bare, *(["log_tail"] if task.log_tail else [])]
