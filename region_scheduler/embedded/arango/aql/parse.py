"""Text to syntax tree."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from lark import Lark, Token
from lark.exceptions import UnexpectedToken, VisitError

from region_scheduler.embedded.arango.aql import syntax
from region_scheduler.embedded.arango.aql.lexer import AqlLexer, syntax_error
from region_scheduler.embedded.arango.aql.tree import TreeBuilder
from region_scheduler.embedded.arango.errors import ArangoError


@cache
def _parser() -> Lark:
    grammar = files(__package__).joinpath("aql.lark").read_text(encoding="utf-8")
    return Lark(
        grammar,
        parser="lalr",
        lexer=AqlLexer,
        transformer=TreeBuilder(),
        maybe_placeholders=True,
    )


def parse(text: str) -> syntax.Query:
    """Return the syntax tree of an AQL query.

    Raises:
        ArangoError: 1502 for an empty text, 1501 for anything that is no query.
    """
    if not text:
        raise ArangoError(1502, "query is empty")
    try:
        query = _parsed(text)
    except UnexpectedToken as error:
        raise _unexpected(text, error.token) from None
    except VisitError as error:
        if isinstance(error.orig_exc, ArangoError):
            raise error.orig_exc from None
        raise
    _check_last(query.clauses)
    return query


def _parsed(text: str) -> syntax.Query:
    result: Any = _parser().parse(text)
    if not isinstance(result, syntax.Query):
        raise TypeError(result)
    return result


def _unexpected(text: str, token: Token) -> ArangoError:
    if token.type == "$END":
        return syntax_error(text, len(text), "unexpected end of query string")
    return syntax_error(text, token.start_pos or 0, f"unexpected {token.type.strip('_').lower()}")


def _check_last(clauses: Sequence[syntax.Clause]) -> None:
    last = clauses[-1]
    if not isinstance(
        last, syntax.Return | syntax.Insert | syntax.Update | syntax.Remove | syntax.Upsert
    ):
        raise ArangoError(1501, "AQL: syntax error, unexpected end of query string")
