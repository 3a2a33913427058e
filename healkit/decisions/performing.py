"""Performing of choices: tools on views.

Each tool runs by the execution path. A choice's words become arguments here: names of views become frames, numbers of
columns become the columns. What comes back becomes a view or a file, and facts without values.
"""

from __future__ import annotations

import builtins
import dataclasses
import re
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Protocol

import pandas as pd

from healkit import values
from healkit.contracts.data_views import DataView
from healkit.contracts.decisions import ViewFacts
from healkit.contracts.entries import VaultEntry
from healkit.decisions.labels import KnownNames
from healkit.decisions.metadata import COLUMNS_MAX, Counts, as_frame, counts_of, facts_of, values_among
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

    def put(self, value: Any, name: str) -> DataView: ...


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


class Workshop:
    """Views and tools of one decision."""

    def __init__(
        self, runner: Runner, keeps: Keeps, run: OpenRun, cleaner: Cleaner, tools: Mapping[str, VaultEntry],
        shared: tuple[str, ...], persona: str, timeout_s: float | None,
    ) -> None:  # fmt: skip
        self.views: dict[str, HeldView] = {}
        self.tools = dict(tools)
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
            self._hold(name, value, frame, kept_as or self._keep(name, value))

    def frame_params(self, tool: str, params: Iterable[str]) -> set[str]:
        """Return those parameters in which a tool takes a frame; a schema can say so of parameters of any name."""
        schema = self.tools[tool].input_schema
        known, others = schema.get("properties"), schema.get("additionalProperties")
        known = known if isinstance(known, dict) else {}
        return {name for name in params if _takes_frame(known.get(name, others))}

    def inputs(self, tool: str, params: Mapping[str, Any]) -> list[pd.DataFrame]:
        """Return the frames that a choice names."""
        named = (params.get(name) for name in self.frame_params(tool, params))
        return [self.views[name].frame for name in named if isinstance(name, str) and name in self.views]

    def perform(self, tool: str, params: Mapping[str, Any]) -> Attempt:
        """Run a tool as a step of the run; raise `PolicyHalted` where no step may begin."""
        takes = self.frame_params(tool, params)
        arguments = {
            name: self.views[value].value if name in takes and isinstance(value, str) and value in self.views
            else self.names.restored(value)
            for name, value in params.items()
        }  # fmt: skip
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
                kept_as = self._keep(name, value)
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

    def _keep(self, name: str, value: Any) -> str:
        return self._keeps.put(value, f"{self._run.run_id}/{name}").name

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
    inner = [*schema.get("anyOf", ()), *schema.get("oneOf", ())]
    return schema.get("format") == "dataframe" or any(_takes_frame(one) for one in inner)


def _suffix(tool: str, value: Any, content: bytes) -> str:
    by_content = next((ending for begins, ending in _BEGINNINGS.items() if content.startswith(begins)), None)
    by_name = next((ending for word, ending in _TEXTS.items() if word in tool.lower()), None)
    if by_content or by_name:
        return str(by_content or by_name)
    return (".json" if value.startswith("{") else ".txt") if isinstance(value, str) else ".bin"


def _discard(_: dict[str, Any]) -> None:
    """Discard what a tool displays: the audit and the run's folder say what was done."""
