"""Healing, measured by an examiner who has not seen its code.

    python benchmarks/bench_heal.py --set own fresh gallery
    python benchmarks/bench_heal.py --set quixbugs --quixbugs ~/QuixBugs --seeds 1 2 3
    python benchmarks/bench_heal.py --set mutants --seeds 1 --limit 60

Sets:

- `own`, `dev`, `fresh`, `held_out`, `sealed` and `blind`: files in benchmarks/heal/sets; the last three are for a
  single measurement each
- `calls`: tools that call functions and vault tools, or read files
- `gallery`: its lessons in Python
- `quixbugs`: your own checkout; half of the tests are visible, or all with `--visible all`
- `mutants`: correct tools, corrupted at random
- `planted`: the same for four sets, with one, two or three failing examples

Each program is registered in a new vault, its failing call is run, and it is healed without asking a person. A patch is
*plausible* if it meets every example that the healer saw. It is *correct* if it also meets the examples that the healer
did not see. The scorer's own runs decide both. Prints one JSON object; progress goes to stderr. Ctrl-C ends the running
set with the results so far. `docs/healing_numbers.md` says more.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from heal import mutants, programs, quixbugs
from heal.measuring import Row, measure
from heal.programs import Example, Program
from heal.scoring import Judge, hidden_examples, reference
from heal.summary import summary
from heal.tables import overview

SETS = (*programs.WRITTEN, "gallery", "quixbugs", "mutants", "planted")
#: A set for one seed: the programs, and for each name the examples that the healer does not see.
Problems = tuple[int, list[Program], dict[str, list[Example]]]


def main() -> None:
    options = options_of()
    for number in (
        signal.SIGINT,
        signal.SIGTERM,
    ):  # a shell starts background processes with SIGINT ignored
        signal.signal(number, signal.default_int_handler)
    result: dict[str, Any] = {
        "commit": _commit(),
        "machine": {"cpus": os.cpu_count(), "python": platform.python_version(), "load": os.getloadavg()[0]},
        "advisors": options.advisors,
        "budget_s": options.budget,
        "sets": {},
    }
    with tempfile.TemporaryDirectory() as folder, Judge(Path(folder)) as judge:
        for name in options.set:
            rows: list[Row] = []
            try:
                for seed, chosen, unseen in _problems(name, options, judge):
                    _run(options, name, seed, chosen, unseen, judge, rows)
            except KeyboardInterrupt:
                print("stopped", file=sys.stderr)
            result["sets"][name] = {
                **summary(rows),
                "programs_in_detail": [dataclasses.asdict(row) for row in rows],
            }
    if options.keep:
        _keep(options, result)
    print(overview(result["sets"]), file=sys.stderr)
    json.dump(result, sys.stdout)


def _commit() -> str:
    """Return the commit of this healkit; empty outside of a checkout."""
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def _keep(options: argparse.Namespace, result: dict[str, Any]) -> None:
    """Write the summaries to a file; each replaces the earlier one of its set."""
    kept = json.loads(options.keep.read_text()) if options.keep.exists() else {}
    for name, whole in result["sets"].items():
        summed = {key: value for key, value in whole.items() if key != "programs_in_detail"}
        seeds = {row["seed"] for row in whole["programs_in_detail"]} - {0}
        said = {key: result[key] for key in ("commit", "machine", "advisors", "budget_s")} | {
            "seeds": sorted(seeds)
        }
        kept[_title(name, options)] = {**said, **summed}
    options.keep.write_text(json.dumps(kept, indent=1) + "\n")


def _title(name: str, options: argparse.Namespace) -> str:
    if name == "quixbugs":
        return f"{name}, {options.visible} visible"
    return f"{name}, answered" if options.answered else name


def _run(
    options: argparse.Namespace,
    set_name: str,
    seed: int,
    chosen: list[Program],
    unseen: dict[str, list[Example]],
    judge: Judge,
    rows: list[Row],
) -> None:
    for program in chosen[: options.limit]:
        row = measure(
            program,
            unseen[program.name],
            judge,
            advisors=options.advisors,
            budget_s=options.budget,
            seed=seed,
            right=reference(program.name, set_name) if options.answered else "",
        )
        rows.append(row)
        said = row.error or f"{row.outcome}, {row.attempts} patches, {row.candidates} candidates"
        mark = "correct" if row.kept_correct else "WRONG" if row.kept else "-"
        print(
            f"{len(rows):4} {row.name:28} {mark:8} {row.seconds:7.2f} s  {said}", file=sys.stderr, flush=True
        )


def _problems(name: str, options: argparse.Namespace, judge: Judge) -> Iterator[Problems]:
    if name in (*programs.WRITTEN, "gallery"):
        chosen = programs.gallery() if name == "gallery" else programs.written(name)
        yield 0, _only(chosen, options), hidden_examples(name)
    elif name == "mutants":
        for seed in options.seeds:
            yield (
                seed,
                _only(mutants.mutants(judge, seed, options.limit or 60), options),
                hidden_examples("own"),
            )
    elif name == "planted":
        for seed in options.seeds:
            chosen, unseen = mutants.planted(judge, seed, options.limit or 60)
            yield seed, _only(chosen, options), unseen
    else:
        checkouts = _only(quixbugs.read(options.quixbugs), options)
        passed, doubtful = quixbugs.survey(checkouts, judge)
        if doubtful:
            print(f"the correct version misses a test: {', '.join(doubtful)}", file=sys.stderr)
        for seed in options.seeds:
            half = options.visible == "half"
            yield seed, *quixbugs.problems(checkouts, passed, judge, seed, half=half)


def _only(chosen: list[Any], options: argparse.Namespace) -> list[Any]:
    return [one for one in chosen if not options.only or one.name in options.only]


def options_of(command: list[str] | None = None) -> argparse.Namespace:
    """Read this process's command line, or `command` instead."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--set", nargs="+", choices=SETS, default=["gallery"])
    parser.add_argument("--quixbugs", type=Path, help="your checkout of QuixBugs")
    parser.add_argument("--visible", choices=("half", "all"), default="half", help="of QuixBugs' tests")
    parser.add_argument("--seeds", nargs="+", type=int, default=[1], help="for quixbugs, mutants and planted")
    parser.add_argument("--budget", type=float, default=30.0, help="seconds for each program")
    parser.add_argument("--advisors", nargs="+", default=["rules", "search"])
    parser.add_argument(
        "--answered", action="store_true", help="the right code answers the questions of a written set"
    )
    parser.add_argument("--limit", type=int, help="the first so many programs of a set")
    parser.add_argument("--keep", type=Path, help="a JSON file to keep the summaries in")
    parser.add_argument("--only", nargs="+", help="these programs of a set, by name")
    options = parser.parse_args(command)
    if options.answered and not set(options.set) <= set(programs.WRITTEN):
        parser.error(f"--answered goes with {', '.join(programs.WRITTEN)}, whose right code is there")
    if "quixbugs" in options.set and options.quixbugs is None:
        parser.error("--set quixbugs needs --quixbugs PATH, a checkout of github.com/jkoppel/QuixBugs")
    return options


if __name__ == "__main__":
    main()
