"""The database, its collections and their indexes; made by whoever comes first, harmless twice."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, Final

from arango.client import ArangoClient
from arango.database import StandardDatabase
from arango.exceptions import ArangoServerError

from region_scheduler.drivers.arango.codec import to_json

TASKS: Final = "tasks"
DEPENDENCIES: Final = "dependencies"
_SCHEMA: Final = "schema"
_MARK: Final = "graph"
_HERE_ALREADY: Final = frozenset({1207, 1925})
_NOT_HERE_YET: Final = frozenset({1202, 1203, 1228})

INDEXES: Final[dict[str, tuple[tuple[str, ...], ...]]] = {
    "zones": (("tenant", "name"), ("active_run",)),
    "runs": (
        ("state",),
        ("created_at",),
        ("zone", "state"),
        ("tenant", "state"),
    ),
    TASKS: (
        ("region", "state", "spec.remaining_s"),
        ("run", "state"),
        ("holder.incarnation", "state"),
    ),
    DEPENDENCIES: (("run",),),
    "admissions": (("state", "created_at"), ("created_at",), ("tenant", "created_at")),
    "instances": (("fenced.kind", "region"),),
    "slots": (("resource",), ("holder.task",), ("reservation.task",)),
    "regions": (),
    "conflicts": (("at",),),
    "answers": (("task",),),
    "tenants": (),
    "grants": (),
    "pauses": (("is_on",),),
    "calendars": (("is_on",),),
    "schedules": (("home_region", "next_at"),),
    "durations": (),
    "audit": (("at",),),
    _SCHEMA: (),
}
"""Every collection with its persistent indexes. None is unique: uniqueness lives in `_key`, because
a cluster enforces no other across shards."""


@dataclass(frozen=True, slots=True)
class Replication:
    """How the database is spread; a single server ignores it.

    Attributes:
        factor: Copies of each shard.
        write_concern: Copies that must be in sync for a write to be accepted.
        shards: Shards of each collection; 1 with `is_one_shard`.
        is_one_shard: All collections have one shard, with one leader.
    """

    factor: int = 1
    write_concern: int = 1
    shards: int = 1
    is_one_shard: bool = True


def prepare(
    client: ArangoClient, database: str, user: str, password: str, replication: Replication
) -> StandardDatabase:
    """Return the database, made first unless it is there with everything that this code needs.

    One request if it is. Two processes may do this at once, and one may die in the middle.

    Raises:
        ArangoServerError: As the store says, e.g. that `user` may not.
    """
    db = client.db(database, user, password)
    digest = _digest()
    try:
        mark = db.collection(_SCHEMA).get(_MARK)
    except ArangoServerError as error:
        if error.error_code not in _NOT_HERE_YET:
            raise
        mark = None
    if isinstance(mark, dict) and mark.get("digest") == digest:
        return db
    _create_database(client.db("_system", user, password), database, replication)
    for name, indexes in INDEXES.items():
        _create_collection(db, name, replication)
        for fields in indexes:
            db.collection(name).add_index({"type": "persistent", "fields": list(fields)})
    db.collection(_SCHEMA).insert({"_key": _MARK, "digest": digest}, overwrite_mode="replace")
    return db


def _create_database(system: StandardDatabase, name: str, replication: Replication) -> None:
    spread: dict[str, Any] = {}
    if replication.is_one_shard:
        spread = {
            "sharding": "single",
            "replication_factor": replication.factor,
            "write_concern": replication.write_concern,
        }
    try:
        system.create_database(name, **spread)
    except ArangoServerError as error:
        if error.error_code not in _HERE_ALREADY:
            raise


def _create_collection(db: StandardDatabase, name: str, replication: Replication) -> None:
    spread: dict[str, Any] = {}
    if not replication.is_one_shard:
        spread = {
            "shard_count": replication.shards,
            "replication_factor": replication.factor,
            "write_concern": replication.write_concern,
        }
    try:
        db.create_collection(name, sync=True, edge=name == DEPENDENCIES, **spread)
    except ArangoServerError as error:
        if error.error_code not in _HERE_ALREADY:
            raise


def _digest() -> str:
    return hashlib.blake2b(to_json(INDEXES), digest_size=12).hexdigest()
