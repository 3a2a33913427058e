"""Measurement of one program: register, run, heal, score."""

from __future__ import annotations

import ast
import concurrent.futures
import contextlib
import dataclasses
import difflib
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from heal.programs import Example, Program
from heal.scoring import Judge
from heal.world import TOOLS, World

from healkit import Config, Healkit
from healkit.core.contracts.patches import same_value
from healkit.core.crossing import values
from healkit.errors import HealkitError
from healkit.parts.heal.questions import Answer

#: Of the patches that are said to pass, so many are scored.
_SCORED = 25
#: A healer that has not come back so long after its budget never will.
_OVERTIME_S = 90.0
#: What an example says; the scorer's own remarks stay out of the vault.
_FIELDS = ("arguments", "call", "result")


@dataclasses.dataclass
class Row:
    """Result of one program.

    plausible: a patch was proposed that meets every visible example, by the scorer's own run. first_correct: the first
    such patch meets the unseen ones too. any_correct: some patch does. kept, verdict: whether the vault holds a patch
    now, and what the loop said of it; kept_correct: whether it is right. outcome, reason: the report's own words. diff:
    what the kept patch changes. memorised: among that is a visible example's result, returned as it stands. real_calls:
    calls that the healing really made, of functions and of vault tools that do more than calculate. fails: as in the
    program. first: verdict and doubt of the first patch, and what it changes.
    """

    name: str
    kind: str
    shows: str
    bugs: int
    places: int
    knowable: bool
    seed: int
    outcome: str = ""
    reason: str = ""
    attempts: int = 0
    questions: int = 0
    candidates: int = 0
    seconds: float = 0.0
    plausible: bool = False
    first_correct: bool = False
    any_correct: bool = False
    kept: bool = False
    verdict: str = ""
    kept_correct: bool = False
    error: str = ""
    diff: str = ""
    memorised: bool = False
    real_calls: int = 0
    fails: int = 0
    first: tuple[str, str, str] = ("", "", "")


def measure(
    program: Program,
    unseen: Sequence[Example],
    judge: Judge,
    *,
    advisors: Sequence[str],
    budget_s: float,
    seed: int = 0,
    right: str = "",
) -> Row:
    """Heal it in a vault of its own, and score the result.

    right: correct code, which answers the loop's questions; without it the loop asks no questions.
    """
    row = Row(program.name, program.kind, program.shows, program.bugs, program.places, program.knowable, seed)
    row.fails = program.fails
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,  # a worker may still write there
        Healkit(Path(folder) / "healkit.db", config=Config(start_timeout_s=30)) as healkit,
    ):
        world = register(healkit, program)
        before = calls_made(healkit, world)
        begun = time.perf_counter()
        try:
            ask = _answering(right, program, judge) if right else None
            report = _heal(healkit, program.name, advisors, budget_s, ask)
        except Exception as error:
            row.error = f"{type(error).__name__}: {error}"
            report = None
        row.seconds = round(time.perf_counter() - begun, 3)
        row.real_calls = calls_made(healkit, world) - before
        active = healkit.vault.get(program.name).code
    if report is not None:
        row.outcome, row.reason = report.outcome, " ".join([report.reason, *report.notes])
        row.candidates = report.candidates_tried
        row.attempts, row.questions = len(report.attempts), len(report.questions)
    score(row, program, report.attempts if report else [], active, judge, unseen)
    return row


def calls_made(healkit: Healkit, world: World) -> int:
    """Count the calls of the world so far; those of a vault tool that only calculates need no leave."""
    outward = [name for name, code in TOOLS.items() if "mcp." in code]
    return sum(world.made.values()) + sum(
        len(healkit.log.query(tool=name, limit=1000).rows) for name in outward
    )


