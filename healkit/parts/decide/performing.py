"""Performing of choices: tools on views.

Each tool runs by the execution path. A choice's words become arguments here: names of views become frames, numbers of
columns become the columns. Results become a view or a file, and facts without values.
"""

from __future__ import annotations

import builtins
import dataclasses
import functools
import hashlib
import re
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import pandas as pd

from healkit.core.contracts.vault import VaultEntry
from healkit.core.crossing import values
from healkit.core.pysource.nodes import effects_of
from healkit.core.runtime.background import no_output
from healkit.core.runtime.execution import Execution
from healkit.core.runtime.executor import ExecutionRequest
from healkit.errors import HealkitError, PolicyHalted, ViewError
from healkit.parts.decide.asked import Asked, HeldView
from healkit.parts.decide.operations import Operation, built_in, write_output
from healkit.parts.decide.records import (
    Candidate,
    Entity,
    ExecuteDataOp,
    ExecuteOutput,
    FoundEntities,
    GatherInfo,
    TextForm,
)
from healkit.parts.decide.telling import (
    COLUMNS_MAX,
    Counts,
    KnownNames,
    as_frame,
    counts_of,
    distinct_values,
    is_text,
    look_like_cells,
    shared_values,
    text_facts,
    texts_of,
    values_among,
    view_facts,
    words_of_choice,
)
from healkit.parts.runs.runs import OpenRun

if TYPE_CHECKING:
    from healkit.services import Services

#: Column of a view of texts; values that placeholders stand for, in a step.
TEXT_COLUMN, CANDIDATES_MAX = "text", 20
_QUOTED = re.compile(r"""['"]([^'"]{1,200})['"]""")


def text_frame(texts: Sequence[str]) -> pd.DataFrame:
    """Return the frame of a view of texts, with a row for each."""
    return pd.DataFrame({TEXT_COLUMN: texts})


def as_texts(kept: pd.DataFrame, form: TextForm) -> tuple[Any, Sequence[str]]:
    """Return the value and the texts of a view of texts."""
    texts = [str(text) for text in kept[TEXT_COLUMN]]
    return texts[0] if form == "text" else texts, texts


@dataclasses.dataclass(frozen=True)
class Attempt:
    """Tool that ran: its value, or why there is none; `log_id` is its row in the log."""

    duration_ms: float
    value: object = None
    code: str | None = None
    ename: str | None = None
    column: str | None = None
    log_id: int | None = None

    @functools.cached_property
    def frame(self) -> pd.DataFrame | None:
        """Value as a DataFrame, if it is a table, or texts."""
        if self.code:
            return None
        texts = texts_of(self.value)
        return as_frame(self.value) if texts is None else text_frame(texts)

    def failed(self, code: str) -> Attempt:
        """Return it as failed, with the reason why its result cannot be used."""
        return Attempt(self.duration_ms, code=code, log_id=self.log_id)

    def measured(self) -> dict[str, Any]:
        """Return the size of its table and its duration, as the fields of a step's record."""
        rows, columns = (None, None) if self.frame is None else self.frame.shape
        return {"column": self.column, "duration_ms": self.duration_ms, "rows": rows, "columns": columns}


class Bound(NamedTuple):
    """Arguments of a tool, and the views among them."""

    arguments: dict[str, Any]
    views: list[HeldView]


class ChoiceRefused(Exception):
    """Invalid choice, with the reason for the chooser."""


