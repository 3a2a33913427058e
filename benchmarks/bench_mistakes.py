"""Mistakes planted in cells: are fixes and cards right?

    python benchmarks/bench_mistakes.py --half written --seed 1 --count 200 --out rows.jsonl
    python benchmarks/bench_mistakes.py --half measured --seed 7 --against rows.jsonl
    python benchmarks/bench_mistakes.py --play FOLDER
    python benchmarks/bench_mistakes.py --claims

Each failing cell belongs to a working notebook of `cells/working`, in which a program of `cells/mistakes.py` has
planted one mistake. It is run in a kernel with healkit, as its user would run it. Then its card is read, and
`hk.heal_cell` is called. The first proposal is followed in a process without healkit. It is right if it gives the same
as the working notebook.

Of the measured half, only counts are shown and stored, so that no rule can be written for it. Prints one JSON object,
and on stderr a table of the kinds. `--play` uses the `# %%` files of a folder instead, and prints the output below each
failing cell, to be judged by eye. `--claims` prints the cards of `cells/claims.py` that mention another object.
"""

from __future__ import annotations

import argparse
import dataclasses
import difflib
import json
import os
import queue
import random
import re
import shutil
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import nbformat
from cells.books import LOAD, Kernel, Run, card_words
from cells.claims import Claim, claims
from cells.mistakes import Plant, half, whole, working
from cells.mistakes import kinds as all_kinds
from cells.runs import Runner, Step, write_files

HALVES = ("written", "measured", "crossed")
#: Number of cells that a kernel heals before another replaces it.
CELLS_PER_KERNEL = 60
#: Kinds in which the notebook itself has another order, so that it does not run from the top.
ORDER = ("cell_not_run", "cell_too_low", "cell_run_twice")
#: Result for a cell that does not fail in a kernel, or whose kernel ended.
SKIPPED = {"fix": "skipped", "card": "skipped", "seconds": 0.0}
CONFIG = "c = get_config()\nc.HistoryManager.enabled = False\n"
#: Restores a kernel to its state after `%load_ext healkit`, with its workers.
RESET = """
def _again():
    import os, sys
    from healkit.faces.notebook import ipython_extension
    shell = get_ipython()
    ipython_extension.take_out(shell)
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
    os.chdir(FOLDER)
    shell.reset(new_session=True)
    shell.execution_count = 1
    ipython_extension.load_ipython_extension(shell)
_again()
"""
NAMED = re.compile(r"(?:[Dd]id you mean:?|most similar (?:one )?is|you mean|write) ['\"`]([^'\"`]+)['\"`]")


def told(*words: object) -> None:
    print(*words, file=sys.stderr, flush=True)


class Healer:
    """Kernel with healkit, in which one notebook after the other is used."""

    def __init__(self) -> None:
        self.home = Path(tempfile.mkdtemp())
        self.folder = self.home / "notebooks"
        self.folder.mkdir()
        profile = self.home / ".ipython" / "profile_default"
        profile.mkdir(parents=True)
        for name in ("ipython_config.py", "ipython_kernel_config.py"):
            (profile / name).write_text(CONFIG)
        self.notebook = self.folder / "notebook.ipynb"
        self.kernel = Kernel(self.home, self.notebook)
        self.kernel.run(LOAD, history=False)

    def close(self) -> None:
        self.kernel.__exit__()
        shutil.rmtree(self.home, ignore_errors=True)

    def begin(self, cells: Sequence[str], files: Mapping[str, str]) -> None:
        """Begin another notebook."""
        for path in self.folder.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        write_files(self.folder, files)
        made = [nbformat.v4.new_code_cell(text, id=f"c{n}") for n, text in enumerate(cells)]
        nbformat.write(nbformat.v4.new_notebook(cells=made), self.notebook)
        done = self.kernel.run(RESET.replace("FOLDER", repr(str(self.folder))), history=False)
        assert not done.error, done


# The judge


