"""Performing of choices: tools on views.

Each tool runs by the execution path. A choice's words become arguments here: names of views become frames, numbers of
columns become the columns. What comes back becomes a view or a file, and facts without values.
"""

from __future__ import annotations

import builtins
import dataclasses
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
    FoundEntities,
    Origin,
    TextForm,
    ViewFacts,
)
from healkit.parts.decide.telling import (
    COLUMNS_MAX,
    Counts,
    KnownNames,
    as_frame,
    counts_of,
    distinct_values,
    facts_of,
    folded,
    is_text,
    look_like_cells,
    shared_values,
    text_facts,
    texts_of,
    values_among,
    words_in_code,
    words_of_choice,
)
from healkit.parts.runs.runs import OpenRun

if TYPE_CHECKING:
    from healkit.parts.views.view_records import DataView
    from healkit.services import Services

#: Column of a view of texts; values that names of ours stand for, in a step.
TEXT_COLUMN, CANDIDATES_MAX = "text", 20
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


@dataclasses.dataclass(frozen=True)
class Attempt:
    """Tool that was run: its value, or why there is none; `log_id` is its row in the log."""

    duration_ms: float
    value: object = None
    code: str | None = None
    ename: str | None = None
    column: str | None = None
    log_id: int | None = None

    @property
    def frame(self) -> pd.DataFrame | None:
        """Value as a DataFrame, where it is a table, or texts."""
        if self.code:
            return None
        texts = texts_of(self.value)
        return as_frame(self.value) if texts is None else pd.DataFrame({TEXT_COLUMN: texts})


def as_texts(kept: pd.DataFrame, form: TextForm) -> tuple[pd.DataFrame, Any, Sequence[str]]:
    """Return a view of texts as its frame, its value and its texts."""
    texts = [str(text) for text in kept[TEXT_COLUMN]]
    return kept, texts[0] if form == "text" else texts, texts


class Bound(NamedTuple):
    """Arguments of a tool, and the views among them."""

    arguments: dict[str, Any]
    views: list[HeldView]


