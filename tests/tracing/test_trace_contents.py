"""No secrets in a trace, and no more than its limits allow."""

from __future__ import annotations

from pathlib import Path

import pytest
from tracing_samples import trace_rows
from trip_samples import KEY, opened, trace_of

from healkit import Config, Healkit
from healkit.errors import RulesInvalid, ToolNotFound

TRACE_2, TRACE_5 = (pytest.mark.requirement(f"TRACE-{n}") for n in (2, 5))


@TRACE_2
def test_a_trace_holds_no_secrets_and_counts_them(hk: Healkit) -> None:
    hk.vault.add(
        "leaks",
        f"def leaks(password: str):\n    print('mail ann@example.com')\n    raise ValueError('{KEY}')\n",
    )
    trip = hk.execute("trip", arguments={"city": "Lisbon", "days": 3, "token": f"tk_{KEY}hunter2"})
    leaks = hk.execute("leaks", arguments={"password": "hunter2-hunter2"})
    wires = {row["trace_id"]: row["wire"] for row in trace_rows(hk.path)}
    for wire in wires.values():
        assert "hunter2" not in wire
        assert KEY not in wire
        assert "ann@example.com" not in wire
    assert sum(trace_of(hk, trip.trace_id).metadata["hidden"].values()) >= 2
    assert "email" in trace_of(hk, leaks.trace_id).metadata["hidden"]
    # The log is what a run is repeated from.
    assert hk.execution(leaks.log_id).arguments == {"password": "hunter2-hunter2"}


@TRACE_2
def test_payloads_are_cut_after_cleaning_and_their_size_is_told(hk: Healkit) -> None:
    hk.provide(lambda: {"rows": ["word " * 20] * 500, "end": KEY}, "much")
    hk.vault.add("much", "def much(text: str):\n    return mcp.host.much()\n")
    execution = hk.execute("much", arguments={"text": "word " * 4000})
    trace = trace_of(hk, execution.trace_id)
    places = {"metadata.arguments", "metadata.result", "taskResults[0].result"}
    assert set(trace.metadata["truncated"]) == places
    assert all(size > 20_000 for size in trace.metadata["truncated"].values())
    (row,) = trace_rows(hk.path)
    assert row["wire"].count("[TRUNCATED]") == 3
    assert len(row["wire"]) < 40_000
    assert KEY[:8] not in row["wire"]


@pytest.mark.slow
@TRACE_2
def test_no_half_secret_survives_a_cut(hk: Healkit) -> None:
    hk.provide(lambda pad: "x " * pad + KEY + " tail" * 3000, "edge")
    hk.vault.add("edge", "def edge(pad: int):\n    mcp.host.edge(pad=pad)\n")
    for pad in range(4985, 5001):
        hk.execute("edge", arguments={"pad": pad}, mode="subprocess")
    for row in trace_rows(hk.path):
        assert "AKIA" not in row["wire"]


@TRACE_2
def test_raw_traces_need_opt_in(tmp_path: Path) -> None:
    with opened(tmp_path / "healkit.db", trace_raw=True) as hk:
        execution = hk.execute("trip", arguments={"city": "Lisbon", "days": 3, "token": KEY})
        trace = trace_of(hk, execution.trace_id)
    assert trace.metadata["arguments"]["token"] == KEY
    assert trace.metadata["raw"] is True


@TRACE_2
def test_sanitize_log_cleans_the_log(tmp_path: Path) -> None:
    with opened(tmp_path / "healkit.db", sanitize_log=True) as hk:
        hk.vault.add(
            "leaks", f"def leaks(password: str):\n    print('{KEY}')\n    raise ValueError('{KEY}')\n"
        )
        hk.vault.add("gives", "def gives():\n    return mcp.host.forecast(city='x', days=1)\n")
        leaks = hk.execute("leaks", arguments={"password": "hunter2-hunter2"})
        hk.execute("gives")
        with pytest.raises(ToolNotFound):
            hk.execute("nobody", arguments={"password": "hunter2-hunter2"})
        assert KEY in leaks.failure.evalue  # the caller's own copy
        path = hk.path
    assert path is not None
    for file in (path, path.with_name(path.name + "-wal")):
        if file.exists():
            content = file.read_bytes()
            assert b"hunter2" not in content
            # The code in the vault holds it, as what it is: code.
            assert content.count(KEY.encode()) <= 4, file


@TRACE_5
def test_bad_custom_rules_are_refused_at_start(tmp_path: Path) -> None:
    with pytest.raises(RulesInvalid):
        Healkit(tmp_path / "healkit.db", config=Config(sanitizer_allow=("(",)))