class Judge:
    """Judge of the fixes and cards for one planted mistake."""

    def __init__(self, runner: Runner, plant: Plant, failed_at: int, step: Step) -> None:
        self.runner, self.plant, self.failed_at, self.step = runner, plant, failed_at, step
        self.failing = plant.turns[failed_at]
        last = plant.of.cells[-1]
        self.final = plant.cells.index(last) if last in plant.cells else len(plant.cells) - 1
        accepted = [runner.run(plant.of.cells, plant.of.files)]
        if plant.reference is not None:
            accepted.append(runner.run(plant.reference, plant.files))
        self.accepted = [run for run in accepted if not run[-1].error]

    def wrong(
        self,
        edits: Mapping[int, str],
        then: Sequence[int],
        *,
        first: Sequence[int] = (),
        top: bool = True,
    ) -> str:
        """Follow a fix; return what is wrong with it, empty if it is right.

        first, then: Cells to run before and after the edited ones, by index.
        """
        plant = self.plant
        cells = [edits.get(place, text) for place, text in enumerate(plant.cells)]
        past = [plant.cells[place] for place in plant.turns[: self.failed_at + 1]]
        after = [place for place in (*first, *edits, *then) if place != self.failing or place in then]
        after = list(dict.fromkeys(after)) + ([] if self.failing in after else [self.failing])
        ended = max((after[-1], self.failing))
        rest = [place for place in range(len(cells)) if place > self.failing and place not in after]
        order = [
            *after,
            *(place for place in rest if place > ended or place not in plant.turns[: self.failed_at]),
        ]
        steps = self.runner.run([*past, *(cells[place] for place in order)], plant.files, stop=False)
        found = self._compared(order, steps[len(past) :])
        if found.startswith("raises") and edits and self._in_part(past, steps, after, cells):
            return f"in part: {found}"
        if found or plant.kind in ORDER or not edits or not top:
            return found
        again = self.runner.run(cells, plant.files)
        found = self._compared(range(len(cells)), again)
        return f"from the top: {found}" if found else ""

    def _in_part(
        self, past: Sequence[str], steps: Sequence[Step], after: Sequence[int], cells: Sequence[str]
    ) -> bool:
        """Tell if the failed cell is fixed, and only a later one has the same mistake.

        Then every value that the working notebook has at that point exists, under any name.
        """
        if self.plant.kind in ORDER or len(self.plant.cells) != len(self.plant.of.cells):
            return False
        if any(step.error for step in steps[len(past) : len(past) + len(after)]):
            return False
        look = "[v for n, v in list(globals().items()) if not n.startswith('_')]"
        sound, files = self.plant.of.cells[: self.failing + 1], self.plant.of.files
        names = {name for step in self.runner.run(sound, files) for name in step.bound}
        each = [self.runner.run([*sound, name], files)[-1].value for name in sorted(names)]
        there = self.runner.run(
            [*past, *(cells[place] for place in after), look], self.plant.files, stop=False
        )[-1].value
        return all(value in there for value in each)

    def _compared(self, order: Sequence[int], steps: Sequence[Step]) -> str:
        by_place = dict(zip(order, steps, strict=False))
        broken = next((step for step in steps if step.error), None)
        if broken is not None:
            return f"raises {broken.error}: {broken.message[:200]}"
        if self.final not in by_place:
            return "the last cell is not run"
        found = by_place[self.final]
        if any((found.value, found.printed) == (run[-1].value, run[-1].printed) for run in self.accepted):
            return ""
        return f"gives {found.value[:300] if found.value != 'None' else found.printed[:300]}"

    def fix(
        self, report: Mapping[str, Any], fix: Mapping[str, Any] | None, prompts: Mapping[str, int]
    ) -> str:
        """Return what is wrong with a proposal of a report; `silent` if there is none."""
        if fix is None and report["outcome"] != "rerun":
            return "silent"
        if fix is None:
            places = [prompts.get(label, -1) for label in report["cells"]]
            return "no such cell" if -1 in places else self.wrong({}, places)
        place = prompts.get(fix["cell"], -1)
        first, then = (
            [prompts.get(one["cell"], -1) for one in fix.get(side, ())] for side in ("first", "then")
        )
        if -1 in (*first, place, *then):
            return "no such cell"
        return self.wrong({place: fix["code"]}, then, first=first)

    def card(self, card: str, prompts: Mapping[str, int]) -> tuple[str, str]:
        """Return `right`, `weak`, `silent` or `false`, and why."""
        words = card_words(card)
        plant, told = self.plant, " ".join(text for name, text in words.items() if name != "code")
        code = words.get("code", "").strip("\n")
        new = not any(" ".join(code.split()) in " ".join(text.split()) for text in plant.cells)
        if (
            code and new and self.step.error not in ("IndentationError", "TabError")
        ):  # a card shows no indentation
            at = re.search(r"^  at line (\d+) of (In \[\d+\])", card, re.MULTILINE)
            place = self.failing if at is None else prompts.get(at[2], self.failing)
            wrong = self._code(code, place, self.step.line if at is None else int(at[1]))
            ok = not wrong or wrong.startswith("in part")
            return ("right", "its code") if ok else ("false", f"its code {wrong}")
        named = [name for name in NAMED.findall(told) if name not in (plant.right, plant.wrong)]
        says = all_kinds()[plant.kind].says
        exact = says[0] == "{right}" and len(says) == 1 and re.fullmatch(r"[\w .-]+", plant.right)
        if named and exact and not re.search(whole(plant.right), told, re.IGNORECASE):
            return "false", f"names {named[0]!r} for {plant.right!r}"
        if match := re.search(all_kinds()[plant.kind].never, told, re.IGNORECASE):
            return "false", f"says {match[0]!r}"
        pattern = "|".join(says).format(right=whole(plant.right), wrong=whole(plant.wrong))
        if re.search(pattern, told, re.IGNORECASE):
            return "right", "its words"
        said = [name for name in words if name not in ("what", "code")]
        return ("weak", "") if said else ("silent", "")

    def _code(self, code: str, place: int, line: int) -> str:
        """Replace the most similar lines of a cell by a card's code; return what is wrong with it."""
        lines, new = self.plant.cells[place].split("\n"), code.split("\n")
        starts = range(max(1, len(lines) - len(new) + 1))
        joined = ["\n".join(lines[i : i + len(new)]) for i in starts]
        alike = [difflib.SequenceMatcher(None, text, code).ratio() for text in joined]
        at = max(starts, key=lambda i: alike[i] + (i + 1 == line) * 0.2)
        indent = re.match(" *", lines[at])
        pad = indent[0] if indent is not None and not new[0].startswith(" ") else ""
        text = "\n".join([*lines[:at], *(pad + line for line in new), *lines[at + len(new) :]])
        wrong = self.wrong({place: text}, (), top=False)
        if wrong.startswith("raises") and place == self.failing:
            past = [self.plant.cells[turn] for turn in self.plant.turns[: self.failed_at]]
            step = self.runner.run([*past, text], self.plant.files)[-1]
            same = (step.error, step.message) == (self.step.error, self.step.message)
            if same and step.line >= at + 1 + len(new):
                return ""  # a later line has the mistake too
        return wrong


