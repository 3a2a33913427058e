"""Notebooks and doctests as pytest's tests, run restricted.

A notebook is one test, as in nbmake. nbval makes one of each cell, but a cell needs those above it: with `--lf`, `-k`
and `-n 2`, cells then run without them. Here the report names the failing cell.

A doctest is pytest's own `DoctestItem`, with its runner, checker, options and report; each example is only a call that
asks the worker. pytest decides which files have doctests; its collector is replaced by one that reads the docstrings,
because to import a module is to run it. The doctests of a file take turns in one worker, each with names of its own, as
they do in pytest's process: to start a worker for each would take half a second.
"""

from __future__ import annotations

import ast
import contextlib
import doctest
import os
import re
import sys
import threading
import traceback
from collections.abc import Generator, Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from _pytest import doctest as pytest_doctest
from _pytest.pathlib import fnmatch_ex

from healkit.app import Healkit
from healkit.core.contracts.execution import Grants
from healkit.core.rendering import cleaning
from healkit.core.runtime import background
from healkit.core.workers.sandbox import check_grants, passing_folder
from healkit.errors import HealkitError
from healkit.parts.cells.cell_export import read_outcome
from healkit.parts.heal.notebook_check import NotebookCheck, explained, failure_of
from healkit.parts.heal.records import NotebookFailure
from healkit.parts.heal.render_check import failure_text, harmless
from healkit.parts.kernels.notebook_session import NotebookSession
from healkit.plain_text import one_line

_IN_KERNEL = "__import__('healkit.parts.cells.cell_export', fromlist=['watch_examples'])"
_OWN_REQUEST_S = 60.0
_PROMPT = re.compile(r"<In \[(\d+)\]>")
#: Place that IPython adds to the message of a SyntaxError.
_IN_CELL = re.compile(r" \(In \[\d+\], line \d+\)$")
_DEFINITIONS = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


class RestrictedRun:
    """Plugin of one run of pytest with `--healkit`; its items find it as `config.stash[RUN]`."""

    def __init__(self, config: pytest.Config) -> None:
        """Raises `pytest.UsageError` for a limit that is none."""
        written = config.getini("healkit_timeout")
        try:
            self.timeout = float(written)
        except ValueError:
            raise pytest.UsageError(f"healkit_timeout = {written!r} is not a number of seconds.") from None
        self.config, self.heal = config, config.option.healkit_heal
        self.read: list[Path] = config.getini("healkit_read")
        config.stash[RUN] = self

    @cached_property
    def healkit(self) -> Healkit:
        """Healkit in memory, opened by the first test that needs it."""
        healkit = Healkit("sqlite://")
        self.config.add_cleanup(healkit.close)
        return healkit

    def pytest_report_header(self) -> str:
        """Say what is restricted; called by pytest."""
        return "healkit: notebooks and doctests run restricted; test functions and conftest.py do not"

    @pytest.hookimpl(wrapper=True)
    def pytest_collect_file(
        self, file_path: Path, parent: pytest.Collector
    ) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
        """Take over the files with doctests, and add the notebooks; called by pytest."""
        collectors = yield
        kinds = (pytest_doctest.DoctestModule, pytest_doctest.DoctestTextfile)
        ours = [collector for collector in collectors if not isinstance(collector, kinds)]
        if len(ours) < len(collectors):
            if not any(fnmatch_ex(pattern, file_path) for pattern in self.config.getini("python_files")):
                # A module named on the command line is collected for test functions too: imported, that is.
                ours = [collector for collector in ours if not isinstance(collector, pytest.Module)]
            ours.append(DoctestFile.from_parent(parent, path=file_path))
        if file_path.suffix == ".ipynb":
            ours.append(NotebookFile.from_parent(parent, path=file_path))
        return ours


RUN = pytest.StashKey[RestrictedRun]()


@contextlib.contextmanager
def _failing() -> Iterator[None]:
    """Fail with the sentence of healkit's error; a traceback through healkit helps no user."""
    try:
        yield
    except HealkitError as error:
        raise pytest.fail.Exception(str(error), pytrace=False) from None


class RestrictedItem(pytest.Item):
    """Test whose code stays out of this process."""

    def listchain(self) -> list[Any]:
        """Leave out packages: pytest imports the `__init__.py` of each to set it up."""
        return [node for node in super().listchain() if not isinstance(node, pytest.Package)]


class NotebookFile(pytest.File):
    """Collector of one notebook."""

    def collect(self) -> Iterable[NotebookItem]:
        yield NotebookItem.from_parent(self, name="notebook")


