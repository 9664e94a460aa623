"""Celery's message around one of ours, as it stands in a Redis list.

Kombu would make each on its own, which takes longer than all the rest of a promotion. They differ
in ids and text only; what they have in common is Celery's own. That kombu itself would write the
same is held by `tests/contract/queue/test_envelope.py`.
"""

from __future__ import annotations

from base64 import b64encode
from functools import cached_property
from typing import Any

import orjson

from region_scheduler.drivers.celery.app import RUN_ATTEMPT


class Envelopes:
    """Makes the messages of one app; they call its one task.

    Args:
        app: From `build_app`.
    """

    def __init__(self, app: Any) -> None:
        self._app = app

    @cached_property
    def _form(self) -> tuple[Any, Any, Any]:
        """Body, headers and properties as Celery has them; all messages differ in ids and text."""
        sent = self._app.amqp.create_task_message(
            "", RUN_ATTEMPT, ("",), {}, ignore_result=True, argsrepr="", kwargsrepr=""
        )
        return sent.body, sent.headers, sent.properties

    def body(self, raw: bytes) -> bytes:
        """Return the arguments of the call: `raw`, which is JSON in ASCII, as one text."""
        _, *rest = self._form[0]
        return orjson.dumps([[raw.decode()], *rest])

    def headers(self, id_: str) -> dict[str, Any]:
        """Return what tells a worker which task is called."""
        return {**self._form[1], "id": id_, "root_id": id_}

    def properties(self, id_: str) -> dict[str, Any]:
        """Return what belongs to the delivery."""
        return {**self._form[2], "correlation_id": id_}

    def listed(self, id_: str, raw: bytes, queue: str) -> bytes:
        """Return the whole message as an element of the list `queue`."""
        delivery = {
            "delivery_mode": 2,
            "delivery_info": {"exchange": "", "routing_key": queue},
            "priority": 0,
            "body_encoding": "base64",
            "delivery_tag": id_,
        }
        envelope = {
            "body": b64encode(self.body(raw)).decode(),
            "content-encoding": "utf-8",
            "content-type": "application/json",
            "headers": self.headers(id_),
            "properties": self.properties(id_) | delivery,
        }
        return orjson.dumps(envelope)
