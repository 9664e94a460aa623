"""Parameters: defaults, texts from a command line, and refusals with field, value and way out."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from region_scheduler.catalog.compose import zone_type, zone_types
from region_scheduler.catalog.parameters import Parameter, checked_parameters
from region_scheduler.errors import InvalidInput


def checked(given: dict[str, Any], name: str = "aws-soc2") -> dict[str, Any]:
    return checked_parameters(zone_type(name).parameters, given, "acme")


def declared(type_: str, **more: Any) -> tuple[Parameter, ...]:
    return (Parameter(name="p", type=type_, purpose="", default=None, **more),)


def test_everything_has_a_default_that_its_own_type_accepts() -> None:
    for of_type in zone_types():
        values = checked_parameters(of_type.parameters, {}, "acme")
        assert list(values) == [parameter.name for parameter in of_type.parameters]
        assert checked_parameters(of_type.parameters, values, "acme") == values
        assert {"organisation", "environment", "cidr", "contact"} <= set(values)
        assert values["organisation"] == "acme"
        assert values["contact"] == "platform-team@acme.example"


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("evidence_months", "24", 24),
        ("audit_months", 6, 6),
        ("cidr", "172.16.0.0/16", "172.16.0.0/16"),
        ("residency", "eu-west, us-east", ["eu-west", "us-east"]),
        ("residency", "", []),
        ("overlays", "gdpr", ["gdpr"]),
        ("environment", "production", "production"),
        ("contact", "o'brien+zones@mail.acme.example", "o'brien+zones@mail.acme.example"),
        ("management_account", "123456789012", "123456789012"),
    ],
)
def test_a_value_is_understood(name: str, text: object, value: object) -> None:
    assert checked({name: text})[name] == value


@pytest.mark.parametrize(
    ("name", "value", "way_out"),
    [
        ("environment", "prod", "give one of production, staging, development, sandbox"),
        ("environment", ["production"], "give one of production"),
        ("cidr", "10.0.0.1/12", "host bits zero, such as 10.0.0.0/12"),
        ("cidr", "10.0.0.0", "give an IPv4 network from /8 to /20"),
        ("cidr", "10.0.0.0/24", "give an IPv4 network from /8 to /20"),
        ("cidr", "10.0.0.0/7", "give an IPv4 network"),
        ("cidr", "10.0.0.0/255.240.0.0x", "give an IPv4 network"),
        ("cidr", "fd00::/12", "give an IPv4 network"),
        ("cidr", 12, "give an IPv4 network"),
        ("contact", "ops", "give one mail address"),
        ("contact", "ops@acme", "give one mail address"),
        ("contact", "a@acme.example,b@acme.example", "give one mail address"),
        ("contact", "ops@acme.example\n", "give one mail address"),
        ("organisation", "acme/eu", "give letters, digits, dots, dashes and underscores"),
        ("organisation", "", "a letter or digit first"),
        ("cost_centre", "a b", "give letters, digits, dots and dashes, at most 40"),
        ("evidence_months", "0", "give a whole number from 1 to 240"),
        ("evidence_months", "a year", "give a whole number from 1 to 240"),
        ("evidence_months", True, "give a whole number from 1 to 240"),
        ("evidence_months", 1.5, "give a whole number from 1 to 240"),
        ("evidence_months", "²", "give a whole number from 1 to 240"),
        ("residency", "EU", "give regions separated by commas"),
        ("residency", "eu-west,eu-west", "each once"),
        ("residency", {"eu-west": 1}, "give regions separated by commas"),
        ("overlays", "ccpa", "give some of gdpr, each once"),
        ("management_account", "12345", "give twelve digits"),
        ("colour", "red", "this zone type takes organisation, environment, cidr, contact"),
        ("billing_scope", "/x", "this zone type takes organisation"),
    ],
)
def test_a_value_is_refused_with_field_value_and_way_out(
    name: str, value: object, way_out: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        checked({name: value})

    assert refused.value.field == f"parameter {name}"
    assert refused.value.value == str(value)
    assert way_out in refused.value.expected
    assert refused.value.exit_code == 2


@given(value=st.text() | st.integers() | st.none() | st.lists(st.text()) | st.floats())
def test_nothing_but_invalid_input_is_ever_raised(value: object) -> None:
    for type_ in ("name", "email", "cidr", "integer", "enum", "names", "regions"):
        try:
            checked_parameters(declared(type_, values=("a",), min=8, max=20), {"p": value}, "acme")
        except InvalidInput as refused:
            assert refused.expected  # noqa: PT017  either outcome is right, another error is not
