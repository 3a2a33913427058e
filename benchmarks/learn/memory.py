"""Fixes remembered, against no memory.

    python benchmarks/learn/memory.py
    python benchmarks/learn/memory.py --set dev gallery --orders 5 --keep recorded.jsonl
    python benchmarks/learn/memory.py --real 1

The sets of benchmarks/heal are played as one stream, in random orders: in its first half each tool's right patch is
remembered, in its second half each tool is healed. The search's first 4,000 single edits of each tool are tried once,
on what a healer sees and on what it does not, and then replayed.
Counted is what is tried until the right patch is reached: the memory's, the rules', the search's; of tools for which
it is reached at all. A right patch that the search never reaches is remembered as its owner would write it.

`--real` heals the second half of as many orders in earnest, once without and once with a memory, and counts what is
kept, how much of that is right, and all candidates, those too that are only compared with the right one.

The sets hold each mistake about once, which no memory can help. So there is a second table, of streams in which a third
of the second half's mistakes were met before, in a tool with other names.
"""

from __future__ import annotations

import argparse
import ast
import dataclasses
import itertools
import json
import random
import statistics
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from heal import programs
from heal.measuring import Row, register, score
from heal.programs import Program
from heal.scoring import Judge, hidden_examples, reference

from healkit import Config, Healkit
from healkit.core.contracts.patches import apply_edits
from healkit.parts.explain.source import Source
from healkit.parts.heal.advisor import Case, Workbench
from healkit.parts.heal.advisors.search.edit_space import normalized_code
from healkit.parts.heal.advisors.search.strategy import start_search
from healkit.parts.heal.records import Patch
from healkit.parts.learn.memory import Fix, Recollection
from healkit.parts.learn.memory_advisor import tried_first

_MOST = 4000
_BUDGET_S = 25.0
_CHOSEN = ("own", "fresh", "held_out")


@dataclasses.dataclass
class Played:
    """Tool as it was recorded: its right patch, the edits of the search as (kind, score), and when it was reached.

    rules: number of rules' patches until the right one, or of all. edits: in the shipped order. rights: all patches
    known to be right.
    """

    set: str
    name: str
    code: str
    right: str
    failure: str
    values: dict[str, Any]
    lines: dict[int, float]
    rules: int
    by_rules: bool
    edits: list[tuple[str, float]]
    reached: list[int]
    rights: list[str]


class _Recorder:
    """Advisor that proposes nothing, and keeps what the search would try."""

    name = "recorder"
    author = "rule"

    def __init__(self) -> None:
        self.failure, self.values, self.lines = "", {}, {}
        self.code, self.edits, self.passed = "", [], []

    def propose(self, case: Case, bench: Workbench) -> Iterator[Patch]:
        self.failure = "" if case.failure is None else case.failure.ename
        self.values = next((dict(one.arguments) for one in case.failing or case.checks), {})
        search = start_search(case, bench)
        if search is None:
            return
        self.code, self.lines = search._code, dict(search.suspicion.lines)
        self.edits = list(itertools.islice(search._baseline.space(set()) or (), _MOST))
        for place, letters in bench.score(
            self.code, [one.edits for one in self.edits], search._baseline.checks
        ):
            if set(letters) == {"."}:
                self.passed.append(place)
        yield from ()


def record(program: Program, set_name: str, judge: Judge) -> Played:
    """Try the search's edits and the rules' patches of a tool."""
    recorder = _Recorder()
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        Healkit(Path(folder) / "healkit.db", config=Config(start_timeout_s=30)) as healkit,
    ):
        register(healkit, program)
        report = healkit.heal(program.name, advisors=[recorder, "rules"], dry_run=True, budget_s=_BUDGET_S)
    proposed = [attempt.patch.code for attempt in report.attempts]
    passing = [apply_edits(recorder.code, list(recorder.edits[place].edits)) for place in recorder.passed]
    codes = list(dict.fromkeys([*proposed, *passing[:60]]))
    unseen = hidden_examples(set_name)[program.name]
    right = {code for code, ok in zip(codes, judge.correct(codes, program, unseen), strict=True) if ok}
    reached = [place for place, code in zip(recorder.passed, passing, strict=True) if code in right]
    rules = next((number for number, code in enumerate(proposed, 1) if code in right), None)
    known = [code for code in (*proposed, *passing) if code in right]
    fix = known[0] if known else reference(program.name, set_name) if set_name != "gallery" else program.code
    values = json.loads(json.dumps(recorder.values, default=str))
    return Played(
        set_name, program.name, program.code, fix, recorder.failure, values, recorder.lines,
        rules or len(proposed), rules is not None,
        [(one.made_by[0], one.score) for one in recorder.edits], sorted(reached), list(dict.fromkeys([fix, *known])),
    )  # fmt: skip


