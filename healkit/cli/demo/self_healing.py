"""Second chapter: tools that heal offline, in three steps.

No model is asked and no network is used. The tools' own examples say what is right. The demo itself answers the
question of the last step, as a person at the terminal would.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from healkit.cli.demo.chapter import Chapter, check, syntax
from healkit.gallery import LESSONS, lesson
from healkit.gallery.samples import object_schema

if TYPE_CHECKING:
    from healkit.app import Healkit
    from healkit.healing.questions import Answer, Question
    from healkit.healing.report import HealReport

_ADVISORS = ("rules", "search")
_BUDGET_S = 60.0
#: A few tools of the gallery, each with another kind of mistake; the last ones raise no exception. `healkit lab` has a
#: lesson that heals them all, which takes minutes on a slow machine.
GALLERY = ("longest_word", "step_sizes", "count_votes", "price_with_tax", "clean_phone", "can_vote")
_ROW = "{:<15} {:<20} {:<23} {:<7} {:>5} {:>5}"

TWO_BUGS = '''\
def average_of_best(scores: list, keep: int) -> float:
    """The mean of the `keep` highest scores."""
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
#: Five, because patches in two places are many, and of many some fit two or three examples by chance.
#: At least one is kept: without that, patches that part at `keep=0` would be asked about.
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
        """Step 7: broken tools are run, fail, and are healed, each with its own line."""
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
        rest = sum(other.type == "python" for other in LESSONS) - len(GALLERY)
        return (
            f"{cured} of {cured} are fixed with no regressions, without a model or a network. "
            f"The other {rest}: lesson 5 of `healkit lab`."
        )

    def two_mistakes(self) -> str:
        """Step 8: one patch fixes both."""
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
        """Step 9: the examples leave something open, and the smallest input that shows it is asked about."""
        self.show(syntax(DISCOUNT, "python"), "discount v1")
        self.healkit.vault.add("discount", DISCOUNT, examples=DISCOUNT_EXAMPLES)
        asked: list[Question] = []

        def answer(question: Question) -> Answer:
            from healkit.healing.questions import Answer

            asked.append(question)
            right = 20 if question.arguments["items"] >= 10 else 0
            choices = " or ".join(choice.text for choice in question.choices)
            self.console.print(Text(f"?  {question.call} gives {choices}. What is right?   {right}"))
            return Answer(right)

        self.say('hk.heal("discount", auto=True, ask=…)')
        report = self.healkit.heal("discount", advisors=_ADVISORS, auto=True, budget_s=_BUDGET_S, ask=answer)
        check(report.outcome == "kept", f"it ended {report.outcome}: {report.reason}")
        check(bool(asked), "no question was asked")
        assert report.best is not None
        self.show(syntax(report.best.diff, "diff"), report.verdict)
        examples = len(self.healkit.vault.get("discount").examples)
        check(examples == len(DISCOUNT_EXAMPLES) + len(asked), f"the tool has {examples} examples")
        return "The answers are examples of the tool now, and are not asked again."

    def heal(self, tool: str, arguments: object) -> HealReport:
        """Run it, so that it fails, and heal it; a terminal shows meanwhile what is being done."""
        with self.console.status("") as status:

            def show(sentence: str) -> None:
                # With a spinner it is drawn at once; a wrapped line of it would stay on the screen.
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
