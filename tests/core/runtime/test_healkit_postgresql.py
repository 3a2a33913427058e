"""Healkit on PostgreSQL, by its URL alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from postgres_samples import Server

from healkit import Healkit
from healkit.config import Config

SECRET = "hunter2-hunter2"


@pytest.mark.requirement("SCALE-1")
def test_an_execution_a_healing_and_retention_need_the_url_only(
    postgresql_server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SCALE-1: what a session does on a file, it does on a server."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with postgresql_server.database(empty=True) as url, Healkit(url) as healkit:
        healkit.provide(lambda n: n + 1, "more")
        healkit.vault.add(
            "share",
            "def share(total, parts):\n    mcp.host.more(n=1)\n    return total / len(parts)",
            examples=[{"arguments": {"total": 9, "parts": []}, "result": 0}],
        )
        assert healkit.execute("share", arguments={"total": 9, "parts": [1, 2, 3]}).value == 3.0
        failed = healkit.execute("share", arguments={"total": 9, "parts": []})
        found = healkit.last_error("share")
        assert (found.log_id, found.failure.ename) == (failed.log_id, "ZeroDivisionError")  # type: ignore[union-attr]  # it failed
        assert [call.tool for call in healkit.log.calls(found.trace_id)] == ["more"]
        report = healkit.heal("share", advisors=["rules"], auto=True, budget_s=60)
        assert report.ok, report
        assert healkit.execute("share", arguments={"total": 9, "parts": []}).value == 0
        assert next(iter(healkit.executions())).ok
        (group,) = healkit.log.groups(tool="share", persona="default", limit=1)
        assert group.cured_by == 2
        assert len(healkit.log.query(text="ZeroDivisionError", tried=False)) >= 1
        archived = healkit.log.prune(keep=1, archive=tmp_path / "archive")
        assert archived.deleted > 0
        assert healkit.log.import_file(archived.archives[0]) == (archived.deleted, archived.deleted)
        assert healkit.status().running == 0


def test_the_log_is_cleaned_on_a_server_unless_the_setting_says_no(
    postgresql_server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C5: others can read a server's database, so `sanitize_log` is on there by default."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    def kept(db: str | Path, sanitize_log: bool | None) -> str:
        with Healkit(db, config=Config(sanitize_log=sanitize_log)) as healkit:
            if "login" not in healkit.vault.names():
                healkit.vault.add("login", "def login(password): return len(password)")
            done = healkit.execute("login", arguments={"password": SECRET})
            return repr(healkit.log.get(done.log_id))

    assert SECRET in kept(tmp_path / "healkit.db", None)
    with postgresql_server.database(empty=True) as url:
        assert SECRET not in kept(url, None)
        assert SECRET not in kept(url, True)
        assert SECRET in kept(url, False)
