"""Traces and their sending, as status and `sync` show them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cli_samples import Done, call
from misbehaving import Collector

from healkit import Config, Healkit
from healkit.core.rendering.to_html import html_of
from healkit.core.rendering.to_text import text_of
from healkit.parts.doctor import cards as doctor_cards
from healkit.parts.traces.delivery import Pace

TRACE_3 = pytest.mark.requirement("TRACE-3")


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """Three executions on record, whose traces were made before there was a collector."""
    with Healkit(tmp_path / "healkit.db") as healkit:
        healkit.vault.add("one", "SELECT 1 AS one", type="sql")
        for _ in range(3):
            healkit.execute("one")
    return tmp_path / "healkit.db"


def healkit(database: Path, *words: str, **environ: str) -> Done:
    with pytest.MonkeyPatch.context() as environment:
        for name, value in environ.items():
            environment.setenv(name, value)
        return call(*words, "--db", str(database))


@TRACE_3
def test_traces_without_a_collector_stay_until_they_are_sent(database: Path, collector: Collector) -> None:
    assert "traces     3 on this machine only" in healkit(database, "status").stdout
    refused = healkit(database, "trace", "sync")
    assert refused.returncode == 2
    assert "HEALKIT_SYNC_URL" in refused.stderr
    url = {"HEALKIT_SYNC_URL": collector.url, "HEALKIT_SYNC_TOKEN": "collector-token"}
    done = healkit(database, "trace", "sync", **url)
    assert (done.returncode, done.stdout, collector.stored) == (0, "0 sent, 0 waiting, 0 parked\n", {})
    done = healkit(database, "trace", "sync", "--local", **url)
    assert (done.returncode, done.stdout) == (0, "3 sent, 0 waiting, 0 parked\n")
    assert len(collector.stored) == 3
    assert collector.tokens == {"Bearer collector-token"}


@TRACE_3
def test_status_names_parked_traces_and_a_retry_sends_them(database: Path, collector: Collector) -> None:
    collector.judge = lambda trace: {"code": "TOO_OLD", "message": "not today", "retryable": False}
    url = {"HEALKIT_SYNC_URL": collector.url}
    done = healkit(database, "trace", "sync", "--local", **url)
    assert (done.returncode, done.stdout) == (1, "0 sent, 0 waiting, 3 parked\n")
    assert done.stderr == "Parked, 3 for: TOO_OLD: not today\n"
    said = healkit(database, "status", **url).stdout
    assert "3 parked" in said
    assert "3 for: TOO_OLD: not today" in said
    assert f"collector  {collector.url}" in said
    collector.judge = lambda trace: None
    done = healkit(database, "trace", "sync", "--retry-parked", "--json", **url)
    assert done.returncode == 0
    assert json.loads(done.stdout)["sent"] == 3


@TRACE_3
def test_status_names_the_collectors_fault_whoever_asks(database: Path, collector: Collector) -> None:
    collector.otherwise = lambda: "401"
    url = {"HEALKIT_SYNC_URL": collector.url}
    done = healkit(database, "trace", "sync", "--local", **url)
    assert done.returncode == 1
    assert "401 Unauthorized" in done.stderr
    state: dict[str, Any] = json.loads(healkit(database, "status", "--json").stdout)["traces"]
    assert state["pending"] == 3
    assert "HEALKIT_SYNC_TOKEN" in state["problem"]


@pytest.mark.slow
@TRACE_3
def test_an_unreachable_collector_is_tried_until_the_timeout(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("healkit.parts.traces.delivery.PACE", Pace(backoff_s=0.05))
    config = Config(sync_url="http://127.0.0.1:9")
    with Healkit(database, config=config) as opened:
        state = opened.traces.sync(local=True, timeout_s=0.5)
        assert (state.pending, state.parked) == (3, 0)
        assert "cannot be reached" in state.problem
        status = opened.status()
        assert status.traces.pending == 3
        for said in (write(doctor_cards.status_card(status)) for write in (text_of, html_of)):
            assert "3 waiting" in said
            assert "cannot be reached" in said


@TRACE_3
def test_a_reading_command_sends_nothing(database: Path, collector: Collector) -> None:
    collector.otherwise = lambda: "hang"
    healkit(database, "status", HEALKIT_SYNC_URL=collector.url)
    assert collector.requests == []
