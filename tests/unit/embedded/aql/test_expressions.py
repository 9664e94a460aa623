"""Expressions: what each operator and accessor gives, in pairs of query and answer."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.embedded.aql.asking import error, rows, run

NESTED = "[{n: 1, m: [{k: 'a'}, {k: 'b'}]}, {n: 2, m: [{k: 'c'}]}]"


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("1 + 2 * 3 - 4 / 2", 5),
        ("-2 * -3", 6),
        ("7 % -3", 1),
        ("-7 % 3", -1),
        ("9223372036854775807 + 1", 9223372036854775808.0),
        ("0xff + 0b101", 260),
        ("1..3", [1, 2, 3]),
        ("3..1", [3, 2, 1]),
        ("1 < 2 == true", True),
        ("1 IN 1..3", True),
        ("1 IN 5", False),
        ("1 NOT IN null", True),
        ("NOT true || true", True),
        ("null ?: 0 ?: 'x'", "x"),
        ("true ? false ? 1 : 2 : 3", 2),
        ("'foo' LIKE 'f_o' AND 'foo' NOT LIKE 'x%'", True),
        ("'foo' =~ 'o+$' AND 'foo' !~ '^o'", True),
        (r"'a\\_b' LIKE 'a\\\\_b'", True),
        ("[1, 2] ALL IN [1, 2, 3]", True),
        ("[] ANY == 1", False),
        ("[] ALL == 1", True),
        ("null ALL == 1", False),
        ("[1, 2, 3] AT LEAST (2) > 1", True),
        ("[1, 2, 3] NONE > 3", True),
        ("['ab', 'b'] ANY LIKE 'a%'", True),
        (f"{NESTED}[*].n", [1, 2]),
        (f"{NESTED}[*].m[*].k", [["a", "b"], ["c"]]),
        (f"{NESTED}[*].m[**].k", ["a", "b", "c"]),
        (f"{NESTED}[* FILTER CURRENT.n > 1].m[*].k", [["c"]]),
        (f"{NESTED}[* LIMIT 1, 1 RETURN CURRENT.n * 10]", [20]),
        (f"({NESTED}[*].n)[1]", 2),
        (f"{NESTED}[? 1 FILTER CURRENT.n == 2]", True),
        (f"{NESTED}[? AT LEAST (3) FILTER CURRENT.n]", False),
        ("{a: 1}[*]", []),
        ("{a: {b: 2}}['a'].b", 2),
        ("{a: 1, ['b' + 0]: 2, [CONCAT('c', 1)]: 3}", {"a": 1, "0": 2, "c1": 3}),
        ("{a: 1, a: 2}", {"a": 2}),
        ("FIRST(FOR i IN 1..3 FILTER i > 1 RETURN i)", 2),
        ("LENGTH({a: 1, b: 2}) + LENGTH('äöü') + LENGTH(null)", 5),
        ("`FOR`.x", None),
        ("1e999", None),
    ],
)
def test_an_expression_has_its_value(expression: str, value: Any) -> None:
    assert rows(f"LET `FOR` = 1 RETURN {expression}") == [value]


@pytest.mark.parametrize(
    ("expression", "number"),
    [
        ("1 / 0", 1562),
        ("1 + 'x'", 1561),
        ("-[1, 2]", 1561),
        ("1e300 * 1e300", 1504),
        ("'a' =~ '('", 1543),
        ("FIRST(1)", 1563),
        ("DATE_YEAR('nonsense')", 1572),
        ("PUSH(1, 2)", 1542),
    ],
)
def test_a_value_that_makes_no_sense_is_warned_of(expression: str, number: int) -> None:
    assert [code for code, _ in run(f"RETURN {expression}").warnings] == [number]


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("RETURN {nothing}", 1512),
        ("RETURN nothing", 1203),
        ("LET a = 1 LET a = 2 RETURN a", 1511),
        ("RETURN NOSUCH(1)", 1540),
        ("RETURN my::function(1)", 1582),
        ("RETURN LENGTH()", 1541),
        ("FOR x IN 1 RETURN x", 1563),
        ("FOR x IN 1..2 LIMIT x RETURN x", 1501),
        ("FOR x IN 1..2 LIMIT -1 RETURN x", 1504),
        ("RETURN 1 RETURN 2", 1501),
        ("FOR x IN 1..2 FILTER x", 1501),
        ("RETURN " + "+(" * 400 + "1" + ")" * 400, 1524),
    ],
)
def test_a_query_that_makes_no_sense_is_refused(text: str, number: int) -> None:
    assert error(text) == number


def test_bound_attributes_are_names_or_paths() -> None:
    document = {"a": {"b": 1}}

    assert rows("RETURN @d.@p", d=document, p=["a", "b"]) == [1]
    assert rows("RETURN @d[@p].b", d=document, p="a") == [1]
    assert error("RETURN @d.@p", d=document, p=5) == 1553


def test_destructuring_takes_arrays_and_objects_apart() -> None:
    assert rows("LET [a, , [b]] = [1, 2, [3, 4]], {x, y: {z: c}} = {x: 5} RETURN [a, b, x, c]") == [
        [1, 3, 5, None]
    ]
    assert rows("FOR {name, tags: [first]} IN @d RETURN [name, first]", d=[{"name": "n"}]) == [
        ["n", None]
    ]


def test_no_argument_is_changed_by_a_function() -> None:
    given = {"list": [3, 1, 2], "object": {"a": {"b": 1}}}

    rows(
        "RETURN [PUSH(@g.list, 4), SORTED(@g.list), REVERSE(@g.list), UNSHIFT(@g.list, 0),"
        " MERGE(@g.object, {c: 1}), MERGE_RECURSIVE(@g.object, {a: {c: 1}}),"
        " UNSET_RECURSIVE(@g.object, 'b'), REPLACE_NTH(@g.list, 0, 9)]",
        g=given,
    )

    assert given == {"list": [3, 1, 2], "object": {"a": {"b": 1}}}
