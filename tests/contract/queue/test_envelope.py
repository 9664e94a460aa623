"""What is put into a Redis list is what kombu itself would have put there."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import orjson
import redis

from region_scheduler.drivers.celery.app import build_app
from region_scheduler.drivers.celery.envelope import Envelopes
from region_scheduler.drivers.celery.link import Producer
from tests.services import valkey

QUEUE = "rs.eu-west.envelopes"
RAW = b'{"task":"tasks/\\u00e4","n":1}'


def test_an_envelope_is_what_kombu_makes_of_the_same_message(tmp_path: Path) -> None:
    with valkey(tmp_path) as server, closing(redis.Redis.from_url(server.url)) as client:
        app = build_app(server.url, visibility_timeout_s=60)
        made = Envelopes(app)
        with app.connection_for_write() as connection:
            Producer(connection.channel(), serializer="json", auto_declare=False).publish(
                made.body(RAW),
                exchange="",
                routing_key=QUEUE,
                content_type="application/json",
                content_encoding="utf-8",
                headers=made.headers("an-id"),
                **made.properties("an-id"),
            )
        (theirs,) = client.lrange(QUEUE, 0, -1)

    expected = orjson.loads(theirs)
    expected["properties"]["delivery_tag"] = "an-id"  # kombu draws one, which is unique as well
    assert orjson.loads(made.listed("an-id", RAW, QUEUE)) == expected
