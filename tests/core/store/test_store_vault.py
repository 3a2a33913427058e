"""Vault: tools added, renamed, removed; personas; tampering."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import text
from vault_samples import BROKEN, FIXED, V1, V2, V3, V4, V6, V8

from healkit.core.contracts.execution import Grants
from healkit.core.store.database import Database
from healkit.core.store.vault import Vault
from healkit.errors import (
    CodeDoesNotParse,
    ConfigError,
    PersonaNotFound,
    RevisionNotFound,
    SchemaInvalid,
    SqlNotAllowed,
    ToolExists,
    ToolNotFound,
    ToolRemoved,
    ToolShapeError,
    VaultError,
    VaultTampered,
)
from healkit.parts.heal.requests import Requests


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


def test_odd_names_of_tools_and_personas_are_refused(vault: Vault) -> None:
    for name in ("", "_private", "class", "a-b", "a b", "__init__", "1st"):
        with pytest.raises(VaultError, match="cannot be a tool's name"):
            vault.add(name, BROKEN)
    for persona in ("", "a b", "ä", "x" * 65, "a\n"):
        with pytest.raises(VaultError, match="cannot be a persona"):
            vault.add("fibonacci", BROKEN, persona=persona)


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
def test_all_three_kinds_of_python_tool_are_accepted(vault: Vault) -> None:
    for number, code in enumerate((
        "class Adder(Tool):\n    def run(self, arguments):\n        return arguments['a'] + 1",
        "def run(a: int):\n    return a + 1",
        "def adder3(a: int):\n    return a + 1\ndef other(): ...",  # named like the tool
        "def plus(a: int):\n    return a + 1",
        "result = arguments['a'] + 1",
    ), 1):  # fmt: skip
        assert vault.add(f"adder{number}", code).input_schema["type"] == "object"
        assert vault.lookup(f"adder{number}").code == code


@V6
def test_a_sql_tool_takes_its_parameters_as_its_arguments(vault: Vault) -> None:
    entry = vault.add(
        "top", "SELECT * FROM sales WHERE region = :region AND year > :year LIMIT 5", type="sql"
    )
    assert list(entry.input_schema["properties"]) == entry.input_schema["required"] == ["region", "year"]
    with pytest.raises(SqlNotAllowed):
        vault.patch("top", "DELETE FROM sales")
    assert vault.patch("top", "SELECT :a AS a").input_schema["required"] == ["a"]


def test_code_without_a_tool_is_refused_with_a_reason(vault: Vault) -> None:
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
        (1, None, False, False), (2, 1, True, False), (3, 2, False, True),
    ]  # fmt: skip
    with pytest.raises(VaultError, match="draft"):
        vault.revert("fibonacci", 2)


@V8
def test_a_new_tool_may_be_a_draft(vault: Vault) -> None:
    assert vault.add("half", "def half(", draft=True).draft
    assert vault.lookup("half").draft
    assert not vault.patch("half", "def half(n): return n / 2").draft


@V2
def test_a_schema_must_describe_an_object(vault: Vault) -> None:
    for schema in (
        {"type": "array"},
        {},
        {"type": "object", "properties": 3},
        {"type": "object", "$ref": "http://x/y"},
        [1],
    ):
        with pytest.raises(SchemaInvalid, match="fibonacci"):
            vault.add("fibonacci", BROKEN, input_schema=schema)
    assert vault.names() == []


def test_grants_are_checked_by_name_and_changed_one_by_one(vault: Vault, tmp_path: Path) -> None:
    for grants, said in (
        ({"network": True}, "no grant 'network'"), ({"read": ["data"]}, "not an absolute path"), ({"memory_mb": "much"}, "memory_mb"),
    ):  # fmt: skip
        with pytest.raises(ConfigError, match=said):
            vault.add("fibonacci", BROKEN, grants=grants)
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


@V4
def test_a_renamed_tool_keeps_its_history_and_settings(vault: Vault) -> None:
    """C4: a tool could not be renamed."""
    vault.add("fib", "def run(n):\n    return 1 / 0\n", grants={"memory_mb": 64}, side_effects=True)
    vault.patch("fib", "def run(n):\n    return n\n", reason="no division")
    renamed = vault.rename("fib", "fibonacci", reason="a full word")
    assert (renamed.label, renamed.grants.memory_mb, renamed.flags["side_effects"]) == (
        "fibonacci v2", 64, True,
    )  # fmt: skip
    assert [revision.reason for revision in vault.history("fibonacci")] == ["", "no division"]
    assert vault.names() == ["fibonacci"]
    assert vault.patch("fibonacci", "def run(n):\n    return -n\n").revision == 3
    (change,) = vault.name_changes("fibonacci")
    assert (change.kind, change.old_name, change.new_name, change.reason) == (
        "renamed", "fib", "fibonacci", "a full word",
    )  # fmt: skip


@V3
def test_a_former_name_still_means_the_tool(vault: Vault) -> None:
    """C4: what was written before the renaming goes on working."""
    vault.add("one", BROKEN)
    vault.add("one", FIXED, persona="teacher")
    for old, new in (("one", "two"), ("two", "three"), ("one", "four")):
        vault.rename(old, new)
    for name in ("one", "two", "three", "four"):
        assert vault.lookup(name).label == "four v1"
        assert vault.lookup(name, "teacher").label == "four v1 (teacher)"
        assert vault.get(name, revision=1).code == BROKEN
        assert len(vault.name_changes(name)) == 6
    assert vault.patch("one", FIXED).label == "four v2"
    assert vault.former_names() == {"one": "four", "two": "four", "three": "four"}
    assert vault.rename("four", "one").tool_name == vault.lookup("two").tool_name == "one"
    with pytest.raises(PersonaNotFound):
        vault.patch("two", FIXED, persona="student")


@V2
def test_no_other_tool_takes_a_former_name(vault: Vault) -> None:
    """C4: an old row, trace or caller never means another tool than it did."""
    vault.add("one", BROKEN)
    vault.add("other", FIXED)
    vault.rename("one", "two")
    assert vault.add("one", BROKEN).label == "two v1"  # a notebook that is run again from its top
    refused = [
        lambda: vault.add("one", FIXED),
        lambda: vault.add("one", FIXED, persona="teacher"),
        lambda: vault.rename("other", "one"),
        lambda: vault.rename("other", "two"),
        lambda: vault.rename("two", "other"),
    ]
    for attempt in refused:
        with pytest.raises(ToolExists):
            attempt()
    with pytest.raises(VaultError, match="cannot be a tool's name"):
        vault.rename("two", "no name")
    with pytest.raises(ToolNotFound, match="Did you mean 'other'"):
        vault.rename("othr", "three")
    assert vault.names() == ["other", "two"]
    vault.remove("two")
    with pytest.raises(ToolRemoved):
        vault.add("one", BROKEN)
    with pytest.raises(ToolExists, match="which was removed"):
        vault.rename("other", "two")


@V4
def test_a_tool_that_runs_a_function_by_its_name_is_not_renamed(vault: Vault) -> None:
    """C4: a renamed tool still runs what it ran."""
    two = "def helper(n):\n    return n\n\ndef pick(n):\n    return helper(n)\n"
    vault.add("pick", two)
    for name in ("choose", "helper"):
        with pytest.raises(ToolShapeError, match=r"'pick'.*call that function 'run'"):
            vault.rename("pick", name)
    vault.patch("pick", two.replace("def pick", "def run"))
    assert vault.rename("pick", "helper").label == "helper v2"


@V4
def test_a_removed_tool_is_only_marked(vault: Vault) -> None:
    """C4: a tool could not be removed."""
    vault.add("fib", BROKEN, description="The n-th.", grants={"memory_mb": 64})
    vault.patch("fib", FIXED)
    vault.add("other", BROKEN)
    (removed,) = vault.remove("fib", reason="unused")
    assert (removed.label, removed.removed_at is not None) == ("fib v2", True)
    assert vault.remove("fib") == []
    assert vault.names() == ["other"]
    assert [entry.label for entry in vault.list()] == ["other v1"]
    assert [entry.label for entry in vault.list(removed=True)] == ["fib v2"]
    for attempt in (vault.lookup, vault.active, lambda name: vault.patch(name, BROKEN), vault.set_grants):
        with pytest.raises(ToolRemoved, match=r"'fib' was removed .* vault.restore\('fib'\)"):
            attempt("fib")
    assert len(vault.history("fib")) == 2
    assert vault.get("fib", revision=1).code == BROKEN
    assert "fib v1" in vault.diff("fib")
    restored = vault.restore("fib")
    assert (restored.label, restored.removed_at, restored.description) == ("fib v2", None, "The n-th.")
    assert vault.lookup("fib").grants.memory_mb == 64
    assert [change.kind for change in vault.name_changes("fib")] == ["removed", "restored"]


@V4
def test_adding_a_removed_tool_registers_it_anew(vault: Vault) -> None:
    """C4: its settings are those of the new call, and its revisions go on counting."""
    vault.add("fib", BROKEN, grants={"memory_mb": 64}, log=False)
    vault.remove("fib")
    added = vault.add("fib", FIXED)
    assert (added.label, added.grants.memory_mb, added.logged) == ("fib v2", None, True)
    assert vault.lookup("fib").code == FIXED
    assert [(revision.number, revision.parent) for revision in vault.history("fib")] == [(1, None), (2, 1)]
    vault.remove("fib")
    assert vault.add("fib", FIXED).label == "fib v2"
    assert [change.kind for change in vault.name_changes("fib")] == ["removed", "added"] * 2


@V3
def test_one_persona_of_a_tool_is_removed(vault: Vault) -> None:
    """C4: the persona is served by `default` then, as if it had never had a tool of its own."""
    vault.add("fib", BROKEN)
    vault.add("fib", FIXED, persona="teacher")
    assert [entry.persona for entry in vault.remove("fib", "teacher")] == ["teacher"]
    assert vault.lookup("fib", "teacher").persona == vault.get("fib", "teacher").persona == "default"
    assert vault.get("fib", "teacher", revision=1).code == FIXED  # what an old row ran
    vault.remove("fib")
    with pytest.raises(ToolRemoved):
        vault.lookup("fib", "teacher")
    assert vault.restore("fib", "teacher").persona == "teacher"
    with pytest.raises(ToolRemoved):
        vault.lookup("fib")
    assert vault.lookup("fib", "teacher").code == FIXED


@V1
def test_callers_by_name_are_found(vault: Vault) -> None:
    """C4: callers in other tools' code are named, not rewritten."""
    vault.add("price", "def run(n):\n    return n\n")
    vault.add("bill", "def run(n):\n    return mcp.vault.price(n=n)\n")
    vault.add("bill", "def run(n):\n    return 2 * mcp.vault.price(n=n)\n", persona="teacher")
    vault.add("says", "def run(n):\n    return 'mcp.vault.price'\n")
    assert vault.callers("price") == ["bill v1", "bill v1 (teacher)"]
    vault.rename("price", "cost")
    assert vault.callers("price") == ["bill v1", "bill v1 (teacher)"]
    assert vault.callers("cost") == []