# Planted mistakes that fail


def plants(which: str, seed: int, kinds: Sequence[str]) -> Iterator[Plant]:
    """Yield planted mistakes of a half, drawn by a seed: one of each kind, then another of each, until none is left."""
    books = working()
    left: dict[str, list[Any]] = {}
    for kind in sorted(kinds or all_kinds()):
        for of in books:
            halves = {half(kind), half(of.name)}
            if halves == ({which} if which != "crossed" else {"written", "measured"}):
                left.setdefault(kind, []).append(of)
    chance = {kind: random.Random(f"{seed} {kind}") for kind in left}
    turns = {kind: iter(_turns(kind, left[kind], chance[kind])) for kind in left}
    while turns:
        for kind in list(turns):
            found = next(turns[kind], None)
            if found is None:
                del turns[kind]
            else:
                yield from found


def _turns(kind: str, books: Sequence[Any], chance: random.Random) -> Iterator[list[Plant]]:
    """Yield the planted mistakes of a kind, from one notebook after the other, as many as may be tried for one."""
    every = []
    for of in books:
        found = [dataclasses.replace(one, kind=kind) for one in all_kinds()[kind].plants(of, chance)]
        chance.shuffle(found)
        if found:
            every.append(found)
    chance.shuffle(every)
    while every:
        for found in list(every):
            yield [found.pop()]
            if not found:
                every.remove(found)


