"""Identifiers, and how store keys are derived from names that may hold any Unicode."""

from __future__ import annotations

import hashlib
from typing import Final, NewType

RunId = NewType("RunId", str)
TaskId = NewType("TaskId", str)
"""The graph store's handle of a task; opaque everywhere else."""
Incarnation = NewType("Incarnation", str)
"""`<instance>:<incarnation>`: one life of one process."""
ClaimId = NewType("ClaimId", str)
ReceiptId = NewType("ReceiptId", str)

QUEUE_NAME: Final = "[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?"
"""Pattern of a region or pool: it becomes part of queue names and file names."""

NO_CLAIM = ClaimId("")
NO_RECEIPT = ReceiptId("")

TASK_COLLECTION = "tasks"
_DIGEST_BYTES = 12


def digest_of(*parts: str) -> str:
    """Return a hex digest of `parts`, each preceded by its length so that no two lists collide."""
    text = "".join([f"{len(part)}:{part}" for part in parts])
    if text.isascii():  # as ids are: one character is one byte
        data = text.encode()
    else:
        encoded = [part.encode("utf-8", "surrogatepass") for part in parts]
        data = b"".join([b"%d:%b" % (len(part), part) for part in encoded])
    return hashlib.blake2b(data, digest_size=_DIGEST_BYTES).hexdigest()


def task_id(run: RunId, name: str) -> TaskId:
    """Return the handle of task `name` of `run`; the same on every machine and at every try."""
    return TaskId(f"{TASK_COLLECTION}/{run}.{digest_of(name)}")


def dependency_key(before: TaskId, after: TaskId) -> str:
    """Return the key of the edge `before -> after`: one edge a pair, however often inserted."""
    return digest_of(before, after)


def slot_key(resource: str, unit: int) -> str:
    """Return the key of one unit of a resource; sorts by resource, then unit."""
    return f"{digest_of(resource)}.{unit:06d}"


def zone_key(tenant: str, name: str) -> str:
    """Return the key of a tenant's zone: a name is unique within its tenant."""
    return digest_of(tenant, name)