class NotebookItem(RestrictedItem):
    """Notebook, run from its first cell to its last, or to the one that fails."""

    def runtest(self) -> None:
        run = self.config.stash[RUN]
        with _failing():
            check = NotebookCheck(run.healkit.services, self.path, run.heal, run.timeout, run.read)
            report = check.report()
        remarks = "\n".join(harmless(remark.sentence) for remark in report.remarks)
        self.add_report_section("call", "order of the cells", remarks)
        if report.failures:
            pytest.fail("\n\n".join(map(failure_text, report.failures)), pytrace=False)

    def reportinfo(self) -> tuple[Path, None, str]:
        return self.path, None, f"[notebook] {self.path.name}"


class DoctestFile(pytest.Module):
    """Collector of the doctests in a module or a text, and their worker."""

    obj = None  # pytest's would import the module

    @cached_property
    def worker(self) -> DoctestWorker:
        return DoctestWorker(self.config.stash[RUN], self.path)

    def collect(self) -> Iterable[DoctestItem]:
        parser, config = doctest.DocTestParser(), self.config
        parent: Any = self  # pytest names its own two collectors
        runner = pytest_doctest._get_runner(
            checker=pytest_doctest._get_checker(),
            verbose=False,
            optionflags=pytest_doctest.get_optionflags(config),
            continue_on_failure=pytest_doctest._get_continue_on_failure(config),
        )
        try:
            if self.path.suffix == ".py":
                texts = dict(_docstrings(ast.parse(self.path.read_bytes()), _module_of(self.path)[0]))
            else:
                texts = {self.path.name: (0, self.path.read_text(config.getini("doctest_encoding")))}
            tests = [
                parser.get_doctest(text, {}, name, str(self.path), n) for name, (n, text) in texts.items()
            ]
        except (SyntaxError, ValueError) as error:
            raise self.CollectError(f"{self.path}: {error}") from None
        for test in tests:
            if test.examples:
                yield DoctestItem.from_parent(parent, name=test.name, runner=runner, dtest=test)

    def teardown(self) -> None:
        """End the worker; called by pytest after the last doctest of the file."""
        self.worker.close()


def _docstrings(node: ast.Module | _DEFINITIONS, name: str) -> Iterator[tuple[str, tuple[int, str]]]:
    """Yield name, line and text of each docstring that doctest would find; none is inside a function."""
    if text := ast.get_docstring(node, clean=False):
        yield name, (node.body[0].lineno - 1, text)
    inner: list[ast.AST] = [] if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else [*node.body]
    for child in inner:  # grows: definitions may be in an `if` or a `try`
        if isinstance(child, _DEFINITIONS):
            yield from _docstrings(child, f"{name}.{child.name}")
        else:
            inner += ast.iter_child_nodes(child)


def _module_of(file: Path) -> tuple[str, Path]:
    """Return a module's dotted name, and the folder above its packages, which it is imported from."""
    names, folder = [] if file.stem == "__init__" else [file.stem], file.parent
    while (folder / "__init__.py").exists():
        names, folder = [folder.name, *names], folder.parent
    return ".".join(names), folder


class DoctestItem(RestrictedItem, pytest.DoctestItem):
    """Examples of one docstring or text: a worker runs them, and pytest compares what they print."""

    parent: DoctestFile

    def runtest(self) -> None:
        test, worker = self.dtest, self.parent.worker
        given = {name: value for name, value in test.globs.items() if name != "getfixture"}
        modules = {name: value.__name__ for name, value in given.items() if isinstance(value, ModuleType)}
        if given.keys() - modules or any("getfixture(" in example.source for example in test.examples):
            pytest.fail("Only modules go to a restricted worker, no other value of a fixture.", pytrace=False)
        if not all(example.options.get(doctest.SKIP) for example in test.examples):
            with _failing():
                worker.begin(test, modules)

        def run(number: int) -> None:
            sys.stdout.write(worker.run(test.examples[number].source, number))

        examples = [
            doctest.Example(f"run({n})", e.want, e.exc_msg, e.lineno, e.indent, e.options)
            for n, e in enumerate(test.examples)
        ]
        self.dtest = doctest.DocTest(
            examples, {"run": run}, test.name, test.filename, test.lineno, test.docstring
        )
        try:
            super().runtest()
        finally:
            self.dtest = test  # a test that has run has lost its names

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException]) -> Any:  # type: ignore[override]  # as in pytest's own
        """Return doctest's report, with the worker's traceback in place of this process's, and healkit's card."""
        usual = super().repr_failure(excinfo)
        failures = getattr(excinfo.value, "failures", [excinfo.value])
        if not isinstance(failures[0], doctest.DocTestFailure | doctest.UnexpectedException):
            return usual
        text, titles, cards = str(usual), list[str](), list[str]()
        for failure in failures:
            want, got = failure.example.want.strip(), getattr(failure, "got", "").strip()
            message = f"expected {want or 'nothing'}, got {got or 'nothing'}"
            error = getattr(failure, "exc_info", (None, None))[1]
            if isinstance(error, ExampleRaised):
                here = "\n".join(part.strip("\n") for part in traceback.format_exception(*failure.exc_info))
                text = text.replace(here, error.traceback, 1)
                message = error.summary
                cards.append(error.card)
            titles.append(f"line {failure.test.lineno + failure.example.lineno + 1}: {one_line(message)}")
        return harmless(cleaning.text("\n".join([*titles, text, *cards])))


