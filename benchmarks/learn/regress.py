"""Recorded runs in the order of `hk.regress`, on mutants.

Each of the project's own tools gets 200 different recorded runs: sessions of calls that resemble each other, drawn from
a seed, with rare edge cases and wrong arguments. Its mutants are all that the standard operators make (relations,
arithmetic, logic, constants, statements, conditions), at most 60 drawn of them. Mutants that no run kills are dropped,
and of those that are killed by the same runs one is kept; `subsuming` are those whose killing runs contain no other
mutant's (Ammann, Delamaro and Offutt, "Establishing theoretical minimal sets of mutants", ICST 2014): the hard ones.

A healing takes 30 recorded runs as checks: `30` is the share of the mutants that the first 30 find.

APFD (Rothermel et al., 2001) is 1 where the first run finds every fault, 0.5 where faults are found at an even pace.
Tools at even places were used to choose the order; the table is of those at odd places, unless `--dev`.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import copy
import dataclasses
import json
import multiprocessing
import random
import resource
import signal
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from heal.programs import own
from heal.scoring import hidden_examples, reference

from healkit.core.crossing import values
from healkit.parts.trials.order import Recorded, order

RUNS, MUTANTS, SESSION, TIMEOUT_S, MEMORY_BYTES = 200, 60, 8, 0.02, 2 * 2**30
#: How many runs may hang until a mutant is left out, and how many random orders are averaged.
HANGS_MAX, ORDERS = 3, 50
EDGE_SHARE, WRONG_SHARE = 0.04, 0.02

Outcome = tuple[str, str]


@dataclasses.dataclass
class Subject:
    """Tool with its recorded runs, newest first, and which runs kill each mutant."""

    name: str
    runs: list[Recorded]
    code: str
    killed_by: list[frozenset[int]]

    @property
    def subsuming(self) -> list[frozenset[int]]:
        """Mutants whose killing runs contain no other mutant's."""
        return [one for one in self.killed_by if not any(other < one for other in self.killed_by)]


# Recorded runs.


def history(examples: Sequence[dict[str, Any]], chooser: random.Random) -> list[dict[str, Any]]:
    """Draw different calls in sessions: each begins with something new, and varies it a little."""
    found: dict[str, dict[str, Any]] = {}
    pools = {name: [one[name] for one in examples if name in one] for one in examples for name in one}
    for _ in range(RUNS * 20):
        start = {n: varied(v, pools[n], chooser) for n, v in chooser.choice(examples).items()}
        for _ in range(chooser.randint(1, 2 * SESSION)):
            call = dict(start)
            name = chooser.choice(list(call) or [""])
            if name:
                call[name] = varied(call[name], [call[name], *pools[name][:1]], chooser)
                if chooser.random() < EDGE_SHARE:
                    call[name] = chooser.choice(edges(call[name]))
                elif chooser.random() < WRONG_SHARE:
                    call[name] = chooser.choice([None, "x", 1, [], {}])
            found.setdefault(json.dumps(call, sort_keys=True, default=str), call)
            if len(found) == RUNS:
                return list(found.values())
    return list(found.values())


def edges(value: object) -> list[Any]:
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int | float):
        return [0, 1, -1, -value, value * 1000]
    if isinstance(value, str):
        return ["", value[:1], value + value, value.upper(), f" {value} "]
    if isinstance(value, list):
        return [[], value[:1], value + value, value[::-1]]
    return [{}, dict(list(value.items())[:1])] if isinstance(value, dict) else [None]


def varied(value: object, pool: Sequence[Any], chooser: random.Random) -> Any:
    """Draw a value like it, with parts of those of the pool."""
    if isinstance(value, bool):
        return chooser.random() < 0.5
    if isinstance(value, int):
        return chooser.choice([value, chooser.randint(0, 2 * abs(value) + 5)])
    if isinstance(value, float):
        return round(value * chooser.uniform(0.1, 2.5), 2)
    if isinstance(value, str):
        return _text(value, [one for one in pool if isinstance(one, str)] or [value], chooser)
    if isinstance(value, list):
        items = [item for one in pool if isinstance(one, list) for item in one] or value
        if not items:
            return []
        size = max(0, len(value) + chooser.choice([-1, 0, 0, 0, 1, 2]))
        kept = [*value, *(chooser.choice(items) for _ in range(size))][:size]
        return [varied(item, [item, *items], chooser) if chooser.random() < 0.5 else item for item in kept]
    if isinstance(value, dict):
        return {name: varied(item, [item], chooser) for name, item in value.items()}
    return value


def _text(value: str, pool: Sequence[str], chooser: random.Random) -> str:
    """Draw a text with the same form: other digits, and words of the pool's texts."""
    words = [word for one in pool for word in one.split() if word.isalpha()] or ["a"]
    made = []
    for word in value.split(" "):
        drawn = chooser.choice(words) if word.isalpha() and chooser.random() < 0.5 else word
        made.append(
            "".join(
                str(chooser.randint(0, 9)) if c.isdigit() and chooser.random() < 0.5 else c for c in drawn
            )
        )
    if chooser.random() < 0.2:
        made.append(chooser.choice(words))
    return " ".join(made)


