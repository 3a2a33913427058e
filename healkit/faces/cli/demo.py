"""Demo of healkit in a terminal: a repair, then healing.

Everything is real: each tool runs in a restricted worker and fails there, and each step checks its own result before
the next one begins. Only times, ids and the isolation of this machine differ from run to run. The second chapter asks
no model and uses no network: the tools' own examples say what is right. The demo itself answers the question of the
last step, as a person at the terminal would.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console, RenderableType
from rich.panel import Panel
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from healkit.core.contracts.tools import revision_label
from healkit.errors import HealkitError
from healkit.parts.teach.gallery import LESSONS, lesson, object_schema

if TYPE_CHECKING:
    from healkit.app import Healkit
    from healkit.core.contracts.failure import Failure
    from healkit.core.store.models import ExecutionLog
    from healkit.parts.heal.questions import Answer, Question
    from healkit.parts.heal.report import HealReport


def _typed() -> str:
    """Return the command as the user typed it, such as `.venv/bin/healkit`."""
    command = Path(sys.argv[0])
    return sys.argv[0] if command.name == "healkit" and not shutil.which("healkit") else "healkit"


def run_demo(console: Console, healkit: Healkit) -> bool:
    """Play the demo on `console`; return False if a step failed.

    healkit: Opened on a database for this purpose, since the demo adds tools and patches them.
    """
    unicode = console.encoding.lower().startswith("utf")
    tick, cross = ("✓", "✗") if unicode else ("ok:", "FAILED:")
    chapters = FirstRepair(console, healkit), SelfHealing(console, healkit)
    steps = [step for chapter in chapters for step in chapter.steps]
    for number, (title, step) in enumerate(steps, start=1):
        console.print()
        console.rule(Text(f"{number}. {title}", style="bold"), align="left", style="dim")
        try:
            sentence = step()
        except (StepFailed, HealkitError) as error:
            console.print(Text(f"{cross} Step {number} did not do what it says: {error}", style="bold red"))
            return False
        console.print(Text(f"{tick} {sentence}", style="green"))
    console.print()
    console.print(
        Text("The failures were recorded, found and fixed, and each fix was checked.", style="bold")
    )
    console.print(
        Text(f"Next: {_typed()} lab opens JupyterLab here, with the lessons. The demo has kept nothing.")
    )
    return True


class StepFailed(Exception):
    """A step without the promised result."""


class Chapter:
    """Steps in order: each has a title and a function that performs it and returns the result as a sentence."""

    def __init__(self, console: Console, healkit: Healkit) -> None:
        self.console = console
        self.healkit = healkit
        self.steps: list[tuple[str, Callable[[], str]]] = []

    def say(self, call: str) -> None:
        """Print the next call, as you would type it."""
        self.console.print(Text(f">>> {call}", style="cyan"))

    def show(self, content: RenderableType, title: str, style: str = "dim") -> None:
        """Print something in a frame with a title."""
        self.console.print(Panel(content, title=title, title_align="left", border_style=style))


def check(holds: bool, otherwise: str) -> None:
    """Raise `StepFailed` unless the condition holds."""
    if not holds:
        raise StepFailed(otherwise)


def syntax(text: str, language: str) -> Syntax:
    """Return code or a diff, in colour if the terminal supports it."""
    return Syntax(
        text.rstrip("\n"), language, theme="ansi_dark", word_wrap=True, background_color="default",
        line_numbers=language == "python",
    )  # fmt: skip


TOOL = "fibonacci"
ARGUMENTS = {"n": 10}
EXPECTED = 55
REASON = "the quotient is never used"
#: The line that fails: its first divisor is 0, and its quotient is not used.
BAD_LINE = "        growth = current / previous\n"


class FirstRepair(Chapter):
    """Six steps, in order, and their common code."""

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
        """Step 1: add the tool to the vault, and the debug tools that step 3 needs."""
        self.healkit.seed(debug_tools_only=True)
        self.say(f'hk.vault.add("{TOOL}", code)')
        self.healkit.vault.add(TOOL, self.broken, examples=[{"arguments": ARGUMENTS, "result": EXPECTED}])
        entry = self.healkit.vault.get(TOOL)
        self.show(syntax(self.broken, "python"), entry.label)
        check(entry.code == self.broken, "the vault holds other code than it was given")
        return f"The vault holds {entry.label} under the SHA-256 of its text, {entry.code_hash[:12]}..."

    def run_broken(self) -> str:
        """Step 2: run the tool in the worker, where it really fails."""
        self.say(f'hk.execute("{TOOL}", "default", {ARGUMENTS})')
        run = self.healkit.execute(TOOL, "default", ARGUMENTS)
        failure = run.failure
        if failure is None:
            raise StepFailed(f"the tool returned {run.value!r} instead of failing")
        self.show(_coloured_traceback(failure), f"{run.label} failed, log row {run.log_id}", style="red")
        check(failure.ename == "ZeroDivisionError", f"it failed with {failure.summary}")
        frame = failure.tool_frame
        line = frame.line.strip() if frame else ""
        check(line == BAD_LINE.strip(), f"the traceback ends in {line!r}")
        return f"{failure.ename} happened in a worker of its own (isolation: {run.isolation})."

    def ask(self) -> str:
        """Step 3: find the failure in the log with `get_last_error`, a tool like any other."""
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
        """Step 4: save a new revision; the old one is kept."""
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
        """Step 5: run it with the same arguments and get the right answer."""
        self.say(f'hk.execute("{TOOL}", "default", {ARGUMENTS}).value')
        run = self.healkit.execute(TOOL, "default", ARGUMENTS)
        if run.failure is not None:
            raise StepFailed(f"the patched tool failed: {run.failure.summary}")
        self.console.print(Text(str(run.value), style="bold"))
        check(run.value == EXPECTED, f"it returned {run.value!r}, not {EXPECTED}")
        check(run.revision == 2, f"revision {run.revision} was run")
        return f"{run.label} returned {EXPECTED} for the arguments that had failed."

    def read_log(self) -> str:
        """Step 6: list the events in the log, in order."""
        self.say("hk.log.query(limit=3)")
        rows = list(self.healkit.log.query(limit=3))[::-1]
        self.show(_log_table(rows), "oldest first")
        actual = [(row.tool_name, row.revision, row.status) for row in rows]
        expected = [(TOOL, 1, "FAILURE"), ("get_last_error", 1, "SUCCESS"), (TOOL, 2, "SUCCESS")]
        check(actual == expected, f"the log says {actual}")
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


def _coloured_traceback(failure: Failure) -> Text:
    """Return Python's own text, with the tool's failed line highlighted."""
    text = Text(failure.traceback.rstrip(), style="red")
    if failure.tool_frame is not None:
        text.highlight_words([failure.tool_frame.line.strip()], style="bold reverse")
    return text


_ADVISORS = ("rules", "search")
_BUDGET_S = 60.0
#: Some tools of the gallery, each with another kind of mistake; the last ones raise no exception. A lesson of
#: `healkit lab` heals all of them, which takes minutes on a slow machine.
GALLERY = ("longest_word", "step_sizes", "count_votes", "price_with_tax", "clean_phone", "can_vote")
_ROW = "{:<15} {:<20} {:<23} {:<7} {:>5} {:>5}"

TWO_BUGS = '''\
def average_of_best(scores: list, keep: int) -> float:
    """Mean of the `keep` highest scores."""
    best = sorted(scores)[:keep]
    total = 1
    for score in best:
        total += score
    return total / len(best)
'''
TWO_BUGS_EXAMPLES = (
    {"arguments": {"scores": [4, 9, 2, 7], "keep": 2}, "result": 8.0},
    {"arguments": {"scores": [5], "keep": 1}, "result": 5.0},
    {"arguments": {"scores": [1, 2, 3, 4], "keep": 3}, "result": 3.0},
    {"arguments": {"scores": [10, 20, 30, 40, 50], "keep": 4}, "result": 35.0},
    {"arguments": {"scores": [3, 3, 9], "keep": 2}, "result": 6.0},
)
#: There are five examples, because many patches change two places, and some of them pass two or three
#: examples by chance. One example keeps an item: otherwise, the demo would ask about patches that differ at
#: `keep=0`.
TWO_BUGS_SCHEMA = object_schema(
    scores={"type": "array", "items": {"type": "number"}, "minItems": 1},
    keep={"type": "integer", "minimum": 1},
)
DISCOUNT = '''\
def discount(items: int) -> int:
    """Percent off: something for ten items."""
    if items > 10:
        return 20
    return 0
'''
DISCOUNT_EXAMPLES = (
    {"arguments": {"items": 10}, "result": 20},
    {"arguments": {"items": 3}, "result": 0},
)


class SelfHealing(Chapter):
    """Three steps, in order."""

    def __init__(self, console: Console, healkit: Healkit) -> None:
        super().__init__(console, healkit)
        self.steps = [
            ("Heal the gallery of broken tools", self.gallery),
            ("Heal a tool that has two mistakes", self.two_mistakes),
            ("Answer a question where patches disagree", self.question),
        ]

    def gallery(self) -> str:
        """Step 7: run broken tools, which fail, and heal each of them, one line per tool."""
        self.say(f"hk.heal(tool, advisors={list(_ADVISORS)}, auto=True)  # {len(GALLERY)} tools")
        self.console.print(Text(_ROW.format("tool", "failure", "verdict", "by", "tried", "s"), style="bold"))
        cured = 0
        for broken in map(lesson, GALLERY):
            self.healkit.vault.add(
                broken.name, broken.code, input_schema=broken.input_schema, examples=broken.examples
            )
            report = self.heal(broken.name, broken.failing)
            self.console.print(_report_row(report, broken.ename or "a wrong result"))
            cured += report.verdict_code == "cured"
        check(cured == len(GALLERY), f"{cured} of {len(GALLERY)} were fixed")
        rest = sum(candidate.type == "python" for candidate in LESSONS) - len(GALLERY)
        return (
            f"{cured} of {cured} are fixed with no regressions, without a model or a network. "
            f"The other {rest}: lesson 6 of `healkit lab`."
        )

    def two_mistakes(self) -> str:
        """Step 8: fix two mistakes with one patch."""
        self.show(syntax(TWO_BUGS, "python"), "average_of_best v1")
        self.healkit.vault.add(
            "average_of_best", TWO_BUGS, input_schema=TWO_BUGS_SCHEMA, examples=TWO_BUGS_EXAMPLES
        )
        self.say('hk.heal("average_of_best", auto=True)')
        report = self.heal("average_of_best", TWO_BUGS_EXAMPLES[0]["arguments"])
        check(report.outcome == "kept", f"it ended {report.outcome}: {report.reason}")
        assert report.best is not None
        self.show(syntax(report.best.diff, "diff"), report.verdict)
        return f"One patch fixes both lines; it took {report.candidates_tried:,} candidates."

    def question(self) -> str:
        """Step 9: ask about the smallest input for which the examples allow several results."""
        self.show(syntax(DISCOUNT, "python"), "discount v1")
        self.healkit.vault.add("discount", DISCOUNT, examples=DISCOUNT_EXAMPLES)
        questions: list[Question] = []

        def answer(question: Question) -> Answer:
            from healkit.parts.heal.questions import Answer

            questions.append(question)
            right = 20 if question.arguments["items"] >= 10 else 0
            choices = " or ".join(choice.text for choice in question.choices)
            self.console.print(Text(f"?  {question.call} gives {choices}. What is right?   {right}"))
            return Answer(right)

        self.say('hk.heal("discount", auto=True, ask=…)')
        report = self.healkit.heal("discount", advisors=_ADVISORS, auto=True, budget_s=_BUDGET_S, ask=answer)
        check(report.outcome == "kept", f"it ended {report.outcome}: {report.reason}")
        check(bool(questions), "no question was asked")
        assert report.best is not None
        self.show(syntax(report.best.diff, "diff"), report.verdict)
        examples = len(self.healkit.vault.get("discount").examples)
        check(examples == len(DISCOUNT_EXAMPLES) + len(questions), f"the tool has {examples} examples")
        return "The answers are examples of the tool now, and are not asked again."

    def heal(self, tool: str, arguments: object) -> HealReport:
        """Run the tool, so that it fails, and heal it; meanwhile, a terminal shows the progress."""
        with self.console.status("") as status:

            def show(sentence: str) -> None:
                # A spinner draws it at once; a wrapped line would remain on the screen.
                line = Text(f"{tool}: {sentence}", no_wrap=True, overflow="ellipsis")
                line.truncate(max(self.console.width - 4, 10), overflow="ellipsis")
                status.update(line, spinner="dots")

            show("running it")
            self.healkit.execute(tool, "default", dict(arguments))  # type: ignore[call-overload]  # a lesson's arguments
            return self.healkit.heal(
                tool,
                advisors=_ADVISORS,
                auto=True,
                budget_s=_BUDGET_S,
                progress=show,
            )


def _report_row(report: HealReport, failure: str) -> Text:
    """Return one line of the gallery's table."""
    by = report.best.patch.advisor if report.best is not None else "–"
    tried, took = f"{report.candidates_tried:,}", f"{report.duration_s:.1f}"
    line = _ROW.format(report.tool_name, failure, report.verdict or "not fixed", by, tried, took)
    return Text(line, style="green" if report.outcome == "kept" else "yellow")
