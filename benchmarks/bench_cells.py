"""Advice on cells: how often it is right, and its cost.

A notebook of 20 to 60 cells is generated from a seed: imports, values, functions, branches, lists that later cells
change, redefinitions. It is then used as people use notebooks: mostly downwards, with jumps, restarts, failed cells,
edited cells and deleted names. Each NameError is a question, and the advice is followed in a kernel with the same
state.

`cured`: The failed cell then runs.
`needed`: Without any one of the advised cells, it would not run, or give another value. A value that is equal by chance
    counts against the advice.
`as_from_the_top`: It gives the same as in a notebook that was run from the top. Earlier state of the kernel may prevent
    that.
`misspelt`: Names that nothing defines: no cell may be advised.

Prints one JSON object.
"""

from __future__ import annotations

import json
import random
import re
import statistics
import time
from collections import Counter
from typing import Any

from healkit.parts.cells.advice import CellAdvice, CellCase, advise
from healkit.parts.cells.dataflow import dataflow_of
from healkit.parts.cells.notebook_file import CellRun, NotebookCell, NotebookFile

SEEDS, RUNS, ROUNDS = 150, 40, 20
KINDS = [
    "value",
    "value",
    "branch",
    "list",
    "change",
    "change",
    "redefine",
    "function",
    "call",
    "call",
    "import",
]
KINDS += ["use", "use"]
FAILING = "raise ValueError('a file that is not there')\n"


def notebook(chance: random.Random, cells: int) -> list[str]:
    """Return cells that run from the top; each reads names of cells above it."""
    numbers, lists, functions, made = ["seed"], ["items"], [], ["seed = 7", "items = [1, 2]"]
    for n in range(2, cells):
        a, b = chance.choice(numbers), chance.choice(numbers)
        kind = chance.choice(KINDS)
        if kind == "value":
            made.append(f"v{n} = ({a} * 3 + {b}) % 997")
        elif kind == "branch":
            made.append(f"if {a} % 2:\n    v{n} = {b} + 1\nelse:\n    v{n} = {a} - 1")
        elif kind == "list":
            made.append(f"v{n} = [{a}, {b}]\nn{n} = len(v{n})")
            lists.append(f"v{n}")
        elif kind == "change":
            made.append(
                chance.choice([f"{chance.choice(lists)}.append({a})", f"{chance.choice(lists)}[0] = {a}"])
            )
        elif kind == "redefine":
            made.append(f"{a} = {a} * 2 % 997 + {b}")
        elif kind == "function":
            made.append(f"def f{n}(x):\n    return (x + {a}) % 997")
            functions.append(f"f{n}")
        elif kind == "call" and functions:
            made.append(f"v{n} = {chance.choice(functions)}({b}) + 1")
        elif kind == "import":
            made.append(f"import math as m{n}\nv{n} = m{n}.gcd({a} + 2, 12)")
        else:
            made.append(f"result{n} = {a} + sum({chance.choice(lists)}) + {b}")
        if re.search(rf"^\s*v{n} = (?!\[)", made[-1], re.MULTILINE):
            numbers.append(f"v{n}")
    return made


class Kernel:
    """Runs cells and records them; a second kernel gets the same state by running the same cells again."""

    def __init__(self) -> None:
        self.space: dict[str, Any] = {"__name__": "__main__"}
        self.runs: list[CellRun] = []

    def run(self, number: int, source: str) -> CellRun:
        error: BaseException | None = None
        try:
            exec(compile(source, "<cell>", "exec"), self.space)
        except Exception as raised:
            error = raised
        at = error.__traceback__.tb_next if error is not None and error.__traceback__ is not None else None
        found = re.match(r"name '(\w+)' is not defined", str(error))
        missing = (
            found[1] if type(error) is NameError and found is not None and found[1] not in self.space else ""
        )
        count = len(self.runs) + 1
        run = CellRun(
            source, count, error is None, f"c{number}", float(count), at.tb_lineno if at is not None else None,
            type(error).__name__ if error is not None else "", missing,
        )  # fmt: skip
        self.runs.append(run)
        return run

    def again(self, until: int) -> Kernel:
        """Return another kernel with the state that this one had after the first `until` runs."""
        other = Kernel()
        for run in self.runs[:until]:
            other.run(int(run.cell_id[1:]), run.source)
        return other


def value_of(kernel: Kernel, source: str) -> Any:
    """Return the values of the names that a cell assigns or changes, if they are data."""
    names = sorted({*dataflow_of(source).bound, *dataflow_of(source).mutated})
    return [kernel.space.get(name) for name in names if isinstance(kernel.space.get(name), int | list)]


