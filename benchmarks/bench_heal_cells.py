"""Failed cells of notebooks: fixes, explanations, costs.

    python benchmarks/bench_heal_cells.py --part cells --seen-report seen.md
    python benchmarks/bench_heal_cells.py --part public speed memory

`cells`: the sixty cells of benchmarks/cells/notebooks, each raised in a kernel, with the notebook beside it. The first
proposal is followed in another kernel without healkit. It is right if its cell then runs and its check holds. If no fix
exists, only *no proposal* is right. `public`: the cards of benchmarks/cells/public.toml by the rules there. `speed`:
`%heal` with a frame of 200,000 rows in the kernel. `memory`: the kernel's peak while it heals with a frame of 1 GB. Of
the unseen half, only counts are printed. Prints one JSON object; progress goes to stderr.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import statistics
import sys
import tempfile
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from cells.books import HERE, LOAD, Book, Case, Kernel, Walk, books, cures, kernel_of

PARTS = ("cells", "public", "speed", "memory")
#: The sentences and the code of the card below the failed cell, as JSON.
EXPLAIN = """
def _asked():
    import json, re
    from healkit.parts.cells.own_cells import notebook_cells
    from healkit.parts.explain.explanation import explain
    cell = notebook_cells.find(None)
    said = explain(cell.failure)
    steps = ("what", "why", "hint", "fix", "code")
    # the row "any" only repeats the message: that says something where the library suggests what to do
    told = [one for one in (said, *said.linked) if one.rule != "any" or re.search("did you mean|use ", one.what, re.I)]
    words = [[name, getattr(one, name)] for one in told for name in steps]
    if cell.advice is not None and cell.advice.kind != "near":
        words = [["advice", cell.advice.sentence], ["advice", cell.advice.todo]]
    print(json.dumps([word for word in words if word[1]]))