class ChoiceRefused(Exception):
    """Choice that cannot be taken, with the reason for the chooser."""


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
        labels = [
            label
            for frame in frames
            for label in set(frame.columns[:COLUMNS_MAX]) - look_like_cells(frame.iloc[:, :COLUMNS_MAX])
        ]
        self.names.admit(labels, values_among(frames, labels))
        self.names.share(share.column for share in shared if share.column is not None)
        for name, dataset in data.items():
            values = {}
            for share in shared:
                if share.view == name and share.column is not None:
                    values[share.column] = self._share(share.column, dataset.frame)
            shares_text = any(share.view == name and share.column is None for share in shared)
            told_labels = frozenset(label for label in dataset.frame.columns if self.names.knows(label))
            facts = facts_of(name, dataset.frame, self.names, told_labels, values)
            if dataset.texts is not None:
                text = text_facts(dataset.texts, self._cleaner, is_shared=shares_text)
                facts = msgspec.structs.replace(facts, text=text)
            kept_as = dataset.kept_as or self._keep(name, dataset.kept, "user")
            file_name = self._file_name(kept_as)
            self.views[name] = HeldView(
                dataset.value, dataset.frame, kept_as, facts, "given", told_labels, file_name, dataset.texts
            )

    def _share(self, label: str, frame: pd.DataFrame) -> list[Any]:
        """Return the values to tell of a shared column, and keep what a result's column is compared with."""
        position = list(frame.columns).index(label)
        told_values = shared_values(frame.iloc[:, position], self._cleaner)
        try:
            distinct = set(distinct_values(frame.iloc[:, position]) or [])
        except TypeError:
            distinct = set()
        self._shared_values.setdefault(label, []).append((distinct, told_values))
        return told_values

    def operation(self, tool: str) -> Operation | None:
        """Return the built-in operation that a tool is, as it is shipped."""
        return built_in(tool, self.tools[tool].code)

    def bound(self, tool: str, params: Mapping[str, Any]) -> Bound:
        """Return a tool's arguments: views for their names, columns for their numbers; raise `ChoiceRefused`.

        A name of a view is that view wherever the tool takes a frame, or does not say what it takes. A parameter that
        takes text keeps it.
        """
        schema, used = self.tools[tool].input_schema, list[HeldView]()
        properties = schema.get("properties")
        properties = properties if isinstance(properties, dict) else {}
        additional = schema.get("additionalProperties")
        additional = {} if additional in (None, True) else additional
        arguments = {
            name: self._given(tool, name, value, properties.get(name, additional), used)
            for name, value in params.items()
        }
        labels = set[str]().union(*(view.told for view in used))
        columns = [value for value in params.values() if isinstance(value, str) and value in labels]
        for value in set(columns) & self.views.keys():
            if len([view for view in used if view is self.views[value]]) > 1 and columns.count(value) > 1:
                raise ChoiceRefused(
                    f"{value!r} is a view and a column, and {tool} does not say which of them each parameter takes. "
                    "Its parameters need types, such as column: str."
                )
        return Bound(arguments, used)

    def _given(self, tool: str, name: str, value: object, schema: object, used: list[HeldView]) -> Any:
        views = self.views
        if value is not None and _takes_frame(schema):
            if not isinstance(value, str) or value not in views:
                raise ChoiceRefused(f"{name!r} must be the name of a view: {', '.join(views)}.")
            used.append(views[value])
            return views[value].value if views[value].texts is None else views[value].frame
        items = schema.get("items") if isinstance(schema, dict) else None
        if isinstance(value, list) and _takes_frame(items):
            return [self._given(tool, name, inner, items, used) for inner in value]
        is_open = isinstance(schema, dict) and not schema.keys() - {"default", "description", "title"}
        named = [value] if isinstance(value, str) else value if isinstance(value, list) else []
        if not named or not all(isinstance(view_name, str) and view_name in views for view_name in named):
            return self.names.restored(value)
        if is_open and self.operation(tool) is None:
            used += [views[view_name] for view_name in named]
            return (
                views[value].value
                if isinstance(value, str)
                else [views[view_name].value for view_name in named]
            )
        view = views[named[0]]
        if isinstance(value, str) and view.texts is not None and not is_open:
            operation = self.operation(tool)
            if (
                _takes_text(schema)
                and isinstance(view.value, str)
                and not (operation and name in operation.naming)
            ):
                used.append(view)
                return view.value
            if _takes_texts(schema):
                used.append(view)
                return list(view.texts)
        if isinstance(value, str) and not is_open and not _takes_text(schema):
            raise ChoiceRefused(
                f"{value!r} is a view, and the parameter {name!r} of {tool} takes neither a view nor a text."
            )
        return self.names.restored(value)

    def lookup(self, tool: str) -> VaultEntry:
        """Return the vault's entry of a tool, its active revision; raise as `vault.lookup` does."""
        return self.hk.vault.lookup(tool, self.asked.persona)

    def effects_of(self, tool: str) -> str:
        """Say why a tool does more than look, in words that follow its name; empty where it does not."""
        return effects_of(self.tools[tool], self.lookup)

    def inputs(self, tool: str, params: Mapping[str, Any]) -> list[pd.DataFrame]:
        """Return the frames that a choice names."""
        return [view.frame for view in self.bound(tool, params).views]

    def perform(self, tool: str, params: Mapping[str, Any]) -> Attempt:
        """Run a tool as a step of the run; raise `PolicyHalted` where no step may begin, and `ChoiceRefused`."""
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

    def is_view(self, tool: str, params: Mapping[str, Any], attempt: Attempt) -> bool:
        """Return True for a result that can be a view: a table; texts, unless they were made of tables alone."""
        if attempt.frame is None or texts_of(attempt.value) is None:
            return attempt.frame is not None
        views = self.bound(tool, params).views
        return not views or any(view.texts is not None for view in views)

    def keep(self, name: str, tool: str, params: Mapping[str, Any], value: object) -> str | None:
        """Keep a result as a view; return the code of what keeps it from being one, if anything does."""
        texts = texts_of(value)
        frame = as_frame(value) if texts is None else pd.DataFrame({TEXT_COLUMN: texts})
        assert frame is not None  # the loop has looked
        with ThreadPoolExecutor(1) as beside:  # the data is hashed and written meanwhile
            counting = beside.submit(counts_of, frame)
            try:
                kept_as = self._keep(name, value if texts is None else frame, tool)
            except ViewError as error:
                return str(error.code)
        self._hold(name, tool, params, value, texts, frame, kept_as, counting.result())
        return None

    def restore(self, name: str, tool: str, params: Mapping[str, Any], kept_as: str, texts: TextForm) -> None:
        """Hold a view that an earlier run of the decision made; raise as `views.load` does, and `ViewError`."""
        value = self.hk.views.load(kept_as)
        frame, value, restored_texts = as_texts(value, texts) if texts else (as_frame(value), value, None)
        if frame is None:
            raise ViewError(f"The view {kept_as!r} is no table.")
        self._hold(name, tool, params, value, restored_texts, frame, kept_as, counts_of(frame))

    def keep_stand_ins(self, number: int, names: Sequence[str]) -> str | None:
        """Keep what stands behind names of ours that a step has told; return the view's name, None for none of them."""
        if not names:
            return None
        behind = pd.DataFrame(
            {"name": list(names), "value": pd.Series(self.names.restored(list(names)), dtype=object)}
        )
        with suppress(ViewError):  # then a resumed decision says that it is missing
            self._keep(f"step_{number}", behind, "user")
        return f"{self._run.run_id}/step_{number}"

    def restore_stand_ins(self, kept_as: str) -> None:
        """Let the names of an earlier run's step stand for what they stood for; raise as `views.load` does."""
        behind = self.hk.views.load(kept_as)
        for name, value in zip(behind["name"], behind["value"], strict=True):
            self.names.stand_in(name, value)

    def _hold(
        self, name: str, tool: str, params: Mapping[str, Any], value: object, texts: Sequence[str] | None,
        frame: pd.DataFrame, kept_as: str, counts: Sequence[Counts],
    ) -> None:  # fmt: skip
        """Hold a result as a view, and find what may be told of it."""
        views, operation = list(self.views.values()), self.operation(tool)
        # Parameters that are kept off the record name no views: then those of all are looked at.
        with suppress(ChoiceRefused):
            views = self.bound(tool, params).views if self.tools[tool].logged or params else views
        is_free = (operation is not None and operation.is_free) or any(
            view.origin == "free" for view in views
        )
        told_labels = self._told_of(tool, params, frame, views)
        values = {} if is_free else self._values_of(frame, told_labels)
        facts = facts_of(name, frame, self.names, told_labels, values, counts)
        if texts is not None:
            facts = msgspec.structs.replace(facts, text=text_facts(texts, self._cleaner))
        origin: Origin = "free" if is_free else "made"
        file_name = self._file_name(kept_as)
        self.views[name] = HeldView(value, frame, kept_as, facts, origin, told_labels, file_name, texts)

    def _told_of(
        self, tool: str, params: Mapping[str, Any], frame: pd.DataFrame, views: Sequence[HeldView]
    ) -> frozenset[str]:
        """Return the labels of a result that are told."""
        labels = frame.columns[:COLUMNS_MAX]
        code, words = self.tools[tool].code, self.words(tool, params)
        hidden = set[str]().union(*(view.hidden for view in views))
        operation = self.operation(tool)
        fresh = [label for label in labels if not self.names.knows(label)]
        if operation is None or operation.is_free:
            hidden_forms = set(map(folded, hidden))
            values = values_among([view.frame for view in views], fresh) | {
                label for label in fresh if isinstance(label, str) and folded(label) in hidden_forms
            }
            allowed = self.names.of_tool(labels, words, code, values)
            passed = set[str]().union(*(view.told for view in views)) if operation is not None else set[str]()
            return frozenset(allowed | ({label for label in labels if isinstance(label, str)} & passed))
        if operation.name == "pivot_rows":
            return frozenset(words.intersection(labels))
        inputs = set[str]().union(*(view.told for view in views))
        allowed = self.names.of_operation(labels, inputs, hidden, words, code)
        suffixed = allowed - inputs - words - words_in_code(code)
        return frozenset(allowed - values_among([view.frame for view in views], suffixed))

    def words(self, tool: str, params: Mapping[str, Any]) -> set[str]:
        """Return the words of a choice that may name columns."""
        operation = self.operation(tool)
        return words_of_choice(params, None if operation is None else operation.naming)

    def _values_of(self, frame: pd.DataFrame, told: Collection[str]) -> dict[Any, list[Any]]:
        """Return the values to tell of a result's columns: of those with all values of a shared column of that name."""
        told_values = {}
        for position, label in enumerate(frame.columns[:COLUMNS_MAX]):
            for distinct, shared in self._shared_values.get(label, ()) if label in told else ():
                try:
                    if distinct == set(distinct_values(frame.iloc[:, position]) or []):
                        told_values[label] = shared
                except TypeError:  # a cell that cannot be hashed
                    continue
        return told_values

    def found(self, tool: str, params: Mapping[str, Any], value: object, number: int) -> FoundEntities | None:
        """Say which of the names that a choice asks for a result holds, and let names of ours stand for the others."""
        operation = self.operation(tool)
        if operation is not None and operation.name == "resolve_entity":
            return self._resolved(params, value, number)
        entities, is_list = _entities_in(value)
        labels = set[str]().union(*(view.told for view in self.views.values()))
        schema = self.tools[tool].input_schema.get("properties")
        requested: dict[Entity, None] = {}
        for name, argument in params.items():
            about = schema.get(name) if isinstance(schema, dict) else None
            if (operation is not None and name != "value") or (isinstance(about, dict) and "enum" in about):
                continue
            for entity in argument if isinstance(argument, list) else [argument]:
                kinds = str | int | float if is_list and isinstance(argument, list) else str
                is_other = isinstance(entity, bool) or entity in self.views or entity in labels
                if isinstance(entity, kinds) and not is_other and not self.names.is_stand_in(entity):
                    requested[entity] = None
        unrequested = (
            [entity for entity in entities if entity not in requested][:CANDIDATES_MAX] if is_list else []
        )
        if not (entities and requested) and not unrequested:
            return None
        missing = [entity for entity in requested if entity not in entities] if entities else []
        return FoundEntities(
            len(requested), len(requested) - len(missing), missing, self._candidates(unrequested, number)
        )

    def _resolved(self, params: Mapping[str, Any], value: object, number: int) -> FoundEntities | None:
        """Say what `resolve_entity` found: its candidates by names of ours, the same text by its own."""
        frame, entity = as_frame(value), params.get("entity")
        if frame is None or not isinstance(entity, str) or not {"value", "method"} <= set(frame.columns):
            return None
        methods = [str(method) for method in frame["method"]]
        candidates = self._candidates(list(frame["value"]), number, methods)
        resolved = [
            Candidate(entity, method) if method == "same" else candidate
            for candidate, method in zip(candidates, methods, strict=True)
        ]
        return FoundEntities(1, int(bool(resolved)), [] if resolved else [entity], resolved[:CANDIDATES_MAX])

    def _candidates(
        self, values: Sequence[Any], number: int, methods: Sequence[str] | None = None
    ) -> list[Candidate]:
        return [
            Candidate(
                self.names.stand_in(f"value#{number}.{at}", value), methods[at - 1] if methods else None
            )
            for at, value in enumerate(values, 1)
        ]

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
        view: DataView = self.hk.views.put(value, f"{self._run.run_id}/{name}", created_by=created_by)
        return view.name

    def _file_name(self, kept_as: str) -> str:
        view: DataView = self.hk.views.get(kept_as)
        return view.file.name if view.file else view.sha256

    def _attempt(self, execution: Execution, tool: str, params: Mapping[str, Any]) -> Attempt:
        took, failure = round(execution.duration_ms or 0.0, 3), execution.failure
        if failure is None:
            return Attempt(took, execution.value, log_id=execution.log_id)
        # A tool may name its exception after a cell: only Python's own names are told.
        ename = failure.ename if isinstance(getattr(builtins, failure.ename, None), type) else None
        column = self._column_in(failure.ename, failure.evalue, tool, params)
        return Attempt(took, None, failure.code, ename, column, execution.log_id)

    def _column_in(self, ename: str, message: str, tool: str, params: Mapping[str, Any]) -> str | None:
        """Return the first column's name in a message that the chooser knows; nothing else of it is told.

        It is one of the step's views, or for a KeyError a parameter: of a list, it would say which words are there.
        """
        labels = set[str]().union(*(view.told for view in self.bound(tool, params).views))
        words = (
            {value for value in params.values() if isinstance(value, str)} if ename == "KeyError" else set()
        )
        return next((str(word) for word in _QUOTED.findall(message) if word in labels or word in words), None)


