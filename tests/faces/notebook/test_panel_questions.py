"""Every question of every panel, with every kind of argument."""

from __future__ import annotations

import datetime
import decimal
import inspect
import json
import math
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
import pandas as pd
import pytest
from cli_samples import call
from panel_page import OURS, Page

from healkit import Healkit
from healkit.core.runtime.execution import Execution
from healkit.faces.notebook.plugin import PANELS as PANEL_KINDS
from healkit.faces.notebook.widgets.cell_order import CellFix, CellOrder
from healkit.faces.notebook.widgets.log_panels import TracebackView
from healkit.parts.cells.advice import CellAdvice

LARGE = pd.DataFrame({"city": ["Bern", "Uster"] * 100_000, "units": range(200_000)})
#: Name → an argument, what the editor says of it ("" where it is edited as JSON).
KINDS: dict[str, tuple[Any, str]] = {
    "plain": ({"n": [1, 2, None, "x"]}, ""),
    "nothing": (None, ""),
    "frame": (pd.DataFrame({"city": ["Bern"]}), "DataFrame({'city': ['Bern']})"),
    "large": (LARGE, "DataFrame 200,000 × 2"),
    "nested": ({"parts": [LARGE, 1]}, "{'parts': [DataFrame 200,000 × 2, 1]}"),
    "series": (LARGE["units"], "Series 200,000"),
    "array": (np.zeros((50, 20)), "ndarray 50 × 20"),
    "index": (pd.date_range("2026-01-01", periods=300), "DatetimeIndex 300"),
    "categories": (pd.Categorical(["a", "b"] * 300), "Categorical 600"),
    "date": (datetime.date(2026, 2, 1), "datetime.date(2026, 2, 1)"),
    "timestamp": (pd.Timestamp("2026-02-01"), "Timestamp('2026-02-01 00:00:00')"),
    "decimal": (decimal.Decimal("1.50"), "Decimal('1.50')"),
    "set": ({1, 2}, "{1, 2}"),
    "tuple": ((1, LARGE), "(1, DataFrame 200,000 × 2)"),
    "bytes": (b"\x00", "b'\\x00'"),
    "complex": (1 + 2j, "(1+2j)"),
    "range": (range(3), "range(0, 3)"),
    "not a number": (math.nan, "nan"),
    "half a character": ("a\ud800", "'a\\ud800'"),
    "like a tag": ({"@": ["x"]}, "{'@': ['x']}"),
    "long": ("x" * 25_000, "'xxxx"),
    "many": (list(range(5_000)), "[0, 1, 2"),
}
BROKEN = "def fails(value, top: int = 2):\n    seen = value\n    return top / (top - top)\n"
FIXED = "def fails(value, top: int = 2):\n    return [type(value).__name__, top]\n"


def failed_with(healkit: Healkit, value: Any) -> Execution:
    if "fails" not in healkit.vault.names():
        healkit.vault.add("fails", BROKEN)
    execution = healkit.execute("fails", arguments={"value": value, "top": 3})
    assert execution.failure is not None
    return execution


@pytest.mark.slow
@pytest.mark.requirement("FACE-4", "DATA-5")
def test_each_button_below_a_failure_works_on_a_large_frame(healkit: Healkit) -> None:
    """D2, D3: Try with a frame was a fault of healkit's."""
    failed = failed_with(healkit, LARGE)
    row, page, about = (
        failed.log_id,
        Page(TracebackView(healkit, failed)),
        {"tool": "fails", "persona": "default"},
    )
    page.ask("hello")
    page.ask("execution", log_id=row)
    opened = page.ask("edit", tool="fails", log_id=row)
    tried = page.ask("try_code", **about, code=BROKEN, arguments=opened["arguments"], log_id=row)
    assert tried["delta"]["same"]
    typed = json.dumps({"value": [1], "top": 1})  # what is typed wins over what is kept
    tried = page.ask("try_code", **about, code=FIXED, arguments=typed, log_id=row)
    assert tried["run"]["value"] == "['list', 1]"
    assert page.ask("rerun", log_id=row)["delta"]["same"]
    frames = page.ask("pm_frames", log_id=row)
    page.ask("pm_locals", log_id=row, frame=frames[-1]["number"])
    page.ask("pm_eval", log_id=row, frame=frames[-1]["number"], expression="type(seen)")
    page.ask("heal_open", **about, log_id=row)
    page.ask("report", log_id=row)
    nbformat.validate(nbformat.read(page.ask("export", log_id=row), as_version=4))
    saved = page.ask("accept", **about, code=FIXED, parent=1, reason="types", log_id=row)
    assert (saved["label"], page.ask("active", log_id=row)) == ("fails v2", 2)
    late = page.ask("accept", **about, code=BROKEN, parent=1)
    assert (late["conflict"]["revision"], late["conflict"]["code"]) == (2, FIXED)
    assert page.ask("rerun", log_id=row)["run"]["value"] == "['DataFrame', 3]"
    assert page.ask("revert", **about, to=1)["revision"] == 3
    assert len(page.ask("history", **about)) == 3
    assert page.ask("code", **about, revision=2) == FIXED
    page.ask("schema", **about, text="")
    for view in healkit.views.list():
        healkit.views.remove(view.name)
    asked = {
        **about,
        "code": FIXED,
        "arguments": page.ask("edit", tool="fails", log_id=row)["arguments"],
        "log_id": row,
    }
    for op, args in (("try_code", asked), ("rerun", {"log_id": row})):
        assert f"The arguments of log row {row} are not all there" in (said := page.refused(op, args))
        assert "Give them anew" in said


