"""Questions on inputs where plausible patches disagree.

Several patches may pass every check and still be different programs. The smallest input on which they differ tells them
apart, and is small enough to be worked out by hand. The answer becomes an example of the tool, so it is asked only
once. (Distinguishing inputs as in program synthesis: Jha, Gulwani, Seshia and Tiwari, "Oracle-guided component-based
program synthesis", ICSE 2010.)
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Sequence
from typing import Any

from healkit.contracts.healing import Attempt, Check, CheckResult, difference
from healkit.healing.advisor import Workbench
from healkit.healing.inputs import variants

#: Number of inputs tried for one question, and of patches compared at once.
_INPUTS_MAX, _PATCHES_MAX = 40, 6


@dataclasses.dataclass(frozen=True)
class Question:
    """Question for what a tool returns for `arguments`; `choices` are the plausible patches' results, as JSON values.

    A choice of `raises` names an exception instead. `label` is the tool's.
    """

    label: str
    arguments: dict[str, Any]
    choices: tuple[Choice, ...]
    number: int

    @property
    def call(self) -> str:
        """Call in words: `fibonacci(n=2)`."""
        given = ", ".join(f"{name}={value!r}" for name, value in self.arguments.items())
        return f"{self.label.partition('@')[0]}({given})"


@dataclasses.dataclass(frozen=True)
class Choice:
    """Result of some patches for an input: a value, or the name of an exception."""

    value: Any
    raises: str = ""
    patches: int = 1

    @property
    def text(self) -> str:
        """Text on screen: JSON, or `raises ValueError`."""
        return f"raises {self.raises}" if self.raises else json.dumps(self.value, ensure_ascii=False)


@dataclasses.dataclass(frozen=True)
class Answer:
    """Answer of a person: a JSON value, or the name of an exception."""

    value: Any = None
    raises: str = ""


#: Returns an answer; None means that the person does not know, or will not say.
AskPerson = Callable[[Question], "Answer | None"]


def question_on(
    label: str,
    plausible: Sequence[Attempt],
    checks: Sequence[Check],
    accepts: Callable[[dict[str, Any]], bool],
    bench: Workbench,
    number: int,
    limit_s: float,
) -> Question | None:
    """Find the smallest input on which the patches differ; return None where none was found in time.

    limit_s: time limit of each patch on an input.
    """
    codes = [attempt.patch.code for attempt in plausible[:_PATCHES_MAX]]
    known = [check.arguments for check in checks if not check.call]
    probes = [
        Check(origin="answered", arguments=arguments) for arguments in variants(known, accepts, _INPUTS_MAX)
    ]
    if len(codes) < 2 or not probes:
        return None
    for probe in _told_apart(codes, probes, bench, limit_s):
        choices = _choices([row[0] for row in bench.run(codes, [probe], limit_s=limit_s)])
        if len(choices) > 1:
            return Question(label, probe.arguments, choices, number)
    return None


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
        arguments=question.arguments,
        known=True,
        expected=answer.value,
        raises=answer.raises,
    )


def answer_of(question: Question, said: str) -> Answer | None:
    """Parse a typed answer: a choice's number, `raises ValueError`, or a value as JSON or bare text.

    Empty input is no answer. A choice's number counts only where the choices are shown with numbers; to mean a value
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
    """Return the patches' results on one input, most common first; a patch that hangs or dies gives no choice."""
    found: dict[str, Choice] = {}
    for result in results:
        if result.outcome in ("timeout", "died", "not_run"):
            continue
        raises = _raised(result)
        key = f"raises {raises}" if raises else json.dumps(result.value, sort_keys=True)
        before = found.get(key)
        found[key] = Choice(result.value, raises, 1 if before is None else before.patches + 1)
    return tuple(sorted(found.values(), key=lambda choice: -choice.patches))


def _raised(result: CheckResult) -> str:
    """Return the name of the exception, or an empty text."""
    return result.failure.partition(":")[0] if result.failure else ""
