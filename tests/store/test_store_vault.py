"""The vault: revisions that are only added, personas, tampering, and who is to blame."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from store_samples import failed, started, succeeded

from healkit.contracts.records import Grants
from healkit.errors import (
    CodeDoesNotParse,
    ConfigError,
    PersonaNotFound,
    RevisionConflict,
    RevisionNotFound,
    SchemaInvalid,
    SqlNotAllowed,
    ToolExists,
    ToolNotFound,
    ToolShapeError,
    VaultError,
    VaultTampered,
)
from healkit.store.database import Database
from healkit.store.log import Log, LogWriter
from healkit.store.vault import Blame, Vault

BROKEN = '''def fibonacci(n: int) -> int:
    """The n-th Fibonacci number."""
    return n / 0
'''
FIXED = BROKEN.replace("n / 0", "n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)")

V1, V2, V3 = (pytest.mark.requirement(f"VAULT-{n}") for n in (1, 2, 3))
V4, V5, V6, V8 = (pytest.mark.requirement(f"VAULT-{n}") for n in (4, 5, 6, 8))


@pytest.fixture
def vault(database: Database) -> Vault:
    """An empty vault."""
    return Vault(database)


@V2
def test_name_and_code_are_enough_the_rest_is_read_off_the_code(vault: Vault) -> None:
    entry = vault.add("fibonacci", BROKEN)
    assert (entry.label, entry.ref.filename, entry.type) == ("fibonacci@1", "<fibonacci@1>", "python")
    assert entry.description == "The n-th Fibonacci number."
    assert entry.input_schema == {
        "type": "object",
        "properties": {"n": {"type": "integer"}},
        "additionalProperties": False,
        "required": ["n"],
    }
    assert vault.lookup("fibonacci") == entry


@V2
def test_everything_given_is_kept_as_given(vault: Vault) -> None:
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
    assert entry.label == "fibonacci.teacher@1"


@V1
def test_code_is_kept_once_under_the_sha_256_of_its_text(vault: Vault, database: Database) -> None:
    first, second = vault.add("one", "def run(): return 'ä'"), vault.add("two", "def run(): return 'ä'")
    assert first.code_hash == second.code_hash
    assert vault.code(first.code_hash[:12]) == first.code
    assert database.path is not None
    with contextlib.closing(sqlite3.connect(database.path)) as connection:
        rows = connection.execute("SELECT hash, code, type FROM codevault").fetchall()
    assert rows == [(first.code_hash, "def run(): return 'ä'", "python")]


@V1
def test_code_that_was_changed_behind_healkits_back_is_never_handed_out(
    vault: Vault, database: Database
) -> None:
    vault.add("fibonacci", BROKEN)
    vault.patch("fibonacci", FIXED)
    assert database.path is not None
    with contextlib.closing(sqlite3.connect(database.path)) as connection:
        connection.execute("UPDATE codevault SET code = 'import os' WHERE code = ?", (FIXED,))
        connection.commit()
    for hand_out in (
        lambda: vault.lookup("fibonacci"),
        lambda: vault.get("fibonacci", revision=2),
        lambda: vault.revert("fibonacci", 2),
    ):
        with pytest.raises(VaultTampered, match="fibonacci@2"):
            hand_out()
    assert vault.names() == ["fibonacci"]
    assert vault.revert("fibonacci", 1).code == BROKEN


@V1
def test_saving_the_true_text_again_mends_a_row_that_was_tampered_with(
    vault: Vault, database: Database
) -> None:
    vault.add("fibonacci", FIXED)
    assert database.path is not None
    with contextlib.closing(sqlite3.connect(database.path)) as connection:
        connection.execute("UPDATE codevault SET code = 'import os'")
        connection.commit()
    assert vault.patch("fibonacci", FIXED).revision == 1
    assert vault.lookup("fibonacci").code == FIXED


def test_the_same_tool_again_changes_nothing_and_another_code_is_told_to_patch(vault: Vault) -> None:
    first = vault.add("fibonacci", BROKEN)
    assert vault.add("fibonacci", BROKEN, description="other") == first
    with pytest.raises(ToolExists, match="Patch it"):
        vault.add("fibonacci", FIXED)
    assert [info.number for info in vault.history("fibonacci")] == [1]


def test_the_same_tool_with_other_grants_is_told_how_to_change_them(vault: Vault) -> None:
    vault.add("fibonacci", BROKEN, grants={"memory_mb": 64})
    assert vault.add("fibonacci", BROKEN).grants.memory_mb == 64
    assert vault.add("fibonacci", BROKEN, grants={"memory_mb": 64}).grants.memory_mb == 64
    with pytest.raises(ToolExists, match="set_grants"):
        vault.add("fibonacci", BROKEN, grants={"memory_mb": 32})


@V3
def test_exactly_the_persona_asked_comes_first_and_default_second(vault: Vault) -> None:
    vault.add("fibonacci", BROKEN)
    vault.add("fibonacci", FIXED, persona="teacher")
    assert vault.lookup("fibonacci", "teacher").code == FIXED
    assert vault.lookup("fibonacci", "student").persona == "default"
    assert [entry.label for entry in vault.list()] == ["fibonacci@1", "fibonacci.teacher@1"]
    assert [entry.persona for entry in vault.list("teacher")] == ["teacher"]


@V3
def test_a_miss_names_what_is_near(vault: Vault) -> None:
    with pytest.raises(ToolNotFound, match="empty"):
        vault.lookup("fib")
    vault.add("fibonacci", BROKEN, persona="teacher")
    with pytest.raises(ToolNotFound, match="Did you mean 'fibonacci'"):
        vault.lookup("fibonaci")
    with pytest.raises(PersonaNotFound, match="Did you mean 'teacher'"):
        vault.lookup("fibonacci", "teachr")
    with pytest.raises(RevisionNotFound, match="1 to 1"):
        vault.get("fibonacci", "teacher", 7)


def test_a_change_for_a_persona_never_falls_back_to_the_default_one(vault: Vault) -> None:
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


@V4
def test_a_patch_is_a_new_revision_that_knows_where_it_came_from(vault: Vault) -> None:
    vault.add("fibonacci", BROKEN)
    entry = vault.patch(
        "fibonacci", FIXED, reason="divided by zero", author="rule", parent=1, motivating_log_id=7
    )
    assert (entry.revision, entry.code) == (2, FIXED)
    assert vault.get("fibonacci", revision=1).code == BROKEN
    first, second = vault.history("fibonacci")
    assert (first.number, first.parent, first.active) == (1, None, False)
    assert (second.number, second.parent, second.active) == (2, 1, True)
    assert (second.author, second.reason, second.motivating_log_id) == ("rule", "divided by zero", 7)
    assert first.created_at <= second.created_at
    assert second.created_at.tzinfo is not None


def test_a_patch_with_the_active_code_adds_nothing(vault: Vault) -> None:
    first = vault.add("fibonacci", BROKEN)
    assert vault.patch("fibonacci", BROKEN) == first
    assert vault.history("fibonacci")[-1].number == 1


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
    assert vault.patch("fibonacci", BROKEN).label == "fibonacci@3"
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


@V4
def test_of_two_patches_of_one_parent_the_later_gets_both_sides_and_loses_nothing(vault: Vault) -> None:
    vault.add("fibonacci", BROKEN)
    vault.patch("fibonacci", FIXED, parent=1)
    later = BROKEN.replace("n / 0", "n // 1")
    with pytest.raises(RevisionConflict) as caught:
        vault.patch("fibonacci", later, parent=1)
    message = str(caught.value)
    assert "fibonacci@2 is the active revision" in message
    assert "+    return n if n < 2" in message
    assert "+    return n // 1" in message
    digest = message.split("under the hash ")[1].split(".")[0]
    assert vault.code(digest) == later
    assert [info.number for info in vault.history("fibonacci")] == [1, 2]
    assert vault.patch("fibonacci", later, parent=2).revision == 3


@V4
def test_patches_from_several_processes_at_once_never_overwrite_each_other(
    vault: Vault, database: Database
) -> None:
    vault.add("fibonacci", BROKEN)
    program = """
