"""Questions on inputs where plausible patches disagree.

Several patches may pass every check and still be different programs. The smallest input on which they differ
distinguishes them, and a person can work it out by hand. The answer becomes an example of the tool, so the question is
asked only once. (Distinguishing inputs as in program synthesis: Jha, Gulwani, Seshia and Tiwari, "Oracle-guided
component-based program synthesis", ICSE 2010.)
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from healkit.core.contracts.patches import Check, CheckResult, difference
from healkit.core.crossing import values
from healkit.parts.heal.advisor import Case, Workbench
from healkit.parts.heal.inputs import (
    accepted,
    known_inputs,
    nearby,
    neighbour_files,
    size,
    variants,
    without_columns,
)
from healkit.parts.heal.records import Attempt

#: Number of inputs tried for one question, and of patches compared at once.
_INPUTS_MAX, _PATCHES_MAX = 40, 8
#: Number of inputs near those of the checks, which are larger.
_NEAR_MAX = 40
#: Number of limits in the codes at which cells are put.
_LIMITS_MAX = 4
#: Time limit of an input that tells patches apart, by the longest check that passed.
_ASKED_LEAST_S, _ASKED_TIMES = 0.03, 4.0
#: How many times the limit of an input the patches get for the results that are shown: they are known to differ there.
_SHOWN_TIMES = 10.0


@dataclasses.dataclass(frozen=True)
class Question:
    """Question for the tool's result for `arguments`; `choices` are the plausible patches' results.

    A choice of `raises` names an exception instead. `label` is the tool's.
    """

    label: str
    arguments: dict[str, Any]
    choices: tuple[Choice, ...]
    number: int

    @property
    def call(self) -> str:
        """Call in words: `fibonacci(n=2)`."""
        return values.call_text(self.label.partition(" ")[0], _kept_arguments(self.arguments))

    @property
    def tables(self) -> dict[str, str]:
        """Frames among the arguments, as the lines of a table; the other arguments are left out."""
        return {name: table for name, value in self.arguments.items() if (table := values.table_of(value))}


def _kept_arguments(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {name: values.kept(value) for name, value in arguments.items()}


@dataclasses.dataclass(frozen=True)
class Choice:
    """Result of some patches for an input: a value, or the name of an exception."""

    value: object
    raises: str = ""
    patches: int = 1

    @property
    def text(self) -> str:
        """Text on screen: JSON, or `raises ValueError`."""
        if self.raises:
            return f"raises {self.raises}"
        stored = values.kept(self.value)
        return (
            values.value_text(stored) if values.has_tags(stored) else json.dumps(stored, ensure_ascii=False)
        )

    @property
    def lines(self) -> str:
        """Text if there is room: a frame as a table, anything else as `text`."""
        return self.text if self.raises else values.table_of(self.value) or self.text


@dataclasses.dataclass(frozen=True)
class Answer:
    """Answer of a person: a value, or the name of an exception."""

    value: object = None
    raises: str = ""

    @property
    def text(self) -> str:
        """Text on record."""
        return f"raises {self.raises}" if self.raises else values.value_text(values.kept(self.value))


def question_on(case: Case, plausible: Sequence[Attempt], bench: Workbench, number: int) -> Question | None:
    """Find the smallest input on which the patches differ; return None if none was found in time."""
    codes = [attempt.patch.code for attempt in plausible[:_PATCHES_MAX]]
    accepts = functools.partial(accepted, case.entry)
    inputs = variants(known_inputs(case.entry, case.checks), accepts, _INPUTS_MAX, _limits(codes))
    near = (
        check.arguments
        for check in nearby(case.checks, _NEAR_MAX)
        if not check.call and accepts(check.arguments)
    )
    files = neighbour_files(case.entry, known_inputs(case.entry, case.checks))
    inputs = [*files, *inputs, *sorted((variant for variant in near if variant not in inputs), key=size)]
    limit_s = _limit_s(case.base)
    probes = [Check(origin="answered", arguments=arguments) for arguments in inputs]
    if len(codes) < 2 or not probes:
        return None
    for probe in _told_apart(codes, probes, bench, limit_s):
        rows = bench.run(codes, [probe], limit_s=_SHOWN_TIMES * limit_s)
        choices = _choices([row[0] for row in rows])
        if len({choice.lines for choice in choices}) > 1:  # a person has to see the difference
            narrowed, choices = _with_fewer_columns(codes, probe, choices, accepts, bench, limit_s)
            return Question(case.entry.label, values.remade(narrowed.arguments), choices, number)
    return None


def _limit_s(base: Sequence[CheckResult]) -> float:
    """Return a patch's time limit on another input: a minimum plus a multiple of its longest passed check."""
    return _ASKED_LEAST_S + _ASKED_TIMES * max(
        (result.duration_s for result in base if result.outcome == "passed"), default=0.0
    )


