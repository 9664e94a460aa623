"""I6 where a store cannot tell: what lies in the regions' own storage, and what lies elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from region_scheduler.domain.residence import key_of, regions_of, resident_bytes
from region_scheduler.domain.task import EventKind, Task


def strays(tasks: Iterable[Task]) -> Iterator[str]:
    """Yield each attempt that ran, and each document that holds bytes, where it may not.

    Args:
        tasks: As stored, with their histories.
    """
    for task in tasks:
        allowed = task.spec.allowed_regions
        for entry in task.history:
            if entry.kind is EventKind.STARTED and entry.region not in allowed:
                where = ", ".join(allowed)
                yield f"{task.id}: attempt {entry.attempt} in {entry.region}, allowed: {where}"
        for name in resident_bytes(task):
            yield f"{task.id}: {name} holds resident data instead of a reference"


def misplaced(region: str, blobs: Mapping[str, bytes]) -> Iterator[str]:
    """Yield each blob in the storage of `region` that may not lie there, or is another one.

    Args:
        region: Whose storage it is.
        blobs: All of them, by key.
    """
    for key, blob in sorted(blobs.items()):
        if region not in regions_of(blob):
            where = ", ".join(sorted(regions_of(blob))) or "nowhere"
            yield f"blob {key} in {region}, allowed: {where}"
        if key_of(blob) != key:
            yield f"blob {key} in {region} is another one: {key_of(blob)}"