def unique_counts(facts: ViewFacts) -> dict[str, int]:
    """Return the distinct counts of a view by column, as far as they are known."""
    return {column.name: column.distinct for column in facts.columns if column.distinct is not None}


def _entities_in(value: object) -> tuple[dict[Any, None], bool]:
    """Return the names in a result, and whether it is a list of them: a list, the keys of a dict, cells of text."""
    if isinstance(value, list | tuple | set | frozenset | dict):
        names = [
            member
            for member in value
            if isinstance(member, str | int | float) and not isinstance(member, bool)
        ]
        return dict.fromkeys(names), True
    texts: dict[Any, None] = {}
    frame = as_frame(value)
    for position in range(0 if frame is None else len(frame.columns)):
        assert frame is not None
        if is_text(frame.iloc[:, position]):
            cells = distinct_values(frame.iloc[:, position]) or []
            texts |= dict.fromkeys(cell for cell in cells if isinstance(cell, str))
    return texts, False


def kind_of(value: object) -> str:
    """Return a word of a closed list for what a tool returned."""
    kinds: list[tuple[type | tuple[type, ...], str]] = [
        (type(None), "nothing"), (bool, "truth value"), ((int, float), "number"), (str, "text"),
        ((bytes, bytearray), "bytes"), (dict, "dict"), ((list, tuple), "list"), ((set, frozenset), "set"),
    ]  # fmt: skip
    if values.is_tabular(value):
        return "table"
    return next((word for kind, word in kinds if isinstance(value, kind)), "other")