def failing(
    runner: Runner, which: str, seed: int, kinds: Sequence[str], count: int
) -> list[tuple[Plant, Step]]:
    """Return that many planted mistakes that fail, with their failures."""
    found, seen, dry = [], set[str](), Counter[str]()
    for plant in plants(which, seed, kinds):
        if dry[plant.kind] > 30 or plant.name in seen:
            continue
        seen.add(plant.name)
        steps = runner.run([plant.cells[place] for place in plant.turns], plant.files)
        if not steps[-1].error or steps[-1].error == "Ended":
            dry[plant.kind] += 1
            continue
        if len(plant.cells) > len(plant.of.cells) and plant.turns[len(steps) - 1] == plant.place:
            continue  # the cell that was inserted between the others must run
        dry[plant.kind] = 0
        found.append((plant, steps[-1]))
        if len(found) >= count:
            break
    return found


def played(healer: Healer, plant: Plant) -> tuple[Run, int, dict[str, int]]:
    """Use a notebook until a cell fails; return that run, its turn, and the indices of the cells by prompt."""
    healer.begin(plant.cells, plant.files)
    prompts = {f"cell {place + 1}": place for place in range(len(plant.cells))}
    turn = 0
    while True:
        place = plant.turns[turn]
        done = healer.kernel.run(plant.cells[place], f"c{place}")
        prompts[f"In [{done.count}]"] = place
        if done.error or turn + 1 == len(plant.turns):
            return done, turn, prompts
        turn += 1


def row_of(healer: Healer, runner: Runner, plant: Plant, step: Step) -> dict[str, Any]:
    row: dict[str, Any] = {"name": plant.name, "kind": plant.kind, "of": plant.of.name, "library": plant.of.library,
                           "error": step.error, "lost": plant.lost}  # fmt: skip
    done, failed_at, prompts = played(healer, plant)
    if not done.error:
        return {**row, **SKIPPED}
    judge = Judge(runner, plant, failed_at, step)
    report = healer.kernel.ask()
    # For a question, the first named fix is the first proposal; it has no tick.
    first = report["fix"] or next(iter(report["others"]), None)
    wrong = judge.fix(report, first, prompts)
    ticked = report["shown"].startswith("✓") or report["outcome"] == "rerun"
    if wrong == "silent":
        fix = "silent"
    elif plant.lost:
        fix, wrong = ("wrong ✓" if ticked else "wrong, no ✓"), "what is right cannot be known"
    else:
        word = "right" if not wrong else "part" if wrong.startswith("in part") else "wrong"
        fix = word + (" ✓" if ticked else ", no ✓")
    shown = "\n".join(done.shown)
    card, why = judge.card(shown, prompts)
    changes = first["code"] if first else " ".join(report["cells"])
    texts = {
        **{name: getattr(plant, name) for name in ("cells", "turns", "files", "wrong", "right")},
        "message": step.message,
        "shown": shown,
        "heal": report["shown"],
        "edit": changes,
        "fix_why": wrong,
        "card_why": why,
    }
    return {
        **row,
        "outcome": report["outcome"],
        "fix": fix,
        "card": card,
        "seconds": report["seconds"],
        **texts,
    }


