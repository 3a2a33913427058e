"""Arguments checked against a schema: every problem is named."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from healkit.core.contracts.vault import VaultEntry
from healkit.core.store.arguments import _clearly_valid, check_schema, validate_arguments
from healkit.errors import ArgumentsInvalid, SchemaInvalid

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "n": {"type": "integer", "minimum": 0},
        "mode": {"enum": ["fast", "exact"]},
        "points": {"type": "array", "items": {"type": "object", "properties": {"x": {"type": "number"}}}},
        "limit": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None},
    },
    "required": ["n"],
    "additionalProperties": False,
}
V2 = pytest.mark.requirement("VAULT-2")


def entry(schema: dict[str, Any]) -> VaultEntry:
    return VaultEntry("fibonacci", "default", 2, "", "", input_schema=schema)


@V2
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "'n' is missing"),
        ({"n": "ten"}, "'n' must be integer, got 'ten' (str)"),
        ({"n": True}, "'n' must be integer, got True (bool)"),
        ({"n": -1}, "'n': -1 is less than the minimum of 0"),
        ({"n": 1, "mod": "fast"}, "'mod' is unknown, did you mean 'mode'?"),
        ({"n": 1, "zzz": 1}, "'zzz' is unknown."),
        ({"n": 1, "mode": "slow"}, "'mode' must be one of 'fast', 'exact', got 'slow' (str)"),
        ({"n": 1, "points": [{"x": 1}, {"x": "a"}]}, "points[1].x must be number, got 'a' (str)"),
        ({"n": 1, "limit": "x"}, "'limit' must be integer or null, got 'x' (str)"),
    ],
)
def test_the_error_names_the_argument_and_why(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(ArgumentsInvalid) as caught:
        validate_arguments(entry(SCHEMA), arguments)
    assert said in str(caught.value)
    assert str(caught.value).startswith("fibonacci v2 cannot be called: ")


@V2
@pytest.mark.requirement("TRACE-2")
@pytest.mark.parametrize("rule", [{"type": "integer"}, {"enum": ["a", "b"]}, {"minLength": 40}])
def test_the_error_quotes_no_value_behind_a_secrets_name(rule: dict[str, Any]) -> None:
    schema = {"type": "object", "properties": {"password": rule}}
    with pytest.raises(ArgumentsInvalid) as caught:
        validate_arguments(entry(schema), {"password": "Tr0ub4dor99"})
    assert "'password'" in str(caught.value)
    assert "Tr0ub4dor99" not in str(caught.value)


@V2
def test_all_problems_are_in_one_error() -> None:
    with pytest.raises(ArgumentsInvalid) as caught:
        validate_arguments(entry({**SCHEMA, "required": ["n", "mode"]}), {"limit": "x", "nn": 1, "q": 2})
    for said in (
        "'n' is missing",
        "'mode' is missing",
        "'nn' is unknown",
        "'q' is unknown",
        "'limit' must be",
    ):
        assert said in str(caught.value)


@V2
def test_good_arguments_pass_without_defaults_filled_in() -> None:
    arguments: dict[str, Any] = {"n": 1, "mode": "fast", "points": [{"x": 1.5}]}
    validate_arguments(entry(SCHEMA), arguments)
    assert "limit" not in arguments
    validate_arguments(entry({"type": "object"}), {"anything": [1, {}]})


KINDS = ("array", "boolean", "integer", "null", "number", "object", "string")
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=2),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=5,
)
SCHEMAS = st.recursive(
    st.just({}) | st.sampled_from(KINDS).map(lambda kind: {"type": kind}) | st.just({"minimum": 1}),
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            "type": st.sampled_from(KINDS) | st.just(["integer", "null"]),
            "properties": st.dictionaries(st.sampled_from("abc"), inner, max_size=2),
            "required": st.lists(st.sampled_from("abc"), max_size=2, unique=True),
            "additionalProperties": st.booleans() | inner,
            "items": inner,
            "anyOf": st.lists(inner, min_size=1, max_size=2),
            "default": st.just(0),
        },
    ),
    max_leaves=6,
)


@given(SCHEMAS, VALUES)
def test_the_quick_check_accepts_valid_arguments_only(schema: dict[str, Any], value: Any) -> None:
    if _clearly_valid(schema, value):
        assert Draft202012Validator(schema).is_valid(value)


def test_references_stay_inside_the_schema() -> None:
    schema = {
        "type": "object",
        "properties": {"n": {"$ref": "#/$defs/count"}},
        "$defs": {"count": {"type": "integer"}},
    }
    check_schema(schema, "f")
    with pytest.raises(ArgumentsInvalid, match="'n' must be integer"):
        validate_arguments(entry(schema), {"n": "x"})
    with pytest.raises(SchemaInvalid, match="outside"):
        check_schema({"type": "object", "properties": {"n": {"$ref": "http://127.0.0.1:9/schema"}}}, "f")
    with pytest.raises(SchemaInvalid, match="cannot be used"):
        validate_arguments(entry({"type": "object", "$ref": "#/nowhere"}), {})


@pytest.mark.slow
def test_the_first_check_builds_no_grammar_and_hides_no_package() -> None:
    code = (
        "import sys\nfrom healkit.core.store.arguments import check_schema\n"
        "check_schema({'type': 'object'}, 'tool')\n"
        "print('jsonschema' in sys.modules, 'rfc3987_syntax' in sys.modules)\nimport rfc3987_syntax\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "True False\n"
