"""AQL: ArangoDB's query language over any storage that offers the `Session` protocol.

    text --lexer, aql.lark--> syntax tree --arrange, compile--> closures over a frame --> rows

A query is parsed and compiled once and kept by its text (`compile_query`); bind values, collections
and indexes are looked at when it runs. A *frame* is one row in the making: a list with the run in
front, then bind values, then a slot a variable. A *step* turns a stream of frames into another;
steps that keep rows (SORT, COLLECT, writes) copy them, all others reuse the one frame.
"""

from region_scheduler.embedded.arango.aql.query import (
    Compiled,
    QueryCache,
    QueryResult,
    compile_query,
)
from region_scheduler.embedded.arango.aql.run import QueryOptions, Statistics

__all__ = [
    "Compiled",
    "QueryCache",
    "QueryOptions",
    "QueryResult",
    "Statistics",
    "compile_query",
]