def _takes_frame(schema: object) -> bool:
    if not isinstance(schema, dict):
        return False
    return schema.get("format") == "dataframe" or any(map(_takes_frame, _alternatives(schema)))


def _takes_text(schema: object) -> bool:
    """Return True for a schema that a text may fit."""
    if not isinstance(schema, dict) or "enum" in schema or "const" in schema:
        return isinstance(schema, dict)
    kinds, inner = schema.get("type", "string"), _alternatives(schema)
    return (
        any(map(_takes_text, inner)) if inner else "string" in ([kinds] if isinstance(kinds, str) else kinds)
    )


def _takes_texts(schema: object) -> bool:
    """Return True for a schema that a list of texts may fit."""
    if not isinstance(schema, dict):
        return False
    is_list = schema.get("type") == "array" and _takes_text(schema.get("items", {}))
    return is_list or any(map(_takes_texts, _alternatives(schema)))


def _alternatives(schema: dict[str, Any]) -> list[Any]:
    return [*schema.get("anyOf", ()), *schema.get("oneOf", ())]


def _suffix(tool: str, value: object, content: bytes) -> str:
    by_content = next((ending for begins, ending in _BEGINNINGS.items() if content.startswith(begins)), None)
    by_name = next((ending for word, ending in _TEXTS.items() if word in tool.lower()), None)
    if by_content or by_name:
        return str(by_content or by_name)
    return (".json" if value.startswith("{") else ".txt") if isinstance(value, str) else ".bin"
