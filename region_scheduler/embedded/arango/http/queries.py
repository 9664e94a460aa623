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
_WARNINGS_MAX = 10


@dataclass(frozen=True, slots=True)
class Answer:
    """What a query gave: its rows, and what is shown as `extra`."""

    rows: list[Any]
    extra: dict[str, Any]


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
    engine = call.engine
    began_at = engine.clock()
    compiled = aql.compile_query(text)
    call.may_show_past = not compiled.is_modification
    try:
        result = compiled.execute(call.transaction, bind, _options(call, options, began_at))
    except ArangoError as error:
        raise refine(error) from error
    statistics = result.statistics
    stats = {
        "writesExecuted": statistics.writes_executed,
        "writesIgnored": statistics.writes_ignored,
        "documentLookups": statistics.document_lookups,
        "seeks": statistics.seeks,
        "scannedFull": statistics.scanned_full,
        "scannedIndex": statistics.scanned_index,
        "searchParallelism": 0,
        "cursorsCreated": 0,
        "cursorsRearmed": 0,
        "cacheHits": 0,
        "cacheMisses": 0,
        "filtered": statistics.filtered,
        "httpRequests": 0,
        "executionTime": engine.clock() - began_at,
        "peakMemoryUsage": statistics.peak_memory,
        "intermediateCommits": 0,
    }
    if statistics.full_count is not None:
        stats["fullCount"] = statistics.full_count
    warnings = [{"code": code, "message": message} for code, message in result.warnings]
    extra: dict[str, Any] = {"warnings": warnings, "stats": stats}
    if options.get("profile"):
        extra["profile"] = _profile(engine.clock() - began_at)
        if options["profile"] not in (1, True):
            extra["plan"] = explained(call, text, bind)["plan"]
    return Answer(result.rows, extra)


def _options(call: Call, options: dict[str, Any], began_at: float) -> aql.QueryOptions:
    max_runtime = options.get("maxRuntime") or 0.0
    clock = call.engine.clock

    def check() -> None:
        if max_runtime and clock() - began_at > max_runtime:
            raise ArangoError(1500)

    max_warnings = options.get("maxWarningCount")
    return aql.QueryOptions(
        fail_on_warning=bool(options.get("failOnWarning")),
        max_warning_count=max_warnings if isinstance(max_warnings, int) else _WARNINGS_MAX,
        full_count=bool(options.get("fullCount")),
        memory_limit=int(options.get("memoryLimit") or 0),
        check=check if max_runtime else None,
        clock=call.engine.wall,
        chance=call.engine.chance,
    )


def refine(error: ArangoError) -> ArangoError:
    """Return `error` as a failed query reports it: a stale revision is a plain 409."""
    if error.number == 1200:
        return ArangoError(1200, error.message)
    return error


def _profile(total_s: float) -> dict[str, float]:
    stages = ("initializing", "parsing", "optimizing ast", "loading collections")
    later = ("instantiating plan", "optimizing plan", "instantiating executors", "finalizing")
    return {**dict.fromkeys((*stages, *later), 0.0), "executing": total_s}


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
    stats = {"rulesExecuted": 0, "rulesSkipped": 0, "plansCreated": 1, "peakMemoryUsage": 0}
    return {"plan": plan, "cacheable": False, "warnings": [], "stats": stats}


# Tracking. Queries run one at a time and are over before another request is looked at.


def show(call: Call, which: str) -> Response:
    """GET properties, current, slow or rules."""
    if which == "properties":
        return answer(200, **{**_PROPERTIES, **call.engine.query_properties})
    if which in ("current", "slow"):
        return Response(200, b"[]")
    if which == "rules":
        return Response(200, encode([]))
    raise ArangoError(404)


def change(call: Call, which: str) -> Response:
    """PUT properties."""
    if which != "properties":
        raise ArangoError(404)
    given = {name: value for name, value in call.object().items() if name in _PROPERTIES}
    call.engine.query_properties.update(given)
    return show(call, which)


def kill(_call: Call, which: str) -> Response:
    """DELETE slow, or a running query; none runs while another request is answered."""
    if which == "slow":
        return answer(200)
    raise ArangoError(1591)


TABLE: Table = {
    ("POST", 0): parse,
    ("GET", 1): show,
    ("PUT", 1): change,
    ("DELETE", 1): kill,
}
EXPLAIN_TABLE: Table = {("POST", 0): explain}
CACHE_TABLE: Table = {("DELETE", 0): lambda _call: answer(200)}
