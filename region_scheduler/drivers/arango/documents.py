"""Documents of one kind, read at the leader and written conditionally, in batches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, Generic, TypeVar

from arango.collection import StandardCollection
from arango.database import StandardDatabase
from arango.exceptions import ArangoServerError
from arango.request import Request

from region_scheduler.drivers.arango.codec import Codec, Document, in_parts
from region_scheduler.drivers.arango.errors import (
    CONFLICTS,
    DEPENDENCY,
    LOST,
    MALFORMED,
    MISSING,
    NOT_DONE,
    NotSent,
    reading,
    refusal,
)
from region_scheduler.drivers.arango.query import Queries
from region_scheduler.errors import Unavailable, ensure
from region_scheduler.ports.documents import Identified, WriteResult, Written

D = TypeVar("D", bound=Identified)
_DIRTY: Final = {"x-arango-allow-dirty-read": "true"}

_READ_AT_ONCE: Final = 4_000
"""Documents in one question: what a scheduler looks at in one go is one round trip."""


class ArangoDocuments(Generic[D]):
    """The `Documents` of one collection; the promises are the port's."""

    def __init__(self, db: StandardDatabase, queries: Queries, codec: Codec[D]) -> None:
        self._db = db
        self._queries = queries
        self._codec = codec
        self._collection: StandardCollection = db.collection(codec.collection)

    def read(self, ids: Sequence[str]) -> list[D | None]:
        """Return the documents at the leader, in the order of `ids`; None where there is none."""
        return [self._standing(answer) for answer in self.answers(ids)]

    def answers(self, ids: Sequence[str], is_suggesting: bool = False) -> list[Document | None]:
        """Return the documents as they are stored; None where there is none.

        Args:
            ids: Any number.
            is_suggesting: Whether a follower may answer; else the leader does.
        """
        found: list[Document | None] = []
        for part in in_parts(ids, _READ_AT_ONCE):
            read = partial(self._read, [self._codec.key(id_) for id_ in part], is_suggesting)
            found += [_present(answer) for answer in reading(read)]
        return found

    def present(self, ids: Sequence[str]) -> list[D]:
        """Return those of the documents at the leader that there are and that this code knows."""
        return self._codec.all_decoded(found for found in self.answers(ids) if found is not None)

    def insert(self, values: Sequence[D]) -> list[Written[D]]:
        """Insert each value under its id; `CONFLICT` if the id is taken, never overwritten."""
        answers = sent_in_parts(
            [self._codec.encoded(value) for value in values], self._collection.insert_many
        )
        return [self._written(v, answer) for v, answer in zip(values, answers, strict=True)]

    def write(self, changes: Sequence[tuple[D, D]]) -> list[Written[D]]:
        """Write each (before, after), provided the document still has `before`'s revision."""
        answers = sent_in_parts(
            [self._codec.patch(before, after) for before, after in changes],
            lambda patches: self._collection.update_many(patches, check_rev=True, merge=False),
        )
        return [self._written(a, answer) for (_, a), answer in zip(changes, answers, strict=True)]

    def remove(self, values: Sequence[Identified]) -> list[WriteResult]:
        """Remove each document, provided it still has the revision of its value."""
        references = [(self._codec.key(value.id), value.rev) for value in values]
        return removed(self._collection, references)

    def listed(self, query: str, /, **parameters: Any) -> list[D]:
        """Return the documents that a query returns, less those of a schema not known here."""
        return self._codec.all_decoded(self._queries.rows(query, **parameters))

    def _read(self, keys: Sequence[str], is_suggesting: bool) -> list[Document]:
        # The driver's own `get_many` leaves out every element that failed, for whatever reason: a
        # document that could not be read just now would look like one that does not exist.
        request = Request(
            method="put",
            endpoint=f"/_api/document/{self._codec.collection}",
            params={"onlyget": True},
            headers=_DIRTY if self._queries.may_follow(is_suggesting) else None,
            data=list(keys),
        )
        response = self._db.conn.send_request(request)
        if not response.is_success:
            raise ArangoServerError(response, request)
        documents: list[Document] = response.body
        return documents

    def _standing(self, answer: Document | None) -> D | None:
        if answer is None:
            return None
        value = self._codec.decoded(answer)
        if value is None:
            # Not None: a task that only a newer version understands is there all the same.
            detail = f"{answer['_id']} has a schema that this version does not know"
            raise Unavailable(dependency=DEPENDENCY, detail=detail)
        return value

    def _written(self, value: D, answer: Document | WriteResult) -> Written[D]:
        if isinstance(answer, WriteResult):
            return Written(answer)
        return Written(WriteResult.APPLIED, self._codec.at(value, answer["_rev"]))


def _present(answer: Document) -> Document | None:
    if "_id" in answer:
        return answer
    if answer.get("errorNum") == MISSING:
        return None
    raise Unavailable(dependency=DEPENDENCY, detail=str(answer.get("errorMessage")))


def sent_in_parts(
    documents: Sequence[Document], send: Callable[[list[Document]], Any]
) -> list[Document | WriteResult]:
    """Send a batch write and return for each document what the store says of it, or the result.

    Raises:
        Unavailable: Nothing was written.
        InvalidInput: The request was refused as such. Nothing was written.
        BrokenInvariant: The store calls one document malformed; others may have been written.
    """
    results: list[Document | WriteResult] = []
    for part in in_parts(documents):
        try:
            answers = send(list(part))
        except (NotSent, *LOST) as error:
            refused = refusal(error)
            if refused is not None and not results:
                raise refused from error
            # Perhaps done in this part, not sent in those after it; the earlier ones are definite.
            unknown = len(documents) - len(results)
            return results + [WriteResult.UNKNOWN] * unknown
        results += [_result(answer) for answer in answers]
        if len(results) == len(part) and all(_is_not_done(answer) for answer in answers):
            raise Unavailable(dependency=DEPENDENCY, detail=str(answers[0]))
    return results


def removed(
    collection: StandardCollection, references: Sequence[tuple[str, str]]
) -> list[WriteResult]:
    """Remove documents, each by key on the condition of its revision."""
    documents = [{"_key": key, "_rev": rev} for key, rev in references]
    answers = sent_in_parts(documents, partial(collection.delete_many, check_rev=True))
    return [a if isinstance(a, WriteResult) else WriteResult.APPLIED for a in answers]


def _result(answer: Document | ArangoServerError) -> Document | WriteResult:
    if isinstance(answer, dict):
        return answer
    if answer.error_code in CONFLICTS:
        return WriteResult.CONFLICT
    if answer.error_code == MISSING:
        return WriteResult.MISSING
    ensure(answer.error_code not in MALFORMED, f"documents are well formed: {answer}")
    return WriteResult.UNKNOWN


def _is_not_done(answer: Document | ArangoServerError) -> bool:
    return isinstance(answer, ArangoServerError) and answer.error_code in NOT_DONE
