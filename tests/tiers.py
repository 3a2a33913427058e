"""Tiers of the suite, and the markers of its tests.

A folder or a file gives its tests their markers.

The quick tier is what plain `pytest` runs: everything that is not marked `slow`. docs/contributing.md says what each
marker holds and which tests to run for which change.
"""

from __future__ import annotations

import fnmatch
import functools
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent

#: Requirement → the tests that claim it → whether the quick tier runs them.
Claims = dict[str, dict[str, bool]]

#: Marker → patterns of paths below `tests/`. A test has the marker of each pattern that its file matches.
MARKERS = {
    "kernel": ("faces/notebook/*", "faces/notebooks/*", "parts/kernels/*", "parts/exporting/*"),
    "crash": (
        "core/runtime/test_durability.py",
        "core/runtime/test_outcomes.py",
        "core/runtime/test_lifecycle.py",
        "core/runtime/test_recorder.py",
        "parts/runs/test_run_troubles.py",
        "faces/server/test_collector_alone.py",
        "core/store/test_store_spool.py",
        "parts/traces/test_tracing_crash.py",
    ),
    "escape": ("core/escape/*",),
    "browser": ("faces/browser/*",),
    "postgres": ("*/test_*_postgresql.py",),
    "slow": (
        "*/test_*_postgresql.py",  # a newcomer need not have a server
        "faces/browser/*",  # nor a browser
        "faces/cli/test_cli_grants.py",  # these start many workers or processes of their own
        "faces/cli/test_cli_healing.py",
        "faces/cli/test_cli_lab.py",
        "faces/cli/test_cli_log.py",
        "parts/explain/test_library_failures.py",  # scikit-learn and seaborn take ten seconds to load
        "parts/heal/test_heal_bench.py",
        "parts/heal/test_model_repair.py",
        "faces/notebook/test_notebook_healing.py",
        "core/runtime/test_call_events.py",
        "core/runtime/test_contents.py",
        "parts/runs/test_run_limits.py",
        "parts/runs/test_run_retries.py",
        "parts/runs/test_run_docs.py",
        "parts/trials/test_trial_servers.py",
        "faces/server/test_collector_alone.py",
        "faces/server/test_collector_jupyter.py",
        "faces/server/test_server_pages.py",
        "test_docstrings.py",
        "test_floors.py",
    ),
    # What another Python changes: its parser, messages, tracebacks, types and system calls; and some forty tests that it works.
    "version": (
        "parts/cells/*",
        "parts/trials/test_table_changes.py",
        "parts/explain/*",
        "core/pysource/*",
        "core/crossing/*",
        "core/workers/test_landlock.py",
        "core/workers/test_restrictions.py",
        "core/workers/test_scratch.py",
        "faces/cli/test_cli_commands.py",
        "faces/cli/test_cli_parsing.py",
        "core/escape/*",
        "parts/heal/test_loop.py",
        "parts/heal/test_search_operators.py",
        "parts/heal/test_workbench.py",
        "parts/kernels/test_restricted_notebook.py",
        "parts/views/test_view_files.py",
        "faces/notebook/test_notebook_story.py",
        "core/runtime/test_calls.py",
        "core/runtime/test_outcomes.py",
        "parts/trials/test_searches.py",
        "parts/trials/test_trials.py",
        "faces/server/test_collector_http.py",
    ),
    # What other SQL could change: the modules that write SQL of their own, on PostgreSQL.
    "dialect": (
        "*/test_*_postgresql.py",
        "core/runtime/test_recorder.py",
        "parts/runs/test_audit.py",
        "core/store/test_log_search.py",
        "core/store/test_store_revisions.py",
        "core/store/test_store_log.py",
        "parts/traces/test_tracing_outbox.py",
        "faces/server/test_collector_store.py",
    ),
    "pages": ("test_readme.py", "test_docs.py", "*/test_*_docs.py", "*/test_*_page.py", "faces/notebooks/*"),
}


def add_markers(items: Sequence[pytest.Item]) -> None:
    """Give each test the markers of its file."""
    for item in items:
        for marker in _markers_of(item.path):
            item.add_marker(marker)


@functools.cache
def _markers_of(path: Path) -> list[str]:
    """Return the markers of a file, in the order of the table."""
    name = path.relative_to(HERE).as_posix()
    return [
        marker
        for marker, patterns in MARKERS.items()
        if any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)
    ]


def files_with_tests() -> set[Path]:
    """Every file that holds tests."""
    return set(HERE.rglob("test_*.py"))


def slow_but(samples: Mapping[str, Any], quick: Collection[str]) -> list[Any]:
    """Return a parameter for each sample, a tuple as several values; those not in `quick` are slow."""
    return [
        pytest.param(
            *(one if isinstance(one, tuple) else (one,)),
            id=name,
            marks=() if name in quick else pytest.mark.slow,
        )
        for name, one in samples.items()
    ]
