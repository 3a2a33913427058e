"""Executions on the audit, as a card or a panel shows them."""

from __future__ import annotations

import datetime as dt
from typing import Any

from rendering_samples import NOW
from subject_samples import VIEWS

from healkit.parts.decide.records import AuditPanes, EntityQuestion
from healkit.parts.runs.audit import summed
from healkit.parts.runs.audit_records import AuditEntry, AuditMetadata
from healkit.parts.views.view_records import DataView, FirstRows, ViewColumn

RUN = "20261123T100000Z-0badcafe"
_ASKED = {"rows": 2, "entities": {"ticker": ["AAPL", "FB"]}}


def _entries(kind: str, *steps: tuple[str, str, Any, AuditMetadata, str]) -> list[AuditEntry]:
    """Return entries of a choice, a tool, parameters, metadata and a sentence each."""
    return [
        AuditEntry(
            40 + seq, RUN, kind, seq, NOW + dt.timedelta(seconds=seq), choice, tool, params, metadata, said,
            RUN, 3 * seq, f"{seq - 1:064x}", f"{seq:x}" * 64,
        )
        for seq, (choice, tool, params, metadata, said) in enumerate(steps, 1)
    ]  # fmt: skip


def _panes(kind: str, entries: list[AuditEntry], **more: Any) -> AuditPanes:
    return AuditPanes(RUN, kind, entries, summed(entries), **more)


_BEGUN = ("decision_started", "", {"question": "What do they cost?"}, AuditMetadata(), "The decision begins.")
_DECISION = _entries(
    "decide",
    _BEGUN,
    (
        "execute_data_op", "pick", {"df": "stocks", "values": ["AAPL", "FB"]},
        AuditMetadata(
            row_count=1, column_count=2, unique_values={"ticker": 1, "price": 1}, duration_ms=84.0, success=True,
            intended_state=_ASKED, actual_state={"asIntended": False, "rows": 1},
        ),
        "view chosen by pick: done in 84 ms.",
    ),
    ("gather_info", "resolve_entity", {"entity": "FB", "try": 1}, AuditMetadata(row_count=1, success=True), "Try 1."),
    (
        "self_correction", "pick", {"df": "stocks", "values": ["AAPL", "META"]},
        AuditMetadata(
            row_count=2, column_count=2, duration_ms=31.5, success=True, intended_state=_ASKED,
            actual_state={"asIntended": True, "rows": 2},
            correction_applied=True,
        ),
        "FB → META. 1 of 1 missing entities replaced; the retry reached the intended state.",
    ),
    (
        "execute_data_op", "as_numbers", {"df": "chosen"},
        AuditMetadata(error_message="TOOL_EXCEPTION in column 'ticker'", duration_ms=12.0, success=False),
        "view numbers by as_numbers: failed with TOOL_EXCEPTION in column 'ticker'.",
    ),
    (
        "self_correction", "as_numbers", {},
        AuditMetadata(error_message="CORRECTION_FAILED", success=False, correction_applied=False),
        "Healing ended: not_cured <b>of all</b>.",
    ),
    ("finalize", "", {"finalViewName": "chosen"}, AuditMetadata(row_count=2, success=True), "The result is chosen."),
)  # fmt: skip

_WIDE = [ViewColumn(f"column {number}" + " long" * (number == 3), "float64", number) for number in range(40)]
_CHOSEN = DataView(
    f"{RUN}/chosen", "DataFrame", (2, 2), [ViewColumn("ticker", "str", 0), ViewColumn("price", "float64", 0)],
    "user", NOW, "3f2a" * 16, 12_345, VIEWS["frame"].file,
)  # fmt: skip
_LARGE = DataView(
    "wide", "DataFrame", (1_000_000, 40), _WIDE, "user", NOW, "90bc" * 16, 1 << 20, VIEWS["frame"].file
)

PANES = {
    "corrected": _panes(
        "decide",
        _DECISION,
        question="What do Apple & Facebook cost?",
        outcome="finalized",
        reason="The result is the view chosen.",
        notes=["The view numbers does not have the intended state."],
        view=_CHOSEN,
        first=FirstRows(["ticker", "price"], [["AAPL", 210.5], ["META", float("nan")]]),
        views={"stocks": f"{RUN}/stocks", "chosen": f"{RUN}/chosen"},
    ),
    "analysis": _panes(
        "decide",
        _DECISION[:1] + _DECISION[-1:],
        outcome="finalized",
        reason="The result is the view wide.",
        view=_LARGE,
        first=FirstRows([f"column {number}" for number in range(8)], [[0.5] * 8] * 5),
        analysis="The <i>greatest</i> price is 600.25. ~~Two rows.~~\n\nStruck out: 1 sentence.",
    ),
    "asked": _panes(
        "decide",
        _entries("decide", _BEGUN),
        outcome="asked",
        reason="'Acme' may mean one of several values.",
        asked=EntityQuestion("Acme", "ticker", ["Acme Corp", "Acme Corporation"]),
    ),
    "long": _panes(
        "decide",
        _entries("decide", *[_BEGUN] * 400),
        outcome="halted",
        reason="The decision has taken 400 turns, which is the limit.",
    ),
    "healing": _panes(
        "heal",
        _entries(
            "heal",
            ("proposal_accepted", "average_delay", {}, AuditMetadata(success=True), "Patch 3 was accepted."),
            ("run_finished", "average_delay", {}, AuditMetadata(success=True), "The run ended: kept."),
        ),
    ),
}
