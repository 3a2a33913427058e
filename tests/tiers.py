"""The tiers of the suite, and the markers that a folder or a file gives its tests.

The quick tier is what plain `pytest` runs: everything that is not marked `slow`. docs/contributing.md says what each
marker holds and which tests to run for which change.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from pathlib import Path

import pytest

HERE = Path(__file__).parent

#: Requirement → the tests that claim it → whether the quick tier runs them.
Claims = dict[str, dict[str, bool]]

#: Marker → patterns of paths below `tests/`. A test has the marker of each pattern that its file matches.
MARKERS = {
    "kernel": ("notebook/*", "notebooks/*", "kernelspec/*", "exporting/*"),
    "crash": (
        "runtime/test_durability.py",
        "runtime/test_outcomes.py",
        "runtime/test_lifecycle.py",
        "runtime/test_recorder.py",
        "runtime/test_run_troubles.py",
        "server/test_collector_alone.py",
        "store/test_store_spool.py",
        "tracing/test_tracing_crash.py",
    ),
    "escape": ("escape/*",),
    "browser": ("browser/*",),
    "postgres": ("*/test_*_postgresql.py",),
    "slow": (
        "*/test_*_postgresql.py",  # a newcomer need not have a server
        "healing/test_heal_bench.py",
        "notebooks/test_teaching_notebooks.py",
    ),
    "pages": ("test_readme.py", "test_docs.py", "*/test_*_docs.py", "*/test_*_page.py", "notebooks/*"),
}


def add_markers(items: Sequence[pytest.Item]) -> None:
    """Give each test the markers of its file."""
    for item in items:
        path = item.path.relative_to(HERE).as_posix()
        for marker, patterns in MARKERS.items():
            if any(fnmatch.fnmatchcase(path, pattern) for pattern in patterns):
                item.add_marker(marker)


def files_with_tests() -> set[Path]:
    """Every file that holds tests."""
    return set(HERE.rglob("test_*.py"))
