"""Functions that look into the database, and those that only serve the query itself."""

from __future__ import annotations

from typing import Any

from region_scheduler.embedded.arango.aql.convert import as_number, to_integer, to_string, truthy
from region_scheduler.embedded.arango.aql.functions.registry import REGISTRY, function
from region_scheduler.embedded.arango.aql.order import COMPARISONS
from region_scheduler.embedded.arango.aql.run import Run
from region_scheduler.embedded.arango.errors import ArangoError


@function("DOCUMENT", 1, 2, takes_collection=True, reads_documents=True)
def _document(run: Run, first: Any, *rest: Any) -> Any:
    if not rest:
        return _looked_up(run, None, first)
    return _looked_up(run, to_string(first), rest[0])


def _looked_up(run: Run, collection: str | None, wanted: Any) -> Any:
    if type(wanted) is list:
        found = [_one_document(run, collection, item) for item in wanted]
        return [document for document in found if document is not None]
    return _one_document(run, collection, wanted)


def _one_document(run: Run, collection: str | None, wanted: Any) -> Any:
    if type(wanted) is dict:
        wanted = wanted.get("_id") or wanted.get("_key")
    if type(wanted) is not str:
        return None
    if collection is None:
        return run.document(wanted)
    if "/" not in wanted:
        return run.document(f"{collection}/{wanted}")
    return run.document(wanted) if wanted.partition("/")[0] == collection else None


@function("COLLECTION_COUNT", 1, takes_collection=True)
def _collection_count(run: Run, name: Any) -> int:
    return run.view(to_string(name)).count()


@function("COLLECTIONS", 0, reads_documents=True)
def _collections(run: Run) -> list[dict[str, Any]]:
    return [{"_id": run.view(name).id, "name": name} for name in run.session.collections()]


@function("SHARD_ID", 2, takes_collection=True)
def _shard_id(run: Run, name: Any, keys: Any) -> Any:
    if type(name) is not str or type(keys) is not dict:
        run.warn(1542, "SHARD_ID")
        return None
    return run.view(name).name


@function("CURRENT_DATABASE", 0)
def _current_database(run: Run) -> str:
    return run.session.database


@function("CURRENT_USER", 0)
def _current_user(run: Run) -> str | None:
    return run.options.user


@function("VERSION", 0)
def _version(run: Run) -> str:
    return run.options.version


@function("CHECK_DOCUMENT", 1)
def _check_document(value: Any) -> bool:
    return type(value) is dict


@function("IS_KEY", 1)
def _is_key(value: Any) -> bool:
    allowed = "_-:.@()+,=;$!*'%"
    return (
        type(value) is str
        and 0 < len(value.encode()) <= 254
        and all((c.isascii() and c.isalnum()) or c in allowed for c in value)
    )


# --- choices


@function("NOT_NULL", 1, None)
def _not_null(*values: Any) -> Any:
    return next((value for value in values if value is not None), None)


@function("FIRST_LIST", 1, None)
def _first_list(*values: Any) -> Any:
    return next((value for value in values if type(value) is list), None)


@function("FIRST_DOCUMENT", 1, None)
def _first_document(*values: Any) -> Any:
    return next((value for value in values if type(value) is dict), None)


@function("MIN_MATCH", 2, None)
def _min_match(*values: Any) -> bool:
    return sum(map(truthy, values[:-1])) >= to_integer(values[-1])


@function("IN_RANGE", 5)
def _in_range(value: Any, low: Any, high: Any, with_low: Any, with_high: Any) -> bool:
    above = COMPARISONS["<=" if truthy(with_low) else "<"](low, value)
    return above and COMPARISONS["<=" if truthy(with_high) else "<"](value, high)


# --- calls by name, and what stops or delays a query


@function("CALL", 1, None)
def _call(run: Run, name: Any, *arguments: Any) -> Any:
    return _called(run, "CALL", name, list(arguments))


@function("APPLY", 1, 2)
def _apply(run: Run, name: Any, arguments: Any = None) -> Any:
    if arguments is not None and type(arguments) is not list:
        run.warn(1542, "APPLY")
        return None
    return _called(run, "APPLY", name, arguments or [])


def _called(run: Run, by: str, name: Any, arguments: list[Any]) -> Any:
    if type(name) is not str:
        run.warn(1542, by)
        return None
    called = REGISTRY.get(name.upper())
    if called is None:
        raise ArangoError(1582, f"AQL: user function '{name.upper()}()' not found")
    if called.name in ("CALL", "APPLY"):
        raise ArangoError(1578, f"AQL: disallowed dynamic call to '{called.name}'")
    count = len(arguments)
    if count < called.minimum or (called.maximum is not None and count > called.maximum):
        raise ArangoError(1541, f"AQL: invalid number of arguments for function '{called.name}()'")
    return called.call(run, *arguments) if called.takes_run else called.call(*arguments)


@function("FAIL", 0, 1)
def _fail(reason: Any = "") -> Any:
    raise ArangoError(1569, f"AQL: FAIL({to_string(reason)}) called (while executing)")


@function("ASSERT", 2)
def _assert(condition: Any, message: Any) -> bool:
    if not truthy(condition):
        raise ArangoError(1593, f"AQL: {to_string(message)} (while executing)")
    return True


@function("WARN", 2)
def _warn(run: Run, condition: Any, message: Any) -> bool:
    if truthy(condition):
        return True
    run.warn(1594, to_string(message))
    return False


@function("NOOPT NOEVAL PASSTHRU V8", 1)
def _noopt(value: Any) -> Any:
    return value


@function("SLEEP", 1)
def _sleep(run: Run, seconds: Any) -> None:
    left = as_number(seconds)
    if left is None or left < 0:
        run.warn(1542, "SLEEP")
        return
    while left > 0:
        # In pieces, so that a kill is noticed.
        run.options.sleep(min(left, 0.1))
        left -= 0.1
        if run.options.check is not None:
            run.options.check()
