"""Trials by the thousand, and the cost of their restriction.

It measures the cost of restricting a search, and the number of plain trials per second.

A search is measured at this machine's strongest tier and at `process`, in turns, so that a busy machine slows both.
Their ratio is the result. Trials are reported separately for the first use, which starts the trial servers, and for the
sustained rate after that. There are two kinds: of pure code, whose trials share children, and of other code. The
processor time is that of this process and all its children, which is the same on a busy machine. Prints one JSON
object; the bounds are the project's own targets.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

from healkit import Config, Healkit
from healkit.core.contracts.patches import Check, Edit
from healkit.core.contracts.tools import EntryRef
from healkit.core.runtime import background
from healkit.core.workers.process import cpu_time_s
from healkit.core.workers.tiers import achieved_tier
from healkit.parts.heal.workbench import Bench
from healkit.parts.trials.trials import Trials

CODE = "def trivial(n: int):\n    return n + 1\n"
#: The same code, but not known to be pure.
ALONE = f"import os\n{CODE}"
CANDIDATES, CHECKS = 500, 5


def search(healkit: Healkit) -> float:
    """Return checks of candidates per second: a tiny function, each variant against each check."""
    at = CODE.index("1")
    candidates = [[Edit(at, at + 1, str(number))] for number in range(CANDIDATES)]
    checks = [Check(origin="declared", arguments={"n": n}, known=True, expected=n + 7) for n in range(CHECKS)]
    bench = Bench(Trials(healkit.recorder, healkit.config), EntryRef("trivial", "default", 0, ""), 120.0)
    dict(bench.score(CODE, candidates[:50], checks, every=True))  # starts the trial servers
    began = time.perf_counter()
    scores = dict(bench.score(CODE, candidates, checks, every=True))
    took_s = time.perf_counter() - began
    assert [position for position, letters in scores.items() if letters == "." * CHECKS] == [7]
    return CANDIDATES * CHECKS / took_s


def trials(healkit: Healkit, count: int, code: str = CODE) -> tuple[float, float]:
    """Return trials per second, each with a row, and the processor time of one in ms."""
    used_s, began = cpu_time_s(os.getpid()), time.perf_counter()
    results = healkit.trials([(code, {"n": n}) for n in range(count)])
    took_s = time.perf_counter() - began
    assert [result.value for result in results] == [n + 1 for n in range(count)]
    return count / took_s, (cpu_time_s(os.getpid()) - used_s) / count * 1000


def medians(found: list[tuple[float, float]], bound: str) -> dict[str, object]:
    """Return the medians of the results of `trials`."""
    per_s, processor_ms = (statistics.median(values) for values in zip(*found, strict=True))
    return {"sustained_per_s": round(per_s), "processor_ms": round(processor_ms, 2), "bound": bound}


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 9
    strongest = achieved_tier(Config())
    restricted: list[float] = []
    plain: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        ours = Healkit(Path(folder) / "ours.db", config=Config(isolation=strongest, start_timeout_s=30))
        other = Healkit(Path(folder) / "other.db", config=Config(isolation="process", start_timeout_s=30))
        with ours, other:
            for _ in range(rounds):
                restricted.append(search(ours))
                plain.append(search(other))
            background.shutdown()
            began = time.perf_counter()
            trials(ours, 1)
            first_s = time.perf_counter() - began
            sustained = {code: [trials(ours, 500, code) for _ in range(3)] for code in (CODE, ALONE)}
    ratios = [p / r for r, p in zip(restricted, plain, strict=True)]
    report = {
        "processors": os.cpu_count(),
        "search_checks_per_s": {
            strongest: round(statistics.median(restricted)),
            "process": round(statistics.median(plain)),
            "bound": ">= 3000 at the strongest tier",
        },
        "restriction_costs": {
            "ratio": round(statistics.median(ratios), 2),
            "bound": "<= 1.30 times the time of `process`",
        },
        "trials": {
            "first_use_s": round(first_s, 2),
            "of_pure_code": medians(sustained[CODE], ">= 900 a second on 2 processors"),
            "alone": medians(sustained[ALONE], ">= 400 a second"),
        },
    }
    json.dump(report, sys.stdout, indent=2)
    print()


if __name__ == "__main__":
    main()
