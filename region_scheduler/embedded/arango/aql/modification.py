"""INSERT, UPDATE, REPLACE, REMOVE and UPSERT.

The rows are all read before the first write, so that a query never meets its own writes half-way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias

from region_scheduler.embedded.arango.aql import syntax
from region_scheduler.embedded.arango.aql.convert import truthy
from region_scheduler.embedded.arango.aql.expressions import Compiler
from region_scheduler.embedded.arango.aql.run import Run
from region_scheduler.embedded.arango.aql.scope import (
    Frame,
    Scope,
    Step,
    collection_of,
)
from region_scheduler.embedded.arango.aql.upsert import finder
from region_scheduler.embedded.arango.aql.walk import names
from region_scheduler.embedded.arango.errors import ArangoError
from region_scheduler.embedded.arango.session import (
    CollectionView,
    Document,
    OverwriteMode,
    WriteOptions,
)

# Does one write; returns what OLD and NEW become.
Write: TypeAlias = Callable[
    [Frame, CollectionView, WriteOptions], tuple[Document | None, Document | None]
]
_OVERWRITE_MODES: Final[dict[Any, OverwriteMode]] = {
    "conflict": "conflict",
    "ignore": "ignore",
    "replace": "replace",
    "update": "update",
}


def modification(compiler: Compiler, clause: syntax.Modification, scope: Scope) -> Step:
    """Return the step of a data modification, which hands on one row a write done."""
    options = _options(compiler, clause.options, scope)
    write, variables = _BUILDERS[type(clause)](compiler, clause, scope)
    compiler.layout.is_modification = True
    compiler.layout.touch("write", clause.collection)
    name_of = collection_of(clause.collection)
    old = compiler.layout.redeclare(scope, "OLD") if "OLD" in variables else None
    new = compiler.layout.redeclare(scope, "NEW") if "NEW" in variables else None

    def step(upstream: Iterator[Frame], _origin: Frame) -> Iterator[Frame]:
        rows = [frame[:] for frame in upstream]
        if not rows:
            return iter(())
        run: Run = rows[0][0]
        view = run.view(name_of(run))
        write_options, ignores_errors = options(rows[0])
        written = []
        for frame in rows:
            run.tick()
            try:
                before, after = write(frame, view, write_options)
            except ArangoError:
                if not ignores_errors:
                    raise
                run.statistics.writes_ignored += 1
                continue
            run.statistics.writes_executed += 1
            if old is not None:
                frame[old] = before
            if new is not None:
                frame[new] = after
            written.append(frame)
        return iter(written)

    return step


# --- one write of each kind


def _insert(
    compiler: Compiler, clause: syntax.Insert, scope: Scope
) -> tuple[Write, frozenset[str]]:
    document = compiler.expression(clause.document, scope)
    variables = {"NEW"}
    if isinstance(clause.options, syntax.ObjectLiteral):
        keys = {key.value for key, _ in clause.options.items if isinstance(key, syntax.Literal)}
        if keys & {"overwrite", "overwriteMode"}:
            variables.add("OLD")

    def write(
        frame: Frame, view: CollectionView, options: WriteOptions
    ) -> tuple[Document | None, Document | None]:
        return view.insert(document(frame), options)

    return write, frozenset(variables)


def _update(
    compiler: Compiler, clause: syntax.Update, scope: Scope
) -> tuple[Write, frozenset[str]]:
    selector = compiler.expression(clause.selector, scope)
    patch = compiler.expression(clause.patch, scope) if clause.patch is not None else None
    is_replace = clause.is_replace

    def write(
        frame: Frame, view: CollectionView, options: WriteOptions
    ) -> tuple[Document | None, Document | None]:
        chosen = selector(frame)
        changes = _changes(chosen, patch(frame) if patch is not None else chosen, options)
        return view.replace(changes, options) if is_replace else view.update(changes, options)

    return write, frozenset({"OLD", "NEW"})


def _changes(chosen: Any, patch: Any, options: WriteOptions) -> dict[str, Any]:
    """Return the patch with the key, and the precondition, of the document it is for."""
    key = key_of(chosen)
    if type(patch) is not dict:
        raise ArangoError(1227, "invalid document type")
    changes = {name: value for name, value in patch.items() if name not in ("_id", "_rev")}
    changes["_key"] = key
    if not options.ignore_revs and type(chosen) is dict and chosen.get("_rev") is not None:
        changes["_rev"] = chosen["_rev"]
    return changes


def key_of(selector: Any) -> str:
    """Return the key that a selector (key, or object with `_key`) stands for.

    Raises:
        ArangoError: 1221, 1226 or 1227 if it stands for none.
    """
    if type(selector) is str:
        return selector
    if type(selector) is not dict:
        raise ArangoError(1227, "invalid document type")
    key = selector.get("_key")
    if type(key) is str:
        return key
    document_id = selector.get("_id")
    if key is None and type(document_id) is str:
        return document_id.partition("/")[2]
    if key is None:
        raise ArangoError(1226, "missing document key")
    raise ArangoError(1221, "illegal document key")


def _remove(
    compiler: Compiler, clause: syntax.Remove, scope: Scope
) -> tuple[Write, frozenset[str]]:
    selector = compiler.expression(clause.selector, scope)

    def write(
        frame: Frame, view: CollectionView, options: WriteOptions
    ) -> tuple[Document | None, Document | None]:
        chosen = selector(frame)
        named = {"_key": key_of(chosen)}
        if not options.ignore_revs and type(chosen) is dict and chosen.get("_rev") is not None:
            named["_rev"] = chosen["_rev"]
        return view.remove(named, options), None

    return write, frozenset({"OLD"})


def _upsert(
    compiler: Compiler, clause: syntax.Upsert, scope: Scope
) -> tuple[Write, frozenset[str]]:
    find = finder(compiler, clause, scope)
    document = compiler.expression(clause.insert, scope)
    inner = Scope(parent=scope)
    old = compiler.layout.redeclare(inner, "OLD")
    patch = compiler.expression(clause.patch, inner)
    is_replace = clause.is_replace

    def write(
        frame: Frame, view: CollectionView, options: WriteOptions
    ) -> tuple[Document | None, Document | None]:
        found = find(frame, view)
        if found is None:
            _, after = view.insert(document(frame), options)
            return None, after
        frame[old] = found
        changes = patch(frame)
        if type(changes) is not dict:
            raise ArangoError(1227, "invalid document type")
        # Here the precondition is the revision in the new data, not that of the document found.
        expected = {"_key": found["_key"], "_rev": changes.get("_rev")}
        changes = _changes(expected, changes, options)
        return view.replace(changes, options) if is_replace else view.update(changes, options)

    return write, frozenset({"OLD", "NEW"})


_BUILDERS: Final[dict[type, Callable[..., tuple[Write, frozenset[str]]]]] = {
    syntax.Insert: _insert,
    syntax.Update: _update,
    syntax.Remove: _remove,
    syntax.Upsert: _upsert,
}

# --- options


def _options(
    compiler: Compiler, node: syntax.Expression | None, scope: Scope
) -> Callable[[Frame], tuple[WriteOptions, bool]]:
    if node is None:
        return lambda _frame: (_DEFAULTS, False)
    if any(scope.find(name) is not None for name in names(node)):
        raise ArangoError(1575, "AQL: query options must be readable at query compile time")
    given = compiler.expression(node, Scope())

    def read(frame: Frame) -> tuple[WriteOptions, bool]:
        options = given(frame)
        return write_options(options), truthy(options.get("ignoreErrors"))

    return read


_DEFAULTS: Final = WriteOptions()


def write_options(given: dict[str, Any]) -> WriteOptions:
    """Return the write options that an OPTIONS object asks for; unknown names are ignored."""
    mode = _OVERWRITE_MODES.get(given.get("overwriteMode", ""))
    if mode is None:
        mode = "replace" if truthy(given.get("overwrite")) else "conflict"
    version = given.get("versionAttribute")
    return WriteOptions(
        overwrite_mode=mode,
        keep_null=given.get("keepNull") is not False,
        merge_objects=given.get("mergeObjects") is not False,
        ignore_revs=given.get("ignoreRevs") is not False,
        version_attribute=version if type(version) is str else None,
        wait_for_sync=truthy(given.get("waitForSync")),
    )
