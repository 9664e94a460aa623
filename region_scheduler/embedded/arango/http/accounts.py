"""/_api/user and /_open/auth."""

from __future__ import annotations

from typing import Any

from region_scheduler.embedded.arango.errors import ArangoError
from region_scheduler.embedded.arango.http.call import ROOT, Call
from region_scheduler.embedded.arango.http.message import Response, answer
from region_scheduler.embedded.arango.http.router import Table
from region_scheduler.embedded.arango.session import Document
from region_scheduler.embedded.arango.storage.database import SYSTEM
from region_scheduler.embedded.arango.storage.record import encode
from region_scheduler.embedded.arango.storage.transaction import DirectTransaction


def log_in(call: Call) -> Response:
    """POST /_open/auth: a token for a user and a password."""
    body = call.object()
    name, password = body.get("username"), body.get("password")
    if not isinstance(name, str) or not isinstance(password, str):
        raise ArangoError(400)
    if not call.engine.users.is_password(name, password):
        raise ArangoError(401, "Wrong credentials", status=401)
    return Response(200, encode({"jwt": call.engine.users.token(name)}))


def _shown(document: Document) -> dict[str, Any]:
    return {name: document[name] for name in ("user", "active", "extra")}


def _own(call: Call) -> DirectTransaction:
    transaction = call.store.begin(call.store.catalog.database(SYSTEM))
    call.direct = transaction
    return transaction


def _require_root(call: Call, name: str | None = None) -> None:
    if call.user not in (ROOT, name) and call.engine.users.level(call.user, SYSTEM) != "rw":
        raise ArangoError(11)


def list_users(call: Call) -> Response:
    """GET: all users."""
    _require_root(call)
    return answer(200, result=[_shown(document) for document in call.engine.users.all()])


def show(call: Call, name: str) -> Response:
    """GET: one user."""
    _require_root(call, name)
    return answer(200, **_shown(call.engine.users.one(name)))


def create(call: Call) -> Response:
    """POST: a new user."""
    _require_root(call)
    body = call.object()
    saved = call.engine.users.save(_own(call), body.get("user"), body, is_new=True)
    return answer(201, **_shown(saved))


def replace(call: Call, name: str) -> Response:
    """PUT: all of a user."""
    _require_root(call, name)
    saved = call.engine.users.save(_own(call), name, call.object(), is_replacing=True)
    return answer(200, **_shown(saved))


def update(call: Call, name: str) -> Response:
    """PATCH: parts of a user."""
    _require_root(call, name)
    return answer(200, **_shown(call.engine.users.save(_own(call), name, call.object())))


def remove(call: Call, name: str) -> Response:
    """DELETE: a user."""
    _require_root(call)
    call.engine.users.remove(_own(call), name)
    return answer(202)


def list_grants(call: Call, name: str, what: str) -> Response:
    """GET /{user}/database: levels on all databases, with `full` on all collections too."""
    if what != "database":
        raise ArangoError(404)
    _require_root(call, name)
    users = call.engine.users
    known = users.one(name)["databases"]
    result: dict[str, Any] = {}
    for database in [*sorted(call.store.catalog.databases), "*"]:
        level = users.level(name, database)
        if not call.flag("full"):
            if level != "none" or database in known:
                result[database] = level
            continue
        given = known.get(database, {"level": None, "collections": {}})
        if database == "*":
            result["*"] = {"permission": given["level"] or "none"}
            continue
        collections = {**given["collections"]}
        if database in call.store.catalog.databases:
            for collection in call.store.catalog.databases[database].collections:
                collections.setdefault(collection, "undefined")
        collections.setdefault("*", "undefined")
        result[database] = {"permission": given["level"] or "undefined", "collections": collections}
    return answer(200, result=result)


def show_grant(
    call: Call, name: str, what: str, database: str, collection: str | None = None
) -> Response:
    """GET: the level on a database or a collection."""
    _require_database(what)
    _require_root(call, name)
    call.engine.users.one(name)
    return answer(200, result=call.engine.users.level(name, database, collection))


def grant(
    call: Call, name: str, what: str, database: str, collection: str | None = None
) -> Response:
    """PUT: set a level."""
    _require_database(what)
    _require_root(call)
    level = call.object().get("grant")
    if level is None:
        raise ArangoError(10, "expecting grant to be one of rw, ro, none")
    _check_target(call, database, collection)
    call.engine.users.grant(_own(call), name, database, collection, level)
    key = database if collection is None else f"{database}/{collection}"
    return answer(200, **{key: level})


def revoke(
    call: Call, name: str, what: str, database: str, collection: str | None = None
) -> Response:
    """DELETE: take a level away."""
    _require_database(what)
    _require_root(call)
    _check_target(call, database, collection)
    call.engine.users.grant(_own(call), name, database, collection, None)
    return answer(202)


def _require_database(what: str) -> None:
    if what != "database":
        raise ArangoError(404)


def _check_target(call: Call, database: str, collection: str | None) -> None:
    if database == "*":
        return
    known = call.store.catalog.database(database)
    if collection is not None and collection != "*":
        known.collection(collection)


TABLE: Table = {
    ("GET", 0): list_users,
    ("POST", 0): create,
    ("GET", 1): show,
    ("PUT", 1): replace,
    ("PATCH", 1): update,
    ("DELETE", 1): remove,
    ("GET", 2): list_grants,
    ("GET", 3): show_grant,
    ("GET", 4): show_grant,
    ("PUT", 3): grant,
    ("PUT", 4): grant,
    ("DELETE", 3): revoke,
    ("DELETE", 4): revoke,
}
AUTH_TABLE: Table = {("POST", 0): log_in}