@pytest.mark.slow
@pytest.mark.requirement("DATA-5")
def test_each_kind_of_argument_is_kept_as_it_was_where_it_cannot_be_edited(healkit: Healkit) -> None:
    """D2: the box held the `repr` of an internal class."""
    for value, said in KINDS.values():
        failed = failed_with(healkit, value)
        page = Page(TracebackView(healkit, failed))
        page.ask("execution", log_id=failed.log_id)
        opened = page.ask("edit", tool="fails", log_id=failed.log_id)
        assert (opened["kept"] == []) == (said == "")
        for kept in opened["kept"]:
            assert kept["name"] == "value"
            assert kept["text"].startswith(said)
            assert kept["text"].endswith(f", as in log row {failed.log_id}")
        arguments = json.dumps({**json.loads(opened["arguments"]), "top": 4})  # what is plain stays editable
        tried = page.ask(
            "try_code", tool="fails", persona="default", code=FIXED, arguments=arguments, log_id=failed.log_id
        )
        assert tried["run"]["value"] == str([type(value).__name__, 4])


@pytest.mark.slow
def test_an_example_with_a_frame_is_tried_before_the_tool_was_ever_run(healkit: Healkit) -> None:
    few = pd.DataFrame({"city": ["Bern"]})
    healkit.vault.add(
        "fails", FIXED, examples=[{"arguments": {"value": few, "top": 1}, "result": ["DataFrame", 1]}]
    )
    page = Page(healkit.patch_editor("fails"))
    opened = page.ask("edit", tool="fails")
    assert opened["kept"] == [{"name": "value", "text": "DataFrame({'city': ['Bern']}), as in the example"}]
    tried = page.ask("try_code", tool="fails", persona="default", code=FIXED, arguments=opened["arguments"])
    assert tried["run"]["value"] == "['DataFrame', 1]"


def every_panel(healkit: Healkit) -> tuple[dict[str, Page], int]:
    """Open one of each kind on a failure, a healing and a decision; return them, and the failure's row."""
    failed = failed_with(healkit, LARGE)
    assert failed.log_id is not None
    report = healkit.heal("fails", advisors=["rules"], budget_s=10)
    healkit.vault.add("pick", "import pandas as pd\n\n\ndef pick(df: pd.DataFrame):\n    return df.head(2)\n")
    plan = [
        {"type": "execute_data_op", "tool": "pick", "viewName": "few", "params": {"df": "sales"}},
        {"type": "finalize", "finalViewName": "few"},
    ]
    decision = healkit.decide("Which?", {"sales": LARGE}, tools=["pick"], chooser=plan)
    panels = (
        TracebackView(healkit, failed),
        CellFix("<div>ValueError: x</div>", 3),
        CellOrder(CellAdvice("order", "x", "Run the cells above first.")),
        healkit.patch_editor("fails"),
        healkit.heal_panel("fails"),
        healkit.browse(),
        healkit.timeline(report),
        healkit.decide_panel("Which?", {"sales": LARGE}, tools=["pick"]),
        healkit.audit_panel(decision),
        healkit.audit_panel(report),
    )
    opened = {panel.KIND.removesuffix("Panel") for panel in panels}
    asked = PANEL_KINDS.keys() - {"MapPanel"}  # Jupyter's own widgets, whose page asks healkit nothing
    assert opened == {name.removesuffix("Panel") for name in asked}
    return {f"{panel.KIND}{number}": Page(panel) for number, panel in enumerate(panels)}, failed.log_id


