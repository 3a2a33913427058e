"""Seeding: complete, idempotent, no loss of a user's work."""

from __future__ import annotations

import runpy
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest
from trusted import trusted_copy

from healkit.core.runtime.providers import BUILTIN_TOOLS
from healkit.core.store.database import Database
from healkit.core.store.vault import Vault
from healkit.parts.teach.gallery import LESSONS, SAMPLE_TABLES, SAMPLES, lesson
from healkit.parts.teach.seeding import SeedReport, main, seed

SEED_DB = Path(__file__).parents[3] / "seed_db.py"
DEBUG_TOOLS = {tool.name for tool in BUILTIN_TOOLS}
ALL_TOOLS = DEBUG_TOOLS | {tool.name for tool in (*SAMPLES, *LESSONS)}


@pytest.fixture
def database(tmp_path, empty_database):
    """Lend an empty database with current tables."""
    opened = Database(trusted_copy(empty_database, tmp_path / "healkit.db"))
    yield opened
    opened.close()


@pytest.mark.requirement("VAULT-7", "LOG-15")
def test_seeding_registers_debug_tools_samples_gallery_and_data_once(database):
    report = seed(database, Vault(database))
    assert set(report.tools_added) == ALL_TOOLS
    assert "get_last_error" in ALL_TOOLS
    assert report.tables_created == tuple(table.name for table in SAMPLE_TABLES)
    entries = {entry.tool_name: entry for entry in Vault(database).list()}
    assert entries["fibonacci"].code == lesson("fibonacci").code
    assert entries["fibonacci"].group == "gallery"
    assert entries["fibonacci"].examples == list(lesson("fibonacci").examples)
    assert entries["fibonacci"].input_schema["required"] == ["n"]
    assert all(entry.description for entry in entries.values())
    before = dump(database.path)
    assert seed(database, Vault(database)) == SeedReport(tools_kept=report.tools_added)
    assert dump(database.path) == before


@pytest.mark.requirement("LOG-15")
def test_a_database_in_use_can_get_the_debug_tools_alone(database):
    vault = Vault(database)
    vault.add("mine", "def mine():\n    return 1\n")
    report = seed(database, vault, debug_tools_only=True)
    assert set(report.tools_added) == DEBUG_TOOLS
    assert set(vault.names()) == DEBUG_TOOLS | {"mine"}
    before = dump(database.path)
    assert not any("sample_" in line for line in before)
    assert seed(database, vault, debug_tools_only=True) == SeedReport(tools_kept=report.tools_added)
    assert dump(database.path) == before


@pytest.mark.requirement("VAULT-7", "VAULT-4")
def test_reset_adds_a_revision_and_recreates_the_data(database):
    vault = Vault(database)
    seed(database, vault)
    fixed = "def sum_to(n: int):\n    return n * (n + 1) // 2\n"
    vault.patch("sum_to", fixed, reason="my own")
    data = rows(database.path, "sample_sales")
    with closing(sqlite3.connect(database.path)) as connection, connection:
        connection.execute("DELETE FROM sample_sales WHERE id > 3")

    report = seed(database, vault, reset=True)
    assert report.tools_reset == ("sum_to",)
    assert report.tools_added == ()
    assert vault.get("sum_to").code == lesson("sum_to").code
    assert vault.get("sum_to").revision == 3
    assert vault.get("sum_to", revision=2).code == fixed
    assert [revision.author for revision in vault.history("sum_to")] == ["seed", "person", "seed"]
    assert rows(database.path, "sample_sales") == data

    before = dump(database.path)
    seed(database, vault, reset=True)
    assert dump(database.path) == before


def test_seeding_keeps_a_users_tool_with_a_seeded_name(database):
    vault = Vault(database)
    own = "def word_count(text):\n    return 0\n"
    vault.add("word_count", own)
    assert "word_count" in seed(database, vault).tools_kept
    assert vault.get("word_count").code == own


def test_an_older_debug_tool_is_updated_and_a_patched_one_kept(database):
    vault = Vault(database)
    vault.add("list_tools", "def list_tools():\n    return []\n", author="seed")
    assert seed(database, vault, debug_tools_only=True).tools_reset == ("list_tools",)
    current = next(tool.code for tool in BUILTIN_TOOLS if tool.name == "list_tools")
    assert vault.get("list_tools").code == current

    vault.patch("list_tools", "def list_tools():\n    return ['mine']\n", reason="my own")
    assert "list_tools" in seed(database, vault, debug_tools_only=True).tools_kept
    assert vault.get("list_tools").revision == 3


@pytest.mark.requirement("VAULT-7", "LOG-15")
def test_seed_db_seeds_keeps_and_resets(tmp_path, capsys, monkeypatch):
    path = tmp_path / "school.db"
    assert main(["--db", str(path), "--debug-tools-only"]) == 0
    said = capsys.readouterr().out
    assert f"{len(DEBUG_TOOLS)} tools added, 0 kept, 0 reset; 0 tables created" in said
    monkeypatch.setattr(sys, "argv", [str(SEED_DB), "--db", str(path)])
    with pytest.raises(SystemExit, match=r"^0$"):
        runpy.run_path(str(SEED_DB), run_name="__main__")
    added = len(ALL_TOOLS) - len(DEBUG_TOOLS)
    said, told = capsys.readouterr()
    assert f"{added} tools added, {len(DEBUG_TOOLS)} kept, 0 reset; 2 tables created" in said
    assert told == ""
    assert main(["--db", str(path), "--reset"]) == 0
    said, told = capsys.readouterr()
    assert f"0 tools added, {len(ALL_TOOLS)} kept, 0 reset; 2 tables created" in said
    assert told == ""


def test_seed_db_reports_an_error_in_one_line(tmp_path, capsys):
    assert main(["--db", str(tmp_path / "missing" / "x.db")]) == 2
    said = capsys.readouterr().err
    assert said.startswith("There is no folder ")
    assert len(said.splitlines()) == 1


def dump(path: Path) -> list[tuple]:
    with closing(sqlite3.connect(path)) as connection:
        names = [
            name
            for (name,) in connection.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY 1"
            )
            if not name.startswith(("executionlog_fts", "sqlite_"))  # the index of words cannot be read back
        ]
        return [
            (name, *row) for name in names for row in connection.execute(f"SELECT * FROM {name} ORDER BY 1")
        ]


def rows(path: Path, table: str) -> list[tuple]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(f"SELECT * FROM {table} ORDER BY 1").fetchall()
