"""Users, their passwords, tokens and grants, kept as documents of `_system/_users`."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Callable
from random import Random
from typing import Any

import orjson

from region_scheduler.embedded.arango.errors import ArangoError
from region_scheduler.embedded.arango.http.call import ROOT, Call
from region_scheduler.embedded.arango.http.message import Request
from region_scheduler.embedded.arango.http.router import Target
from region_scheduler.embedded.arango.session import Document, WriteOptions
from region_scheduler.embedded.arango.storage.access import CollectionAccess
from region_scheduler.embedded.arango.storage.database import SYSTEM
from region_scheduler.embedded.arango.storage.store import Store
from region_scheduler.embedded.arango.storage.transaction import DirectTransaction

LEVELS = ("none", "ro", "rw")
_TOKEN_S = 3600
_KNOWN_MAX = 1000
_OPEN_AREAS = frozenset({"_open/auth"})
_READING_POSTS = frozenset({"_api/cursor", "_api/explain", "_api/query", "_api/transaction"})


class Users:
    """Who may do what.

    Args:
        store: Holds the users' documents.
        wall: Seconds since the epoch, for tokens.
        chance: For salts, and for the tokens' key if none is given.
        jwt_secret: Key of the tokens.
        is_authenticating: Whether requests must say who they are.
    """

    def __init__(
        self,
        store: Store,
        wall: Callable[[], float],
        chance: Random,
        jwt_secret: str,
        is_authenticating: bool,
    ) -> None:
        self._store = store
        self._wall = wall
        self._chance = chance
        self._secret = (jwt_secret or f"{chance.getrandbits(256):064x}").encode()
        self._is_authenticating = is_authenticating
        self._known: dict[str, str] = {}

    # Authentication.

    def authenticated(self, request: Request, target: Target) -> str:
        """Return the user that sends a request, once it may use the database and the method.

        Raises:
            ArangoError: 401/11 for nobody or a wrong password; 11 where access is missing.
        """
        if not self._is_authenticating:
            return ROOT
        given = request.headers.get("authorization", "")
        user = self._known.get(given)
        if user is None:
            if target.area in _OPEN_AREAS:
                return ""
            user = self._identify(given)
        if user != ROOT:
            self._require(user, request.method, target)
        return user

    def _identify(self, given: str) -> str:
        scheme, _, rest = given.partition(" ")
        user: str | None = None
        if scheme.lower() == "basic":
            user = self._basic(rest)
            if user is not None:
                if len(self._known) >= _KNOWN_MAX:
                    self._known.clear()
                self._known[given] = user
        elif scheme.lower() == "bearer":
            user = self._bearer(rest)
        if user is None:
            raise ArangoError(11, "not authorized to execute this request", status=401)
        return user

    def _basic(self, encoded: str) -> str | None:
        try:
            name, _, password = base64.b64decode(encoded).decode().partition(":")
        except (binascii.Error, UnicodeDecodeError):
            return None
        return name if self.is_password(name, password) else None

    def is_password(self, name: str, password: str) -> bool:
        """Return whether `name` is an active user with this password."""
        document = self._documents().get(name)
        if document is None or not document["active"]:
            return False
        stored = document["authData"]["simple"]
        return hmac.compare_digest(_hash(stored["salt"], password), stored["hash"])

    def _require(self, user: str, method: str, target: Target) -> None:
        level = self.level(user, target.database)
        own = target.area == "_api/user" and target.segments[:1] == [user]
        if target.area == "_api/database" and target.segments in (["user"], ["current"]):
            own = True
        if level == "none" and not own:
            raise ArangoError(11, "not authorized to execute this request", status=401)
        is_reading = method in ("GET", "HEAD") or target.area in _READING_POSTS
        if level == "ro" and not is_reading and not own:
            raise ArangoError(11)

    # Tokens.

    def token(self, name: str) -> str:
        """Return a token of `name` that is good for an hour."""
        now = int(self._wall())
        claims = {
            "preferred_username": name,
            "iss": "arangodb",
            "iat": now,
            "exp": now + _TOKEN_S,
        }
        signed = f"{_segment({'alg': 'HS256', 'typ': 'JWT'})}.{_segment(claims)}"
        return f"{signed}.{_text(self._signature(signed))}"

    def _bearer(self, token: str) -> str | None:
        signed, _, signature = token.strip().rpartition(".")
        try:
            if not hmac.compare_digest(self._signature(signed), _bytes(signature)):
                return None
            claims = orjson.loads(_bytes(signed.partition(".")[2]))
        except (ValueError, binascii.Error):
            return None
        if not isinstance(claims, dict) or claims.get("iss") != "arangodb":
            return None
        expires = claims.get("exp")
        if expires is not None and (type(expires) not in (int, float) or expires < self._wall()):
            return None
        name = claims.get("preferred_username")
        if name is None:
            return ROOT if "server_id" in claims else None
        return name if self._documents().get(name) is not None else None

    def _signature(self, signed: str) -> bytes:
        return hmac.digest(self._secret, signed.encode(), "sha256")

    # Users. Each write takes the request's own transaction, so it is undone with it.

    def ensure_root(self, password: str) -> None:
        """Make the user root if the data have none."""
        if self._documents().get(ROOT) is None:
            transaction = self._store.begin(self._store.catalog.database(SYSTEM))
            self.save(transaction, ROOT, {"passwd": password}, is_new=True)
            self.grant(transaction, ROOT, "*", None, "rw")
            self._store.finish(transaction.commit())

    def all(self) -> list[Document]:
        """Return the documents of all users."""
        return list(self._documents().scan())

    def one(self, name: str) -> Document:
        """Return a user's document.

        Raises:
            ArangoError: 1703.
        """
        document = self._documents().get(name)
        if document is None:
            raise ArangoError(1703)
        return document

    def save(
        self,
        transaction: DirectTransaction,
        name: Any,
        body: dict[str, Any],
        *,
        is_new: bool = False,
        is_replacing: bool = False,
    ) -> Document:
        """Create, replace or update a user from `user`, `passwd`, `active` and `extra`.

        Raises:
            ArangoError: 1702 for a duplicate, 1703 for a missing one, 10 for bad values.
        """
        if not isinstance(name, str) or not name:
            raise ArangoError(10, "user name must be a non-empty string")
        users = transaction.collection("_users")
        known = users.get(name)
        if is_new and known is not None:
            raise ArangoError(1702)
        if not is_new and known is None:
            raise ArangoError(1703)
        defaults: dict[str, Any] = {"active": True, "extra": {}}
        if known is not None and not is_replacing:
            defaults = {"active": known["active"], "extra": known["extra"]}
        document: dict[str, Any] = {
            "_key": name,
            "user": name,
            "active": defaults["active"] if body.get("active") is None else bool(body["active"]),
            "extra": {**defaults["extra"], **(body.get("extra") or {})},
            "databases": known["databases"] if known is not None else {},
        }
        if known is None or is_replacing or "passwd" in body or "password" in body:
            password = str(body.get("passwd", body.get("password")) or "")
            salt = f"{self._chance.getrandbits(32):08x}"
            simple = {"method": "sha256", "salt": salt, "hash": _hash(salt, password)}
            document["authData"] = {"simple": simple}
        elif known is not None:
            document["authData"] = known["authData"]
        self._known.clear()
        users.insert(document, WriteOptions(overwrite_mode="replace"))
        return document

    def remove(self, transaction: DirectTransaction, name: str) -> None:
        """Remove a user.

        Raises:
            ArangoError: 1703.
        """
        self.one(name)
        transaction.collection("_users").remove({"_key": name}, WriteOptions())
        self._known.clear()

    def _documents(self) -> CollectionAccess:
        return self._store.begin(self._store.catalog.database(SYSTEM)).collection("_users")

    # Grants.

    def grant(
        self,
        transaction: DirectTransaction,
        name: str,
        database: str,
        collection: str | None,
        level: str | None,
    ) -> None:
        """Set a user's level on a database or a collection; None takes the grant away.

        Raises:
            ArangoError: 1703, or 10 for an unknown level.
        """
        if level is not None and level not in LEVELS:
            raise ArangoError(10, "expecting grant to be one of rw, ro, none")
        document = self.one(name)
        databases = {key: dict(value) for key, value in document["databases"].items()}
        entry = databases.setdefault(database, {"level": None, "collections": {}})
        if collection is None:
            entry["level"] = level
        else:
            collections = dict(entry["collections"])
            if level is None:
                collections.pop(collection, None)
            else:
                collections[collection] = level
            entry["collections"] = collections
        if entry["level"] is None and not entry["collections"]:
            del databases[database]
        options = WriteOptions(merge_objects=False)
        transaction.collection("_users").update({"_key": name, "databases": databases}, options)

    def grant_created(self, call: Call, database: str, users: list[dict[str, Any]]) -> None:
        """Give the creator, and the users named at the creation, access to a new database."""
        transaction = self._store.begin(self._store.catalog.database(SYSTEM))
        call.direct = transaction
        for user in users:
            name = user.get("username", user.get("user"))
            if transaction.collection("_users").get(str(name)) is None:
                self.save(transaction, name, user, is_new=True)
            self.grant(transaction, str(name), database, None, "rw")
        if call.user not in ("", ROOT):
            self.grant(transaction, call.user, database, None, "rw")

    def level(self, name: str, database: str, collection: str | None = None) -> str:
        """Return what `name` may do: none, ro or rw."""
        document = self._documents().get(name)
        if document is None:
            return "none"
        exact = document["databases"].get(database, {"level": None, "collections": {}})
        general = document["databases"].get("*", {"level": None, "collections": {}})
        base = exact["level"] or general["level"] or "none"
        if collection is None:
            return str(base)
        if collection == "_users" and name != ROOT:
            return "none"
        given = exact["collections"].get(collection) or exact["collections"].get("*")
        return str(given or general["collections"].get("*") or base)

    def require(self, name: str, database: str, collection: str, *, writes: bool) -> None:
        """Refuse what a user may not do with a collection.

        Raises:
            ArangoError: 11.
        """
        if name in (ROOT, "") or not self._is_authenticating:
            return
        level = self.level(name, database, collection)
        if level == "none" or (writes and level != "rw"):
            raise ArangoError(11, f"insufficient access rights to collection '{collection}'")

    def may_read(self, name: str, database: str) -> bool:
        """Return whether `name` has any access to a database."""
        return not self._is_authenticating or self.level(name, database) != "none"


def _hash(salt: str, password: str) -> str:
    return hashlib.sha256((salt + password).encode()).hexdigest()


def _segment(value: dict[str, Any]) -> str:
    return _text(orjson.dumps(value))


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _bytes(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
