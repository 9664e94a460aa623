"""The questions asked of the graph: one file each, loaded by name."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Final

from arango.aql import AQL

from region_scheduler.drivers.arango.errors import reading
from region_scheduler.ports.consistency import Reads

_CONSISTENCY: Final = re.compile(r"^// Consistency: (suggesting|deciding)\b", re.MULTILINE)
_ROWS_PER_BATCH: Final = 2_000


@dataclass(frozen=True, slots=True)
class Question:
    """A query as it is sent.

    Attributes:
        text: AQL, without the header.
        is_suggesting: Whether a follower may answer, as the header says.
    """

    text: str
    is_suggesting: bool


@cache
def question(name: str) -> Question:
    """Return the query in `queries/<name>.aql`."""
    file = resources.files("region_scheduler.drivers.arango") / "queries" / f"{name}.aql"
    lines = file.read_text("utf-8").splitlines()
    begin = next(n for n, line in enumerate(lines) if not line.startswith("//"))
    said = _CONSISTENCY.search("\n".join(lines[:begin]))
    if said is None:
        raise ValueError(f"{name}.aql does not state its consistency")
    return Question("\n".join(lines[begin:]).strip(), said.group(1) == "suggesting")


class Queries:
    """Asks questions; the header of each says whether a follower may answer.

    Args:
        aql: The database's query interface.
        runtime_s: The store gives a query up after this long, seconds: nobody waits for it then.

    Attributes:
        reads: Where reads go, those of single documents too.
    """

    def __init__(self, aql: AQL, runtime_s: float) -> None:
        self._aql = aql
        self._runtime_s: Any = runtime_s
        self.reads = Reads.AS_STATED

    def may_follow(self, is_suggesting: bool) -> bool:
        """Say whether a read goes to the local follower."""
        if self.reads is Reads.AS_STATED:
            return is_suggesting
        return self.reads is Reads.AT_FOLLOWER

    def rows(self, name: str, /, **parameters: Any) -> list[Any]:
        """Return all rows of the query `name`.

        Raises:
            Unavailable: No answer; asking again is safe.
        """
        asked = question(name)
        return self._rows(asked, self.may_follow(asked.is_suggesting), parameters)

    def rows_at_follower(self, name: str, /, **parameters: Any) -> list[Any]:
        """Return all rows of the query `name` as the local follower shows them in any case.

        Raises:
            Unavailable: No answer; asking again is safe.
        """
        return self._rows(question(name), True, parameters)

    def _rows(self, asked: Question, is_dirty: bool, parameters: dict[str, Any]) -> list[Any]:

        def ask() -> list[Any]:
            cursor: Any = self._aql.execute(
                asked.text,
                bind_vars=parameters,
                batch_size=_ROWS_PER_BATCH,
                max_runtime=self._runtime_s,
                allow_dirty_read=is_dirty,
            )
            while cursor.has_more():
                cursor.fetch()
            return list(cursor.batch())

        return reading(ask)
