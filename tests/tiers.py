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
        "cli/test_cli_grants.py",  # these start many workers or processes of their own
        "cli/test_cli_healing.py",
        "cli/test_cli_lab.py",
        "cli/test_cli_log.py",
        "failures/test_library_failures.py",  # scikit-learn and seaborn take ten seconds to load
        "healing/test_heal_bench.py",
        "healing/test_model_repair.py",
        "notebook/test_notebook_healing.py",
        "runtime/test_call_events.py",
        "runtime/test_contents.py",
        "runtime/test_run_limits.py",
        "runtime/test_run_retries.py",
        "tracing/test_run_docs.py",
        "workers/test_trial_servers.py",
        "server/test_collector_alone.py",
        "server/test_collector_jupyter.py",
        "server/test_server_pages.py",
        "test_docstrings.py",
        "test_floors.py",
    ),
    # What another Python changes: its parser, messages, tracebacks, types and system calls; and some forty tests that it works.
    "version": (
        "cells/*",
        "failures/*",
        "pysource/*",
        "values/*",
        "workers/test_landlock.py",
        "workers/test_restrictions.py",
        "workers/test_scratch.py",
        "cli/test_cli_commands.py",
        "cli/test_cli_parsing.py",
        "escape/*",
        "healing/test_loop.py",
        "healing/test_search_operators.py",
        "healing/test_workbench.py",
        "kernelspec/test_restricted_notebook.py",
        "notebook/test_notebook_story.py",
        "runtime/test_calls.py",
        "runtime/test_outcomes.py",
        "runtime/test_searches.py",
        "runtime/test_trials.py",
        "server/test_collector_http.py",
    ),
    # What other SQL could change: the modules that write SQL of their own, on PostgreSQL.
    "dialect": (
        "*/test_*_postgresql.py",
        "runtime/test_recorder.py",
        "store/test_audit.py",
        "store/test_log_search.py",
        "store/test_store_revisions.py",
        "store/test_store_log.py",
        "tracing/test_tracing_outbox.py",
        "server/test_collector_store.py",
    ),
    "pages": ("test_readme.py", "test_docs.py", "*/test_*_docs.py", "*/test_*_page.py", "notebooks/*"),
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