import json, sys
from healkit.errors import RevisionConflict
from healkit.store.database import Database
from healkit.store.vault import Vault
vault = Vault(Database(sys.argv[1], wait_s=20))
print("ready", flush=True)
sys.stdin.readline()
won = []
for n in range(10):
    try:
        won.append(vault.patch("fibonacci", f"def fibonacci(n): return {sys.argv[2]}{n}", parent=1 +
        n).revision)
    except RevisionConflict:
        pass
print(json.dumps(won))
"""
    patching = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(database.path), str(n)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for n in range(1, 4)
    ]
    for process in patching:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in patching:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    won = [json.loads(process.communicate(timeout=60)[0]) for process in patching]
    numbers = sorted(number for numbers in won for number in numbers)
    assert numbers == list(range(2, 2 + len(numbers)))
    history = vault.history("fibonacci")
    assert [info.number for info in history] == [1, *numbers]
    assert [info.parent for info in history] == [None, *range(1, len(numbers) + 1)]


@V5
def test_any_two_revisions_can_be_compared(vault: Vault) -> None:
    vault.add("fibonacci", BROKEN)
    assert vault.diff("fibonacci") == ""
    vault.patch("fibonacci", FIXED)
    vault.patch("fibonacci", FIXED + "# end")
    assert vault.diff("fibonacci").splitlines()[:2] == ["--- fibonacci@2", "+++ fibonacci@3"]
    backwards = vault.diff("fibonacci", 3, 1)
    assert "+    return n / 0\n" in backwards
    assert vault.diff("fibonacci", 1, 1) == ""


@V5
def test_a_revert_is_a_new_revision_and_the_history_stays_whole(vault: Vault) -> None:
    vault.add("fibonacci", BROKEN)
    vault.patch("fibonacci", FIXED)
    entry = vault.revert("fibonacci", 1, reason="the exam needs it", author="person")
    assert (entry.revision, entry.code) == (3, BROKEN)
    assert [(i.number, i.parent, i.active) for i in vault.history("fibonacci")] == [
        (1, None, False),
        (2, 1, False),
        (3, 2, True),
    ]
    assert vault.history("fibonacci")[-1].reason == "the exam needs it"


@V5
def test_the_history_counts_how_each_revision_fared(vault: Vault, database: Database) -> None:
    vault.add("fibonacci", BROKEN)
    vault.patch("fibonacci", FIXED)
    vault.add("fibonacci", BROKEN, persona="teacher")
    with contextlib.closing(LogWriter(database)) as writer:
        for begun, end in (
            (started(revision=1), failed),
            (started(revision=1), failed),
            (started(revision=2), succeeded),
            (started(revision=2, persona="student"), succeeded),  # served by the default entry
            (started(revision=1, persona="teacher"), failed),  # has an entry of its own
        ):
            writer.insert_finished(begun, end(begun))
        writer.begin(started(revision=2))  # has not ended: counts for nothing
    assert [(i.runs, i.failures) for i in vault.history("fibonacci")] == [(2, 2), (2, 0)]
    assert [(i.runs, i.failures) for i in vault.history("fibonacci", "teacher")] == [(1, 1)]


@V5
@pytest.mark.requirement("LOG-11")
def test_blame_names_who_broke_it_who_was_good_and_who_cured_it(vault: Vault, database: Database) -> None:
    for n in range(4):
        code = f"def fibonacci(n): return {n}"
        vault.patch("fibonacci", code) if n else vault.add("fibonacci", code)
    assert vault.blame("fibonacci") == Blame()
    with contextlib.closing(LogWriter(database)) as writer:
        begun = started(revision=1)
        writer.insert_finished(begun, succeeded(begun))
        breaking = started(revision=2)
        log_id = writer.insert_finished(breaking, failed(breaking))
        begun = started(revision=3)
        writer.insert_finished(begun, failed(begun))
        uncured = vault.blame("fibonacci")
        begun = started(revision=4)
        writer.insert_finished(begun, succeeded(begun))
        other = started(revision=4)
        writer.insert_finished(other, failed(other, "return other", "KeyError"))
    assert (uncured.first_failed, uncured.last_good, uncured.last_cured_by, uncured.count) == (2, 1, None, 2)
    row = Log(database).get(log_id)
    assert row is not None
    cured = vault.blame("fibonacci", row.fingerprint)
    assert (cured.first_failed, cured.last_good, cured.last_cured_by, cured.count) == (2, 1, 4, 2)
    assert (cured.first_failed_log_id, cured.first_failed_at) == (log_id, breaking.timestamp)
    assert vault.blame("fibonacci").first_failed == 4


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
def test_all_three_kinds_of_python_tool_are_taken(vault: Vault, code: str) -> None:
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


def test_code_that_is_no_tool_is_refused_with_what_it_lacks(vault: Vault) -> None:
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
def test_a_draft_is_kept_and_what_runs_stays_what_it_was(vault: Vault) -> None:
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
def test_a_new_tool_may_begin_as_a_draft_and_says_so(vault: Vault) -> None:
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
def test_a_schema_that_is_none_of_an_object_is_refused(vault: Vault, schema: object) -> None:
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


def test_text_that_no_file_can_hold_is_refused(vault: Vault) -> None:
    with pytest.raises(VaultError, match="surrogate at position"):
        vault.add("fibonacci", "def fibonacci(): return '\ud800'")
    with pytest.raises(VaultError, match="author='robot'"):
        vault.add("fibonacci", BROKEN, author="robot")