_asked()
del _asked
"""
FRAME = """
import numpy as np
import pandas as pd
rows = {rows}
rng = np.random.default_rng(1)
sales = pd.DataFrame({{"order_id": np.arange(rows), **{{f"price_{{n}}": rng.random(rows) for n in range({floats})}}}})
"""
TEXTS = """
sales["region"] = rng.choice(["north", "south", "east"], rows)
sales["ordered"] = pd.Timestamp("2025-01-01") + pd.to_timedelta(np.arange(rows) % 365, "D")
sales["quantity"] = rng.integers(1, 9, rows)
"""
#: Mistakes on that frame; if there is no fix, the search is run too, and measured separately.
MISTAKES = (
    'sales.groupby("regoin")["quantity"].sum()',
    'top = sales.sort_values("quantity").append(sales.head(3))',
    'both = sales[(sales["quantity"] > 3) & sales["region"] == "north"]\nboth["quantty"].mean()',
    'sales["quantity"].summ()',
    'week = [sales["quantity"].iloc[n] for n in range(rows, rows + 7)]',
    'shares = {r: g["quantity"].sum() / rows for r, g in sales.groupby("region")}\nshares["nord"]',
)
ROUNDS = 5


def told(*words: object) -> None:
    print(*words, file=sys.stderr, flush=True)


# The sixty cells


def judged(book: Book, case: Case, walk: Walk, edits: dict[str, str], rerun: Sequence[str]) -> str:
    """Return what is wrong with a proposal; empty if it is right."""
    if case.none:
        return "there is no fix, and one is proposed"
    same = {name: " ".join(text.split()) for name, text in edits.items()}
    if not rerun and same == {name: " ".join(text.split()) for name, text in case.edits.items()}:
        return ""
    return cures(book, case, walk.past, edits, rerun)


def edits_of(walk: Walk, fix: dict[str, Any] | None) -> dict[str, str]:
    return {} if fix is None else {walk.names[fix["cell"]]: fix["code"]}


def one(book: Book, case: Case, walk: Walk, advisors: list[str] | None) -> dict[str, Any]:
    """Ask for a fix of the cell that has just failed, and judge everything that is shown."""
    report = walk.kernel.ask(advisors)
    row: dict[str, Any] = {
        "case": case.name,
        "kind": case.kind,
        "seen": case.seen,
        "seconds": report["seconds"],
        "outcome": report["outcome"],
        "report": report,
    }
    if report["outcome"].startswith("raises"):
        return {**row, "right": False, "wrong": report["outcome"], "shown": []}
    rerun = [walk.names.get(label, label) for label in report["cells"]]
    if report["outcome"] == "rerun":
        wrong = (
            f"no such cell: {rerun}"
            if not set(rerun) <= set(book.cells)
            else judged(book, case, walk, {}, rerun)
        )
    elif report["fix"] is not None:
        wrong = judged(book, case, walk, edits_of(walk, report["fix"]), ())
    else:
        wrong = "" if case.none else "nothing is proposed"
    shown = []
    for fix in filter(None, [report["fix"], *report["others"]]):
        if fix["ran"] and fix["verdict"] != "silenced":
            first = fix is report["fix"]
            shown.append(not (wrong if first else judged(book, case, walk, edits_of(walk, fix), ())))
    return {**row, "right": not wrong, "wrong": wrong, "shown": shown}


def counts(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    by_kind: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for row in rows:
        by_kind[row["kind"]][0] += row["right"]
        by_kind[row["kind"]][1] += 1
    shown = [right for row in rows for right in row["shown"]]
    firsts = [
        row["right"] for row in rows if row["shown"] and row["report"]["fix"] and row["report"]["fix"]["ran"]
    ]
    return {
        "cells": len(rows),
        "first_right": sum(row["right"] for row in rows),
        "share": round(sum(row["right"] for row in rows) / len(rows), 3) if rows else None,
        "nothing_proposed": sum(row["wrong"] == "nothing is proposed" for row in rows),
        "shown_as_runs": len(shown),
        "shown_as_runs_wrong": len(shown) - sum(shown),
        "first_shown_as_runs": len(firsts),
        "first_shown_as_runs_wrong": len(firsts) - sum(firsts),
        "outcomes": dict(Counter(row["outcome"] for row in rows)),
        "p50_s": round(statistics.median(row["seconds"] for row in rows), 2) if rows else None,
        "by_kind": {kind: f"{right} of {of}" for kind, (right, of) in sorted(by_kind.items())},
    }


def cells(chosen: Sequence[str], report: Path | None, advisors: list[str] | None) -> dict[str, Any]:
    rows = []
    for book in books():
        if chosen and book.name not in chosen:
            continue
        with kernel_of(book) as kernel:
            walk = Walk(book, kernel, load=True)
            for case, failed in walk.cases():
                row = one(book, case, walk, advisors)
                row["card"] = "\n".join(failed.shown)
                row["wanted"] = (
                    "no fix" if case.none else {"run first": case.rerun} if case.rerun else case.edits
                )
                rows.append(row)
                told(case.name if case.seen else "(unseen)", "right" if row["right"] else "-", row["seconds"])
    if report is not None:
        report.write_text(seen_report([row for row in rows if row["seen"]]), encoding="utf-8")
    return {
        half: counts([row for row in rows if row["seen"] == (half == "seen")]) for half in ("seen", "unseen")
    }


def seen_report(rows: Iterable[dict[str, Any]]) -> str:
    lines = ["# The seen half: what is proposed, and what is right", ""]
    for row in sorted(rows, key=lambda row: row["right"]):
        lines += [f"## {row['case']}: {'right' if row['right'] else 'WRONG: ' + row['wrong']}", ""]
        lines += [f"{row['kind']}; {row['outcome']}; {row['seconds']} s; shown as runs: {row['shown']}", ""]
        report = row.get("report")
        if report is not None:
            lines += [f"Found: {report['found']}", f"Reason: {report['reason']}", f"Cells: {report['cells']}"]
            lines += [f"Notes: {' '.join(report['notes'])}", ""]
            for fix in filter(None, [report["fix"], *report["others"]]):
                lines += [
                    f"{fix['cell']} ({fix['advisor']}, {fix['verdict']}): {fix['reason']} {fix['said']}"
                ]
                lines += [f"Unknown: {' '.join(fix['unknown'])}", "```", fix["code"], "```", ""]
        if not row["right"]:
            wanted = row["wanted"]
            text = "\n".join(f"# {k}\n{v}" for k, v in wanted.items()) if isinstance(wanted, dict) else wanted
            lines += ["Right:", "```", text, "```", ""]
        lines += ["Card:", "```", row["card"], "```", ""]
    return "\n".join(lines)


# Public problems


def verdict(case: dict[str, Any], card: str) -> str:
    """Judge a card by the rule of its case: `useful`, `misleading` or `silent`."""
    if any(re.search(rule, card, re.IGNORECASE) for rule in case.get("misleads", [])):
        return "misleading"
    return "useful" if all(re.search(rule, card, re.IGNORECASE) for rule in case["needs"]) else "silent"


def public(chosen: Sequence[str], report: Path | None) -> dict[str, Any]:
    found, lines = Counter[str](), []
    by_kind: dict[str, Counter[str]] = defaultdict(Counter)
    for case in tomllib.loads((HERE / "public.toml").read_text(encoding="utf-8"))["case"]:
        if chosen and case["kind"] not in chosen:
            continue
        code = case["code"].strip("\n")
        book = Book("problem", {"cell": code}, ("cell",), {}, {})
        with kernel_of(book) as kernel:
            kernel.run(LOAD, "c0")
            done = kernel.run(code, "c1")
            said = json.loads(kernel.run(EXPLAIN, history=False).printed.splitlines()[-1])
        assert re.fullmatch(case["fails"], done.error), f"{case['name']} raises {done.error!r}"
        card = "\n".join(f"{name:<7}{text}" for name, text in said)
        word = verdict(case, card)
        found[word] += 1
        by_kind[case["kind"]][word] += 1
        told(case["kind"], word)  # not the name: the author of the rules may watch it run
        lines += [
            f"## {word}: {case['kind']}: {case['name']}",
            "",
            f"Rule: {case['rule']}",
            "```",
            code,
            "```",
            card,
            "",
        ]
    if report is not None:
        report.write_text("\n".join(lines), encoding="utf-8")
    return {
        "cells": sum(found.values()),
        **found,
        "by_kind": {kind: dict(words) for kind, words in by_kind.items()},
    }


# Costs


def speed() -> dict[str, Any]:
    """Measure `%heal` with 200,000 rows × 8 columns, each mistake several times, by advisor of the fix."""
    times: dict[str, list[float]] = defaultdict(list)
    each: dict[str, list[float]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as folder, Kernel(Path(folder)) as kernel:
        kernel.run(LOAD)
        kernel.run(FRAME.format(rows=200_000, floats=4) + TEXTS)
        cold, searched = 0.0, []
        for turn in range(ROUNDS):
            for mistake in MISTAKES:
                assert kernel.run(mistake).error
                healed = kernel.run("%heal")
                report = kernel.ask()
                advisor = report["fix"]["advisor"] if report["fix"] else report["outcome"]
                if report["fix"] is None and turn:
                    searched.append(kernel.run("%heal --advisors rules,search").seconds)
                if not cold:
                    cold = healed.seconds
                    continue
                times[advisor].append(healed.seconds)
                each[mistake.splitlines()[-1]].append(healed.seconds)
                told(turn, advisor, round(healed.seconds, 2), mistake.splitlines()[-1])
    every = [second for seconds in times.values() for second in seconds]
    return {
        "first_s": round(cold, 2),
        "p50_s": round(statistics.median(every), 2),
        "max_s": round(max(every), 2),
        "p50_s_with_search": round(statistics.median(searched), 2) if searched else None,
        "p50_s_by_advisor": {name: round(statistics.median(seconds), 2) for name, seconds in times.items()},
        "p50_s_by_cell": {name: round(statistics.median(seconds), 2) for name, seconds in each.items()},
    }


def memory() -> dict[str, Any]:
    """Return the kernel's resident memory with a frame of 1 GB: before `%heal`, and its peak during it."""
    with tempfile.TemporaryDirectory() as folder, Kernel(Path(folder)) as kernel:
        pid = int(kernel.run("import os\nprint(os.getpid())").printed)
        kernel.run(LOAD)
        kernel.run(FRAME.format(rows=18_000_000, floats=7))
        kernel.run("small = sales.head(5).copy()")
        assert kernel.run('sales["order_idd"].mean()').error
        kernel.run("import gc; gc.collect();")
        assert kernel.run('sales["order_idd"].mean()').error
        Path(f"/proc/{pid}/clear_refs").write_text("5")  # resets the peak to the current resident size
        before = status(pid)
        healed = kernel.run("%heal")
        after = status(pid)
        return {
            "before_mb": before["VmRSS"] // 1024,
            "peak_mb": after["VmHWM"] // 1024,
            "ratio": round(after["VmHWM"] / before["VmRSS"], 3),
            "shared_mb_after": after["RssShmem"] // 1024,
            "heal_s": round(healed.seconds, 2),
            "shown": "\n".join(healed.shown)[:600],
        }


def status(pid: int) -> dict[str, int]:
    """Return sizes of a process in kB, by their names in /proc."""
    text = Path(f"/proc/{pid}/status").read_text()
    return {name: int(size) for name, size in re.findall(r"^(\w+):\s+(\d+) kB$", text, re.MULTILINE)}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--part", nargs="*", choices=PARTS, default=list(PARTS))
    parser.add_argument("--only", nargs="*", default=[], help="notebooks, or kinds of public problems")
    parser.add_argument(
        "--advisors", nargs="*", help="who is asked for the cells, instead of heal_cell's own"
    )
    parser.add_argument("--seen-report", type=Path, help="write here what was proposed for the seen half")
    parser.add_argument("--public-report", type=Path, help="write here the card of each public problem")
    options = parser.parse_args()
    parts = {
        "cells": lambda: cells(options.only, options.seen_report, options.advisors),
        "public": lambda: public(options.only, options.public_report),
        "speed": speed,
        "memory": memory,
    }
    result: dict[str, Any] = {
        "machine": {"cpus": os.cpu_count(), "python": platform.python_version(), "load": os.getloadavg()[0]}
    }
    for part in options.part:
        result[part] = parts[part]()
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