@V4
def test_requests_follow_a_renamed_tool(vault: Vault, database: Database) -> None:
    """C4: a patch that waits for approval is not lost by a renaming, and can be read after a removal."""
    vault.add("fib", BROKEN)
    requests = Requests(database)
    number = requests.add("fib", FIXED).id
    vault.rename("fib", "fibonacci")
    assert [request.tool_name for request in requests.pending("fib")] == ["fibonacci"]
    assert requests.add("fib", FIXED).id == number
    vault.remove("fibonacci")
    assert requests.get(number).diff
    with pytest.raises(ToolRemoved):
        requests.accept(number)
    vault.restore("fibonacci")
    assert requests.accept(number).revision == 2


def test_tools_are_found_by_words_of_their_names_groups_and_descriptions(vault: Vault) -> None:
    vault.add("fibonacci", BROKEN, group="lessons")
    vault.add("fibonacci", BROKEN, persona="teacher")
    vault.add("mean", "def mean(values: list):\n    return 0\n", description="Mean, in 100%.")
    vault.add("gone", "def gone():\n    return 0\n")
    vault.remove("gone")

    def found(text: str, limit: int = 50) -> tuple[list[str], int]:
        entries, number = vault.search(text, limit=limit)
        return [entry.label for entry in entries], number

    assert found("") == (["fibonacci v1", "fibonacci v1 (teacher)", "mean v1"], 3)
    assert found("", limit=1) == (["fibonacci v1"], 3)
    assert found("FIBO number") == (["fibonacci v1", "fibonacci v1 (teacher)"], 2)
    assert found("lessons") == (["fibonacci v1"], 1)
    assert found("100%") == (["mean v1"], 1)
    assert found("0%0") == found("gone") == ([], 0)
