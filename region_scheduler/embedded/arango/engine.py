"""The engine: one request in, one response out, one at a time."""

from __future__ import annotations

import heapq
import logging
import random
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from region_scheduler.embedded.arango.errors import ArangoError
from region_scheduler.embedded.arango.http.call import Call
from region_scheduler.embedded.arango.http.cursors import CursorStore
from region_scheduler.embedded.arango.http.jobs import JobStore
from region_scheduler.embedded.arango.http.message import Request, Response, failure
from region_scheduler.embedded.arango.http.router import target_of
from region_scheduler.embedded.arango.http.routes import ROUTER
from region_scheduler.embedded.arango.http.running import RunningQueries
from region_scheduler.embedded.arango.http.streams import StreamStore
from region_scheduler.embedded.arango.network import Network
from region_scheduler.embedded.arango.regions import Regions
from region_scheduler.embedded.arango.storage.database import Database
from region_scheduler.embedded.arango.storage.expiry import Expiry
from region_scheduler.embedded.arango.storage.log import NoLog, SqliteLog
from region_scheduler.embedded.arango.storage.store import Store
from region_scheduler.embedded.arango.storage.transaction import PastReader
from region_scheduler.embedded.arango.surface import SurfaceRecorder
from region_scheduler.embedded.arango.users import Users

if TYPE_CHECKING:
    from region_scheduler.embedded.arango.control import RestorePoint

_TIDY_EVERY_S = 1.0
_log = logging.getLogger(__name__)
_EPOCH_OF_SIMULATIONS = 1_767_225_600.0  # 2026-01-01T00:00:00Z