def recorded(options: argparse.Namespace, judge: Judge) -> list[Played]:
    """Return the sets' tools, those of an earlier recording from its file."""
    kept = options.keep
    found = (
        [Played(**json.loads(line)) for line in kept.read_text().splitlines()]
        if kept and kept.exists()
        else []
    )
    known = {(one.set, one.name) for one in found}
    for set_name in options.set:
        for program in of_set(set_name)[: options.limit]:
            if (set_name, program.name) in known:
                continue
            one = record(program, set_name, judge)
            found.append(one)
            print(
                f"{len(found):4} {set_name} {one.name}: {len(one.edits)} edits", file=sys.stderr, flush=True
            )
            if kept:
                with kept.open("a") as file:
                    file.write(json.dumps(dataclasses.asdict(one)) + "\n")
    return [one for one in found if one.set in options.set]


def of_set(set_name: str) -> list[Program]:
    return programs.gallery() if set_name == "gallery" else programs.written(set_name)


# The replay.


def renamed(text: str, prefix: str) -> str:
    """Return code with other names for all that it binds itself."""
    tree = ast.parse(text)
    own = {
        node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    own |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in own:
            node.id = prefix + node.id
        elif isinstance(node, ast.arg):
            node.arg = prefix + node.arg
    return ast.unparse(tree)


def fix_of(one: Played, name: str = "") -> Fix:
    """Return a tool's right patch as it is remembered; name: the beginning of its other names."""
    before, after = one.code, one.right
    if name:
        try:
            before, after = renamed(before, name), renamed(after, name)
        except SyntaxError:
            pass
    values = {name + key: value for key, value in one.values.items()}
    return Fix(one.name, before, after, True, failure=one.failure, values=values)


def tries(one: Played, memory: Recollection | None) -> int | None:
    """Return how many candidates are tried until the right patch; None where it is never reached."""
    before = 0
    if memory is not None:
        codes = from_memory(one, memory)
        rights = set(map(normalized_code, one.rights))
        for number, code in enumerate(codes, 1):
            if normalized_code(code) in rights:
                return number
        before = len(codes)
    if one.by_rules:
        return before + one.rules
    return before + one.rules + one.reached[0] + 1 if one.reached else None


def program_of(one: Played) -> Program:
    return next(program for program in of_set(one.set) if program.name == one.name)


def from_memory(one: Played, memory: Recollection) -> list[str]:
    """Return the codes that the memory would try."""
    try:
        source = Source(one.code)
    except (SyntaxError, ValueError):
        return []
    recalled = memory.edits(source, one.failure, values=one.values)
    chosen = tried_first(recalled, lambda node: 0.05 + one.lines.get(node.lineno, 0.0))
    return list(dict.fromkeys(apply_edits(one.code, [found.edit]) for found in chosen))


CONFIGS = ("shipped", "memory")


def replay(played: Sequence[Played], orders: int, *, recurring: bool) -> None:
    """Print what each configuration tries in the second half of the streams."""
    rows: dict[str, list[int | None]] = {config: [] for config in CONFIGS}
    for seed in range(orders):
        order = list(played)
        random.Random(seed).shuffle(order)
        first, second = order[: len(order) // 2], order[len(order) // 2 :]
        # What recurs: a third of the mistakes of the second half were met before, in tools with other names.
        again = [fix_of(one, "other_") for one in second[: len(second) // 3]] if recurring else []
        fixes = [*again, *map(fix_of, first)]
        memory = Recollection(fixes)
        for config in CONFIGS:
            remembered = memory if "memory" in config else None
            rows[config] += [tries(one, remembered) for one in second]
    both = [all(rows[config][at] is not None for config in CONFIGS) for at in range(len(rows["shipped"]))]
    print(f"\n{'recurring' if recurring else 'own order'}: {orders} orders, {len(played)} tools, second half")
    print("| asked first | reached | candidates, mean | of shipped | median | geometric mean of ratios |")
    print("| --- | --- | --- | --- | --- | --- |")
    base = [count for count, ok in zip(rows["shipped"], both, strict=True) if ok]
    for config in CONFIGS:
        counts = [count for count, ok in zip(rows[config], both, strict=True) if ok]
        reached = sum(count is not None for count in rows[config]) / len(both)
        ratio = statistics.geometric_mean(a / b for a, b in zip(counts, base, strict=True))
        print(f"| {config} | {reached:.1%} | {statistics.mean(counts):.1f} | {sum(counts) / sum(base):.2f} "
              f"| {statistics.median(counts):.0f} | {ratio:.2f} |", flush=True)  # fmt: skip


# In earnest.


def in_earnest(played: Sequence[Played], seed: int, judge: Judge) -> None:
    """Heal the second half of an order with and without what the first half teaches, and print the results."""
    order = list(played)
    random.Random(seed).shuffle(order)
    first, second = order[: len(order) // 2], order[len(order) // 2 :]
    for advisors in (["rules", "search"], ["memory", "rules", "search"]):
        rows: list[tuple[str, Row]] = []
        with (
            tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
            Healkit(Path(folder) / "healkit.db", config=Config(start_timeout_s=30)) as healkit,
        ):
            for one in first if "memory" in advisors else ():
                register(healkit, program_of(one))
                failed = healkit.log.query(tool=one.name, status="FAILURE", limit=1).rows
                log_id = failed[0].id if failed else None
                healkit.vault.patch(one.name, one.right, author="search", motivating_log_id=log_id)
            rows += [(one.set, healed(healkit, program_of(one), one, advisors, judge)) for one in second]
        print(f"\norder {seed}, advisors {', '.join(advisors)}")
        for name in dict.fromkeys(set_name for set_name, _ in rows):
            of = [row for set_name, row in rows if set_name == name]
            kept = [row for row in of if row.kept]
            reached = [row.candidates for row in of if row.any_correct]
            proposed, right = sum(row.any_correct for row in of), sum(row.kept_correct for row in kept)
            print(f"{name}: {len(of)} tools, right proposed {proposed}, kept {len(kept)}, of these right {right}; "
                  f"all candidates, median {statistics.median(reached)}, sum {sum(reached)}", flush=True)  # fmt: skip
            print("  wrong:", ", ".join(row.name for row in kept if not row.kept_correct) or "none")


def healed(healkit: Healkit, program: Program, one: Played, advisors: Sequence[str], judge: Judge) -> Row:
    """Heal one tool; its owner takes back what is wrong, and decides what waits."""
    row = Row(program.name, program.kind, program.shows, program.bugs, program.places, program.knowable, 0)
    register(healkit, program)
    report = healkit.heal(program.name, advisors=list(advisors), auto=True, budget_s=_BUDGET_S)
    row.candidates = report.candidates_tried
    active = healkit.vault.get(program.name).code
    unseen = hidden_examples(one.set)[program.name]
    score(row, program, report.attempts, active, judge, unseen)
    if row.kept and not row.kept_correct:
        healkit.vault.undo(program.name)
    for request in healkit.requests.pending(program.name):
        if judge.correct([request.code], program, unseen)[0]:
            healkit.requests.accept(request.id)
        else:
            healkit.requests.decline(request.id)
    return row


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--set", nargs="+", choices=(*programs.WRITTEN, "gallery"), default=list(_CHOSEN))
    parser.add_argument("--orders", type=int, default=5)
    parser.add_argument("--limit", type=int, help="the first so many tools of a set")
    parser.add_argument("--keep", type=Path, help="a file that keeps what was recorded")
    parser.add_argument(
        "--real", type=int, default=0, help="heal the second half of so many orders in earnest"
    )
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder, Judge(Path(folder)) as judge:
        played = recorded(options, judge)
        for recurring in (False, True) if options.orders else ():
            replay(played, options.orders, recurring=recurring)
        for seed in range(options.real):
            in_earnest(played, seed, judge)


if __name__ == "__main__":
    main()
