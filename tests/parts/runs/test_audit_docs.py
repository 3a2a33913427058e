"""Docs page on the audit: runs, and finds what was changed."""

from __future__ import annotations

import contextlib
import re
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from audit_samples import audit_of, filled, unguarded

from healkit.core.store.database import Database
from healkit.parts.runs.audit import HASHED

PAGE = (Path(__file__).parents[3] / "docs" / "audit.md").read_text()
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
(OUTSIDER,) = (block for block in BLOCKS if "sqlite3.connect" in block)


def run(program: str, folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run a program in that folder; with `-S` it has the standard library only."""
    command = [sys.executable, *options, "-W", "error", "-c", program]
    return subprocess.run(command, capture_output=True, text=True, timeout=100, check=False, cwd=folder)


@pytest.mark.requirement("DECIDE-3")
def test_the_ten_lines_of_an_outsider_verify_the_chain_and_name_a_changed_entry(
    sqlite_database: Database, tmp_path: Path
) -> None:
    assert len([line for line in OUTSIDER.splitlines() if line and "import" not in line]) <= 10
    assert re.findall(r"`(\w+)`", PAGE.partition("then the columns ")[2])[: len(HASHED)] == list(HASHED)
    audit = audit_of(sqlite_database)
    filled(audit, "one", "two", "one")
    params = {"text": 'é \x00 \ud800 \u2028 " \\ 1e400', "number": 1e16, "nothing": None}
    audit.append("two", "decide", "gather_info", tool_params=params, description="ünï \x7f")
    audit.close()
    done = run(OUTSIDER, tmp_path, "-S", "-E")
    assert (done.returncode, done.stderr) == (0, "")
    with unguarded(sqlite_database) as connection:
        connection.execute("UPDATE traceauditentry SET tool_params = '{}' WHERE id = 3")
    done = run(OUTSIDER, tmp_path, "-S", "-E")
    assert done.returncode == 1
    assert "entry 3 is wrong" in done.stderr


@pytest.mark.slow
def test_the_docs_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEALKIT_DB", str(tmp_path / "healkit.db"))
    monkeypatch.setenv("HOME", str(tmp_path))
    done = run("".join(BLOCKS), tmp_path)
    assert done.returncode == 0, done.stderr
    with contextlib.closing(sqlite3.connect(tmp_path / "healkit.db")) as connection:
        assert connection.execute("SELECT count(*) FROM traceauditentry").fetchone()[0] > 5