def _limits(codes: Sequence[str]) -> tuple[float, ...]:
    """Return the numbers that the codes compare with: patches often differ only there."""
    limits: dict[float, None] = {}
    for code in codes:
        for node in ast.walk(ast.parse(code)):
            parts = [node.left, *node.comparators] if isinstance(node, ast.Compare) else []
            for part in parts:
                if isinstance(part, ast.Constant) and type(part.value) in (int, float):
                    limits[part.value] = None  # type: ignore[index]  # a number, as the line above says
    return tuple(limits)[:_LIMITS_MAX]


def _with_fewer_columns(
    codes: Sequence[str],
    probe: Check,
    choices: tuple[Choice, ...],
    accepts: Callable[[dict[str, Any]], bool],
    bench: Workbench,
    limit_s: float,
) -> tuple[Check, tuple[Choice, ...]]:
    """Return the probe without the columns that no patch reads; the patches still differ on the rest."""
    raised = sum(bool(choice.raises) for choice in choices)
    place = 0
    while place < len(
        fewer := [arguments for arguments in without_columns(probe.arguments) if accepts(arguments)]
    ):
        smaller = Check(origin="answered", arguments=fewer[place])
        rows = bench.run(codes, [smaller], limit_s=_SHOWN_TIMES * limit_s)
        new_choices = _choices([row[0] for row in rows])
        if len(new_choices) == len(choices) and sum(bool(choice.raises) for choice in new_choices) == raised:
            probe, choices = smaller, new_choices
        else:
            place += 1
    return probe, choices


def _told_apart(
    codes: Sequence[str], probes: Sequence[Check], bench: Workbench, limit_s: float
) -> list[Check]:
    """Return the probes on which some code differs from the first one, smallest first."""
    edits = [(), *([difference(codes[0], code)] for code in codes[1:])]
    letters = dict(bench.score(codes[0], edits, probes, every=True, as_code=True, limit_s=limit_s))
    ends = letters.pop(0, "")
    return [
        probe
        for place, probe in enumerate(probes[: len(ends)])
        if ends[place] == "." and any(row[place] in "we" for row in letters.values())
    ]


def answered_check(question: Question, answer: Answer) -> Check:
    """Return the answer as a binding check."""
    return Check(
        origin="answered",
        arguments=_kept_arguments(question.arguments),
        known=True,
        expected=values.kept(answer.value),
        raises=answer.raises,
    )


def answer_of(question: Question, said: str) -> Answer | None:
    """Parse a typed answer: a choice's number, `raises ValueError`, or a value as JSON or bare text.

    Empty input is not an answer. A choice's number counts only if the choices are shown with numbers. To mean a value
    that is also a choice's number, write `= 2`.
    """
    said = said.strip()
    if not said:
        return None
    if said.isdecimal() and 0 < int(said) <= len(question.choices):
        choice = question.choices[int(said) - 1]
        return Answer(choice.value, choice.raises)
    if said.startswith("raises "):
        return Answer(raises=said.removeprefix("raises ").strip())
    text = said.removeprefix("=").strip()
    try:
        return Answer(json.loads(text))
    except ValueError:
        return Answer(text)


def _choices(results: Sequence[CheckResult]) -> tuple[Choice, ...]:
    """Return the patches' results on one input, most common first; a patch that hangs or dies has none."""
    choices: list[Choice] = []
    for result in results:
        if result.outcome in ("timeout", "died", "not_run"):
            continue
        new_choice = Choice(
            values.remade(result.value), result.failure.partition(":")[0] if result.failure else ""
        )
        # By its place: two frames cannot be compared with `==`.
        place = next((place for place, choice in enumerate(choices) if _agree(choice, new_choice)), None)
        if place is None:
            choices.append(new_choice)
        else:
            choices[place] = dataclasses.replace(choices[place], patches=choices[place].patches + 1)
    return tuple(sorted(choices, key=lambda choice: -choice.patches))


def _agree(one: Choice, other: Choice) -> bool:
    """Return True if one answer would be right for both: checks compare 0 and 0.0 as equal."""
    return one.raises == other.raises and values.same(values.kept(one.value), values.kept(other.value))