class Workshop:
    """Views and tools of one decision."""

    def __init__(self, hk: Services, run: OpenRun, asked: Asked) -> None:
        self.hk = hk
        self.asked = asked
        self.views: dict[str, HeldView] = {}
        self.tools = dict(asked.tools)
        self.names = KnownNames(asked.cleaner)
        self.files = list(asked.files)
        #: Files of the run's folder with the SHA-256 of what was written.
        self.run_files: dict[str, str] = {}
        self._run, self._cleaner = run, asked.cleaner
        self._shared_values: dict[str, list[tuple[set[Any], list[Any]]]] = {}

    def begin(self) -> None:
        """Take the caller's data by name."""
        data, shared = self.asked.data, self.asked.shared
        frames = [dataset.frame for dataset in data.values()]
        listed = [frame.iloc[:, :COLUMNS_MAX] for frame in frames]
        labels = [label for frame in listed for label in set(frame.columns) - look_like_cells(frame)]
        self.names.admit(labels, values_among(frames, labels))
        self.names.share(share.column for share in shared if share.column is not None)
        for name, dataset in data.items():
            columns = [share.column for share in shared if share.view == name]
            shares = {label: self._share(label, dataset.frame) for label in columns if label is not None}
            told_labels = frozenset(label for label in dataset.frame.columns if self.names.knows(label))
            facts = view_facts(name, dataset.frame, self.names, told_labels, shares)
            if dataset.texts is not None:
                text = text_facts(dataset.texts, self._cleaner, is_shared=None in columns)
                facts = msgspec.structs.replace(facts, text=text)
            kept_as = dataset.kept_as or self._keep(name, dataset.kept, "user")
            self.views[name] = HeldView(
                dataset.value, dataset.frame, kept_as, facts, "given", told_labels, self._file_name(kept_as),
                dataset.texts,
            )  # fmt: skip

    def _share(self, label: str, frame: pd.DataFrame) -> list[Any]:
        """Return the values of a shared column for the chooser, and keep them for comparison with result columns."""
        column = frame.iloc[:, list(frame.columns).index(label)]
        told_values = shared_values(column, self._cleaner)
        self._shared_values.setdefault(label, []).append((_distinct(column) or set(), told_values))
        return told_values

    # Arguments of a tool.

    def operation(self, tool: str) -> Operation | None:
        """Return the built-in operation of a tool, as shipped."""
        return built_in(tool, self.tools[tool].code)

    def bound(self, tool: str, params: Mapping[str, Any]) -> Bound:
        """Return a tool's arguments: views for their names, columns for their numbers; raise `ChoiceRefused`.

        The name of a view means that view wherever the tool takes a frame, or does not say what it takes. A parameter
        that takes text keeps the name.
        """
        schema, used = self.tools[tool].input_schema, list[HeldView]()
        properties = schema.get("properties")
        properties = properties if isinstance(properties, dict) else {}
        additional = schema.get("additionalProperties")
        additional = {} if additional in (None, True) else additional
        arguments = {
            name: self._argument(tool, name, value, properties.get(name, additional), used)
            for name, value in params.items()
        }
        labels = _told_by(used)
        columns = [value for value in params.values() if isinstance(value, str) and value in labels]
        for value in set(columns) & self.views.keys():
            if len([view for view in used if view is self.views[value]]) > 1 and columns.count(value) > 1:
                raise ChoiceRefused(
                    f"{value!r} is a view and a column, but {tool} does not say which of the two each parameter takes. "
                    "Its parameters need types, such as column: str."
                )
        return Bound(arguments, used)

    def _argument(self, tool: str, name: str, value: object, schema: object, used: list[HeldView]) -> Any:
        """Return the argument for a parameter's value, and add the views in it to `used`."""
        views, accepted = self.views, _accepted(schema)
        if value is not None and "frame" in accepted:
            if not isinstance(value, str) or value not in views:
                raise ChoiceRefused(f"{name!r} must be the name of a view: {', '.join(views)}.")
            used.append(views[value])
            return views[value].value if views[value].texts is None else views[value].frame
        items = schema.get("items") if isinstance(schema, dict) else None
        if isinstance(value, list) and "frame" in _accepted(items):
            return [self._argument(tool, name, inner, items, used) for inner in value]
        named = [value] if isinstance(value, str) else value if isinstance(value, list) else []
        if not named or not all(isinstance(view_name, str) and view_name in views for view_name in named):
            return self.names.restored(value)
        operation = self.operation(tool)
        is_open = isinstance(schema, dict) and not schema.keys() - {"default", "description", "title"}
        if is_open and operation is None:
            used += [views[view_name] for view_name in named]
            return views[value].value if isinstance(value, str) else [views[view].value for view in named]
        if isinstance(value, str) and not is_open:
            view, names_column = views[value], operation is not None and name in operation.naming
            if (
                view.texts is not None
                and "text" in accepted
                and isinstance(view.value, str)
                and not names_column
            ):
                used.append(view)
                return view.value
            if view.texts is not None and "texts" in accepted:
                used.append(view)
                return list(view.texts)
            if "text" not in accepted:
                raise ChoiceRefused(
                    f"{value!r} is a view, but the parameter {name!r} of {tool} takes neither a view nor text."
                )
        return self.names.restored(value)

    def recorded(
        self, choice: GatherInfo | ExecuteDataOp | ExecuteOutput, params: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Return the parameters of a choice, or others; none for a tool that is kept off the record."""
        return dict(choice.params if params is None else params) if self.tools[choice.tool].logged else {}

    def lookup(self, tool: str) -> VaultEntry:
        """Return the vault's entry of a tool, its active revision; raise as `vault.lookup` does."""
        return self.hk.vault.lookup(tool, self.asked.persona)

    def effects_of(self, tool: str) -> str:
        """Say why a tool does more than read, in words that follow its name; empty if it does not."""
        return effects_of(self.tools[tool], self.lookup)

    # A tool, run.

    def perform(self, tool: str, params: Mapping[str, Any]) -> Attempt:
        """Run a tool as a step of the run; raise `PolicyHalted` if no step may begin, and `ChoiceRefused`."""
        arguments = self.bound(tool, params).arguments
        try:
            request = ExecutionRequest(
                tool, self.asked.persona, arguments, timeout_s=self.asked.options.timeout, origin="decide",
                on_output=no_output, record=self._run,
            )  # fmt: skip
            execution = self.hk.runner.perform(request)
        except PolicyHalted:
            raise
        except HealkitError as error:
            return Attempt(0.0, code=str(error.code), column=self._column_in("", str(error), tool, params))
        return self._attempt(execution, tool, params)

    def _attempt(self, execution: Execution, tool: str, params: Mapping[str, Any]) -> Attempt:
        took, failure = round(execution.duration_ms or 0.0, 3), execution.failure
        if failure is None:
            return Attempt(took, execution.value, log_id=execution.log_id)
        # A tool may name its exception after a cell: only Python's own names are shown.
        ename = failure.ename if isinstance(getattr(builtins, failure.ename, None), type) else None
        column = self._column_in(failure.ename, failure.evalue, tool, params)
        return Attempt(took, None, failure.code, ename, column, execution.log_id)

    def _column_in(self, ename: str, message: str, tool: str, params: Mapping[str, Any]) -> str | None:
        """Return the first column name in a message that the chooser already knows; it gets nothing else.

        It is one of the step's views, or for a KeyError a parameter. In a list, the name would show which words exist.
        """
        known = _told_by(self.bound(tool, params).views)
        if ename == "KeyError":
            known |= {value for value in params.values() if isinstance(value, str)}
        return next((str(word) for word in _QUOTED.findall(message) if word in known), None)

    # A result, held as a view.

    def is_view(self, tool: str, params: Mapping[str, Any], attempt: Attempt) -> bool:
        """Return True for a result that can be a view: a table, or texts that were not made of tables alone."""
        if attempt.frame is None or texts_of(attempt.value) is None:
            return attempt.frame is not None
        views = self.bound(tool, params).views
        return not views or any(view.texts is not None for view in views)

    def keep(self, choice: ExecuteDataOp, attempt: Attempt) -> str | None:
        """Keep a result as a view; return the code of the error, if there is one."""
        frame, texts = attempt.frame, texts_of(attempt.value)
        assert frame is not None  # the loop has looked
        with ThreadPoolExecutor(1) as beside:  # the data is hashed and written meanwhile
            counting = beside.submit(counts_of, frame)
            try:
                value = attempt.value if texts is None else frame
                kept_as = self._keep(choice.view_name, value, choice.tool)
            except ViewError as error:
                return str(error.code)
        self._hold(choice, _Result(attempt.value, texts, frame, kept_as), counting.result())
        return None

    def restore(self, choice: ExecuteDataOp, kept_as: str, form: TextForm) -> None:
        """Take a view that an earlier run of the decision made; raise as `views.load` does, and `ViewError`."""
        kept = self.hk.views.load(kept_as)
        value, texts = as_texts(kept, form) if form else (kept, None)
        frame = as_frame(kept)
        if frame is None:
            raise ViewError(f"The view {kept_as!r} is not a table.")
        self._hold(choice, _Result(value, texts, frame, kept_as), counts_of(frame))

    def _hold(self, choice: ExecuteDataOp, result: _Result, counts: Sequence[Counts]) -> None:
        """Take a result as a view, and decide which facts the chooser gets."""
        tool, frame = choice.tool, result.frame
        views, operation = list(self.views.values()), self.operation(tool)
        # Parameters that are kept off the record name no views: then those of all are looked at.
        with suppress(ChoiceRefused):
            views = (
                self.bound(tool, choice.params).views if self.tools[tool].logged or choice.params else views
            )
        origins = {view.origin for view in views}
        is_free = "free" in origins or (operation is not None and operation.is_free)
        told_labels = self._told_labels(choice, frame, views)
        shared = {} if is_free else self._shared_in(frame, told_labels)
        facts = view_facts(choice.view_name, frame, self.names, told_labels, shared, counts)
        if result.texts is not None:
            facts = msgspec.structs.replace(facts, text=text_facts(result.texts, self._cleaner))
        self.views[choice.view_name] = HeldView(
            result.value, frame, result.kept_as, facts, "free" if is_free else "made", told_labels,
            self._file_name(result.kept_as), result.texts,
        )  # fmt: skip

    def _told_labels(
        self, choice: ExecuteDataOp, frame: pd.DataFrame, views: Sequence[HeldView]
    ) -> frozenset[str]:
        """Return the labels of a result that the chooser gets."""
        operation, code = self.operation(choice.tool), self.tools[choice.tool].code
        words = words_of_choice(choice.params, None if operation is None else operation.naming)
        labels, frames = frame.columns[:COLUMNS_MAX], [view.frame for view in views]
        if operation is not None and operation.name == "pivot_rows":
            return frozenset(words.intersection(labels))
        inputs, hidden = _told_by(views), set[str]().union(*(view.hidden for view in views))
        if operation is not None and not operation.is_free:
            return self.names.of_operation(labels, inputs, hidden, words, code, frames)
        named = self.names.of_tool(labels, words, code, hidden, frames)
        passed = inputs.intersection(labels) if operation is not None else set()
        return named | passed

    def _shared_in(self, frame: pd.DataFrame, labels: Collection[str]) -> dict[Any, list[Any]]:
        """Return the values of a result's columns for the chooser, if the shared column of that name has them all."""
        told_values = {}
        for position, label in enumerate(frame.columns[:COLUMNS_MAX]):
            for distinct, shared in self._shared_values.get(label, ()) if label in labels else ():
                if distinct == _distinct(frame.iloc[:, position]):
                    told_values[label] = shared
        return told_values

    # Names that a result holds.

    def found(self, choice: GatherInfo, value: object, number: int) -> FoundEntities | None:
        """Say which of the requested names a result contains; placeholders stand for the others."""
        operation = self.operation(choice.tool)
        if operation is not None and operation.name == "resolve_entity":
            return self._resolved(choice.params, value, number)
        entities, is_list = _entities_in(value)
        requested = self._requested(choice, operation, is_list=is_list)
        others = [entity for entity in entities if entity not in requested] if is_list else []
        if not (entities and requested) and not others:
            return None
        missing = [entity for entity in requested if entity not in entities] if entities else []
        candidates = self._candidates(others[:CANDIDATES_MAX], number)
        return FoundEntities(len(requested), len(requested) - len(missing), missing, candidates)

    def _requested(
        self, choice: GatherInfo, operation: Operation | None, *, is_list: bool
    ) -> dict[Entity, None]:
        """Return the names that a choice asks for, in their order.

        is_list: Whether the result may contain numbers.
        """
        labels = _told_by(self.views.values())
        schema = self.tools[choice.tool].input_schema.get("properties")
        requested: dict[Entity, None] = {}
        for name, argument in choice.params.items():
            about = schema.get(name) if isinstance(schema, dict) else None
            if (operation is not None and name != "value") or (isinstance(about, dict) and "enum" in about):
                continue
            kinds = str | int | float if is_list and isinstance(argument, list) else str
            for entity in argument if isinstance(argument, list) else [argument]:
                is_other = isinstance(entity, bool) or entity in self.views or entity in labels
                if isinstance(entity, kinds) and not is_other and not self.names.is_placeholder(entity):
                    requested[entity] = None
        return requested

    def _resolved(self, params: Mapping[str, Any], value: object, number: int) -> FoundEntities | None:
        """Say what `resolve_entity` found: its candidates as placeholders, an equal text by its own name."""
        frame, entity = as_frame(value), params.get("entity")
        if frame is None or not isinstance(entity, str) or not {"value", "method"} <= set(frame.columns):
            return None
        resolved = [
            Candidate(entity if method == "same" else candidate.name, str(method))
            for candidate, method in zip(
                self._candidates(list(frame["value"]), number), frame["method"], strict=True
            )
        ]
        return FoundEntities(1, int(bool(resolved)), [] if resolved else [entity], resolved[:CANDIDATES_MAX])

    def _candidates(self, entities: Sequence[Any], number: int) -> list[Candidate]:
        return [
            Candidate(self.names.put(f"value#{number}.{at}", entity)) for at, entity in enumerate(entities, 1)
        ]

    def keep_placeholders(self, number: int, names: Sequence[str]) -> str | None:
        """Keep the values of a step's placeholders as a view; return its name, None if the step made none."""
        if not names:
            return None
        restored = pd.Series(self.names.restored(list(names)), dtype=object)
        with suppress(ViewError):  # then a resumed decision says that it is missing
            self._keep(f"step_{number}", pd.DataFrame({"name": list(names), "value": restored}), "user")
        return f"{self._run.run_id}/step_{number}"

    def restore_placeholders(self, kept_as: str) -> None:
        """Take over the placeholders of an earlier run's step with their values; raise as `views.load` does."""
        kept = self.hk.views.load(kept_as)
        for name, value in zip(kept["name"], kept["value"], strict=True):
            self.names.put(name, value)

    # A result, written to a file.

    def write(self, tool: str, value: object) -> Path | None:
        """Write a tool's text or bytes to the run's folder; None for anything else."""
        if not isinstance(value, str | bytes | bytearray):
            return None
        content = value.encode(errors="surrogatepass") if isinstance(value, str) else bytes(value)
        folder = self._run.folder / "outputs"
        folder.mkdir(mode=0o700, exist_ok=True)
        stem = re.sub(r"[^A-Za-z0-9_-]", "_", tool)[:80]
        file = write_output(content, folder, f"{len(self.files) + 1}_{stem}{_suffix(tool, value, content)}")
        self.files.append(file)
        self.run_files[f"{folder.name}/{file.name}"] = hashlib.sha256(content).hexdigest()
        return file

    def _keep(self, name: str, value: object, created_by: str) -> str:
        return str(self.hk.views.put(value, f"{self._run.run_id}/{name}", created_by=created_by).name)

    def _file_name(self, kept_as: str) -> str:
        view = self.hk.views.get(kept_as)
        return str(view.file.name if view.file else view.sha256)


class _Result(NamedTuple):
    """Result as a view: its value, its texts, its frame, and its name in `hk.views`."""

    value: object
    texts: Sequence[str] | None
    frame: pd.DataFrame
    kept_as: str


def _told_by(views: Collection[HeldView]) -> set[str]:
    """Return the labels of these views that the chooser gets."""
    return set[str]().union(*(view.told for view in views))


def _distinct(column: pd.Series[Any]) -> set[Any] | None:
    """Return the distinct values of a column; None if a cell cannot be hashed."""
    try:
        return set(distinct_values(column) or [])
    except TypeError:
        return None


def _entities_in(value: object) -> tuple[dict[Any, None], bool]:
    """Return the names in a result, and whether it is a list of them: a list, the keys of a dict, cells of text."""
    if isinstance(value, list | tuple | set | frozenset | dict):
        names = [name for name in value if isinstance(name, str | int | float) and not isinstance(name, bool)]
        return dict.fromkeys(names), True
    texts: dict[Any, None] = {}
    frame = as_frame(value)
    for column in [] if frame is None else [frame.iloc[:, at] for at in range(len(frame.columns))]:
        if is_text(column):
            texts |= dict.fromkeys(cell for cell in distinct_values(column) or [] if isinstance(cell, str))
    return texts, False


#: Kinds of what a tool may return, a closed list.
_KINDS: tuple[tuple[type | tuple[type, ...], str], ...] = (
    (type(None), "nothing"), (bool, "truth value"), ((int, float), "number"), (str, "text"),
    ((bytes, bytearray), "bytes"), (dict, "dict"), ((list, tuple), "list"), ((set, frozenset), "set"),
)  # fmt: skip


def result_kind(value: object) -> str:
    """Return a word of a closed list for a tool's result."""
    if values.is_tabular(value):
        return "table"
    return next((word for kind, word in _KINDS if isinstance(value, kind)), "other")


def _accepted(schema: object) -> set[str]:
    """Return which of a `frame`, a `text`, and a list of `texts` a schema may accept."""
    if not isinstance(schema, dict):
        return set()
    if "enum" in schema or "const" in schema:
        return {"text"}
    alternatives = [*schema.get("anyOf", ()), *schema.get("oneOf", ())]
    accepted = set[str]().union(*map(_accepted, alternatives))
    types = schema.get("type", "string")
    if not alternatives and "string" in ([types] if isinstance(types, str) else types):
        accepted.add("text")
    if schema.get("format") == "dataframe":
        accepted.add("frame")
    if types == "array" and "text" in _accepted(schema.get("items", {})):
        accepted.add("texts")
    return accepted


#: Beginning of a file → the ending of its name; word in a tool's name → the ending of the text that it returns.
_BEGINNINGS = {
    b"\x89PNG": ".png", b"PAR1": ".parquet", b"%PDF": ".pdf", b"<svg": ".svg", b"PK\x03\x04": ".zip",
}  # fmt: skip
_TEXTS = {
    "csv": ".csv", "notebook": ".ipynb", "markdown": ".md", "report": ".md", "html": ".html", "json": ".json",
    "svg": ".svg",
}  # fmt: skip


def _suffix(tool: str, value: str | bytes | bytearray, content: bytes) -> str:
    by_content = (ending for begins, ending in _BEGINNINGS.items() if content.startswith(begins))
    by_name = (ending for word, ending in _TEXTS.items() if word in tool.lower())
    by_kind = ".bin" if not isinstance(value, str) else ".json" if value.startswith("{") else ".txt"
    return (*by_content, *by_name, by_kind)[0]