def measure(which: str, seed: int, count: int, kinds: Sequence[str], jobs: int) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    with Runner() as runner:
        began = time.monotonic()
        work: queue.SimpleQueue[Any] = queue.SimpleQueue()
        chosen = failing(runner, which, seed, kinds, count)
        told(f"{len(chosen)} failing cells in {time.monotonic() - began:.0f} s")
        for one in chosen:
            work.put(one)

        def use() -> None:
            while not work.empty():
                healer = Healer()
                try:
                    for _ in range(CELLS_PER_KERNEL):
                        try:
                            plant, step = work.get_nowait()
                        except queue.Empty:
                            return
                        try:
                            rows.append(row_of(healer, runner, plant, step))
                        except Exception as error:
                            lost = {name: getattr(plant, name) for name in ("name", "kind", "lost")}
                            rows.append({**lost, **SKIPPED, "fix_why": repr(error)})
                            told(plant.name if which != "measured" else plant.kind, repr(error)[:300])
                            break
                        if len(rows) % 20 == 0:
                            told(f"{len(rows)} of {len(chosen)}, {time.monotonic() - began:.0f} s")
                finally:
                    healer.close()

        threads = [threading.Thread(target=use) for _ in range(jobs)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return sorted(rows, key=lambda row: row["name"])


# Output

FIXES = ("right ✓", "part ✓", "wrong ✓", "right, no ✓", "part, no ✓", "wrong, no ✓", "silent")
CARDS = ("right", "weak", "silent", "false")


def summary(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    rows = [row for row in rows if row["fix"] != "skipped"]
    sound = [row for row in rows if not row["lost"]]
    fixes, cards = Counter(row["fix"] for row in rows), Counter(row["card"] for row in rows)
    right = sum(row["fix"].startswith("right") for row in sound)
    seconds = sorted(row["seconds"] for row in rows) or [0.0]
    return {
        "cells": len(rows), "with_a_right_fix": len(sound), "first_right": right,
        "first_right_share": round(right / max(1, len(sound)), 3),
        "right_with_tick": sum(row["fix"] == "right ✓" for row in sound),
        "wrong_with_tick": fixes["wrong ✓"], "wrong_with_tick_share": round(fixes["wrong ✓"] / max(1, len(rows)), 3),
        "fixes": {name: fixes[name] for name in FIXES}, "cards": {name: cards[name] for name in CARDS},
        "p50_s": statistics.median(seconds), "p95_s": seconds[int(len(seconds) * 0.95) - 1],
    }  # fmt: skip


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the counts of each kind, as a Markdown table."""
    by_kind = defaultdict(list)
    for row in rows:
        if row["fix"] != "skipped":
            by_kind[row["kind"]].append(row)
    lines = ["| kind | cells | fix: " + " | ".join(FIXES) + " | card: " + " | ".join(CARDS) + " |"]
    lines.append("| --- " * (2 + len(FIXES) + len(CARDS)) + "|")
    for kind, of in sorted(by_kind.items()):
        fixes, cards = Counter(row["fix"] for row in of), Counter(row["card"] for row in of)
        counts = [fixes[name] for name in FIXES] + [cards[name] for name in CARDS]
        lines.append(
            f"| {kind}{' (lost)' if of[0]['lost'] else ''} | {len(of)} | "
            + " | ".join(str(n or "") for n in counts)
            + " |"
        )
    return "\n".join(lines)


def changes(rows: Sequence[Mapping[str, Any]], before: Sequence[Mapping[str, Any]]) -> list[str]:
    """List the cells in both whose fix or card is now judged differently."""
    then = {row["name"]: row for row in before}
    found = []
    for row in rows:
        old = then.get(row["name"])
        if old is not None and (old["fix"], old["card"]) != (row["fix"], row["card"]):
            name = row["name"] if "shown" in row else row["kind"]
            found.append(f"{name}: fix {old['fix']} → {row['fix']}; card {old['card']} → {row['card']}")
    return found


def without_texts(row: Mapping[str, Any]) -> dict[str, Any]:
    kept = ("name", "kind", "library", "error", "lost", "outcome", "fix", "card", "seconds")
    return {name: row[name] for name in kept if name in row}


# Foreign cells


def play(folder: Path) -> None:
    """Print the output for each failing cell of the `# %%` files of a folder."""
    healer = Healer()
    try:
        with Runner() as runner:
            for path in sorted(folder.glob("*.py")):
                cells = [
                    text.strip("\n") for text in re.split(r"(?m)^# %%.*\n", path.read_text(encoding="utf-8"))
                ]
                healer.begin(cells, {})
                places: dict[str, int] = {}
                for place, text in enumerate(cells):
                    done = healer.kernel.run(text, f"c{place}")
                    places[f"In [{done.count}]"] = place
                    if done.error:
                        report = healer.kernel.ask()
                        card = re.split(r"\n  (?:locals|frames|record) ", "\n".join(done.shown))[0]
                        print(f"\n===== {path.name} cell {place + 1}: {done.error}\n{text}\n--- card\n{card}")
                        print(f"--- heal: {report['outcome']}, {report['seconds']} s\n{report['shown']}")
                        if report["fix"]:
                            print(f"--- result\n{_result(runner, cells, place, report['fix'], places)}")
    finally:
        healer.close()


def _result(
    runner: Runner, cells: Sequence[str], failing: int, fix: Mapping[str, Any], places: Mapping[str, int]
) -> str:
    """Return the result of a fix, and its changes to earlier values."""
    at = places[fix["cell"]]
    past = list(cells[: failing + 1])
    first = [cells[places[one["cell"]]] for one in fix["first"]]
    order = [*first, fix["code"], *(cells[place] for place in range(at + 1, failing + 1) if at < failing)]
    names = sorted({name for step in runner.run(past, stop=False) for name in step.bound})
    look = f"{{n: globals().get(n) for n in {names!r}}}"
    before, after = runner.run([*past, look], stop=False), runner.run([*past, *order], stop=False)
    seen = runner.run([*past, *order, look], stop=False)[-1]
    lines = [
        f"value: {after[-1].error} {after[-1].message or after[-1].value[:500]}",
        f"printed: {after[-1].printed[:300]}",
    ]
    if before[-1].value != seen.value:
        lines += [f"before: {before[-1].value[:700]}", f"after:  {seen.value[:700]}"]
    return "\n".join(lines)


def print_claims() -> None:
    """Print the cards that mention another kind of object than the failed one, each sentence once."""
    every = claims(told)
    wrong: dict[tuple[str, ...], list[Claim]] = defaultdict(list)
    for claim in every:
        if claim.other:
            said = " ".join(claim.words.get(part, "") for part in ("what", "why"))
            wrong[(claim.way, claim.error, claim.message, said, ", ".join(claim.other))].append(claim)
    for (way, error, message, said, other), of in wrong.items():
        owners = ", ".join(sorted({f"{claim.owner} ({claim.context})" for claim in of}))
        print(f"{way}: {error}: {message}\n    of {owners}: {of[0].code!r}\n    speaks of {other}: {said}")
    rows = {claim.way for of in wrong.values() for claim in of} - {"natural"}
    counts = Counter(claim.owner for of in wrong.values() for claim in of)
    every_row = {claim.way for claim in every} - {"natural"}
    shown = {"cards": len(every), "of_another_object": sum(counts.values()), "by_owner": counts}
    print(json.dumps({**shown, "rows": len(every_row), "rows_of_another_object": len(rows)}, indent=2))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--half", choices=HALVES, default="measured", help="crossed: kinds of one, cells of the other"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=200, help="failing cells")
    parser.add_argument("--kinds", nargs="*", default=[], choices=sorted(all_kinds()), metavar="KIND")
    parser.add_argument("--out", type=Path, help="write a row for each cell here, as JSON lines")
    parser.add_argument("--against", type=Path, help="print what is judged otherwise than in these rows")
    parser.add_argument("--reveal", action="store_true", help="write the texts of the measured half too")
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("--play", type=Path, metavar="FOLDER", help="print what is shown for foreign cells")
    parser.add_argument("--claims", action="store_true", help="print cards that speak of another object")
    options = parser.parse_args()
    if options.play is not None:
        play(options.play)
        return
    if options.claims:
        print_claims()
        return
    rows = measure(options.half, options.seed, options.count, options.kinds, options.jobs)
    if options.half == "measured" and not options.reveal:
        rows = [without_texts(row) for row in rows]
    if options.out is not None:
        options.out.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    told(table(rows))
    result = {"half": options.half, "seed": options.seed, **summary(rows)}
    if options.against is not None:
        before = [json.loads(line) for line in options.against.read_text(encoding="utf-8").splitlines()]
        result["changed"] = changes(rows, before)
    print(json.dumps(result, indent=2, ensure_ascii=False))


if __name__ == "__main__":
    main()
