"""Performing of choices: tools on views.

Each tool runs by the execution path. A choice's words become arguments here: names of views become frames, numbers of
columns become the columns. What comes back becomes a view or a file, and facts without values.
"""

from __future__ import annotations

import builtins
import dataclasses
import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import pandas as pd

from healkit import values
from healkit.contracts.data_views import DataView
from healkit.contracts.decisions import ViewFacts
from healkit.contracts.entries import VaultEntry
from healkit.decisions.labels import KnownNames
from healkit.decisions.metadata import COLUMNS_MAX, Counts, as_frame, counts_of, facts_of, values_among
from healkit.decisions.operations.catalogue import is_built_in
from healkit.decisions.outputs import write_output
from healkit.errors import HealkitError, PolicyHalted, ViewError
from healkit.runtime.execution import Execution
from healkit.runtime.runner import Runner, request_for
from healkit.runtime.runs import OpenRun
from healkit.sanitizer.cleaner import Cleaner

_QUOTED = re.compile(r"""['"]([^'"]{1,200})['"]""")
#: Beginning of a file → the ending of its name.
_BEGINNINGS = {
    b"\x89PNG": ".png",
    b"PAR1": ".parquet",
    b"%PDF": ".pdf",
    b"<svg": ".svg",
    b"PK\x03\x04": ".zip",
}
#: Word in a tool's name → the ending of the text that it returns.
_TEXTS = {
    "csv": ".csv",
    "notebook": ".ipynb",
    "markdown": ".md",
    "report": ".md",
    "html": ".html",
    "json": ".json",
    "svg": ".svg",
}


class Keeps(Protocol):
    """Part of `hk.views` that a decision uses."""

    def put(self, value: Any, name: str, *, created_by: str = ...) -> DataView: ...


@dataclasses.dataclass(frozen=True)
class Attempt:
    """Tool that was run: its value, or why there is none; `log_id` is its row in the log."""

    duration_ms: float
    value: Any = None
    code: str | None = None
    ename: str | None = None
    column: str | None = None
    log_id: int | None = None

    @property
    def frame(self) -> pd.DataFrame | None:
        """Value as a DataFrame, where it is a table."""
        return None if self.code else as_frame(self.value)


@dataclasses.dataclass(frozen=True)
class HeldView:
    """View of a decision: its value, its name in `hk.views`, and what may be told of it."""

    value: Any
    frame: pd.DataFrame
    kept_as: str
    facts: ViewFacts


class Bound(NamedTuple):
    """Arguments of a tool, and the views among them."""

    arguments: dict[str, Any]
    views: list[HeldView]


class ChoiceRefused(Exception):
    """Choice that cannot be taken, with the reason for the chooser."""


