"""Cost of the panels: a page of a log, a notebook, an opening.

The log is long, and the notebook is saved.

Prints one JSON object. The first page of the LogBrowser is measured at 1,000,000 rows, cleaned and as JSON (target: at
most 100 ms; medians). A card with its panel may add 30 kB to a saved notebook whose widget state is saved too (as
nbclient does).
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
from log_samples import long_log
from nbclient import NotebookClient

from healkit import Healkit

ROWS, ROUNDS = 1_000_000, 31
CELLS = ("%load_ext healkit", "%%tool fails\ndef fails(n: int):\n    return n / 0", "%run_tool fails n=1")

#: Request of the page → its arguments.
QUESTIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "first_page": ("page", {"filters": {}}),
    "page_of_failures": ("page", {"filters": {"status": "FAILURE"}}),
    "page_of_a_text": ("page", {"filters": {"text": "ValueError"}}),
    "page_in_the_middle": ("page", {"filters": {}, "before_id": ROWS // 2}),
    "groups": ("groups", {"filters": {}}),
    "names": ("names", {}),
}


def milliseconds(work: Callable[[], Any]) -> float:
    """Return the median duration of some rounds."""
    work()
    taken = []
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        work()
        taken.append((time.perf_counter() - begun) * 1000)
    return round(statistics.median(taken), 2)


def pages(path: Path) -> dict[str, float]:
    """Measure each answer, up to and including its JSON."""
    long_log(path, ROWS)
    with Healkit(path) as healkit:
        browser = healkit.browse()
        asked = {
            name: milliseconds(lambda: json.dumps(browser.operations[op](**arguments)))  # noqa: B023 - called at once
            for name, (op, arguments) in QUESTIONS.items()
        }
        return {**asked, "opening_a_panel": milliseconds(healkit.browse)}


def saved(cards: int) -> int:
    """Return the size of a notebook with that many cards, in bytes."""
    cells = [nbformat.v4.new_code_cell(cell) for cell in (*CELLS[:2], *[CELLS[2]] * cards)]
    book = nbformat.v4.new_notebook(cells=cells)
    NotebookClient(book, kernel_name="python3", timeout=120, allow_errors=True).execute()
    return len(nbformat.writes(book).encode())


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        os.environ["HEALKIT_DB"] = str(Path(name) / "small.db")
        growth = (saved(4) - saved(1)) / 3
        answers = pages(Path(name) / "big.db")
    report = {
        "rows": ROWS,
        "ms": answers,
        "first_page_target_ms": 100,
        "saved_bytes_per_card": round(growth),
        "saved_bytes_per_card_target": 30_000,
    }
    json.dump(report, sys.stdout, indent=2)
    print()


if __name__ == "__main__":
    main()
