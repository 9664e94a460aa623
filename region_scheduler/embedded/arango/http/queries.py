"""Running AQL for a request, /_api/query and /_api/explain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from region_scheduler.embedded.arango import aql
from region_scheduler.embedded.arango.errors import ArangoError
from region_scheduler.embedded.arango.http.call import Call
from region_scheduler.embedded.arango.http.message import Response, answer
from region_scheduler.embedded.arango.http.router import Table
from region_scheduler.embedded.arango.storage.record import encode

_PROPERTIES: dict[str, Any] = {
    "enabled": True,
    "trackSlowQueries": True,
    "trackBindVars": True,
    "maxSlowQueries": 64,
    "slowQueryThreshold": 10,
    "slowStreamingQueryThreshold": 10,
    "maxQueryStringLength": 4096,
}
_CACHE: dict[str, Any] = {
    "mode": "off",
    "maxResults": 128,
    "maxResultsSize": 268_435_456,
    "maxEntrySize": 16_777_216,
    "includeSystem": False,
}
_WARNINGS_MAX = 10


@dataclass(frozen=True, slots=True)
class Answer:
    """What a query gave.

    Attributes:
        rows: Its result.
        extra: Warnings, statistics, profile and plan.
        slept_s: How long it asked to sleep; its answer is held back that long.
    """

    rows: list[Any]
    extra: dict[str, Any]
    slept_s: float = 0.0


def text_of(body: Any) -> str:
    """Return the query text of a request's body.

    Raises:
        ArangoError: 1502 if there is none.
    """
    text = body.get("query") if isinstance(body, dict) else None
    if not isinstance(text, str) or not text:
        raise ArangoError(1502)
    return text


def bind_of(body: dict[str, Any]) -> dict[str, Any]:
    """Return the bind parameters of a request's body.

    Raises:
        ArangoError: 1553 if they are no object.
    """
    bind = body.get("bindVars")
    if bind is None:
        return {}
    if not isinstance(bind, dict):
        raise ArangoError(1553, "expecting object for bindVars")
    return bind


def run(call: Call, body: dict[str, Any]) -> Answer:
    """Run the query of a cursor request; if it fails, nothing that it wrote stays."""
    given = body.get("options")
    options: dict[str, Any] = {**body, **given} if isinstance(given, dict) else body
    text, bind = text_of(body), bind_of(body)
    clock = call.engine.clock
    began_at = clock()
    compiled = aql.compile_query(text)
    parsed_at = clock()
    call.may_show_past = not compiled.is_modification
    call.require_collections(compiled.collections(bind))
    transaction = call.transaction
    opened_at = clock()
    slept_s: list[float] = []
    try:
        result = compiled.execute(transaction, bind, _options(call, options, began_at, slept_s))
    except ArangoError as error:
        raise refine(error) from error
    ended_at = clock()
    extra: dict[str, Any] = {
        "warnings": [{"code": code, "message": message} for code, message in result.warnings],
        "stats": statistics_of(result.statistics, ended_at - began_at),
    }
    if options.get("profile"):
        extra["profile"] = _profile(
            opened_at - parsed_at, parsed_at - began_at, ended_at - opened_at
        )
        if options["profile"] not in (1, True):
            extra["plan"] = explained(call, text, bind)["plan"]
    return Answer(result.rows, extra, sum(slept_s))


def statistics_of(statistics: aql.Statistics, execution_s: float) -> dict[str, Any]:
    """Return a query's statistics as the API shows them."""
    stats = {
        "writesExecuted": statistics.writes_executed,
        "writesIgnored": statistics.writes_ignored,
        "documentLookups": statistics.document_lookups,
        "seeks": statistics.seeks,
        "scannedFull": statistics.scanned_full,
        "scannedIndex": statistics.scanned_index,
        "searchParallelism": 1,
        "cursorsCreated": 0,
        "cursorsRearmed": 0,
        "cacheHits": 0,
        "cacheMisses": 0,
        "filtered": statistics.filtered,
        "httpRequests": 0,
        "executionTime": execution_s,
        "peakMemoryUsage": statistics.peak_memory,
        "intermediateCommits": 0,
    }
    if statistics.full_count is not None:
        stats["fullCount"] = statistics.full_count
    return stats


