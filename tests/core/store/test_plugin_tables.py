"""Tables of a plug-in, made by its own migrations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from healkit import Healkit, hooks

MIGRATION = """
import sqlalchemy as sa
from alembic import op

revision, down_revision = {revision!r}, {before!r}


def upgrade():
    {body}
"""


def write(folder: Path, number: int, body: str) -> None:
    before = f"r{number - 1:04}" if number > 1 else None
    migration = MIGRATION.format(revision=f"r{number:04}", before=before, body=body)
    (folder / f"r{number:04}_step.py").write_text(migration)


class Notes:
    """Plug-in with a table of notes on executions."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @hooks.hookimpl
    def migrations(self) -> dict[str, Path]:
        return {"notes": self.folder}

    @hooks.hookimpl
    def deleting(self, session: Any, trace_ids: Sequence[str]) -> None:
        for trace_id in trace_ids:
            session.execute(text("DELETE FROM notes WHERE trace_id = :id"), {"id": trace_id})


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "versions"
    folder.mkdir()
    write(
        folder,
        1,
        "op.create_table('notes', sa.Column('trace_id', sa.String, primary_key=True), sa.Column('note', sa.Text))",
    )
    hooks.plugins().register(Notes(folder), name="notes")
    try:
        yield folder
    finally:
        hooks.plugins().unregister(name="notes")


def rows(hk: Healkit, statement: str) -> list[tuple[Any, ...]]:
    with hk.database.read() as session:
        return [tuple(row) for row in session.execute(text(statement))]


@pytest.mark.requirement("ARCH-2")
def test_a_plug_ins_tables_are_made_migrated_and_emptied_with_the_log(folder: Path, tmp_path: Path) -> None:
    place = tmp_path / "healkit.db"
    with Healkit(place) as hk:
        hk.vault.add("double", "def double(x):\n    return 2 * x\n")
        kept, _newest = [hk.execute("double", arguments={"x": n}) for n in (1, 2)]
        with hk.database.write() as session:
            session.execute(text("INSERT INTO notes VALUES (:id, 'seen')"), {"id": kept.trace_id})
        assert rows(hk, "SELECT version_num FROM healkit_notes_version") == [("r0001",)]
    write(folder, 2, "op.add_column('notes', sa.Column('stars', sa.Integer, server_default='3'))")
    from healkit.core.store import migrate

    migrate.versions.cache_clear()  # another process would read the folder anew
    with Healkit(place) as hk:
        assert rows(hk, "SELECT note, stars FROM notes") == [("seen", 3)]
        assert rows(hk, "SELECT version_num FROM healkit_notes_version") == [("r0002",)]
        assert rows(hk, "SELECT version_num FROM healkit_version") == [(migrate.head(),)]
        assert hk.database.strange_parts() == []
        assert hk.log.prune(keep=1).deleted == 1
        assert rows(hk, "SELECT note FROM notes") == []


@pytest.mark.requirement("ARCH-2")
def test_a_migration_that_fails_leaves_the_database_open_and_as_it_was(
    folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write(folder, 2, "op.execute('DELETE FROM notes'); op.execute('SELECT * FROM nowhere')")
    from healkit.core.store import migrate

    migrate.versions.cache_clear()
    with Healkit(tmp_path / "healkit.db") as hk:
        assert hk.status().executions == 0
        with pytest.raises(Exception, match="no such table"):
            rows(hk, "SELECT * FROM notes")
    assert "The tables of healkit_notes_version were left as they are" in caplog.text
