"""Success predicted run by run, beside the base rate.

`month` is simulated: 30 days of eleven tools. Some fail by their arguments, some by chance alone, some by both; there
are an outage, a slow drift, a tool that is healed on day 15 (other code) and a persona that comes on day 18 and calls
differently. `tau-bench` is real: the tool calls of recorded conversations (a call fails where its answer is an error),
and the conversations themselves (success is a reward of 1), from a checkout of sierra-research/tau-bench.

Every prediction is made before its run counts. `used` is the model where it was ahead of the base rate so far, by more
than its standard error, and the base rate elsewhere: that is what `hk.learning.report()` calls on and off.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from healkit.parts.learn.success import Played, Run, SuccessRow, brier, calibration_error, play, success_row

Draw = Callable[[random.Random, int], tuple[dict[str, Any], float, str]]
DAYS = 30

# Each tool draws a call of a day: its arguments, the chance that it succeeds, and the code's hash.


def convert(dice: random.Random, day: int) -> tuple[dict[str, Any], float, str]:
    """Fail where `unit` is missing; a new persona never gives it, until it learns on day 24."""
    given: dict[str, Any] = {"value": dice.randint(1, 500)}
    new = day >= 18 and dice.random() < 0.4
    if dice.random() < ((0.1 if day < 24 else 0.9) if new else 0.92):
        given["unit"] = dice.choice(["km", "mi", "m"])
    return given, 0.99 if "unit" in given else 0.02, "a"


def parse_date(dice: random.Random, _: int) -> tuple[dict[str, Any], float, str]:
    """Fail mostly for one of four formats."""
    form = dice.choice(["iso", "iso", "us", "eu", "rfc"])
    return (
        {"text": f"{dice.randint(1, 28)}.{dice.randint(1, 12)}.", "form": form},
        0.3 if form == "rfc" else 0.97,
        "a",
    )


def mean(dice: random.Random, _: int) -> tuple[dict[str, Any], float, str]:
    """Fail for an empty list."""
    values = [dice.randint(0, 9) for _ in range(dice.choice([0, 1, 3, 5, 8, 20]))]
    return {"values": values}, 0.995 if values else 0.0, "a"


def factorial(dice: random.Random, day: int) -> tuple[dict[str, Any], float, str]:
    """Fail for negative numbers, until it is healed on day 15."""
    n = dice.choice([*range(-3, 12)])
    healed = day >= 15
    return {"n": n}, 0.01 if n < 0 and not healed else 0.99, "b" if healed else "a"


def resize(dice: random.Random, _: int) -> tuple[dict[str, Any], float, str]:
    """Fail the likelier, the larger: memory runs out."""
    pixels = int(2 ** dice.uniform(8, 26))
    return {"pixels": pixels}, 0.98 if pixels < 2**22 else 0.4, "a"


def search(dice: random.Random, _: int) -> tuple[dict[str, Any], float, str]:
    """Fail by chance, whatever the arguments are."""
    return {"query": dice.choice(["pen", "cup", "tea", "hat"]), "page": dice.randint(1, 9)}, 0.85, "a"


def flip(dice: random.Random, _: int) -> tuple[dict[str, Any], float, str]:
    """Fail every other time."""
    return {"side": dice.choice(["left", "right"])}, 0.5, "a"


def send(dice: random.Random, _: int) -> tuple[dict[str, Any], float, str]:
    """Hardly ever fail."""
    return {"to": f"user{dice.randint(1, 40)}", "text": "x" * dice.randint(0, 80)}, 0.992, "a"


def quote(dice: random.Random, day: int) -> tuple[dict[str, Any], float, str]:
    """Drift from good to bad, by chance alone."""
    return {"symbol": dice.choice("ABCDE")}, 0.97 - 0.55 * day / DAYS, "a"


def upload(dice: random.Random, day: int) -> tuple[dict[str, Any], float, str]:
    """Fail in an outage of three days."""
    return {"size": dice.randint(1, 10**6)}, 0.1 if 11 <= day < 14 else 0.96, "a"


def book(dice: random.Random, _: int) -> tuple[dict[str, Any], float, str]:
    """Fail by a None and by chance."""
    seat = dice.choice([None, "12A", "3C", "7F"])
    return {"seat": seat, "count": dice.randint(1, 4)}, 0.25 if seat is None else 0.88, "a"


TOOLS: dict[str, tuple[Draw, int]] = {
    "convert": (convert, 20), "parse_date": (parse_date, 12), "mean": (mean, 10), "factorial": (factorial, 14),
    "resize": (resize, 6), "search": (search, 25), "flip": (flip, 5), "send": (send, 30), "quote": (quote, 9),
    "upload": (upload, 11), "book": (book, 4),
}  # fmt: skip


def month(seed: int) -> dict[str, list[Run]]:
    """Return the runs of each tool, oldest first; it runs so often a day on average."""
    found: dict[str, list[Run]] = {}
    for name, (draw, daily) in TOOLS.items():
        dice = random.Random(f"{seed} {name}")
        days = sorted(dice.randrange(DAYS) for _ in range(daily * DAYS))
        drawn = [draw(dice, day) for day in days]
        found[name] = [Run(given, dice.random() < chance, code) for given, chance, code in drawn]
    return found


def tau_files(folder: Path) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield each recorded file that the checkout has whole."""
    for file in sorted((folder / "historical_trajectories").glob("*.json")):
        yield file.stem, json.loads(file.read_text())