def register(healkit: Healkit, program: Program) -> World:
    """Put it into the vault, and make the call that goes wrong, so that it is on record; return the world.

    A tool that needs the world runs all of its visible examples in it, so that their calls are on record.
    """
    world = World()
    if program.in_world:
        world.install(healkit)
    examples = [{key: example[key] for key in _FIELDS if key in example} for example in program.examples]
    healkit.vault.add(
        program.name,
        program.code,
        description=program.description,
        input_schema=program.input_schema,
        examples=examples,
        draft=program.draft,
        grants=program.grants,
    )
    failing = program.examples[program.failing]
    others = [example for example in program.examples if example is not failing] if program.in_world else []
    for example in (*others, failing):
        if (arguments := example.get("arguments")) is not None:
            world.reset()
            with contextlib.suppress(HealkitError):  # a draft is refused, and that is on record
                healkit.execute(program.name, arguments=values.remade(arguments), timeout=program.timeout_s)
    return world


def _answering(right: str, program: Program, judge: Judge) -> Callable[[Any], Answer | None]:
    """Return an `ask` that answers from the correct code."""

    def answer(question: Any) -> Answer | None:
        example = {"arguments": question.arguments}
        if program.in_world:
            result: Any = judge.live(right, program, example)[0]
        else:
            [[result]] = judge.results([right], program.name, [example])
        if result.ok:
            return Answer(result.value)
        return None if result.failure is None else Answer(raises=result.failure.ename)

    return answer


def _heal(healkit: Any, name: str, advisors: Sequence[str], budget_s: float, ask: Any) -> Any:
    """Return the report; raises `TimeoutError` for a healer that does not come back."""
    ended: concurrent.futures.Future[Any] = concurrent.futures.Future()

    def work() -> None:
        try:
            ended.set_result(
                healkit.heal(name, advisors=list(advisors), auto=True, budget_s=budget_s, ask=ask)
            )
        except BaseException as error:
            ended.set_exception(error)

    threading.Thread(target=work, daemon=True).start()  # one that is stuck must not keep the process
    return ended.result(timeout=budget_s + _OVERTIME_S)


def score(
    row: Row, program: Program, attempts: Sequence[Any], active: str, judge: Judge, unseen: Sequence[Example]
) -> None:
    row.kept = active != program.code
    codes = [attempt.patch.code for attempt in attempts if attempt.verdict != "not_cured"]
    codes = list(dict.fromkeys(codes))[:_SCORED]
    if row.kept and active not in codes:
        codes.append(active)
    if not codes:
        return
    visible = len(program.examples)
    if program.in_world:
        passed = judge.passes_in_world(codes, program, unseen)
    else:
        passed = judge.passes(codes, program.name, [*program.examples, *unseen])
    plausible = [all(marks[:visible]) for marks in passed]
    correct = [all(marks) for marks in passed]
    row.plausible = any(plausible)
    row.first_correct = row.plausible and correct[plausible.index(True)]
    row.any_correct = any(correct)
    if row.plausible:
        patch = next(one for one in attempts if one.patch.code == codes[plausible.index(True)])
        row.first = patch.verdict, patch.patch.doubt, _changed_lines(program.code, patch.patch.code)
    if row.kept:
        row.kept_correct = correct[codes.index(active)]
        said = [attempt.verdict for attempt in attempts if attempt.patch.code == active]
        row.verdict = said[-1] if said else row.outcome
        row.diff = _changed_lines(program.code, active)
        row.memorised = memorised(row.diff, program)


def _changed_lines(before: str, after: str) -> str:
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=0)
    return "\n".join(list(lines)[2:])


def memorised(diff: str, program: Program) -> bool:
    """Return whether a change returns a visible example's result as a literal.

    A truth value, 0, 1 or nothing may be meant.
    """
    for line in diff.splitlines():
        if line.startswith("+") and (statement := line[1:].strip()).startswith("return "):
            with contextlib.suppress(ValueError, SyntaxError):
                value = ast.literal_eval(statement.removeprefix("return "))
                telling = value not in (None, False, True, 0, 1, "", [], {})
                if telling and any(same_value(example["result"], value) for example in program.examples):
                    return True
    return False
