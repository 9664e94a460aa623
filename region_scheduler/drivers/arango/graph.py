"""The way in: all kinds of documents of one graph store, as reached from one region."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Final

from arango.client import ArangoClient
from arango.database import StandardDatabase
from arango.exceptions import ArangoError, ArangoServerError
from arango.http import HTTPClient

from region_scheduler.drivers.arango.codec import from_json, to_json
from region_scheduler.drivers.arango.errors import DEPENDENCY, LOST, NotSent
from region_scheduler.drivers.arango.follower import ArangoFollower
from region_scheduler.drivers.arango.history import ArangoHistory
from region_scheduler.drivers.arango.http_client import (
    Coordinators,
    KeepAliveHTTPClient,
    TellingHTTPClient,
)
from region_scheduler.drivers.arango.leftovers import ArangoLeftovers
from region_scheduler.drivers.arango.query import Queries
from region_scheduler.drivers.arango.records import (
    ArangoAdmissions,
    ArangoAnswers,
    ArangoAudit,
    ArangoCalendars,
    ArangoConflicts,
    ArangoDurations,
    ArangoGrants,
    ArangoInstances,
    ArangoPauses,
    ArangoRegions,
    ArangoRuns,
    ArangoSchedules,
    ArangoSlots,
    ArangoTenants,
    ArangoZones,
)
from region_scheduler.drivers.arango.schema import Replication, prepare
from region_scheduler.drivers.arango.tasks import ArangoTasks
from region_scheduler.errors import Misconfigured, Unavailable
from region_scheduler.ports.consistency import Reads
from region_scheduler.ports.history import Kind

_DATABASE: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where the graph is and how it is reached.

    Attributes:
        urls: Coordinators, nearest first; another is taken when one fails.
        database: Made, with its collections and indexes, if it is not there.
        connect_timeout_s: Longest wait for a connection, seconds.
        read_timeout_s: Longest silence of the server within an answer, seconds; it gives up a query
            after as long.
    """

    urls: tuple[str, ...] = ("http://127.0.0.1:8529",)
    database: str = "region_scheduler"
    user: str = "root"
    password: str = field(default="", repr=False)
    connect_timeout_s: float = 1.0
    read_timeout_s: float = 10.0
    verify: bool | str = True
    replication: Replication = field(default_factory=Replication)

    def __post_init__(self) -> None:
        """Refuse what could not be reached.

        Raises:
            Misconfigured: Every problem.
        """
        problems = [
            f"graph url {url!r} must begin with http:// or https://"
            for url in self.urls
            if not url.startswith(("http://", "https://"))
        ]
        if not self.urls:
            problems.append("the graph store needs a url")
        if not _DATABASE.fullmatch(self.database):
            problems.append(
                f"database {self.database!r} must be a letter and up to 63 letters, digits, _ or -"
            )
        if problems:
            raise Misconfigured(problems=problems)


class ArangoGraph:
    """The `GraphStores` of one database; safe to use from several threads and after a fork."""

    def __init__(
        self, client: ArangoClient, db: StandardDatabase, runtime_s: float, http: HTTPClient
    ) -> None:
        queries = self._queries = Queries(db.aql, runtime_s)
        self._client = client
        self._http = http
        self.db = db
        self.tasks = ArangoTasks(db, queries)
        self.runs = ArangoRuns(db, queries)
        self.zones = ArangoZones(db, queries)
        self.regions = ArangoRegions(db, queries)
        self.instances = ArangoInstances(db, queries)
        self.slots = ArangoSlots(db, queries)
        self.admissions = ArangoAdmissions(db, queries)
        self.conflicts = ArangoConflicts(db, queries)
        self.answers = ArangoAnswers(db, queries)
        self.tenants = ArangoTenants(db, queries)
        self.grants = ArangoGrants(db, queries)
        self.pauses = ArangoPauses(db, queries)
        self.calendars = ArangoCalendars(db, queries)
        self.schedules = ArangoSchedules(db, queries)
        self.durations = ArangoDurations(db, queries)
        self.leftovers = ArangoLeftovers(db, queries)
        self.audit = ArangoAudit(db, queries)
        kinds = {kind: getattr(self, kind) for kind in Kind}
        self.history = ArangoHistory(queries, self.tasks, kinds)
        self.follower = ArangoFollower(queries)

    def read_all(self, reads: Reads) -> None:
        """Let every read of this connection go where `reads` says."""
        self._queries.reads = reads

    @property
    def round_trips(self) -> int:
        """How many requests were sent over HTTP so far; none to an engine in this process."""
        return self._http.sent if isinstance(self._http, KeepAliveHTTPClient) else 0

    def close(self) -> None:
        """Close the connections."""
        self._client.close()


def open_graph(place: Place, http_client: HTTPClient | None = None) -> ArangoGraph:
    """Return the stores of the graph at `place`, its database being made ready for them.

    Args:
        place: Where it is.
        http_client: Reaches an engine in this process; None speaks HTTP with `place.urls`.

    Raises:
        Unavailable: Not reachable now; to be tried again.
        Misconfigured: Reachable, but it refuses: credentials, or rights to make the database.
    """
    resolver = Coordinators(len(place.urls))
    http = (
        KeepAliveHTTPClient(place.connect_timeout_s, place.read_timeout_s, resolver.failed)
        if http_client is None
        else TellingHTTPClient(http_client)
    )
    serializer: Any = to_json  # its bytes pass through the driver untouched
    client = ArangoClient(
        hosts=list(place.urls),
        host_resolver=resolver,
        resolver_max_tries=len(place.urls),
        http_client=http,
        serializer=serializer,
        deserializer=from_json,
        verify_override=place.verify,
    )
    try:
        db = _prepared(client, place)
    except (ArangoError, NotSent, *LOST) as error:
        client.close()
        if isinstance(error, ArangoServerError) and error.http_code in {401, 403}:
            raise Misconfigured(problems=[f"graph store: {error}"]) from error
        raise Unavailable(dependency=DEPENDENCY, detail=str(error)) from error
    return ArangoGraph(client, db, place.read_timeout_s, http)


def _prepared(client: ArangoClient, place: Place) -> StandardDatabase:
    """Return the database, through the first coordinator that can be reached."""
    for _ in place.urls[1:]:
        try:
            return prepare(client, place.database, place.user, place.password, place.replication)
        except NotSent:
            continue
    return prepare(client, place.database, place.user, place.password, place.replication)
