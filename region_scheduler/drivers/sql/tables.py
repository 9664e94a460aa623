"""The tables of one region. What the migrations make is held equal to this by a test."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from sqlalchemy import BigInteger, Column, Dialect, Float, Index, Integer, MetaData, Table, Text
from sqlalchemy.types import TypeDecorator

# Neither store takes all of what Python calls text: NUL and lone halves of surrogate pairs.
_UNSTORABLE: Final = re.compile("[\\\\\0\ud800-\udfff]")
_ESCAPED: Final = re.compile(r"\\([0-9a-f]{4})")


def escaped(text: str) -> str:
    """Return any text as both stores take it."""
    return _UNSTORABLE.sub(lambda found: f"\\{ord(found.group()):04x}", text)


def unescaped(text: str) -> str:
    """Return what was escaped."""
    if "\\" not in text:
        return text
    return _ESCAPED.sub(lambda found: chr(int(found.group(1), 16)), text)


class AnyText(TypeDecorator[str]):
    """Any Python text, one to one; what a store refuses is written as a backslash and its code."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:  # noqa: ARG002
        """Escape on the way in; equality works on both sides."""
        return value and escaped(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> str | None:  # noqa: ARG002
        """Undo it on the way out."""
        return value and unescaped(value)


class Words(TypeDecorator[tuple[str, ...]]):
    """A tuple of texts, as a JSON array in ASCII."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> str:  # noqa: ARG002
        """Write it."""
        return json.dumps(list(value))

    def process_result_value(self, value: Any, dialect: Dialect) -> tuple[str, ...]:  # noqa: ARG002
        """Read it."""
        return tuple(json.loads(value))


class Units(TypeDecorator[dict[str, int]]):
    """Units by resource, as a JSON object in ASCII."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> str:  # noqa: ARG002
        """Write it."""
        return json.dumps(dict(value)) if value else "{}"

    def process_result_value(self, value: Any, dialect: Dialect) -> dict[str, int]:  # noqa: ARG002
        """Read it."""
        return dict(json.loads(value))


METADATA: Final = MetaData()
# Ties go to the lower id, byte by byte, whatever language the server speaks.
_ID: Final = Text().with_variant(Text(collation="C"), "postgresql")
_TENANT: Final = AnyText().with_variant(AnyText(collation="C"), "postgresql")

task_metadata: Final = Table(
    "task_metadata",
    METADATA,
    Column("task", _ID, primary_key=True),
    Column("run", Text, nullable=False),
    Column("tenant", AnyText, nullable=False),
    Column("name", AnyText, nullable=False),
    Column("region", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("runner", Text, nullable=False),
    Column("pool", Text, nullable=False),
    Column("seq", BigInteger, nullable=False),
    Column("priority", BigInteger, nullable=False),
    Column("delay_tolerance_s", Float, nullable=False),
    Column("expected_s", Float, nullable=False),
    Column("remaining_s", Float, nullable=False),
    Column("cap_s", Float, nullable=False),
    Column("retry_limit", Integer, nullable=False),
    Column("retries_used", Integer, nullable=False),
    Column("losses_limit", Integer, nullable=False),
    Column("losses", Integer, nullable=False),
    Column("requirements", Units, nullable=False),
)
Index("task_metadata_by_run", task_metadata.c.run, task_metadata.c.state)

backlog: Final = Table(
    "backlog",
    METADATA,
    Column("task", _ID, primary_key=True),
    Column("run", Text, nullable=False),
    Column("tenant", _TENANT, nullable=False),
    Column("pool", Text, nullable=False),
    Column("seq", BigInteger, nullable=False),
    Column("spell", Text, nullable=False),
    Column("priority", BigInteger, nullable=False),
    Column("delay_tolerance_s", Float, nullable=False),
    Column("remaining_s", Float, nullable=False),
    Column("locks", Words, nullable=False),
    Column("due_s", Float, nullable=False),
    Column("rests_until_s", Float, nullable=False),
    Column("passport", Text, nullable=False),
    Column("bucket", Integer, nullable=False),
)
PROMOTION_ORDER: Final = (
    backlog.c.priority.desc(),
    backlog.c.remaining_s.desc(),
    backlog.c.due_s,
    backlog.c.task,
)
# A tenant's share is one range of this; its last column lets a scan pass over resting rows.
Index("backlog_by_tenant", backlog.c.tenant, *PROMOTION_ORDER, backlog.c.rests_until_s)
Index("backlog_by_rest", backlog.c.rests_until_s)
Index("backlog_by_bucket", backlog.c.bucket)