class Workshop:
    """Views and tools of one decision."""

    def __init__(
        self, runner: Runner, keeps: Keeps, run: OpenRun, cleaner: Cleaner, tools: Mapping[str, VaultEntry],
        shared: tuple[str, ...], persona: str, timeout_s: float | None,
    ) -> None:  # fmt: skip
        self.views: dict[str, HeldView] = {}
        self.tools = dict(tools)
        self._built_in = {name for name, entry in tools.items() if is_built_in(name, entry.code)}
        self.names = KnownNames(cleaner)
        self.files: list[Path] = []
        self._runner, self._keeps, self._run, self._cleaner = runner, keeps, run, cleaner
        self._shared, self._persona, self._timeout_s = shared, persona, timeout_s

    def begin(self, data: Mapping[str, tuple[Any, pd.DataFrame, str | None]]) -> None:
        """Take the caller's data: name → value, the value as a frame, and the view that it is, if it is one already."""
        frames = [frame for _, frame, _ in data.values()]
        labels = [label for frame in frames for label in frame.columns[:COLUMNS_MAX]]
        self.names.admit(labels, values_among(frames, labels))
        for name, (value, frame, kept_as) in data.items():
            self._hold(name, value, frame, kept_as or self._keep(name, value, "user"))

    def bound(self, tool: str, params: Mapping[str, Any]) -> Bound:
        """Return a tool's arguments: views for their names, columns for their numbers; raise `ChoiceRefused`.

        A name of a view is that view wherever the tool takes a frame, or does not say what it takes. A parameter that
        takes text keeps it.
        """
        schema, used = self.tools[tool].input_schema, list[HeldView]()
        known = schema.get("properties")
        known = known if isinstance(known, dict) else {}
        others = schema.get("additionalProperties")
        others = {} if others in (None, True) else others
        arguments = {
            name: self._given(tool, name, value, known.get(name, others), used)
            for name, value in params.items()
        }
        labels = {label for held in used for label in held.frame.columns if isinstance(label, str)}
        given = [value for value in params.values() if isinstance(value, str) and value in labels]
        for value in set(given) & self.views.keys():
            if len([held for held in used if held is self.views[value]]) > 1 and given.count(value) > 1:
                raise ChoiceRefused(
                    f"{value!r} is a view and a column, and {tool} does not say which of them each parameter takes. "
                    "Its parameters need types, such as column: str."
                )
        return Bound(arguments, used)

    def _given(self, tool: str, name: str, value: Any, schema: Any, used: list[HeldView]) -> Any:
        views = self.views
        if value is not None and _takes_frame(schema):
            if not isinstance(value, str) or value not in views:
                raise ChoiceRefused(f"{name!r} must be the name of a view: {', '.join(views)}.")
            used.append(views[value])
            return views[value].value
        items = schema.get("items") if isinstance(schema, dict) else None
        if isinstance(value, list) and _takes_frame(items):
            return [self._given(tool, name, inner, items, used) for inner in value]
        is_open = isinstance(schema, dict) and not schema.keys() - {"default", "description", "title"}
        named = [value] if isinstance(value, str) else value if isinstance(value, list) else []
        if not named or not all(isinstance(one, str) and one in views for one in named):
            return self.names.restored(value)
        if is_open and tool not in self._built_in:
            used += [views[one] for one in named]
            return views[value].value if isinstance(value, str) else [views[one].value for one in named]
        if isinstance(value, str) and not is_open and not _takes_text(schema):
            raise ChoiceRefused(
                f"{value!r} is a view, and the parameter {name!r} of {tool} takes neither a view nor a text."
            )
        return self.names.restored(value)

    def inputs(self, tool: str, params: Mapping[str, Any]) -> list[pd.DataFrame]:
        """Return the frames that a choice names."""
        return [held.frame for held in self.bound(tool, params).views]

    def perform(self, tool: str, params: Mapping[str, Any]) -> Attempt:
        """Run a tool as a step of the run; raise `PolicyHalted` where no step may begin, and `ChoiceRefused`."""
        arguments = self.bound(tool, params).arguments
        try:
            request = request_for(tool, self._persona, arguments, self._timeout_s, "decide", None)
            execution = self._runner.execute_request(request, _discard, self._run)
        except PolicyHalted:
            raise
        except HealkitError as error:
            return Attempt(0.0, code=str(error.code), column=self._column_in("", str(error)))
        return self._attempt(execution)

    def keep(
        self, name: str, tool: str, params: Mapping[str, Any], value: Any, frame: pd.DataFrame
    ) -> str | None:
        """Keep a result as a view; return the code of what keeps it from being one, if anything does."""
        with ThreadPoolExecutor(1) as beside:  # the data is hashed and written meanwhile
            counting = beside.submit(counts_of, frame)
            try:
                kept_as = self._keep(name, value, tool)
            except ViewError as error:
                return str(error.code)
        fresh = [label for label in frame.columns[:COLUMNS_MAX] if not self.names.knows(label)]
        held = values_among(self.inputs(tool, params), fresh)
        self.names.admit_result(fresh, self.tools[tool].code, held)
        self._hold(name, value, frame, kept_as, counting.result())
        return None

    def write(self, tool: str, value: Any) -> Path | None:
        """Write a tool's text or bytes to the run's folder; None for anything else."""
        if not isinstance(value, str | bytes | bytearray):
            return None
        content = value.encode(errors="surrogatepass") if isinstance(value, str) else bytes(value)
        folder = self._run.folder / "outputs"
        folder.mkdir(mode=0o700, exist_ok=True)
        stem = re.sub(r"[^A-Za-z0-9_-]", "_", tool)[:80]
        file = write_output(content, folder, f"{len(self.files) + 1}_{stem}{_suffix(tool, value, content)}")
        self.files.append(file)
        return file

    def _keep(self, name: str, value: Any, created_by: str) -> str:
        return self._keeps.put(value, f"{self._run.run_id}/{name}", created_by=created_by).name

    def _hold(
        self, name: str, value: Any, frame: pd.DataFrame, kept_as: str, counts: Sequence[Counts] | None = None
    ) -> None:
        facts = facts_of(name, frame, self.names, self._shared, self._cleaner, counts)
        self.views[name] = HeldView(value, frame, kept_as, facts)

    def _attempt(self, execution: Execution) -> Attempt:
        took, failure = round(execution.duration_ms or 0.0, 3), execution.failure
        if failure is None:
            return Attempt(took, execution.value, log_id=execution.log_id)
        # A tool may name its exception after a cell: only Python's own names are told.
        ename = failure.ename if isinstance(getattr(builtins, failure.ename, None), type) else None
        column = self._column_in(failure.ename, failure.evalue)
        return Attempt(took, None, failure.code, ename, column, execution.log_id)

    def _column_in(self, ename: str, message: str) -> str | None:
        """Return the first column's name in a message that the chooser knows; nothing else of it is told."""
        labels = {
            label for view in self.views.values() for label in view.frame.columns if isinstance(label, str)
        }
        for word in _QUOTED.findall(message):
            if self.names.knows(word) and (word in labels or ename == "KeyError"):
                return str(word)
        return None


