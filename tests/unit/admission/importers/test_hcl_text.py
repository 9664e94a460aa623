"""Expressions: what reading gives, and what it never guesses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from region_scheduler.admission.importers.hcl_text import Expressions, NotStatic, parts

KNOWN: dict[str, Any] = {"local": {"a": "x", "n": 3, "list": ["p", "q"], "deep": {"b": ["z"]}}}


def root(name: str) -> Any:
    if name in KNOWN:
        return KNOWN[name]
    raise NotStatic


def up(arguments: Sequence[str], depth: int) -> str:
    return str(EXPRESSIONS.value(arguments[0], depth)).upper()


EXPRESSIONS = Expressions(root, {"up": up})


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('"plain"', "plain"),
        ('"${local.a}/y"', "x/y"),
        ('"n${local.n}"', "n3"),
        ('"a\\"b\\\\c\\n"', 'a"b\\c\n'),
        ('"$${not} %%{not}"', "${not} %{not}"),
        ('"${up("${local.a}}")}"', "X}"),
        ('"${~ local.a ~}"', "x"),
        ("local.deep.b[0]", "z"),
        ('local["a"]', "x"),
        ("(local.a)", "x"),
        ("[local.a, # first\n \"b,c\", /* no , */ 'd']", None),
        ('["a", local.a,]', ["a", "x"]),
        ("true", True),
        ("null", None),
        ("-1.5", -1.5),
        ('{ a = "b", "c" : local.a }.c', None),
        ('up(up("a"))', "A"),
    ],
)
def test_static_values(text: str, value: Any) -> None:
    if value is None and text != "null":
        with pytest.raises(NotStatic):
            EXPRESSIONS.value(text)
    else:
        assert EXPRESSIONS.value(text) == value


def test_an_object_is_looked_at_where_it_is_asked_for() -> None:
    made = EXPRESSIONS.value('{\n  a = "b" // one\n  "c d" = local.a\n  e = nothing.known\n}')

    assert (made["a"], made["c d"], len(made)) == ("b", "x", 3)
    with pytest.raises(NotStatic):
        made["e"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "values.x",
        "local.missing",
        "local.list[7]",
        "local.list.a",
        "local.a + 1",
        'local.a == "x" ? 1 : 2',
        "[for x in local.list : x]",
        "local.list.*.id",
        "unknown(1)",
        '"open',
        '"${open"',
        "[1, 2",
        "<<EOF\nx\nEOF\n",
        '"%{ if true }a%{ endif }"',
        '"${local.list}"',
        '"${true}"',
        "local.a local.a",
        "!true",
        "up(",
        "(" * 500 + "1" + ")" * 500,
        '"${' * 500 + "1" + '}"' * 500,
    ],
)
def test_what_is_not_static_is_never_guessed(text: str) -> None:
    with pytest.raises(NotStatic):
        EXPRESSIONS.value(text)


@given(st.text(alphabet='"${}[]()\\ab.,#/*=\n1 ', max_size=40))
def test_any_text_has_a_value_or_none(text: str) -> None:
    try:
        EXPRESSIONS.value(text)
        list(parts(text, ","))
    except NotStatic:
        pass


def test_parts_are_split_outside_brackets_texts_and_comments() -> None:
    text = '"a,b", f(1, 2), [x, y] # , no\n, {a = 1, b = 2}, // last, \n z'

    assert list(parts(text, ",")) == ['"a,b"', "f(1, 2)", "[x, y]", "{a = 1, b = 2}", "z"]
