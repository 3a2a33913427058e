"""First chapter: a tool fails and is fixed by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from healkit.cli.demo.chapter import Chapter, StepFailed, check, syntax
from healkit.contracts.tools import revision_label
from healkit.gallery import lesson

if TYPE_CHECKING:
    from healkit.app import Healkit
    from healkit.contracts.failure import Failure
    from healkit.store.models import ExecutionLog

TOOL = "fibonacci"
ARGUMENTS = {"n": 10}
EXPECTED = 55
REASON = "the quotient is never used"
#: The line that fails: its first divisor is 0, and its quotient is not used.
BAD_LINE = "        growth = current / previous\n"


class FirstRepair(Chapter):
    """Six steps, in order, and the code that they share."""

    def __init__(self, console: Console, healkit: Healkit) -> None:
        super().__init__(console, healkit)
        self.broken = lesson(TOOL).code
        self.fixed = self.broken.replace(BAD_LINE, "")
        self.steps = [
            ("Register a tool that is broken", self.register),
            ("Run it in a restricted worker", self.run_broken),
            ("Ask for the last error", self.ask),
            ("Patch the vault entry", self.patch),
            ("Run it again", self.run_fixed),
            ("Read the log's history", self.read_log),
        ]

    def register(self) -> str:
        """Step 1: the vault gets the tool, and the debug tools that step 3 needs."""
        self.healkit.seed(debug_tools_only=True)
        self.say(f'hk.vault.add("{TOOL}", code)')
        self.healkit.vault.add(TOOL, self.broken, examples=[{"arguments": ARGUMENTS, "result": EXPECTED}])
        entry = self.healkit.vault.get(TOOL)
        self.show(syntax(self.broken, "python"), entry.label)
        check(entry.code == self.broken, "the vault holds other code than it was given")
        return f"The vault holds {entry.label} under the SHA-256 of its text, {entry.code_hash[:12]}..."

    def run_broken(self) -> str:
        """Step 2: the failure really happens, in the worker."""
        self.say(f'hk.execute("{TOOL}", "default", {ARGUMENTS})')
        run = self.healkit.execute(TOOL, "default", ARGUMENTS)
        failure = run.failure
        if failure is None:
            raise StepFailed(f"the tool returned {run.value!r} instead of failing")
        self.show(_traceback(failure), f"{run.label} failed, log row {run.log_id}", style="red")
        check(failure.ename == "ZeroDivisionError", f"it failed with {failure.summary}")
        frame = failure.tool_frame
        line = frame.line.strip() if frame else ""
        check(line == BAD_LINE.strip(), f"the traceback ends in {line!r}")
        return f"{failure.ename} happened in a worker of its own (isolation: {run.isolation})."

    def ask(self) -> str:
        """Step 3: `get_last_error`, a tool like any other, finds it in the log."""
        arguments = {"tool_name": TOOL}
        self.say(f'hk.execute("get_last_error", "default", {arguments})')
        answer = self.healkit.execute("get_last_error", "default", arguments)
        if answer.failure is not None:
            raise StepFailed(f"get_last_error failed: {answer.failure.summary}")
        text = str(answer.value)
        self.show(Text(text), "get_last_error")
        for part in (TOOL, "ZeroDivisionError", BAD_LINE.strip(), str(ARGUMENTS["n"])):
            check(part in text, f"the answer does not say {part!r}")
        return "The same traceback, read back from the log by a tool that ran the same way."

    def patch(self) -> str:
        """Step 4: a new revision; the old one stays."""
        before = self.healkit.vault.get(TOOL)
        self.say(f'hk.vault.patch("{TOOL}", new_code, reason="{REASON}")')
        self.healkit.vault.patch(TOOL, self.fixed, reason=REASON)
        after = self.healkit.vault.get(TOOL)
        self.show(syntax(self.healkit.vault.diff(TOOL), "diff"), f"{before.label} to {after.label}")
        check(after.revision == before.revision + 1, f"the new revision is {after.revision}")
        check(after.code == self.fixed, "the vault holds other code than the patch")
        history = [revision.number for revision in self.healkit.vault.history(TOOL)]
        check(history == [before.revision, after.revision], f"the history holds the revisions {history}")
        return f"{after.label} is active; {before.label} stays in the history."

    def run_fixed(self) -> str:
        """Step 5: the same arguments, the right answer."""
        self.say(f'hk.execute("{TOOL}", "default", {ARGUMENTS}).value')
        run = self.healkit.execute(TOOL, "default", ARGUMENTS)
        if run.failure is not None:
            raise StepFailed(f"the patched tool failed: {run.failure.summary}")
        self.console.print(Text(str(run.value), style="bold"))
        check(run.value == EXPECTED, f"it returned {run.value!r}, not {EXPECTED}")
        check(run.revision == 2, f"revision {run.revision} was run")
        return f"{run.label} returned {EXPECTED} for the arguments that had failed."

    def read_log(self) -> str:
        """Step 6: the log lists what happened, in order."""
        self.say("hk.log.query(limit=3)")
        rows = list(self.healkit.log.query(limit=3))[::-1]
        self.show(_log_table(rows), "oldest first")
        told = [(row.tool_name, row.revision, row.status) for row in rows]
        expected = [(TOOL, 1, "FAILURE"), ("get_last_error", 1, "SUCCESS"), (TOOL, 2, "SUCCESS")]
        check(told == expected, f"the log says {told}")
        check("ZeroDivisionError" in (rows[0].error_traceback or ""), "the failure's row holds no traceback")
        return "Three runs, three rows: the failure with its traceback, the question, the fixed tool."


def _log_table(rows: list[ExecutionLog]) -> Table:
    table = Table(box=None, pad_edge=False)
    for heading in ("row", "tool", "status", "outcome"):
        table.add_column(heading)
    table.add_column("ms", justify="right")
    for row in rows:
        outcome = (row.ename or row.result_summary or "").strip('"').split("\\n")[0]
        style = "red" if row.status == "FAILURE" else "green"
        cells = [
            str(row.id),
            revision_label(row.tool_name, row.persona, row.revision),
            row.status,
            outcome,
            f"{row.duration_ms:.0f}",
        ]
        table.add_row(*(Text(cell, style=style if cell is row.status else "") for cell in cells))
    return table


def _traceback(failure: Failure) -> Text:
    """Return Python's own text, with the tool's failing line highlighted."""
    text = Text(failure.traceback.rstrip(), style="red")
    if failure.tool_frame is not None:
        text.highlight_words([failure.tool_frame.line.strip()], style="bold reverse")
    return text
