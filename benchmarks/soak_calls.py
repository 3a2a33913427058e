"""Real calls that healings make: the limit is 0.

    python benchmarks/soak_calls.py [budget_s]

Each tool of the set `calls` that calls something is healed in each variation below. No call is allowed, so no call may
reach a real function or tool. Prints one JSON object, with the healings that made a call; progress goes to stderr. Exit
code 1 if there was any.
"""

from __future__ import annotations

import ast
import dataclasses
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from heal.measuring import calls_made
from heal.programs import Program, written
from heal.world import World

from healkit import Config, Healkit
from healkit.core.crossing import values
from healkit.errors import HealkitError
from healkit.parts.heal.records import Patch

_BUDGET_S = 3.0


@dataclasses.dataclass(frozen=True)
class Case:
    """Tool to heal; inner: the tool that it calls, if that is the broken one."""

    program: Program
    inner: Program | None = None
    side_effects: bool = False
    runs: int = 99
    ideas: tuple[str, ...] = ()


class Idea:
    """Advisor that proposes these codes, as a model would."""

    name, author = "idea", "model"

    def __init__(self, codes: tuple[str, ...]) -> None:
        self._codes = codes

    def propose(self, _case: Any, _bench: Any) -> Iterator[Patch]:
        for code in self._codes:
            yield Patch(code=code, advisor=self.name, author="model", reason="It calls more.")


def variations(program: Program) -> dict[str, Case]:
    wrong = tuple({**example, "result": ["wrong", example["result"]]} for example in program.examples)
    raising = dataclasses.replace(program, code=_with(program.code, _Raising()))
    more = _with(program.code, _Calling())
    return {
        "as it is": Case(program),
        "declared side effects": Case(program, side_effects=True),
        "through another tool": Case(_caller_of(program), inner=program),
        "raises after the calls": Case(raising),
        "examples that nothing meets": Case(dataclasses.replace(program, examples=wrong)),
        "only one run on record": Case(program, runs=1),
        "patches with more calls": Case(program, ideas=(more, more.replace("+1", "+2"))),
    }


def main() -> int:
    budget_s = float(sys.argv[1]) if len(sys.argv) > 1 else _BUDGET_S
    programs = [program for program in written("calls") if "mcp." in program.code]
    outcomes: dict[str, Counter[str]] = {}
    answered, healings = 0, 0
    called: list[dict[str, Any]] = []
    for program in programs:
        for name, case in variations(program).items():
            outcome, from_record, real = heal(case, budget_s)
            healings += 1
            answered += from_record
            outcomes.setdefault(name, Counter())[outcome] += 1
            if real:
                called.append({"tool": program.name, "variation": name, "calls": real})
            print(
                f"{healings:4} {program.name:20} {name:28} {outcome:14} {from_record:6} {real}",
                file=sys.stderr,
            )
    json.dump(
        {"healings": healings, "calls_answered": answered, "real_calls": called, "outcomes": outcomes},
        sys.stdout,
    )
    return bool(called)


def heal(case: Case, budget_s: float) -> tuple[str, int, int]:
    """Heal one tool in a separate vault and world; return outcome, calls from the record, and real calls."""
    program, world = case.program, World()
    # A tool that only calculates may be called, like those of the world.
    inner = [case.inner.name] if case.inner is not None and "mcp.host." in case.inner.code else []
    with (
        tempfile.TemporaryDirectory() as folder,
        Healkit(Path(folder) / "healkit.db", config=Config(start_timeout_s=30)) as healkit,
    ):
        world.install(healkit)
        for one in filter(None, (case.inner, program)):
            examples = list(one.examples) if one is program else []
            healkit.vault.add(
                one.name,
                one.code,
                examples=examples,
                side_effects=case.side_effects,
            )
        order = [*program.examples[program.failing :], *program.examples[: program.failing]][: case.runs]
        for example in reversed(order):
            world.reset()
            healkit.execute(
                program.name, arguments=values.remade(example["arguments"]), timeout=program.timeout_s
            )
        before = _calls(healkit, world, inner)
        advisors: list[Any] = [Idea(case.ideas)] if case.ideas else ["rules", "search"]
        try:
            report = healkit.heal(program.name, advisors=advisors, auto=True, budget_s=budget_s)
            outcome, from_record = report.outcome, report.calls_answered
        except HealkitError as error:
            outcome, from_record = error.code, 0
        return str(outcome), from_record, _calls(healkit, world, inner) - before


def _calls(healkit: Healkit, world: World, inner: list[str]) -> int:
    """Count the calls so far; the repeated run of a kept patch of the inner tool does not count."""
    rows = [row for name in inner for row in healkit.log.query(tool=name, tried=False, limit=1000).rows]
    return calls_made(healkit, world) + sum(row.origin != "heal" for row in rows)


def _caller_of(program: Program) -> Program:
    """Return a tool that only calls the program."""
    name, function = f"caller_of_{program.name}", _function(ast.parse(program.code), program.name)
    taken = ast.unparse(function.args)
    given = ", ".join(f"{one.arg}={one.arg}" for one in function.args.args)
    code = f"def {name}({taken}):\n    return mcp.vault.{program.name}({given})\n"
    return dataclasses.replace(program, name=name, code=code)


class _Raising(ast.NodeTransformer):
    """Passes every result to a function that does not exist."""

    def visit_Return(self, node: ast.Return) -> ast.Return:
        node.value = ast.Call(ast.Name("checked", ast.Load()), [node.value or ast.Constant(None)], [])
        return node


class _Calling(ast.NodeTransformer):
    """Before every result, sends, pays and deletes something that is not on record."""

    def visit_Return(self, node: ast.Return) -> list[ast.stmt]:
        more = (
            "mcp.host.send(to='x@example.org', text='+1')\nmcp.host.pay(account='CH-9', amount=1.0)\n"
            "mcp.host.delete(key='tmp')\nmcp.vault.notify(user_id=1, text='x')"
        )
        return [*ast.parse(more).body, node]


def _with(code: str, change: ast.NodeTransformer) -> str:
    return ast.unparse(ast.fix_missing_locations(change.visit(ast.parse(code)))) + "\n"


def _function(tree: ast.Module, name: str) -> ast.FunctionDef | ast.AsyncFunctionDef:
    return next(
        node
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name
    )


if __name__ == "__main__":
    sys.exit(main())
