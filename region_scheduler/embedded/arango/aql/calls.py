"""Function calls: looked up and counted at compile time."""

from __future__ import annotations

from region_scheduler.embedded.arango.aql import syntax
from region_scheduler.embedded.arango.aql.expressions import Compiler
from region_scheduler.embedded.arango.aql.functions import REGISTRY, Function
from region_scheduler.embedded.arango.aql.scope import Closure, Scope, collection_of
from region_scheduler.embedded.arango.errors import ArangoError


def call(compiler: Compiler, node: syntax.Call, scope: Scope) -> Closure:
    """A function call.

    Raises:
        ArangoError: 1540 for an unknown function, 1541 for a wrong number of arguments.
    """
    function = REGISTRY.get(node.name)
    if function is None:
        number = 1582 if "::" in node.name else 1540
        raise ArangoError(number, f"AQL: usage of unknown function '{node.name}()'")
    _check_arity(function, len(node.arguments))
    if function.takes_collection and node.arguments:
        special = _of_collection(compiler, function, node, scope)
        if special is not None:
            return special
    arguments = [compiler.expression(argument, scope) for argument in node.arguments]
    if function.reads_documents:
        compiler.layout.touch("document", None)
    return _closure(function, arguments)


def _closure(function: Function, arguments: list[Closure]) -> Closure:
    implementation = function.call
    if function.takes_run:
        return lambda frame: implementation(frame[0], *[part(frame) for part in arguments])
    if len(arguments) == 1:
        (only,) = arguments
        return lambda frame: implementation(only(frame))
    if len(arguments) == 2:
        first, second = arguments
        return lambda frame: implementation(first(frame), second(frame))
    return lambda frame: implementation(*[part(frame) for part in arguments])


def _check_arity(function: Function, count: int) -> None:
    if count < function.minimum or (function.maximum is not None and count > function.maximum):
        most = "unbounded" if function.maximum is None else str(function.maximum)
        raise ArangoError(
            1541,
            f"AQL: invalid number of arguments for function '{function.name}()', expected number of"
            f" arguments: minimum: {function.minimum}, maximum: {most}",
        )


def _of_collection(
    compiler: Compiler, function: Function, node: syntax.Call, scope: Scope
) -> Closure | None:
    """Return a call whose first argument names a collection, or None if it does not."""
    first = node.arguments[0]
    is_collection = isinstance(first, syntax.CollectionBind) or (
        isinstance(first, syntax.Name) and scope.find(first.name) is None
    )
    if not is_collection or not isinstance(first, syntax.Name | syntax.CollectionBind):
        return None
    compiler.layout.touch("read", first)
    name_of = collection_of(first)
    if function.name in ("LENGTH", "COUNT"):
        return lambda frame: frame[0].view(name_of(frame[0])).count()
    rest = [compiler.expression(argument, scope) for argument in node.arguments[1:]]
    return _closure(function, [lambda frame: name_of(frame[0]), *rest])
