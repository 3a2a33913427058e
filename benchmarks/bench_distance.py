"""Distance: files and calls that an action passes through.

Only healkit's own code on the host counts, on every thread of this process; code in a worker does not. Each action runs
once to warm up, and is counted the second time. `python benchmarks/bench_distance.py --files execute` lists the files
of an action with their calls, `--functions` its functions. Prints one JSON object.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType

import healkit
from healkit import Config, Healkit

PACKAGE = str(Path(healkit.__file__).parent)


class Walk:
    """Count of the calls; create it before the threads that it follows."""

    def __init__(self) -> None:
        self.counting = False
        self.calls: Counter[CodeType] = Counter()
        threading.setprofile(self._seen)
        sys.setprofile(self._seen)

    def of(self, action: Callable[[], object]) -> Counter[CodeType]:
        """Run it once to warm up, once more to count."""
        action()
        self.calls = Counter()
        self.counting = True
        action()
        self.counting = False
        return self.calls

    def _seen(self, frame: FrameType, event: str, arg: object) -> None:
        if self.counting and event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            self.calls[frame.f_code] += 1


def file_of(code: CodeType) -> str:
    return code.co_filename.removeprefix(f"{PACKAGE}/")


def walked(walk: Walk, hk: Healkit) -> dict[str, Counter[CodeType]]:
    """Run and count each action."""
    hk.vault.add("double", "def double(x):\n    return 2 * x\n")
    for name in ("fails", "fails_too"):
        hk.vault.add(name, f"def {name}(x):\n    return x['a']\n")
        failure = hk.execute(name, arguments={"x": {"b": 1}})
    hk.vault.add("calls", "def calls(x):\n    return mcp.host.f(x=x)\n", grants={"calls": ["host.*"]})
    hk.host.provide(lambda x: x, "f")

    unhealed = iter(("fails", "fails_too"))
    return {
        "execute": walk.of(lambda: hk.execute("double", arguments={"x": 4})),
        "card": walk.of(failure.to_html),
        "call": walk.of(lambda: hk.execute("calls", arguments={"x": 1})),
        "heal": walk.of(lambda: hk.heal(next(unhealed))),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", choices=["execute", "card", "call", "heal"])
    parser.add_argument("--functions", choices=["execute", "card", "call", "heal"])
    options = parser.parse_args()
    walk = Walk()
    with (
        tempfile.TemporaryDirectory() as folder,
        Healkit(Path(folder) / "distance.db", config=Config()) as hk,
    ):
        found = walked(walk, hk)
    if options.files:
        for name, calls in files(found[options.files]).most_common():
            print(f"{calls:6} {name}")
    if options.functions:
        for code, calls in found[options.functions].most_common():
            print(f"{calls:6} {file_of(code)}:{code.co_firstlineno} {code.co_qualname}")
    print(
        json.dumps(
            {
                name: {"files": len(files(calls)), "functions": len(calls), "calls": calls.total()}
                for name, calls in found.items()
            }
        )
    )


def files(calls: Counter[CodeType]) -> Counter[str]:
    found: Counter[str] = Counter()
    for code, number in calls.items():
        found[file_of(code)] += number
    return found


if __name__ == "__main__":
    main()