class Engine:
    """A test and single-machine server for ArangoDB's HTTP API, without any socket.

    Args:
        data: Directory of the log; None keeps everything in memory only.
        is_cluster: Whether the restrictions of a cluster hold.
        regions: Names of the regions, each with a coordinator of its own; the first is the default.
        clock: Seconds that only rise; decides lags and time-outs. With a clock of one's own the
            wall time is derived from it, so that a simulation repeats exactly.
        seed: For everything that is left to chance.
        root_password: Of the user root, when the data are new.
        is_authenticating: Whether requests need a user and a password or a token.
        jwt_secret: Key of the tokens; made from the seed if empty.
        has_fault_control: Whether `/_admin/faults` exists.
        cache_bytes: How much JSON text may be kept decoded as well.

    Raises:
        LogDamaged: The data directory cannot be used.
    """

    def __init__(
        self,
        data: Path | None = None,
        *,
        is_cluster: bool,
        regions: Sequence[str] = ("local",),
        clock: Callable[[], float] | None = None,
        seed: int | None = None,
        root_password: str = "",
        is_authenticating: bool = True,
        jwt_secret: str = "",
        has_fault_control: bool = False,
        cache_bytes: int = 48 << 20,
    ) -> None:
        self.clock = clock or time.monotonic
        self.wall: Callable[[], float] = time.time if clock is None else self._derived_wall
        self.chance = random.Random(seed)  # noqa: S311  # chance that repeats, no secret
        self.has_fault_control = has_fault_control
        self.lock = threading.RLock()
        self._late: list[tuple[float, int, Request]] = []
        self._late_count = 0
        self._tidy_at = self.clock() + _TIDY_EVERY_S
        self.store = Store(
            NoLog() if data is None else SqliteLog(data),
            clock=self.clock,
            wall=self.wall,
            chance=self.chance,
            is_cluster=is_cluster,
            cache_bytes=cache_bytes,
        )
        self.regions = Regions(regions, self.store, self.clock)
        self.network = Network(self.regions, self.chance)
        self.cursors = CursorStore(self.clock)
        self.jobs = JobStore(self.clock)
        self.running = RunningQueries(self.clock)
        self.streams = StreamStore(self.store, self.clock)
        self.expiry = Expiry(self.store, self.clock, self.wall)
        self.users = Users(self.store, self.wall, self.chance, jwt_secret, is_authenticating)
        self.users.ensure_root(root_password)
        self.recorder = SurfaceRecorder.from_environment()
        self.restore_points: dict[int, RestorePoint] = {}
        self.query_properties: dict[str, Any] = {}
        self.cache_properties: dict[str, Any] = {}
        self.flush()

    def _derived_wall(self) -> float:
        return _EPOCH_OF_SIMULATIONS + self.clock()

    def handle(self, request: Request, *, is_disturbed: bool = False) -> Response:
        """Answer one request; what it wrote is in the log when this returns. Thread-safe.

        Args:
            request: The request.
            is_disturbed: Whether its writes meet conflicts that have no winner.

        Raises:
            LogFailed: The log cannot be written; the engine must not be used any more.
        """
        with self.lock:
            response = self.execute(request, is_disturbed=is_disturbed)
            self.store.flush()
            return response

    def execute(self, request: Request, *, is_disturbed: bool = False) -> Response:
        """Answer one request; the answer may be released only after the next `flush`.

        For a server that gathers many requests into one flush; it holds `lock`.

        Args:
            request: The request.
            is_disturbed: Whether its writes meet conflicts that have no winner.
        """
        self.tick()
        if self.recorder is not None:
            self.recorder.note(request)
        if is_disturbed:
            with self.store.locks.disturbed(self.chance):
                return self._answer(request)
        return self._answer(request)

    def tick(self) -> None:
        """Do what is due: requests that arrive late, and whatever has outlived its time."""
        now = self.clock()
        while self._late and self._late[0][0] <= now:
            self._answer(heapq.heappop(self._late)[2])
        if now >= self._tidy_at:
            self._tidy_at = now + _TIDY_EVERY_S
            self.streams.expire()
            self.cursors.expire()
            self.regions.tidy()
            if self.expiry.is_due:
                self.expiry.run()

    def postpone(self, request: Request, after_s: float) -> None:
        """Execute a request only `after_s` seconds from now, with nobody waiting for its answer."""
        self._late_count += 1
        heapq.heappush(self._late, (self.clock() + after_s, self._late_count, request))

    def _answer(self, request: Request) -> Response:
        try:
            call, handler, segments = self._prepare(request)
        except ArangoError as error:
            return failure(error)
        if "x-arango-async" in request.headers:
            return self.jobs.run(call, lambda: self._run(call, handler, segments))
        return self._run(call, handler, segments)

    def _prepare(self, request: Request) -> tuple[Call, Callable[..., Response], list[str]]:
        target = target_of(request.path)
        user = self.users.authenticated(request, target)
        handler = ROUTER.handler(request.method, target)
        database = self.store.catalog.database(target.database)
        return Call(self, request, database, user), handler, target.segments

    def _run(self, call: Call, handler: Callable[..., Response], segments: list[str]) -> Response:
        try:
            response = handler(call, *segments)
        except ArangoError as error:
            if call.direct is not None:
                call.direct.fail()
            response = failure(error)
        except Exception as error:  # noqa: BLE001  # the edge of the server: a bug fails one request
            _log.exception("a request failed: %s %s", call.request.method, call.request.path)
            if call.direct is not None:
                call.direct.fail()
            response = failure(ArangoError(4, f"internal error: {error!r}"))
        if call.direct is not None:
            self.store.finish(call.direct.commit())
        return response

    def flush(self) -> None:
        """Write to the log what was answered so far.

        Raises:
            LogFailed: The log cannot be written; the engine must not be used any more.
        """
        self.store.flush()

    def past_reader(self, request: Request, database: Database) -> PastReader | None:
        """Return a reader of the past state that this region shows to `request`, if it does."""
        horizon = self.regions.horizon_for(request)
        if horizon is None:
            return None
        return PastReader(database, self.store.ticks, self.store.is_cluster, horizon)

    def forget_database(self, name: str) -> None:
        """Drop what is still open on a database that is gone."""
        self.cursors.forget_database(name)
        self.streams.forget_database(name)

    def close(self) -> None:
        """Flush and close the log."""
        with self.lock:
            self.store.close()