def unique_counts(facts: ViewFacts) -> dict[str, int]:
    """Return the distinct counts of a view by column, as far as they are known."""
    return {column.name: column.distinct for column in facts.columns if column.distinct is not None}


def kind_of(value: Any) -> str:
    """Return a word of a closed list for what a tool returned."""
    kinds: list[tuple[type | tuple[type, ...], str]] = [
        (type(None), "nothing"), (bool, "truth value"), ((int, float), "number"), (str, "text"),
        ((bytes, bytearray), "bytes"), (dict, "dict"), ((list, tuple), "list"), ((set, frozenset), "set"),
    ]  # fmt: skip
    if values.is_tabular(value):
        return "table"
    return next((word for kind, word in kinds if isinstance(value, kind)), "other")


def _takes_frame(schema: Any) -> bool:
    if not isinstance(schema, dict):
        return False
    return schema.get("format") == "dataframe" or any(map(_takes_frame, _alternatives(schema)))


def _takes_text(schema: Any) -> bool:
    """Return True for a schema that a text may fit."""
    if not isinstance(schema, dict) or "enum" in schema or "const" in schema:
        return isinstance(schema, dict)
    kinds, inner = schema.get("type", "string"), _alternatives(schema)
    return (
        any(map(_takes_text, inner)) if inner else "string" in ([kinds] if isinstance(kinds, str) else kinds)
    )


def _alternatives(schema: dict[str, Any]) -> list[Any]:
    return [*schema.get("anyOf", ()), *schema.get("oneOf", ())]


def _suffix(tool: str, value: Any, content: bytes) -> str:
    by_content = next((ending for begins, ending in _BEGINNINGS.items() if content.startswith(begins)), None)
    by_name = next((ending for word, ending in _TEXTS.items() if word in tool.lower()), None)
    if by_content or by_name:
        return str(by_content or by_name)
    return (".json" if value.startswith("{") else ".txt") if isinstance(value, str) else ".bin"


def _discard(_: dict[str, Any]) -> None:
    """Discard what a tool displays: the audit and the run's folder say what was done."""
