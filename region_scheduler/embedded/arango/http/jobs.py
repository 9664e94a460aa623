"""Requests whose answer is fetched later: the header x-arango-async, and /_api/job.

A job is executed before its 202 is sent; from outside it looks like one that ran very fast, unless
it is a query that sleeps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from region_scheduler.embedded.arango.errors import ArangoError
from region_scheduler.embedded.arango.http.call import Call
from region_scheduler.embedded.arango.http.message import Response, failure
from region_scheduler.embedded.arango.http.router import Table
from region_scheduler.embedded.arango.storage.record import encode

_ASYNC_ID = "x-arango-async-id"
_DONE = Response(200, b'{"result":true}')


@dataclass(slots=True)
class Job:
    """A request that was executed for somebody who asks later.

    Attributes:
        stored_at: Seconds since the epoch.
        done_at: When its answer may be fetched, by the engine's clock.
    """

    stored_at: float
    done_at: float
    response: Response


class JobStore:
    """Jobs whose answer nobody has fetched yet, by id.

    Args:
        clock: Decides when a job that sleeps is done.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self.jobs: dict[str, Job] = {}

    def run(self, call: Call, act: Callable[[], Response]) -> Response:
        """Run a request as a job and return its 202."""
        response = act()
        if call.header("x-arango-async") != "store":
            return Response(202)
        id = str(call.store.ticks.next_tick())
        done_at = self._clock() + response.wait_s
        self.jobs[id] = Job(call.engine.wall(), done_at, response)
        return Response(202, b"", {_ASYNC_ID: id})

    def find(self, id: str) -> Job:
        """Return a job.

        Raises:
            ArangoError: 404.
        """
        if id not in self.jobs:
            raise ArangoError(404)
        return self.jobs[id]

    def is_done(self, job: Job) -> bool:
        """Return whether a job's answer may be fetched; one that was killed is done."""
        return not job.response.wait_s or job.done_at <= self._clock()


def show_or_list(call: Call, which: str) -> Response:
    """GET: the jobs that are done or pending, or whether one is done."""
    store = call.engine.jobs
    if which in ("done", "pending"):
        limit = int(call.text("count") or 100)
        ids = [id for id, job in store.jobs.items() if store.is_done(job) is (which == "done")]
        return Response(200, encode(ids[:limit]))
    if not which.isdigit():
        raise ArangoError(400)
    return Response(200 if store.is_done(store.find(which)) else 204)


def fetch(call: Call, id: str) -> Response:
    """PUT: a job's answer, once."""
    store = call.engine.jobs
    job = store.find(id)
    if not store.is_done(job):
        return Response(204)
    del store.jobs[id]
    response = job.response
    return Response(response.status, response.body, {**response.headers, _ASYNC_ID: id})


def cancel(call: Call, id: str, act: str) -> Response:
    """PUT cancel: a job that sleeps ends; for one that is done it is too late."""
    if act != "cancel":
        raise ArangoError(404)
    store = call.engine.jobs
    job = store.find(id)
    if not store.is_done(job):
        job.response = failure(ArangoError(21))
    return _DONE


def refuse_nameless(_call: Call) -> Response:
    """PUT without an id.

    Raises:
        ArangoError: 400.
    """
    raise ArangoError(400)


def drop(call: Call, which: str) -> Response:
    """DELETE: all answers, those older than a stamp, or one."""
    jobs = call.engine.jobs.jobs
    if which == "all":
        jobs.clear()
    elif which == "expired":
        stamp = float(call.text("stamp") or 0)
        for id in [id for id, job in jobs.items() if job.stored_at < stamp]:
            del jobs[id]
    elif which in jobs:
        del jobs[which]
    else:
        raise ArangoError(404)
    return _DONE


TABLE: Table = {
    ("GET", 1): show_or_list,
    ("PUT", 0): refuse_nameless,
    ("PUT", 1): fetch,
    ("PUT", 2): cancel,
    ("DELETE", 1): drop,
}
