"""Vault: tools added, personas, tampering."""

from __future__ import annotations

import pytest
from sqlalchemy import text
from vault_samples import BROKEN, FIXED, V1, V2, V3

from healkit.contracts.execution import Grants
from healkit.errors import (
    PersonaNotFound,
    RevisionNotFound,
    ToolExists,
    ToolNotFound,
    VaultError,
    VaultTampered,
)
from healkit.store.database import Database
from healkit.store.vault import Vault


@V2
def test_name_and_code_are_enough(vault: Vault) -> None:
    entry = vault.add("fibonacci", BROKEN)
    assert (entry.label, entry.ref.filename, entry.type) == ("fibonacci v1", "<fibonacci@1>", "python")
    assert entry.description == "The n-th Fibonacci number."
    assert entry.input_schema == {
        "type": "object",
        "properties": {"n": {"type": "integer"}},
        "additionalProperties": False,
        "required": ["n"],
    }
    assert vault.lookup("fibonacci") == entry


@V2
def test_given_values_are_stored_as_given(vault: Vault) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 0}}}
    vault.add(
        "fibonacci",
        BROKEN,
        persona="teacher",
        description="mine",
        input_schema=schema,
        examples=[{"arguments": {"n": 10}, "result": 55}],
        group="lessons",
        grants={"read": ["/data"], "calls": ["host.*"], "memory_mb": 64},
        side_effects=True,
    )
    entry = vault.lookup("fibonacci", "teacher")
    assert (entry.description, entry.input_schema, entry.group) == ("mine", schema, "lessons")
    assert entry.examples == [{"arguments": {"n": 10}, "result": 55}]
    assert entry.grants == Grants(read=("/data",), calls=("host.*",), memory_mb=64)
    assert entry.flags["side_effects"] is True
    assert entry.label == "fibonacci v1 (teacher)"


@V1
@pytest.mark.requirement("SCALE-1")
def test_code_is_stored_once_under_its_hash(vault: Vault, database: Database) -> None:
    first, second = vault.add("one", "def run(): return 'ä'"), vault.add("two", "def run(): return 'ä'")
    assert first.code_hash == second.code_hash
    assert vault.code(first.code_hash[:12]) == first.code
    with database.read() as session:
        rows = session.execute(text("SELECT hash, code, type FROM codevault")).all()
    assert [tuple(row) for row in rows] == [(first.code_hash, "def run(): return 'ä'", "python")]


@V1
def test_tampered_code_is_never_returned(vault: Vault, database: Database) -> None:
    vault.add("fibonacci", BROKEN)
    vault.patch("fibonacci", FIXED)
    with database.write() as session:
        session.execute(text("UPDATE codevault SET code = 'import os' WHERE code = :code"), {"code": FIXED})
    for hand_out in (
        lambda: vault.lookup("fibonacci"),
        lambda: vault.get("fibonacci", revision=2),
        lambda: vault.revert("fibonacci", 2),
    ):
        with pytest.raises(VaultTampered, match="fibonacci v2"):
            hand_out()
    assert vault.names() == ["fibonacci"]
    assert vault.revert("fibonacci", 1).code == BROKEN


@V1
def test_saving_the_true_code_repairs_a_tampered_row(vault: Vault, database: Database) -> None:
    vault.add("fibonacci", FIXED)
    with database.write() as session:
        session.execute(text("UPDATE codevault SET code = 'import os'"))
    assert vault.patch("fibonacci", FIXED).revision == 1
    assert vault.lookup("fibonacci").code == FIXED


def test_adding_a_tool_again_changes_nothing(vault: Vault) -> None:
    first = vault.add("fibonacci", BROKEN)
    assert vault.add("fibonacci", BROKEN, description="other") == first
    with pytest.raises(ToolExists, match="Patch it"):
        vault.add("fibonacci", FIXED)
    assert [info.number for info in vault.history("fibonacci")] == [1]


def test_adding_a_tool_with_other_grants_is_refused(vault: Vault) -> None:
    vault.add("fibonacci", BROKEN, grants={"memory_mb": 64})
    assert vault.add("fibonacci", BROKEN).grants.memory_mb == 64
    assert vault.add("fibonacci", BROKEN, grants={"memory_mb": 64}).grants.memory_mb == 64
    with pytest.raises(ToolExists, match="set_grants"):
        vault.add("fibonacci", BROKEN, grants={"memory_mb": 32})


@V3
def test_the_exact_persona_comes_before_default(vault: Vault) -> None:
    vault.add("fibonacci", BROKEN)
    vault.add("fibonacci", FIXED, persona="teacher")
    assert vault.lookup("fibonacci", "teacher").code == FIXED
    assert vault.lookup("fibonacci", "student").persona == "default"
    assert [entry.label for entry in vault.list()] == ["fibonacci v1", "fibonacci v1 (teacher)"]
    assert [entry.persona for entry in vault.list("teacher")] == ["teacher"]


@V3
def test_an_unknown_name_suggests_near_ones(vault: Vault) -> None:
    with pytest.raises(ToolNotFound, match="empty"):
        vault.lookup("fib")
    vault.add("fibonacci", BROKEN, persona="teacher")
    with pytest.raises(ToolNotFound, match="Did you mean 'fibonacci'"):
        vault.lookup("fibonaci")
    with pytest.raises(PersonaNotFound, match="Did you mean 'teacher'"):
        vault.lookup("fibonacci", "teachr")
    with pytest.raises(RevisionNotFound, match=r"It has v1\."):
        vault.get("fibonacci", "teacher", 7)


def test_changes_never_fall_back_to_the_default_persona(vault: Vault) -> None:
    vault.add("fibonacci", BROKEN)
    for change in (
        lambda: vault.patch("fibonacci", FIXED, persona="teacher"),
        lambda: vault.revert("fibonacci", 1, persona="teacher"),
        lambda: vault.set_grants("fibonacci", "teacher", memory_mb=1),
    ):
        with pytest.raises(PersonaNotFound, match="'default'"):
            change()


@pytest.mark.parametrize("name", ["", "_private", "class", "a-b", "a b", "__init__", "1st"])
def test_names_that_cannot_be_called_are_refused(vault: Vault, name: str) -> None:
    with pytest.raises(VaultError, match="cannot be a tool's name"):
        vault.add(name, BROKEN)


@pytest.mark.parametrize("persona", ["", "a b", "ä", "x" * 65, "a\n"])
def test_odd_personas_are_refused(vault: Vault, persona: str) -> None:
    with pytest.raises(VaultError, match="cannot be a persona"):
        vault.add("fibonacci", BROKEN, persona=persona)