def asked(kernel: Kernel, cells: list[str]) -> CellAdvice | None:
    """Ask for advice after the kernel's last run."""
    file = NotebookFile(tuple(NotebookCell(i, text, f"c{i}") for i, text in enumerate(cells, 1)), 1e9)
    return advise(CellCase(kernel.runs[-1], kernel.runs[:-1], file, frozenset(kernel.space)))


def followed(
    kernel: Kernel, advice: CellAdvice, number: int, source: str, left_out: int = -1
) -> tuple[bool, Any]:
    """Follow the advice in another kernel; return whether the failed cell then runs, and its value."""
    other = kernel.again(len(kernel.runs) - 1)
    for i, step in enumerate(advice.steps):
        if i != left_out:
            other.run(step.number or 0, step.source)
    done = other.run(number, source)
    return bool(done.ok), value_of(other, source)


def session(chance: random.Random, tally: Counter[str]) -> None:
    """Use one notebook for a while."""
    cells = notebook(chance, chance.randint(20, 60))
    kernel, place = Kernel(), 0
    for _ in range(RUNS):
        act = chance.random()
        if act < 0.06:
            kernel, place = Kernel(), chance.randrange(len(cells))
        elif act < 0.25:
            place = chance.randrange(len(cells))
        source = cells[place]
        if act > 0.93:
            name = chance.choice([*dataflow_of(source).bound] or ["seed"])
            source = FAILING + source if act > 0.96 else re.sub(rf"\b{name}\b", f"{name}_old", source)
        elif act > 0.9 and (names := [n for n in kernel.space if re.match(r"v\d+$", n)]):
            source = f"del {chance.choice(names)}"
        run = kernel.run(place + 1 if not source.startswith("del ") else len(cells) + 1, source)
        if run.missing and source == cells[place]:
            judge(kernel, cells, place, tally)
        place = (place + 1) % len(cells)
    misspelt = kernel.run(len(cells) + 2, f"print({chance.choice(['prces', 'zzyzx', 'datta'])})")
    advice = asked(kernel, [*cells, misspelt.source])
    tally["misspelt"] += 1
    tally["misspelt_advised"] += advice is not None and bool(advice.steps)


def judge(kernel: Kernel, cells: list[str], place: int, tally: Counter[str]) -> None:
    """Judge the advice for one NameError: ask, follow, compare."""
    tally["asked"] += 1
    advice = asked(kernel, cells)
    if advice is None or not advice.steps:
        tally["told_only" if advice is not None else "nothing_said"] += 1
        return
    source = cells[place]
    tally["advised"] += 1
    tally["cells_advised"] += len(advice.steps)
    tally[f"kind_{advice.kind}"] += 1
    ok, value = followed(kernel, advice, place + 1, source)
    tally["cured"] += ok
    if not ok:
        return
    tally["needed"] += all(
        followed(kernel, advice, place + 1, source, i) != (True, value) for i in range(len(advice.steps))
    )
    top = Kernel()
    for number, text in enumerate(cells[: place + 1], 1):
        top.run(number, text)
    tally["as_from_the_top"] += value_of(top, source) == value


def cost() -> dict[str, float]:
    """Return milliseconds for a notebook of 200 cells, with new texts and with texts that were read before."""
    chance = random.Random(1)
    cells = [f"{text}\n# cell {i}\n" + "".join(f"column_{k} = [{k}, {i}]\n" for k in range(8)) for i, text in
             enumerate(notebook(chance, 200))]  # fmt: skip
    kernel = Kernel()
    kernel.run(200, next(text for text in reversed(cells) if text.startswith(("result", "v"))))
    times: dict[str, list[float]] = {"cold": [], "warm": []}
    for _ in range(ROUNDS):
        dataflow_of.cache_clear()
        for name in times:
            began = time.perf_counter()
            found = asked(kernel, cells)
            times[name].append((time.perf_counter() - began) * 1000)
            assert found is not None
    return {f"cells_200_{name}_ms": round(statistics.median(every), 1) for name, every in times.items()}


def main() -> None:
    tally: Counter[str] = Counter()
    for seed in range(SEEDS):
        session(random.Random(seed), tally)
    advised = max(tally["advised"], 1)
    shares = {
        "advised_share": round(advised / max(tally["asked"], 1), 3),
        **{
            f"{name}_share": round(tally[name] / advised, 3)
            for name in ("cured", "needed", "as_from_the_top")
        },
        "cells_per_advice": round(tally["cells_advised"] / advised, 1),
        "misspelt_advised_share": round(tally["misspelt_advised"] / max(tally["misspelt"], 1), 3),
    }
    print(json.dumps({**shares, **cost(), "counts": dict(sorted(tally.items()))}, indent=2))


if __name__ == "__main__":
    main()
