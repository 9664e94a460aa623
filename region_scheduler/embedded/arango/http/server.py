"""/_api/version and other questions about the server, and databases."""

from __future__ import annotations

import platform
from typing import Any

from region_scheduler.embedded.arango.errors import ArangoError
from region_scheduler.embedded.arango.http.call import Call
from region_scheduler.embedded.arango.http.message import Response, answer
from region_scheduler.embedded.arango.http.router import Table
from region_scheduler.embedded.arango.storage.database import SYSTEM
from region_scheduler.embedded.arango.storage.record import encode

VERSION = "3.12.10-embedded"
_INDEX_TYPES = (
    "primary edge hash skiplist ttl persistent geo fulltext mdi mdi-prefixed inverted".split()
)


def version(call: Call) -> Response:
    """GET /_api/version."""
    shown: dict[str, Any] = {"server": "arango", "license": "community", "version": VERSION}
    shown |= {"apiVersions": ["v0"], "deprecatedApiVersions": [], "requestedApiVersion": "v0"}
    if call.flag("details"):
        shown["details"] = {
            "mode": "server",
            "server-version": VERSION,
            "architecture": platform.architecture()[0],
            "platform": platform.system().lower(),
        }
    return Response(200, encode(shown))


def engine(_call: Call) -> Response:
    """GET /_api/engine."""
    aliases = {"hash": "persistent", "skiplist": "persistent", "zkd": "mdi"}
    supports = {"indexes": _INDEX_TYPES, "aliases": {"indexes": aliases}}
    return Response(200, encode({"name": "rocksdb", "supports": supports, "endianness": "big"}))


def admin(call: Call, *segments: str) -> Response:
    """GET /_admin/server/…: role, availability, id, mode."""
    is_cluster = call.store.is_cluster
    match segments:
        case ("role",):
            return answer(200, role="COORDINATOR" if is_cluster else "SINGLE", mode="default")
        case ("mode",):
            return answer(200, mode="default")
        case ("aql-queries",):  # the engine records no queries
            return answer(200, result={"queries": []})
        case ("availability",):
            return answer(200, mode="default")
        case ("id",) if is_cluster:
            return answer(200, id="CRDN-0001")
        case ("count",) if is_cluster:
            return answer(200, count=3)
        case _:
            raise ArangoError(404)


def time(call: Call) -> Response:
    """GET /_admin/time."""
    return answer(200, time=call.engine.wall())


def status(call: Call) -> Response:
    """GET /_admin/status."""
    role = "COORDINATOR" if call.store.is_cluster else "SINGLE"
    info = {"maintenance": False, "role": role, "writeOpsEnabled": True, "readOnly": False}
    shown = {"server": "arango", "license": "community", "version": VERSION, "mode": "server"}
    return Response(
        200, encode({**shown, "operationMode": "server", "serverInfo": info, "host": "embedded"})
    )


def list_tasks(_call: Call) -> Response:
    """GET /_api/tasks: none; the engine runs no JavaScript."""
    return Response(200, b"[]")


# Databases.


def list_databases(call: Call) -> Response:
    """GET: all databases."""
    _require_system(call)
    return answer(200, result=sorted(call.store.catalog.databases))


def current_or_user(call: Call, which: str) -> Response:
    """GET current: this database; GET user: those that the user may read."""
    if which == "user":
        names = sorted(call.store.catalog.databases)
        allowed = [name for name in names if call.engine.users.may_read(call.user, name)]
        return answer(200, result=allowed)
    if which != "current":
        raise ArangoError(404)
    database = call.database
    shown = {
        "id": str(database.number),
        "name": database.name,
        "isSystem": database.name == SYSTEM,
        "path": "none",
        **{name: value for name, value in database.options.items() if value is not None},
    }
    return answer(200, result=shown)


def create_database(call: Call) -> Response:
    """POST: a new database, with users that may use it."""
    _require_system(call)
    body = call.object()
    options = body.get("options") or {}
    name = body.get("name")
    users = body.get("users") or []
    if not isinstance(users, list) or not all(isinstance(user, dict) for user in users):
        raise ArangoError(10, "expecting users to be a list of objects")
    call.store.catalog.create_database(name, options)
    call.engine.users.grant_created(call, str(name), users)
    return answer(201, result=True)


def drop_database(call: Call, name: str) -> Response:
    """DELETE: a database and all that is in it."""
    _require_system(call)
    call.store.catalog.drop_database(name)
    call.engine.forget_database(name)
    return answer(200, result=True)


def _require_system(call: Call) -> None:
    if call.database.name != SYSTEM:
        raise ArangoError(1230)


AREAS: dict[str, Table] = {
    "_api/version": {(method, 0): version for method in ("GET", "PUT", "POST", "HEAD")},
    "_admin/version": {("GET", 0): version},
    "_api/engine": {("GET", 0): engine},
    "_admin/server": {("GET", 1): admin},
    "_admin/time": {("GET", 0): time},
    "_admin/status": {("GET", 0): status},
    "_api/tasks": {("GET", 0): list_tasks},
    "_api/database": {
        ("GET", 0): list_databases,
        ("GET", 1): current_or_user,
        ("POST", 0): create_database,
        ("DELETE", 1): drop_database,
    },
}
