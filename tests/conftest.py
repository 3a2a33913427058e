"""What every test may use: a Healkit on a database of its own."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings
from leftovers import leftovers, mark_this_run
from side_by_side import end_fork_server
from tiers import Claims, add_markers, files_with_tests

# Tests share two cores with each other's kernels; a start that takes six seconds there is not a failure.
os.environ.setdefault("HEALKIT_START_TIMEOUT_S", "30")

from healkit import Healkit
from healkit.store.database import Database

if TYPE_CHECKING:
    from notebook_kernel import NotebookKernel

HERE = Path(__file__).parent
KERNEL = pytest.StashKey["NotebookKernel"]()
CLAIMED = pytest.StashKey[Claims]()

# Nor does an example that a property is held against fail for being slow there.
settings.register_profile("healkit", deadline=None)
settings.load_profile("healkit")


@pytest.fixture(scope="session")
def empty_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty database with current tables, to be copied: the migrations cost more than most tests themselves."""
    path = tmp_path_factory.mktemp("empty") / "healkit.db"
    Database(path).close()
    return path


@pytest.fixture
def healkit(tmp_path: Path, empty_database: Path) -> Iterator[Healkit]:
    """An empty vault and log in a file of this test's own."""
    with Healkit(shutil.copy(empty_database, tmp_path / "healkit.db")) as opened:
        yield opened


@pytest.fixture(scope="session")
def notebook_kernel(pytestconfig: pytest.Config) -> Iterator[NotebookKernel]:
    """A notebook's kernel that the tests of a folder take turns with; what it needs takes long to import."""
    from notebook_kernel import NotebookKernel

    with contextlib.closing(NotebookKernel()) as kernel:
        pytestconfig.stash[KERNEL] = kernel
        yield kernel


@pytest.fixture(scope="session")
def claimed(pytestconfig: pytest.Config) -> Claims | None:
    """Return who claims which requirement, where this run has collected the whole suite."""
    return pytestconfig.stash.get(CLAIMED, None)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--claims", help="write which tests claim which requirement to this file, as JSON")


@pytest.hookimpl(tryfirst=True)
def pytest_configure() -> None:
    mark_this_run()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    add_markers(items)
    slow_files_first(items)
    if (out := config.getoption("--claims")) is not None:
        Path(out).write_text(json.dumps(claims_of(items)))
    elif {item.path for item in items} >= files_with_tests() and "::" not in "".join(config.args):
        config.stash[CLAIMED] = claims_of(items)


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """End the notebooks' kernel with the last test of a folder: others look at the processes of this one."""
    kernel = item.config.stash.get(KERNEL, None)
    if kernel is not None and (nextitem is None or nextitem.path.parent != item.path.parent):
        kernel.close()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail the run when a process that it started outlives it."""
    end_fork_server()
    if hasattr(session.config, "workerinput"):  # shares its processes with the other workers of this run
        return
    if (background := sys.modules.get("healkit.runtime.background")) is not None:
        background.shutdown()  # as at the interpreter's exit, which is yet to come
    if left := leftovers():
        report = session.config.pluginmanager.get_plugin("terminalreporter")
        report.write_line("\nProcesses left behind by the tests:\n  " + "\n  ".join(left), red=True)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def slow_files_first(items: list[pytest.Item]) -> None:
    """So that no process is left alone with a long file at the end of a run that is shared out by files.

    What needs longer than usual says so itself, with a timeout of its own; then come the files with many tests.
    """
    tests = Counter(item.path for item in items)
    longest: dict[Path, float] = dict.fromkeys(tests, 0.0)
    for item in items:
        for marker in item.iter_markers("timeout"):
            longest[item.path] = max(longest[item.path], *marker.args)
    items.sort(key=lambda item: (-longest[item.path], -tests[item.path], str(item.path)))


def claims_of(items: list[pytest.Item]) -> Claims:
    """Read the markers of the tests, parameters folded."""
    claimed: Claims = {}
    for item in items:
        name = item.nodeid.partition("[")[0].removeprefix("tests/")
        quick = item.get_closest_marker("slow") is None
        for marker in item.iter_markers("requirement"):
            for requirement in marker.args:
                tests = claimed.setdefault(requirement, {})
                tests[name] = tests.get(name, False) or quick
    return {requirement: dict(sorted(tests.items())) for requirement, tests in claimed.items()}
