"""Tools that are run on record, and reading the record."""

from __future__ import annotations

from healkit import Healkit
from healkit.parts.runs.contract import Run
from healkit.parts.runs.reader import validate_run

BROKEN = "def divide(n: int):\n    print('dividing', n)\n    return 1 / n\n"
FIXED = "def divide(n: int):\n    return 1 / n if n else 0\n"


def recorded(healkit: Healkit) -> Run:
    """Return the newest run, in order."""
    newest = max(healkit.runs_dir.iterdir(), key=lambda path: (path.name != ".new", path.stat().st_mtime_ns))
    run = validate_run(newest)
    assert [str(problem) for problem in run.problems] == []
    return run


def types(run: Run) -> list[str]:
    return [event.event_type for event in run.events]
