"""Requests whose answer is fetched later: the header x-arango-async, and /_api/job.

A job is executed before its 202 is sent; from outside it looks like one that ran very fast.
"""

from __future__ import annotations

from collections.abc import Callable

from region_scheduler.embedded.arango.errors import ArangoError
from region_scheduler.embedded.arango.http.call import Call
from region_scheduler.embedded.arango.http.message import Response, answer
from region_scheduler.embedded.arango.http.router import Table
from region_scheduler.embedded.arango.storage.record import encode

_ASYNC_ID = "x-arango-async-id"


class JobStore:
    """Answers that nobody has fetched yet, by job id."""

    def __init__(self) -> None:
        self.answers: dict[str, tuple[float, Response]] = {}

    def run(self, call: Call, act: Callable[[], Response]) -> Response:
        """Run a request as a job and return its 202."""
        response = act()
        if call.header("x-arango-async") != "store":
            return Response(202)
        id = str(call.store.ticks.next_tick())
        self.answers[id] = (call.engine.wall(), response)
        return Response(202, b"", {_ASYNC_ID: id})

    def answer_of(self, id: str) -> Response:
        """Return a job's answer.

        Raises:
            ArangoError: 404.
        """
        if id not in self.answers:
            raise ArangoError(404)
        return self.answers[id][1]


def show_or_list(call: Call, which: str) -> Response:
    """GET: the jobs that are done or pending, or whether one is done."""
    jobs = call.engine.jobs
    if which in ("done", "pending"):
        limit = int(call.text("count") or 100)
        ids = list(jobs.answers)[:limit] if which == "done" else []
        return Response(200, encode(ids))
    jobs.answer_of(which)
    return Response(200)


def fetch(call: Call, id: str) -> Response:
    """PUT: a job's answer, once."""
    response = call.engine.jobs.answer_of(id)
    del call.engine.jobs.answers[id]
    return Response(response.status, response.body, {**response.headers, _ASYNC_ID: id})


def cancel(call: Call, id: str, act: str) -> Response:
    """PUT cancel: too late for a job that is done, and every one is."""
    if act != "cancel":
        raise ArangoError(404)
    call.engine.jobs.answer_of(id)
    return answer(200, result=True)


def drop(call: Call, which: str) -> Response:
    """DELETE: all answers, those older than a stamp, or one."""
    answers = call.engine.jobs.answers
    if which == "all":
        answers.clear()
    elif which == "expired":
        stamp = float(call.text("stamp") or 0)
        for id in [id for id, (at, _) in answers.items() if at < stamp]:
            del answers[id]
    elif which in answers:
        del answers[which]
    else:
        raise ArangoError(404)
    return answer(200, result=True)


TABLE: Table = {
    ("GET", 1): show_or_list,
    ("PUT", 1): fetch,
    ("PUT", 2): cancel,
    ("DELETE", 1): drop,
}
