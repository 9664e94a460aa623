"""Attempt messages as signed JSON: ids and a signature, never a secret."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from region_scheduler.domain.ids import ClaimId, TaskId
from region_scheduler.domain.task import SCHEMA, Token
from region_scheduler.errors import InvalidInput
from region_scheduler.ports.queue import AttemptMessage
from region_scheduler.runtime.signing import ATTEMPT, is_signed, signature_of

_ENCODER: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"))


@dataclass(eq=False, kw_only=True)
class UnknownSchema(InvalidInput):
    """A well-signed message of a version that this code does not know: hand it back."""

    code: ClassVar[str] = "unknown_schema"


def encode(message: AttemptMessage, key: bytes) -> bytes:
    """Return `message` as JSON with its signature."""
    text = _ENCODER.encode
    # What `_canonical` makes of these fields: a batch has no time to sort them for each message.
    signed = (
        f'{{"pool":{text(message.pool)},"region":{text(message.region)},"schema":{message.schema},'
        f'"task":{text(message.task)},"token":[{message.token.number},'
        f'{text(message.token.claim_id)}],"trace":{text(message.trace)}}}'
    ).encode()
    signature = signature_of(key, ATTEMPT, signed)
    return b'%b,"signature":"%b"}' % (signed[:-1], signature.encode())


def decode(raw: bytes, key: bytes) -> AttemptMessage:
    """Return the message, if whoever holds `key` wrote it.

    Raises:
        UnknownSchema: It is genuine, and of another version.
        InvalidInput: It is no message, or its signature is missing or wrong.
    """
    fields = _fields(raw)
    signature = fields.pop("signature", "")
    if not isinstance(signature, str) or not is_signed(key, ATTEMPT, _canonical(fields), signature):
        raise InvalidInput(
            field="message.signature",
            value=str(signature)[:16],
            expected="sign with the key of this cluster (signing_key)",
        )
    if fields.get("schema") != SCHEMA:
        raise UnknownSchema(
            field="message.schema", value=str(fields.get("schema")), expected=f"{SCHEMA} is known"
        )
    try:
        number, claim_id = fields["token"]
        return AttemptMessage(
            task=TaskId(fields["task"]),
            token=Token(number, ClaimId(claim_id)),
            region=fields["region"],
            pool=fields["pool"],
            trace=fields["trace"],
        )
    except (KeyError, TypeError, ValueError) as malformed:
        raise InvalidInput(
            field="message", value=repr(malformed), expected="every field of schema 1"
        ) from malformed


def _fields(raw: bytes) -> dict[str, Any]:
    try:
        fields = json.loads(raw)
    except (ValueError, RecursionError) as malformed:
        raise InvalidInput(field="message", value=repr(raw[:40]), expected="JSON") from malformed
    if not isinstance(fields, dict):
        raise InvalidInput(field="message", value=repr(raw[:40]), expected="a JSON object")
    return fields


def _canonical(fields: Mapping[str, Any]) -> bytes:
    """Return the one spelling that is signed: sorted keys, no spaces, ASCII."""
    return _ENCODER.encode(fields).encode()
