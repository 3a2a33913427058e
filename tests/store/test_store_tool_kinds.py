"""Kinds of tool that the vault accepts or refuses."""

from __future__ import annotations

from pathlib import Path

import pytest
from vault_samples import BROKEN, FIXED, V2, V6, V8

from healkit.contracts.execution import Grants
from healkit.errors import (
    CodeDoesNotParse,
    ConfigError,
    SchemaInvalid,
    SqlNotAllowed,
    ToolShapeError,
    VaultError,
)
from healkit.store.vault import Vault


@V2
def test_a_schema_is_replaced_and_read_off_the_code_again(vault: Vault) -> None:
    vault.add("fibonacci", BROKEN)
    given = {"type": "object", "properties": {"n": {"type": "integer", "maximum": 90}}}
    assert vault.set_schema("fibonacci", given).input_schema == given
    other = "def fibonacci(n: int, start: int):\n    return n"
    vault.patch("fibonacci", other)
    assert vault.get("fibonacci").input_schema == given
    with pytest.raises(SchemaInvalid):
        vault.set_schema("fibonacci", {"type": "array"})
    assert list(vault.set_schema("fibonacci", None).input_schema["properties"]) == ["n", "start"]
    assert vault.patch("fibonacci", BROKEN).label == "fibonacci v3"
    assert list(vault.get("fibonacci").input_schema["properties"]) == ["n"]


@V2
def test_a_schema_read_off_the_code_follows_the_signature_and_a_given_one_stays(vault: Vault) -> None:
    vault.add("derived", "def derived(a: int): return a")
    vault.add("given", "def given(a: int): return a", input_schema={"type": "object"}, description="mine")
    code = 'def {0}(b: str):\n    """New."""\n    return b'
    assert vault.patch("derived", code.format("derived")).input_schema["required"] == ["b"]
    assert vault.lookup("derived").description == "New."
    assert vault.patch("given", code.format("given")).input_schema == {"type": "object"}
    assert vault.lookup("given").description == "mine"


@V6
@pytest.mark.parametrize(
    "code",
    [
        "class Adder(Tool):\n    def run(self, arguments):\n        return arguments['a'] + 1",
        "def run(a: int):\n    return a + 1",
        "def adder(a: int):\n    return a + 1\ndef other(): ...",
        "def plus(a: int):\n    return a + 1",
        "result = arguments['a'] + 1",
    ],
    ids=["class", "run", "named like the tool", "the only one", "script"],
)
def test_all_three_kinds_of_python_tool_are_accepted(vault: Vault, code: str) -> None:
    entry = vault.add("adder", code)
    assert entry.input_schema["type"] == "object"
    assert vault.lookup("adder").code == code


@V6
def test_a_sql_tool_takes_its_parameters_as_its_arguments(vault: Vault) -> None:
    entry = vault.add(
        "top", "SELECT * FROM sales WHERE region = :region AND year > :year LIMIT 5", type="sql"
    )
    assert list(entry.input_schema["properties"]) == entry.input_schema["required"] == ["region", "year"]
    with pytest.raises(SqlNotAllowed):
        vault.patch("top", "DELETE FROM sales")
    assert vault.patch("top", "SELECT :a AS a").input_schema["required"] == ["a"]


def test_code_that_is_no_tool_is_refused_with_a_reason(vault: Vault) -> None:
    with pytest.raises(ToolShapeError, match="'run' or 'twins'"):
        vault.add("twins", "def a(): ...\ndef b(): ...")
    assert vault.names() == []


@V8
def test_code_that_does_not_parse_is_refused_with_its_position(vault: Vault) -> None:
    vault.add("fibonacci", FIXED)
    with pytest.raises(CodeDoesNotParse, match="line 1, column") as caught:
        vault.patch("fibonacci", "def fibonacci(n: return n")
    assert caught.value.lineno == 1
    assert "^" in str(caught.value)
    assert [info.number for info in vault.history("fibonacci")] == [1]


@V8
def test_a_draft_does_not_change_the_active_revision(vault: Vault) -> None:
    vault.add("fibonacci", FIXED)
    draft = vault.patch("fibonacci", "def fibonacci(n: return n", draft=True, reason="half done")
    assert (draft.revision, draft.draft) == (2, True)
    assert vault.lookup("fibonacci").revision == 1
    assert vault.get("fibonacci", revision=2).code == "def fibonacci(n: return n"
    finished = vault.patch("fibonacci", "def fibonacci(n): return n", parent=2)
    assert (finished.revision, finished.draft) == (3, False)
    assert [(i.number, i.parent, i.draft, i.active) for i in vault.history("fibonacci")] == [
        (1, None, False, False),
        (2, 1, True, False),
        (3, 2, False, True),
    ]
    with pytest.raises(VaultError, match="draft"):
        vault.revert("fibonacci", 2)


@V8
def test_a_new_tool_may_be_a_draft(vault: Vault) -> None:
    assert vault.add("half", "def half(", draft=True).draft
    assert vault.lookup("half").draft
    assert not vault.patch("half", "def half(n): return n / 2").draft


@V2
@pytest.mark.parametrize(
    "schema",
    [
        {"type": "array"},
        {},
        {"type": "object", "properties": 3},
        {"type": "object", "$ref": "http://x/y"},
        [1],
    ],
)
def test_a_schema_must_describe_an_object(vault: Vault, schema: object) -> None:
    with pytest.raises(SchemaInvalid, match="fibonacci"):
        vault.add("fibonacci", BROKEN, input_schema=schema)
    assert vault.names() == []


def test_grants_are_checked_by_name_and_changed_one_by_one(vault: Vault, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no grant 'network'"):
        vault.add("fibonacci", BROKEN, grants={"network": True})
    with pytest.raises(ConfigError, match="not an absolute path"):
        vault.add("fibonacci", BROKEN, grants={"read": ["data"]})
    with pytest.raises(ConfigError, match="memory_mb"):
        vault.add("fibonacci", BROKEN, grants={"memory_mb": "much"})
    vault.add("fibonacci", BROKEN, grants={"memory_mb": 64})
    entry = vault.set_grants("fibonacci", read=tmp_path / "data")
    assert entry.grants == Grants(read=(str(tmp_path / "data"),), memory_mb=64)
    assert vault.set_grants("fibonacci", memory_mb=None).grants == Grants(read=(str(tmp_path / "data"),))
    assert entry.revision == 1


def test_code_with_lone_surrogates_is_refused(vault: Vault) -> None:
    with pytest.raises(VaultError, match="surrogate at position"):
        vault.add("fibonacci", "def fibonacci(): return '\ud800'")
    with pytest.raises(VaultError, match="author='robot'"):
        vault.add("fibonacci", BROKEN, author="robot")