def tau_calls(trajectories: Sequence[Mapping[str, Any]]) -> dict[str, list[Run]]:
    """Return the calls of each tool, in the order of the conversations."""
    found: dict[str, list[Run]] = {}
    for trajectory in trajectories:
        asked: dict[str, tuple[str, str]] = {}
        for message in trajectory["traj"]:
            for call in message.get("tool_calls") or ():
                asked[call["id"]] = call["function"]["name"], call["function"]["arguments"]
            if message["role"] == "tool" and (known := asked.pop(message["tool_call_id"], None)):
                failed = str(message["content"]).startswith("Error")
                given = json.loads(known[1])
                found.setdefault(known[0], []).append(Run(given, not failed, "", "Error" if failed else ""))
    return found


def tau_conversations(name: str, trajectories: Sequence[Mapping[str, Any]]) -> dict[str, list[Run]]:
    """Return the conversations as runs of one tool; its argument is the task."""
    ordered = sorted(trajectories, key=lambda one: (one["trial"], one["task_id"]))
    return {name: [Run({"task": one["task_id"]}, one["reward"] == 1) for one in ordered]}


def table(title: str, tools: Mapping[str, Sequence[Run]]) -> dict[str, float]:
    """Print a row for each tool and one for all, and return the latter."""
    print(f"\n{title}\n{'tool':34} {'runs':>6} {'ok':>5} {'model':>7} {'base':>7} {'used':>7} {'ECE':>6}")
    every: list[Played] = []
    for name, runs in sorted(tools.items()):
        row = success_row(name, runs)
        every += play(runs)[0]
        if row is not None:
            print(line(row))
    total = {
        "model": brier([one.model for one in every], every),
        "base": brier([one.base for one in every], every),
        "used": brier([one.used for one in every], every),
        "ece": calibration_error([one.used for one in every], every),
    }
    numbers = " ".join(f"{total[one]:7.4f}" for one in ("model", "base", "used"))
    print(f"{'all':34} {len(every):6,} {'':5} {numbers} {total['ece']:6.3f}")
    return total


def line(row: SuccessRow) -> str:
    numbers = f"{row.brier_model:7.4f} {row.brier_base:7.4f} {row.brier_used:7.4f} {row.ece:6.3f}"
    return f"{row.tool:34} {row.runs:6,} {row.successes:5.0%} {numbers} {'on' if row.on else 'off'}"


def main(argv: Sequence[str] | None = None) -> dict[str, dict[str, float]]:
    """Print the tables, and return the rows for all tools together."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--tau", type=Path, help="a checkout of sierra-research/tau-bench")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(argv)
    found = {"month": table(f"simulated month, seed {options.seed}", month(options.seed))}
    for name, trajectories in tau_files(options.tau) if options.tau else ():
        found[f"{name} calls"] = table(f"tau-bench {name}, calls", tau_calls(trajectories))
        found[f"{name} tasks"] = table(f"tau-bench {name}, tasks", tau_conversations(name, trajectories))
    return found


if __name__ == "__main__":
    main()
