"""Fixtures of all tests: a Healkit on a database of its own."""

from __future__ import annotations

import compileall
import contextlib
import gc
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings
from leftovers import leftovers, mark_this_run
from postgres_samples import Server, server
from side_by_side import end_fork_server
from tiers import Claims, add_markers, files_with_tests

# Tests share two cores with each other's kernels; a start that takes six seconds there is not a failure.
# What the tests trust is not kept in the data folder of who runs them; the processes of a parallel run share one.
os.environ["XDG_DATA_HOME"] = os.environ.setdefault(
    "HEALKIT_TESTS_DATA", tempfile.mkdtemp(prefix="healkit-tests-")
)

from trusted import trusted_copy

import healkit as healkit_package
from healkit import Healkit
from healkit.core.store.database import Database

if TYPE_CHECKING:
    from notebook_kernel import NotebookKernel

# nbformat loads jsonschema, which builds 38 grammars of addresses where it finds this package: over 2 s in each process.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]  # None: its import fails, as if not installed

# As for a user: where no compiled module is kept, each of the many processes takes a second longer to start.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

HERE = Path(__file__).parent
KERNEL = pytest.StashKey["NotebookKernel"]()
CLAIMED = pytest.StashKey[Claims]()

# A suite that runs in the background ignores Ctrl-C, and the processes it starts inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Nor does an example that a property is held against fail for being slow there.
settings.register_profile("healkit", deadline=None)
settings.load_profile("healkit")


@pytest.fixture(scope="session")
def empty_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make an empty database with current tables, to be copied: the migrations cost more than most tests themselves."""
    path = tmp_path_factory.mktemp("empty") / "healkit.db"
    Database(path).close()
    return path


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[Server]:
    """Start a PostgreSQL server for the first test that needs one."""
    with server() as started:
        yield started


#: The kinds of database that the store's tests run on; those of PostgreSQL are left to the slow tier.
KINDS = ["sqlite", pytest.param("postgresql", marks=[pytest.mark.postgres, pytest.mark.slow])]


@pytest.fixture(params=KINDS)
def new_database(
    request: pytest.FixtureRequest, tmp_path: Path, empty_database: Path
) -> Iterator[Callable[[str], str]]:
    """Make an empty database with current tables by a name of the test's choice; its URL. On each kind in turn."""
    if request.param == "sqlite":
        yield lambda name="healkit": f"sqlite:///{trusted_copy(empty_database, tmp_path / f'{name}.db')}"
        return
    on: Server = request.getfixturevalue("postgresql_server")
    with contextlib.ExitStack() as made:
        yield lambda name="healkit": made.enter_context(on.database())


@pytest.fixture
def healkit(request: pytest.FixtureRequest, tmp_path: Path, empty_database: Path) -> Iterator[Healkit]:
    """Lend an empty vault and log in a file of this test's own; with `--postgresql`, on a server."""
    with contextlib.ExitStack() as made:
        if request.config.getoption("--postgresql"):
            # As with a file: its log is cleaned only where a test asks for it, and its runs lie apart. All databases are
            # copies with one audit chain.
            environment = request.getfixturevalue("monkeypatch")
            environment.setenv("HEALKIT_SANITIZE_LOG", "0")
            environment.setenv("XDG_DATA_HOME", tempfile.mkdtemp(dir=os.environ["HEALKIT_TESTS_DATA"]))
            where: str | Path = made.enter_context(request.getfixturevalue("postgresql_server").database())
        else:
            where = trusted_copy(empty_database, tmp_path / "healkit.db")
        yield made.enter_context(Healkit(where))


@pytest.fixture(scope="session")
def notebook_kernel(pytestconfig: pytest.Config) -> Iterator[NotebookKernel]:
    """Lend a notebook's kernel that the tests of a folder take turns with; what it needs takes long to import."""
    from notebook_kernel import NotebookKernel

    with contextlib.closing(NotebookKernel()) as kernel:
        pytestconfig.stash[KERNEL] = kernel
        yield kernel


@pytest.fixture(scope="session")
def claimed(pytestconfig: pytest.Config) -> Claims | None:
    """Return who claims which requirement, where this run has collected the whole suite."""
    return pytestconfig.stash.get(CLAIMED, None)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--postgresql", action="store_true", help="run the tests that are lent a Healkit, on PostgreSQL"
    )
    parser.addoption("--claims", help="write which tests claim which requirement to this file, as JSON")


@pytest.hookimpl(tryfirst=True)
def pytest_xdist_auto_num_workers() -> int:
    """Run one more worker than there are processors: half of a test's time is waiting for a process."""
    return len(os.sched_getaffinity(0)) + 1


def pytest_configure(config: pytest.Config) -> None:
    mark_this_run()
    gc.disable()  # collecting the tests makes a million objects that stay
    if not hasattr(config, "workerinput"):
        # Also what only restricted workers import, which may not write beside it.
        compileall.compile_dir(Path(healkit_package.__file__).parent, quiet=2)


def pytest_collection_finish() -> None:
    """From here on the collector looks at what tests make, and at no more."""
    gc.enable()
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    add_markers(items)
    slow_files_first(items)
    if config.getoption("--postgresql"):
        other = {item for item in items if not _on_a_server(item)}
        config.hook.pytest_deselected(items=list(other))
        items[:] = [item for item in items if item not in other]
    if (out := config.getoption("--claims")) is not None:
        Path(out).write_text(json.dumps(claims_of(items)))
    elif {item.path for item in items} >= files_with_tests() and "::" not in "".join(config.args):
        config.stash[CLAIMED] = claims_of(items)


def _on_a_server(item: pytest.Item) -> bool:
    return "healkit" in getattr(item, "fixturenames", ()) and item.get_closest_marker("sqlite") is None


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
    if (background := sys.modules.get("healkit.core.runtime.background")) is not None:
        background.shutdown()  # as at the interpreter's exit, which is yet to come
    shutil.rmtree(os.environ["HEALKIT_TESTS_DATA"], ignore_errors=True)
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


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a disk of 128 KiB."""
    if os.geteuid() != 0:
        pytest.skip("mounting a tiny disk takes root; run the tests as root to include this one")
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=128k", "tmpfs", str(disk)], check=True)
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)
