"""What a worker accepts: whole, signed, of a known version."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from region_scheduler.domain.ids import ClaimId, TaskId
from region_scheduler.domain.task import SCHEMA, Token
from region_scheduler.drivers.celery.message import UnknownSchema, decode, encode
from region_scheduler.errors import InvalidInput
from region_scheduler.ports.queue import AttemptMessage
from region_scheduler.runtime.signing import WAKE, signature_of

KEY = b"a key of this test only"
MESSAGE = AttemptMessage(
    task=TaskId("tasks/ä\ud800"),
    token=Token(7, ClaimId("claim")),
    region="eu-west",
    pool="default",
    trace="",
)


def changed(**fields: Any) -> bytes:
    return json.dumps(json.loads(encode(MESSAGE, KEY)) | fields).encode()


def test_a_message_survives_the_wire() -> None:
    assert decode(encode(MESSAGE, KEY), KEY) == MESSAGE


def test_the_spelling_of_the_json_does_not_matter() -> None:
    spelled = json.dumps(dict(reversed(json.loads(encode(MESSAGE, KEY)).items())), indent=2)

    assert decode(spelled.encode(), KEY) == MESSAGE


@pytest.mark.parametrize(
    "forged",
    [
        changed(task="tasks/other"),
        changed(token=[8, "claim"]),
        changed(region="us-east"),
        changed(extra=1),
        changed(signature=""),
        changed(signature=None),
        changed(signature=7),
        changed(signature="0" * 64),
        changed(signature=signature_of(KEY, WAKE, b"x")),
        encode(MESSAGE, b"another key"),
        encode(replace(MESSAGE, schema=SCHEMA + 1), b"another key"),
        b"",
        b"null",
        b"[]",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"schema": 1}',
    ],
    ids=lambda raw: repr(raw[:60]),
)
def test_what_nobody_with_the_key_wrote_is_refused(forged: bytes) -> None:
    with pytest.raises(InvalidInput) as refused:
        decode(forged, KEY)

    assert not isinstance(refused.value, UnknownSchema)


def test_a_genuine_message_of_another_version_is_told_apart() -> None:
    with pytest.raises(UnknownSchema, match="schema"):
        decode(encode(replace(MESSAGE, schema=SCHEMA + 1), KEY), KEY)


def test_a_message_holds_no_secret() -> None:
    assert KEY not in encode(MESSAGE, KEY)