def _options(
    call: Call, options: dict[str, Any], began_at: float, slept_s: list[float]
) -> aql.QueryOptions:
    max_runtime = options.get("maxRuntime") or 0.0
    clock = call.engine.clock

    def check() -> None:
        if max_runtime and clock() - began_at + sum(slept_s) > max_runtime:
            raise ArangoError(1500)

    max_warnings = options.get("maxWarningCount")
    return aql.QueryOptions(
        fail_on_warning=bool(options.get("failOnWarning")),
        max_warning_count=max_warnings if isinstance(max_warnings, int) else _WARNINGS_MAX,
        full_count=bool(options.get("fullCount")),
        memory_limit=int(options.get("memoryLimit") or 0),
        check=check if max_runtime else None,
        clock=call.engine.wall,
        sleep=slept_s.append,
        chance=call.engine.chance,
    )


def refine(error: ArangoError) -> ArangoError:
    """Return `error` as a failed query reports it: a stale revision is a plain 409."""
    if error.number == 1200:
        return ArangoError(1200, error.message)
    return error


def _profile(initializing_s: float, parsing_s: float, executing_s: float) -> dict[str, float]:
    # The other stages that ArangoDB names are part of these three here.
    stages = ("optimizing ast", "loading collections", "instantiating plan", "optimizing plan")
    return {
        "initializing": initializing_s,
        "parsing": parsing_s,
        **dict.fromkeys((*stages, "instantiating executors"), 0.0),
        "executing": executing_s,
        "finalizing": 0.0,
    }


# Parsing and explaining.


def parse(call: Call) -> Response:
    """POST /_api/query: check a query's syntax."""
    compiled = aql.compile_query(text_of(call.object()))
    parameters = compiled.bind_parameters
    return answer(
        200,
        parsed=True,
        collections=sorted(compiled.collections({})),
        bindVars=parameters,
        ast=[{"type": "root", "subNodes": []}],
        warnings=[],
    )


def explain(call: Call) -> Response:
    """POST /_api/explain: which indexes a query uses."""
    body = call.object()
    shown = explained(call, text_of(body), bind_of(body))
    options = body.get("options") or {}
    if options.get("allPlans"):
        shown["plans"] = [shown.pop("plan")]
    return answer(200, **shown)


def explained(call: Call, text: str, bind: dict[str, Any]) -> dict[str, Any]:
    """Return the plan of a query, its warnings and statistics."""
    plan = aql.compile_query(text).explain(call.transaction, bind)
    began_at = call.engine.clock()
    stats = {
        "rulesExecuted": 0,
        "rulesSkipped": 0,
        "plansCreated": 1,
        "peakMemoryUsage": 0,
        "executionTime": call.engine.clock() - began_at,
    }
    return {"plan": plan, "cacheable": False, "warnings": [], "stats": stats}


# Tracking.


def show(call: Call, which: str) -> Response:
    """GET properties, current, slow or rules."""
    if which == "properties":
        return answer(200, **{**_PROPERTIES, **call.engine.query_properties})
    if which == "current":
        return Response(200, encode(call.engine.running.listed(call.database.name)))
    if which in ("slow", "rules"):  # no query is ever kept as slow, no rule can be switched
        return Response(200, b"[]")
    raise ArangoError(404)


def change(call: Call, which: str) -> Response:
    """PUT properties."""
    if which != "properties":
        raise ArangoError(404)
    given = {name: value for name, value in call.object().items() if name in _PROPERTIES}
    call.engine.query_properties.update(given)
    return show(call, which)


def kill(call: Call, which: str) -> Response:
    """DELETE slow, or a running query."""
    if which != "slow":
        call.engine.running.kill(which, call.database.name)
    return answer(200)


TABLE: Table = {
    ("POST", 0): parse,
    ("GET", 1): show,
    ("PUT", 1): change,
    ("DELETE", 1): kill,
}
EXPLAIN_TABLE: Table = {("POST", 0): explain}


# Caches: none is kept, so they are always empty, whatever their mode.


def show_cache(call: Call, which: str) -> Response:
    """GET properties or entries of the cache of results."""
    if which == "entries":
        return Response(200, b"[]")
    if which != "properties":
        raise ArangoError(404)
    return Response(200, encode({**_CACHE, **call.engine.cache_properties}))


def change_cache(call: Call, which: str) -> Response:
    """PUT properties of the cache of results."""
    if which != "properties":
        raise ArangoError(404)
    given = {name: value for name, value in call.object().items() if name in _CACHE}
    if given.get("mode", "off") not in ("off", "on", "demand"):
        raise ArangoError(10)
    call.engine.cache_properties.update(given)
    return show_cache(call, which)


CACHE_TABLE: Table = {
    ("GET", 1): show_cache,
    ("PUT", 1): change_cache,
    ("DELETE", 0): lambda _call: answer(200),
}
PLAN_CACHE_TABLE: Table = {
    ("GET", 0): lambda _call: Response(200, b"[]"),
    ("DELETE", 0): lambda _call: answer(200),
}