# Mutants.

_RELATIONS: dict[type, list[type]] = {
    ast.Lt: [ast.LtE, ast.GtE], ast.LtE: [ast.Lt, ast.Gt], ast.Gt: [ast.GtE, ast.LtE], ast.GtE: [ast.Gt, ast.Lt],
    ast.Eq: [ast.NotEq], ast.NotEq: [ast.Eq], ast.In: [ast.NotIn], ast.NotIn: [ast.In], ast.Is: [ast.IsNot],
    ast.IsNot: [ast.Is],
}  # fmt: skip
_ARITHMETIC: dict[type, list[type]] = {
    ast.Add: [ast.Sub], ast.Sub: [ast.Add], ast.Mult: [ast.Add, ast.FloorDiv], ast.Div: [ast.Mult, ast.FloorDiv],
    ast.FloorDiv: [ast.Div, ast.Mult], ast.Mod: [ast.FloorDiv], ast.Pow: [ast.Mult],
}  # fmt: skip


def mutants(code: str) -> Iterator[str]:
    """Yield each code that one application of a standard operator makes."""
    tree = ast.parse(code)
    for position, node in enumerate(ast.walk(tree)):
        for change in _changes(node):
            other = ast.parse(code)
            change(next(one for at, one in enumerate(ast.walk(other)) if at == position))
            with contextlib.suppress(Exception):
                yield ast.unparse(ast.fix_missing_locations(other))


def _changes(node: ast.AST) -> Iterator[Callable[[Any], None]]:
    if isinstance(node, ast.Compare):
        for at, relation in enumerate(node.ops):
            for made in _RELATIONS[type(relation)]:
                yield lambda other, at=at, made=made: other.ops.__setitem__(at, made())
    if isinstance(node, ast.BinOp | ast.AugAssign):
        for made in _ARITHMETIC.get(type(node.op), ()):
            yield lambda other, made=made: setattr(other, "op", made())
    if isinstance(node, ast.BoolOp):
        made = ast.Or if isinstance(node.op, ast.And) else ast.And
        yield lambda other: setattr(other, "op", made())
        for at in range(len(node.values)):
            yield (
                lambda other, at=at: (
                    other.values.__delitem__(at)
                    if len(other.values) > 2
                    else other.values.__setitem__(at, ast.Constant(isinstance(other.op, ast.And)))
                )
            )
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield lambda other: setattr(other, "operand", ast.UnaryOp(ast.Not(), other.operand))
    if isinstance(node, ast.If | ast.While | ast.IfExp):
        yield lambda other: setattr(other, "test", ast.UnaryOp(ast.Not(), other.test))
    if isinstance(node, ast.Constant):
        if isinstance(node.value, bool):
            yield lambda other: setattr(other, "value", not other.value)
        elif isinstance(node.value, int | float):
            yield lambda other: setattr(other, "value", other.value + 1)
            yield lambda other: setattr(other, "value", other.value - 1)
        elif isinstance(node.value, str) and node.value:
            yield lambda other: setattr(other, "value", "")
    if isinstance(getattr(node, "body", None), list) and not isinstance(node, ast.Module | ast.ClassDef):
        for field in ("body", "orelse"):
            for at, statement in enumerate(getattr(node, field, [])):
                if not isinstance(statement, ast.FunctionDef | ast.Pass | ast.Import | ast.ImportFrom):
                    yield lambda other, field=field, at=at: getattr(other, field).__setitem__(at, ast.Pass())


class _Hangs(BaseException):
    """A run that does not end in time; no code of a tool catches it."""


def _hang(*_: object) -> None:
    raise _Hangs


def _text_of(value: object) -> str:
    """Write a result as the log does where it is JSON."""
    try:
        return json.dumps(value)
    except (TypeError, ValueError):
        return repr(value)


def outcomes(code: str, name: str, calls: Sequence[dict[str, Any]]) -> list[Outcome] | None:
    """Return how each call ends; None for code without that function, or that hangs too often."""
    space: dict[str, Any] = {"__name__": "tool"}
    hangs, found = 0, []
    try:
        exec(compile(code, name, "exec"), space)
        function = space[name]
    except (Exception, _Hangs):
        return None
    for call in calls:
        made = ("hangs", "")
        with contextlib.suppress(_Hangs):  # the signal may also come while the timer is put off
            signal.setitimer(signal.ITIMER_REAL, TIMEOUT_S)
            try:
                made = ("returned", _text_of(function(**copy.deepcopy(call))))
            except _Hangs:
                made = ("hangs", "")
            except BaseException as error:
                made = ("raised", type(error).__name__)
            signal.setitimer(signal.ITIMER_REAL, 0)
        hangs += made[0] == "hangs"
        if hangs > HANGS_MAX:
            return None
        found.append(made)
    return found


