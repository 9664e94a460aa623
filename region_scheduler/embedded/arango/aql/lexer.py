"""Cut AQL text into tokens, and settle what the grammar could not tell with one token ahead."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from lark import Token
from lark.lexer import Lexer

from region_scheduler.embedded.arango.errors import ArangoError

_KEYWORDS: Final = frozenset(
    "AGGREGATE ALL AND ANY ASC COLLECT DESC DISTINCT FALSE FILTER FOR GRAPH IN INBOUND INSERT INTO "
    "LET LIKE LIMIT NONE NOT NULL OR OUTBOUND REMOVE REPLACE RETURN SHORTEST_PATH "
    "ALL_SHORTEST_PATHS K_SHORTEST_PATHS K_PATHS SORT TRUE UPDATE UPSERT WITH WINDOW".split()
)
# Words with a meaning in one place only; everywhere else they are names.
_SOFT_KEYWORDS: Final = frozenset("COUNT KEEP OPTIONS PRUNE TO".split())
_WORDS: Final = {
    word: word if word in ("AND", "OR", "NOT", "DISTINCT") else "_" + word
    for word in _KEYWORDS | _SOFT_KEYWORDS
}

_SYMBOLS: Final = {
    "==": "EQ",
    "!=": "NE",
    "<=": "LE",
    ">=": "GE",
    "<": "LT",
    ">": "GT",
    "=~": "MATCH",
    "!~": "NOT_MATCH",
    "&&": "AND",
    "||": "OR",
    "..": "RANGE",
    "!": "NOT",
    "+": "PLUS",
    "-": "MINUS",
    "*": "STAR",
    "/": "SLASH",
    "%": "PERCENT",
    "::": "_SCOPE",
    "=": "_ASSIGN",
    "?": "_QUESTION",
    ":": "_COLON",
    ",": "_COMMA",
    ".": "_DOT",
    "(": "_LPAR",
    ")": "_RPAR",
    "[": "_LSQB",
    "]": "_RSQB",
    "{": "_LBRACE",
    "}": "_RBRACE",
}
_COMPARISONS: Final = frozenset(
    "EQ NE LT LE GT GE _IN NOT_IN _LIKE NOT_LIKE MATCH NOT_MATCH".split()
)
_NEGATABLE: Final = {"_IN": "NOT_IN", "_LIKE": "NOT_LIKE"}

_TOKEN: Final = re.compile(
    r"""
      (?P<space>[ \t\r\n]+|//[^\n]*|/\*(?s:.*?)\*/)
    | (?P<number>0[bB][01]+|0[xX][0-9a-fA-F]+
        |(?:(?:0|[1-9][0-9]*)(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?)
    | (?P<name>\$?[a-zA-Z][a-zA-Z0-9_]*|_+[a-zA-Z]+[a-zA-Z0-9_]*)
    | (?P<collection>@@(?:_+[a-zA-Z0-9]+[a-zA-Z0-9_]*|[a-zA-Z0-9][a-zA-Z0-9_]*))
    | (?P<bind>@(?:_+[a-zA-Z0-9]+[a-zA-Z0-9_]*|[a-zA-Z0-9][a-zA-Z0-9_]*))
    | (?P<string>"(?:[^"\\]|\\(?s:.))*"|'(?:[^'\\]|\\(?s:.))*')
    | (?P<quoted>`(?:[^`\\]|\\(?s:.))*`|\u00b4(?:[^\u00b4\\]|\\(?s:.))*\u00b4)
    | (?P<symbol>==|!=|<=|>=|=~|!~|&&|\|\||\.\.|::|[-=<>!+*/%?:,.()\[\]{}])
    """,
    re.VERBOSE,
)
_ESCAPE: Final = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_ESCAPED: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


def syntax_error(text: str, position: int, what: str) -> ArangoError:
    """Return error 1501 that names line and column, both counted from 1."""
    line = text.count("\n", 0, position) + 1
    column = position - (text.rfind("\n", 0, position) + 1) + 1
    near = text[position : position + 40] or "end of query string"
    return ArangoError(
        1501,
        f"AQL: syntax error, {what} near '{near}' at position {line}:{column} (while parsing)",
    )


def _unescape(body: str) -> str:
    if "\\" not in body:
        return body

    def replace(match: re.Match[str]) -> str:
        if match[1]:
            return chr(int(match[1], 16))
        return _ESCAPED.get(match[2], match[2])

    text = _ESCAPE.sub(replace, body)
    if any("\ud800" <= c <= "\udfff" for c in text):
        # \ud83d\ude00 are two escapes of one character.
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _plain_tokens(text: str) -> Iterator[Token]:
    position, end = 0, len(text)
    while position < end:
        match = _TOKEN.match(text, position)
        if match is None:
            raise syntax_error(text, position, "unexpected character or unterminated literal")
        kind, value = match.lastgroup, match[0]
        if kind != "space":
            yield _token(str(kind), value, position)
        position = match.end()


def _token(kind: str, value: str, position: int) -> Token:
    if kind == "name":
        kind = _WORDS.get(value.upper(), "NAME")
    elif kind == "symbol":
        kind = _SYMBOLS[value]
    elif kind == "quoted":
        kind, value = "NAME", _unescape(value[1:-1])
    elif kind == "string":
        kind, value = "STRING", _unescape(value[1:-1])
    elif kind == "bind":
        kind, value = "BIND", value[1:]
    elif kind == "collection":
        kind, value = "COLLECTION_BIND", value[1:]
    else:
        kind = kind.upper()
    return Token(kind, value, start_pos=position)


def tokens(text: str) -> Iterator[Token]:
    """Yield the tokens of `text`.

    `NOT IN`, `NOT LIKE` and `AT LEAST` become one token. ALL, ANY and NONE in front of a
    comparison become EACH_…, so that they differ from a traversal's direction.

    Raises:
        ArangoError: 1501 at a character that begins no token.
    """
    pending: list[Token] = []
    for token in _plain_tokens(text):
        pending.append(token)
        while len(pending) >= 3:
            yield from _settle(pending)
    while pending:
        yield from _settle(pending)


def _settle(pending: list[Token]) -> Iterator[Token]:
    """Take one finished token from the front of `pending`, looking at most two further."""
    first = pending.pop(0)
    second = pending[0].type if pending else ""
    if first.type == "NOT" and second in _NEGATABLE:
        pending.pop(0)
        first = Token(_NEGATABLE[second], first, start_pos=first.start_pos)
    elif first.type in ("_ALL", "_ANY", "_NONE"):
        third = pending[1].type if len(pending) > 1 else ""
        if second in _COMPARISONS or (second == "NOT" and third in _NEGATABLE):
            first = Token("EACH" + first.type, first, start_pos=first.start_pos)
    elif first.type == "NAME" and first.upper() == "AT" and _is_least(pending):
        pending.pop(0)
        first = Token("_AT_LEAST", first, start_pos=first.start_pos)
    yield first


def _is_least(pending: list[Token]) -> bool:
    return bool(pending) and pending[0].type == "NAME" and pending[0].upper() == "LEAST"


class AqlLexer(Lexer):
    """Lark's view of `tokens`."""

    def __init__(self, lexer_conf: Any) -> None:
        """Take nothing from the configuration: the tokens are fixed."""

    def lex(self, lexer_state: Any, _parser_state: Any = None) -> Iterator[Token]:
        """Yield the tokens of the text; lark hands it over as `lexer_state`."""
        return tokens(lexer_state)