@pytest.mark.slow
@pytest.mark.requirement("FACE-4")
def test_a_malformed_question_is_refused_with_what_to_do_by_every_panel(healkit: Healkit) -> None:
    """Neither a wrong message, nor an unknown revision, nor a row that is gone is a fault of healkit's."""
    pages, row = every_panel(healkit)
    right = {
        "tool": "fails", "persona": "default", "log_id": row, "frame": 0, "expression": "1", "revision": 1, "to": 1,
        "code": FIXED, "arguments": "{}", "text": "", "filters": {}, "key": "k", "value": 1, "after": 0, "step": 0,
        "file": "out.csv", "number": 1, "choice": {}, "decision": "keep", "advisors": ["rules"], "parent": 1,
        "reason": "", "tab": "",
    }  # fmt: skip
    wrong = (None, [], {"a": [1]}, "?", "", -1, 0, 10**30, 999_999, 0.5, True, "\ud800", "x" * 3000)
    asked = set[Any]()
    for page in pages.values():
        for op in ("", "nothing", "__class__"):
            assert "no operation" in page.refused(op, {})
        for args in (None, [], "text", 7):
            page.answer("hello", args)
        for op, operation in list(page.panel.operations.items()):
            if op in {"left", "heal_start"} or (code := operation.__func__.__code__) in asked:
                continue  # nothing comes of the two but time
            asked.add(code)
            known = dict(right) | ({"choice": 0} if op == "heal_answer" else {})
            given = {name: known[name] for name in inspect.signature(operation).parameters if name in known}
            page.answer(op, {})
            page.answer(op, {**given, "never": "heard of"})
            for name in given:
                for other in wrong:
                    page.answer(op, {**given, name: other})
        page.panel.close()


@pytest.mark.slow
@pytest.mark.requirement("FACE-4", "FACE-6")
def test_no_face_shows_an_internal_class_or_an_address(healkit: Healkit, database: Any) -> None:
    """D3: `<healkit.core.crossing.codec.Preview object>` stood in the panel, the editor, the bug report and the JSON."""
    healkit.vault.add("same", "def same(value):\n    return value\n")
    healkit.vault.add("twice", "def twice(value):\n    return mcp.vault.same(value=value)\n")
    for value, _ in KINDS.values():
        failed_with(healkit, value)
    for value, _ in KINDS.values():
        assert healkit.execute("same", arguments={"value": value}, record=value is LARGE).ok
    healkit.execute("twice", arguments={"value": LARGE})
    pages, _ = every_panel(healkit)
    shown = []
    for one in healkit.executions(limit=200):
        whole = healkit.execution(one.log_id or 0)
        assert whole is not None
        shown += [whole.to_html(), whole.to_text()]
        if whole.failure is not None and whole.code is not None:
            shown += [whole.to_markdown(), whole.to_notebook(Path(f"{one.log_id}.ipynb")).read_text()]
    for listed in (healkit.executions(limit=200, tried=True), *healkit.executions(limit=1)):
        shown += [listed.to_html(), listed.to_text()]
    for name, page in pages.items():
        shown.append(json.dumps(page.panel.get_state(), default=repr))
        if (card := page.panel.static_card()) is not None:
            shown += [card.html, card.text]
        if name.startswith("AuditPanel"):
            shown.append(json.dumps(page.ask("audit_open")))
        if name.startswith("LogBrowser"):
            rows = page.ask("page", filters={})["rows"]
            assert {"DataFrame 200,000 × 2", "DataFrame 1 × 1"} <= {row["outcome"] for row in rows}
    for command in (
        "log --json --trials", "log --trials", "errors --json", "errors --last", "views", "trace list --json", "audit list",
        "status", *(f"trace show {run.name}" for run in healkit.runs_dir.glob("2*")),
    ):  # fmt: skip
        done = call(*command.split())
        shown += [done.stdout, done.stderr]
    for text in shown:
        found = OURS.search(text)
        assert found is None, text[max(found.start() - 200, 0) : found.end() + 200]
