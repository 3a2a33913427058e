"""The first repair, told on a terminal in six steps.

Nothing here is staged: the tool really runs in a restricted worker, its ZeroDivisionError really happens
there, and each step checks that it did what it says before the next one begins. Times, ids and the isolation
that this machine can enforce are the only things that differ from one telling to the next.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from rich.console import Console, RenderableType
from rich.panel import Panel
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from healkit.errors import HealkitError
from healkit.gallery import lesson

if TYPE_CHECKING:
    from healkit.app import Healkit
    from healkit.contracts.failure import Failure
    from healkit.store.models import ExecutionLog

TOOL = "fibonacci"
ARGUMENTS = {"n": 10}
EXPECTED = 55
REASON = "nobody needs the quotient"
#: The line whose quotient nobody needs, and whose first divisor is 0.
BAD_LINE = "        growth = current / previous\n"


class _NotAsTold(Exception):
    """A step that did not do what it says."""


def run_demo(console: Console, healkit: Healkit) -> bool:
    """Tell the story on `console` with tools and log of `healkit`; False if a step did not do what it says.

    Its database should be one for this purpose: the story adds a tool called `fibonacci` and patches it.
    """
    story = _Story(console, healkit)
    for number, (title, step) in enumerate(story.steps, start=1):
        console.print()
        console.rule(Text(f"{number}. {title}", style="bold"), align="left", style="dim")
        try:
            said = step()
        except (_NotAsTold, HealkitError) as error:
            console.print(
                Text(f"{story.cross} Step {number} did not do what it says: {error}", style="bold red")
            )
            return False
        console.print(Text(f"{story.tick} {said}", style="green"))
    console.print()
    console.print(Text("A failure was recorded, found, mended and shown to be mended.", style="bold"))
    return True


class _Story:
    """The six steps, in order, and what one of them leaves for the next."""

    def __init__(self, console: Console, healkit: Healkit) -> None:
        self.console = console
        self.healkit = healkit
        self.broken = lesson(TOOL).code
        self.mended = self.broken.replace(BAD_LINE, "")
        unicode = console.encoding.lower().startswith("utf")
        self.tick, self.cross = ("✓", "✗") if unicode else ("ok:", "FAILED:")
        self.steps: list[tuple[str, Callable[[], str]]] = [
            ("Register a tool that is broken", self.register),
            ("Run it in a restricted worker", self.run_broken),
            ("Ask for the last error", self.ask),
            ("Patch the vault entry", self.patch),
            ("Run it again", self.run_mended),
            ("Read the log's history", self.read_log),
        ]

    def register(self) -> str:
        """Step 1: the vault gets the tool, and the debug tools that step 3 needs."""
        self.healkit.seed(debug_tools_only=True)
        self.say(f'hk.vault.add("{TOOL}", code)')
        self.healkit.vault.add(TOOL, self.broken, examples=[{"arguments": ARGUMENTS, "result": EXPECTED}])
        entry = self.healkit.vault.get(TOOL)
        self.show(_syntax(self.broken, "python"), entry.label)
        _check(entry.code == self.broken, "the vault holds other code than it was given")
        return f"The vault holds {entry.label} under the SHA-256 of its text, {entry.code_hash[:12]}..."

    def run_broken(self) -> str:
        """Step 2: the failure really happens, in the worker."""
        self.say(f'hk.execute("{TOOL}", "default", {ARGUMENTS})')
        run = self.healkit.execute(TOOL, "default", ARGUMENTS)
        failure = run.failure
        if failure is None:
            raise _NotAsTold(f"the tool returned {run.value!r} instead of failing")
        self.show(_traceback(failure), f"{run.label} failed, log row {run.log_id}", style="red")
        _check(failure.ename == "ZeroDivisionError", f"it failed with {failure.summary}")
        frame = failure.tool_frame
        line = frame.line.strip() if frame else ""
        _check(line == BAD_LINE.strip(), f"the traceback ends in {line!r}")
        return f"{failure.ename} happened in a worker of its own (isolation: {run.isolation})."

    def ask(self) -> str:
        """Step 3: `get_last_error`, a tool like any other, finds it in the log."""
        arguments = {"tool_name": TOOL}
        self.say(f'hk.execute("get_last_error", "default", {arguments})')
        answer = self.healkit.execute("get_last_error", "default", arguments)
        if answer.failure is not None:
            raise _NotAsTold(f"get_last_error failed: {answer.failure.summary}")
        text = str(answer.value)
        self.show(Text(text), "get_last_error")
        for part in (TOOL, "ZeroDivisionError", BAD_LINE.strip(), str(ARGUMENTS["n"])):
            _check(part in text, f"the answer does not say {part!r}")
        return "The same traceback, read back from the log by a tool that ran on the same road."

    def patch(self) -> str:
        """Step 4: a new revision; the old one stays."""
        before = self.healkit.vault.get(TOOL)
        self.say(f'hk.vault.patch("{TOOL}", new_code, reason="{REASON}")')
        self.healkit.vault.patch(TOOL, self.mended, reason=REASON)
        after = self.healkit.vault.get(TOOL)
        self.show(_syntax(self.healkit.vault.diff(TOOL), "diff"), f"{before.label} to {after.label}")
        _check(after.revision == before.revision + 1, f"the new revision is {after.revision}")
        _check(after.code == self.mended, "the vault holds other code than the patch")
        history = [revision.number for revision in self.healkit.vault.history(TOOL)]
        _check(history == [before.revision, after.revision], f"the history holds the revisions {history}")
        return f"{after.label} is active; {before.label} stays in the history."

    def run_mended(self) -> str:
        """Step 5: the same arguments, the right answer."""
        self.say(f'hk.execute("{TOOL}", "default", {ARGUMENTS}).value')
        run = self.healkit.execute(TOOL, "default", ARGUMENTS)
        if run.failure is not None:
            raise _NotAsTold(f"the patched tool failed: {run.failure.summary}")
        self.console.print(Text(str(run.value), style="bold"))
        _check(run.value == EXPECTED, f"it returned {run.value!r}, not {EXPECTED}")
        _check(run.revision == 2, f"revision {run.revision} was run")
        return f"{run.label} returned {EXPECTED} for the arguments that had failed."

    def read_log(self) -> str:
        """Step 6: the log tells what happened, in the order in which it happened."""
        self.say("hk.log.query(limit=3)")
        rows = list(self.healkit.log.query(limit=3))[::-1]
        self.show(_log_table(rows), "oldest first")
        told = [(row.tool_name, row.revision, row.status) for row in rows]
        expected = [(TOOL, 1, "FAILURE"), ("get_last_error", 1, "SUCCESS"), (TOOL, 2, "SUCCESS")]
        _check(told == expected, f"the log says {told}")
        _check("ZeroDivisionError" in (rows[0].error_traceback or ""), "the failure's row holds no traceback")
        return "Three runs, three rows: the failure with its traceback, the question, the cure."

    def say(self, call: str) -> None:
        """The call that comes next, as a person would type it."""
        self.console.print(Text(f">>> {call}", style="cyan"))

    def show(self, content: RenderableType, title: str, style: str = "dim") -> None:
        """A titled frame."""
        self.console.print(Panel(content, title=title, title_align="left", border_style=style))


def _check(holds: bool, otherwise: str) -> None:
    if not holds:
        raise _NotAsTold(otherwise)


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
            f"{row.tool_name}@{row.revision}",
            row.status,
            outcome,
            f"{row.duration_ms:.0f}",
        ]
        table.add_row(*(Text(cell, style=style if cell is row.status else "") for cell in cells))
    return table


def _syntax(text: str, language: str) -> Syntax:
    return Syntax(
        text.rstrip("\n"), language, theme="ansi_dark", word_wrap=True, background_color="default",
        line_numbers=language == "python",
    )  # fmt: skip


def _traceback(failure: Failure) -> Text:
    """Python's own text, with the tool's failing line brought out."""
    text = Text(failure.traceback.rstrip(), style="red")
    if failure.tool_frame is not None:
        text.highlight_words([failure.tool_frame.line.strip()], style="bold reverse")
    return text
