"""What every answer of the store means for a write as a whole, and for a read."""

from __future__ import annotations

from typing import Any

import pytest
from arango.exceptions import ArangoServerError
from arango.request import Request
from arango.response import Response
from requests import ReadTimeout

from region_scheduler.drivers.arango.documents import sent_in_parts
from region_scheduler.drivers.arango.errors import AnswerLost, NotSent, reading, refusal
from region_scheduler.errors import BrokenInvariant, InvalidInput, OutcomeUnknown, Unavailable
from region_scheduler.ports.documents import WriteResult

REQUEST = Request("patch", "/_api/document/tasks")


def error(status: int, number: int | None) -> ArangoServerError:
    response = Response("patch", "http://x", {}, status, "text", "")
    response.error_code, response.error_message = number, "message"
    return ArangoServerError(response, REQUEST)


@pytest.mark.parametrize(
    ("status", "number", "meaning"),
    [
        (403, 1004, Unavailable),
        (503, 1004, Unavailable),
        (503, 1496, Unavailable),
        (401, 11, Unavailable),
        (403, 11, Unavailable),
        (404, 1203, Unavailable),
        (404, 1228, Unavailable),
        (412, 21004, Unavailable),
        (429, None, Unavailable),
        (400, 600, InvalidInput),
        (400, 1227, InvalidInput),
        (413, None, InvalidInput),
        (409, 1200, None),
        (410, 21, None),
        (410, 1500, None),
        (421, 1491, None),
        (421, None, None),
        (408, None, None),
        (500, 4, None),
        (500, 18, None),
        (500, 28, None),
        (500, 1457, None),
        (503, 30, None),
        (503, 1465, None),
        (503, 1478, None),
        (503, 1495, None),
        (502, None, None),
        (504, None, None),
    ],
)
def test_what_an_error_says_of_a_write(status: int, number: int | None, meaning: Any) -> None:
    found = refusal(error(status, number))

    assert (found and type(found)) is meaning


@pytest.mark.parametrize(
    ("failure", "meaning"),
    [
        (NotSent("x"), Unavailable),
        (AnswerLost("x"), None),
        (AnswerLost("x", is_stale=True), None),
        (ReadTimeout(), None),
        (ConnectionAbortedError("x"), None),
        (TimeoutError("x"), None),
    ],
    ids=lambda value: getattr(value, "__name__", None) or type(value).__name__,
)
def test_what_a_failure_says_of_a_write(failure: Exception, meaning: Any) -> None:
    found = refusal(failure)

    assert (found and type(found)) is meaning


@pytest.mark.parametrize(
    ("number", "result"),
    [
        (1200, WriteResult.CONFLICT),
        (1210, WriteResult.CONFLICT),
        (1202, WriteResult.MISSING),
        (1457, WriteResult.UNKNOWN),
        (28, WriteResult.UNKNOWN),
        (1478, WriteResult.UNKNOWN),
    ],
)
def test_what_an_error_says_of_one_document(number: int, result: WriteResult) -> None:
    answers = [{"_rev": "_1"}, error(202, number)]

    assert sent_in_parts([{}, {}], lambda part: answers) == [{"_rev": "_1"}, result]


@pytest.mark.parametrize("number", [1004, 1496])
def test_documents_that_were_not_written_make_a_batch_unavailable_if_all_were_not(
    number: int,
) -> None:
    with pytest.raises(Unavailable):
        sent_in_parts([{}, {}], lambda part: [error(202, number)] * 2)
    some = [{"_rev": "_1"}, error(202, number)]
    assert sent_in_parts([{}, {}], lambda part: some) == [{"_rev": "_1"}, WriteResult.UNKNOWN]


@pytest.mark.parametrize("number", [1221, 1227, 1233])
def test_a_malformed_document_is_our_bug(number: int) -> None:
    with pytest.raises(BrokenInvariant):
        sent_in_parts([{}], lambda part: [error(202, number)])


def test_a_read_over_a_stale_connection_is_asked_once_more() -> None:
    failures = [AnswerLost("closed", is_stale=True)]

    assert reading(lambda: _raising(failures)) == "answer"
    failures = [AnswerLost("closed", is_stale=True), AnswerLost("closed", is_stale=True)]
    with pytest.raises(Unavailable):
        reading(lambda: _raising(failures))


def test_any_other_lost_read_is_left_to_the_caller() -> None:
    failures = [AnswerLost("closed")]
    with pytest.raises(Unavailable):
        reading(lambda: _raising(failures))
    assert failures == []


@pytest.mark.parametrize("status", [400, 401, 404, 410, 421, 500, 503])
def test_a_read_that_is_refused_is_unavailable(status: int) -> None:
    with pytest.raises(Unavailable) as unavailable:
        reading(lambda: _raising([error(status, None)]))
    assert not isinstance(unavailable.value, OutcomeUnknown)


def _raising(failures: list[Any]) -> str:
    if failures:
        raise failures.pop()
    return "answer"