def subject(name: str, examples: Sequence[dict[str, Any]], seed: int) -> Subject | None:
    """Return a tool with its runs and its different mutants; called in a process of its own."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    signal.signal(signal.SIGALRM, _hang)
    chooser = random.Random(f"{seed} {name}")
    calls = history(examples, chooser)[::-1]
    code = reference(name)
    right = outcomes(code, name, calls)
    if right is None or len(calls) < RUNS:
        return None
    drawn = sorted(set(mutants(code)) - {ast.unparse(ast.parse(code))})
    chooser.shuffle(drawn)
    killed: dict[frozenset[int], None] = {}
    for mutant in drawn[:MUTANTS]:
        if (now := outcomes(mutant, name, calls)) is not None:
            kills = frozenset(
                at for at, both in enumerate(zip(right, now, strict=True)) if both[0] != both[1]
            )
            if kills:
                killed[kills] = None
    runs = [Recorded(call, kind == "returned", text) for call, (kind, text) in zip(calls, right, strict=True)]
    return Subject(name, runs, code, list(killed)) if killed else None


def subjects(*, dev: bool, seed: int) -> list[Subject]:
    """Return the tools of one half."""
    hidden = hidden_examples("own")
    chosen = [program for program in own() if program.knowable and not program.draft][0 if dev else 1 :: 2]
    work = [
        (
            program.name,
            [
                dict(values.remade(one["arguments"]))
                for one in (*program.examples, *hidden[program.name])
                if one.get("arguments")
            ],
            seed,
        )
        for program in chosen
    ]
    with multiprocessing.get_context("fork").Pool(1, maxtasksperchild=1) as pool:
        found = pool.starmap(subject, [one for one in work if one[1]], chunksize=1)
    return [one for one in found if one is not None]


# Measures.


def apfd(positions: Sequence[int], killed_by: Sequence[frozenset[int]]) -> float:
    """Return the average percentage of faults detected, of an order of runs."""
    place = {run: at for at, run in enumerate(positions, start=1)}
    firsts = sum(min(map(place.__getitem__, kills)) for kills in killed_by)
    return 1 - firsts / (len(positions) * len(killed_by)) + 1 / (2 * len(positions))


def share_found(positions: Sequence[int], killed_by: Sequence[frozenset[int]], share: float = 0.1) -> float:
    """Return the share of faults that the first of the runs find."""
    first = set(positions[: round(share * len(positions))])
    return sum(bool(first & kills) for kills in killed_by) / len(killed_by)


Orders = Callable[[Subject], list[list[int]]]


def random_orders(one: Subject) -> list[list[int]]:
    chooser = random.Random(7)
    return [chooser.sample(range(len(one.runs)), len(one.runs)) for _ in range(ORDERS)]


def failed_first(one: Subject) -> list[list[int]]:
    return [sorted(range(len(one.runs)), key=lambda at: one.runs[at].succeeded)]


def surprising_first(one: Subject) -> list[list[int]]:
    """By |TD error| of a run of a tool whose value is its share of successes: what is rare surprises."""
    value = statistics.fmean(run.succeeded for run in one.runs)
    return [sorted(range(len(one.runs)), key=lambda at: -abs(one.runs[at].succeeded - value))]


ORDERINGS: dict[str, Orders] = {
    "random": random_orders,
    "newest first": lambda one: [list(range(len(one.runs)))],
    "failed first": failed_first,
    "by |TD error| alone": surprising_first,
    "without the code": lambda one: [order(one.runs)],
    "healkit": lambda one: [order(one.runs, one.code)],
}


def measured(found: Sequence[Subject], orders: Orders, of: str) -> tuple[float, float, float]:
    """Return mean APFD and mean shares found by the first tenth and by the first 30, over the tools."""
    apfds, shares, thirties = [], [], []
    for one in found:
        kills, made = getattr(one, of), orders(one)
        apfds.append(statistics.fmean(apfd(positions, kills) for positions in made))
        shares.append(statistics.fmean(share_found(positions, kills) for positions in made))
        thirties.append(statistics.fmean(share_found(positions, kills, 30 / RUNS) for positions in made))
    return statistics.fmean(apfds), statistics.fmean(shares), statistics.fmean(thirties)


def main(argv: Sequence[str] | None = None) -> dict[str, dict[str, tuple[float, float, float]]]:
    """Print the table, and return it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--dev", action="store_true", help="the tools that the order was chosen on")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(argv)
    found = subjects(dev=options.dev, seed=options.seed)
    counts = {of: sum(len(getattr(one, of)) for one in found) for of in ("killed_by", "subsuming")}
    print(
        f"{len(found)} tools, {RUNS} runs each; "
        f"mutants: {counts['killed_by']} different, {counts['subsuming']} subsuming"
    )
    print(f"{'':20} {'all different':>20}   {'subsuming':>20}")
    print(f"{'order':20} " + "   ".join([f"{'APFD':>6} {'10 %':>6} {'30':>6}"] * 2))
    table = {}
    for name, orders in ORDERINGS.items():
        table[name] = {of: measured(found, orders, of) for of in counts}
        cells = [f"{row[0]:6.3f} {row[1]:6.1%} {row[2]:6.1%}" for row in table[name].values()]
        print(f"{name:20} " + "   ".join(cells))
    return table


if __name__ == "__main__":
    main()