class ExampleRaised(Exception):
    """Exception of an example, of a class with the name that it has in the worker: doctest compares that."""

    summary = traceback = card = ""


class DoctestWorker:
    """Kernel of a check, in which the doctests of one file take turns.

    It may read what a check's may: the file's folder, for a module the one that it is imported from, `healkit_read` and
    pytest's own `pythonpath`.
    """

    _session: NotebookSession | None = None

    def __init__(self, run: RestrictedRun, file: Path) -> None:
        self._run, self._open = run, contextlib.ExitStack()
        self._module, self._folder = _module_of(file) if file.suffix == ".py" else ("", file.parent)
        paths = [path for path in run.config.getini("pythonpath") if path.exists()]
        self._paths = [*map(os.path.realpath, [self._folder, *paths] if self._module else paths)]
        read = [*self._paths, *map(os.path.realpath, (self._folder, *run.read))]
        self._read = tuple(dict.fromkeys(read))

    def begin(self, test: doctest.DocTest, modules: Mapping[str, str]) -> None:
        """Make names for a test's examples; called before the first. modules: by the names that they get.

        Raises `HealkitError` where there is no boundary, and where the test's own module cannot be imported.
        """
        if self._session is None:
            self._start()
        self._test = test
        try:
            self.run(f"__import__({self._module or 'sys'!r})", "import")
        except ExampleRaised as error:
            message = f"It cannot be imported: {error.summary}\n{error.traceback}\n{error.card}"
            raise HealkitError(harmless(cleaning.text(message))) from None
        self._own(f"begin_examples({self._module!r}, {dict(modules)!r})")

    def run(self, source: str, number: int | str) -> str:
        """Run an example, and return its output; raises `ExampleRaised`. number: in its test."""
        prompt, timeout_s = len(self._places) + 1, self._run.timeout
        self._places[f"<In [{prompt}]>"] = f"<doctest {self._test.name}[{number}]>"
        reply = self._reply(source, timeout_s)
        outcome = None if reply["status"] == "died" else read_outcome(self._exchange, prompt)
        if reply["status"] == "ok" and outcome is not None:
            return outcome.output
        if reply["status"] != "error":
            self.close()
        failure = failure_of(reply, outcome.failure if outcome is not None else None, timeout_s, "example")
        message = _IN_CELL.sub("", failure.evalue)
        error = type(failure.ename, (ExampleRaised,), {"__module__": "builtins"})(*filter(None, [message]))
        record = cleaning.sanitizer().of_record()
        record.text(self._test.docstring or "")  # a password of an example may be in the message of another
        failure = cleaning.failure(failure, record)
        about = explained(failure, self._run.healkit.config.explain)
        error.summary = failure.summary
        error.traceback = _PROMPT.sub(lambda place: self._places.get(place[0], place[0]), failure.traceback)
        error.card = failure_text(
            NotebookFailure(0, prompt, 0, 0, failure, about[0], why=about[1]), titled=False
        )
        raise error

    def close(self) -> None:
        """End the kernel; safe to call twice, and `begin` starts another one."""
        self._session = None
        self._open.pop_all().close()

    def _start(self) -> None:
        check_grants(Grants(read=self._read))
        folder = self._open.enter_context(passing_folder())
        self._exchange, self._places = folder / "exchange", dict[str, str]()
        self._exchange.mkdir(mode=0o700)
        grants = {"read": list(self._read), "memory_mb": self._run.healkit.config.memory_mb}
        session = NotebookSession(self._folder, grants, self._exchange, folder, threading.Event())
        background.loop.wait_for(session.__aenter__())
        self._open.callback(lambda: background.loop.wait_for(session.__aexit__()))
        self._session = session
        self._own(f"watch_examples({str(self._exchange)!r}, {self._paths!r})")

    def _own(self, call: str) -> None:
        reply = self._reply(f"{_IN_KERNEL}.{call}", _OWN_REQUEST_S, silent=True)
        if reply["status"] != "ok":
            self.close()
            raise HealkitError(
                f"The doctests cannot begin: {failure_of(reply, None, _OWN_REQUEST_S).summary}."
            )

    def _reply(self, code: str, timeout_s: float, *, silent: bool = False) -> dict[str, Any]:
        if self._session is None:
            return {"status": "died", "exit_status": "unknown"}
        try:
            return background.loop.wait_for(self._session.run(code, timeout_s=timeout_s, silent=silent))
        except BaseException:  # Ctrl-C, or a limit of pytest-timeout: the code still runs
            self.close()
            raise
