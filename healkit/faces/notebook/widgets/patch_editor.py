"""Patch editor: code beside any revision, Try, then Accept."""

from __future__ import annotations

import difflib
import json
import re
import threading
from collections import deque
from typing import Any

from healkit.app import Healkit
from healkit.commands.parsing import parse_arguments
from healkit.core.contracts.execution import ExecutionData
from healkit.core.contracts.vault import VaultEntry
from healkit.core.crossing import values
from healkit.core.rendering import cleaning, execution_card, plain
from healkit.core.rendering.cleaning import HIDDEN_MARK, ShownExecution
from healkit.core.runtime.background import no_output
from healkit.core.runtime.execution import Execution, arguments_of, logged
from healkit.core.wire.encoding import to_jsonable
from healkit.errors import ArgumentsInvalid, RevisionConflict
from healkit.faces.commands import cards
from healkit.faces.commands.vault_edits import motivating_row
from healkit.faces.notebook.cell_output import CellOutput
from healkit.faces.notebook.widgets.panel import Panel
from healkit.faces.pages.page_data import PageData
from healkit.faces.pages.tool_reading import ToolReading

#: Number of sets of arguments whose hidden values a panel keeps; each opened editor makes one.
_SHOWN_MAX = 20
#: The sanitiser's replacements: `[REDACTED:secret-name]`, `[EMAIL]`.
_MARK = re.compile(r"\[(?:REDACTED:[\w-]+|[A-Z]+)\]")
#: Lone surrogates, which no page can show.
_LONE = re.compile("[\ud800-\udfff]")
#: Maximum length of an argument's JSON that can be edited, and length that is shown of a longer one, in
#: characters.
_TYPED_MAX_CHARS, _KEPT_MAX_CHARS = 20_000, 200
#: Longer arguments are shown on several lines.
_ONE_LINE_CHARS = 80
_EXAMPLE = "the example"
_EXAMPLES = {"integer": 1, "number": 1.0, "string": "", "boolean": False, "array": [], "object": {}}


class Patching(ToolReading):
    """Operations of a page to try and save code."""

    NAMES = ("edit", "code", "try_code", "accept", "revert", "rerun", "history", "schema")

    def __init__(self, healkit: Healkit, recorded: PageData) -> None:
        super().__init__(healkit, recorded)
        self._lock = threading.Lock()
        #: Arguments as text and as data in the page's form, with the real ones: a secret stays here.
        self._shown: deque[tuple[str, Any, dict[str, Any]]] = deque(maxlen=_SHOWN_MAX)

    def edit(self, tool: str, persona: str = "default", log_id: int | None = None) -> dict[str, Any]:
        """Return the initial content of an editor of that tool; `log_id` is the execution that a patch responds to."""
        entry = self._healkit.vault.get(tool, persona)
        run = self._run_of(entry, persona, log_id)
        failure = run.failure if run is not None else None
        frame = failure.tool_frame if failure is not None else None
        failing = None
        if run is not None and failure is not None and frame is not None and run.revision is not None:
            message = self._outcome(run)[:200]
            failing = {"revision": run.revision, "lineno": frame.lineno, "message": message}
        arguments, source = _arguments(run, entry)
        typed, uneditable = _split(arguments)
        text, hidden = self._shown_arguments(typed)
        cleaned = self._recorded.shown(
            {name: plain.value_text(value, _TYPED_MAX_CHARS) for name, value in uneditable.items()}
        )
        return {
            "tool": entry.tool_name,
            "persona": entry.persona,
            "label": entry.label,
            "type": entry.type,
            "revision": entry.revision,
            "code": entry.code,
            "schema": entry.input_schema,
            "log_id": None if run is None else run.log_id,
            "failing": failing,
            "arguments": text,
            "kept": [
                {"name": name, "text": f"{plain.one_line(description, _KEPT_MAX_CHARS)}, as in {source}"}
                for name, description in cleaned.value.items()
            ],
            "hidden": hidden + sum(cleaned.hidden.values()),
            "history": self._recorded.history(entry.tool_name, entry.persona),
        }

    def try_code(
        self, tool: str, persona: str, code: str, arguments: str, log_id: int | None = None
    ) -> dict[str, Any]:
        """Run the code with these arguments in a restricted worker, without saving it.

        Arguments that cannot be edited, such as frames, come from the execution `log_id`, or from the example.
        """
        call_arguments = {**self._kept(tool, persona, log_id), **self._given(arguments)}
        tried = self._healkit.try_code(tool, code, call_arguments, persona=persona, on_output=no_output)
        before = None if log_id is None else self._healkit.execution(log_id)
        run_view = {**self._recorded.execution(tried), "label": f"{tool}, as edited"}
        if (failure := run_view.get("failure")) and failure["place"]:
            failure["place"] = f"line {failure['lineno']} of the edited code"  # which has no revision yet
        return {"run": run_view, "delta": self._delta(before, tried)}

    def accept(
        self,
        tool: str,
        persona: str,
        code: str,
        parent: int,
        reason: str = "",
        log_id: int | None = None,
    ) -> dict[str, Any]:
        """Save the code as a new revision, or return the one that was saved over the same parent in the meantime."""
        vault = self._healkit.vault
        before = vault.get(tool, persona)
        row = None if log_id is None else self._healkit.execution(log_id)
        answered = (
            log_id
            if row is not None and row.failure is not None
            else motivating_row(self._healkit.log, before)
        )
        try:
            entry = vault.patch(
                tool,
                code,
                persona=persona,
                reason=reason,
                author="person",
                parent=parent,
                motivating_log_id=answered,
            )
        except RevisionConflict as conflict:
            theirs = vault.get(tool, persona)
            return {
                "conflict": {"message": conflict.message, "revision": theirs.revision, "code": theirs.code},
                "history": self._recorded.history(tool, persona),
            }
        return {
            "label": entry.label,
            "revision": entry.revision,
            "changed": entry.revision != before.revision,
            "history": self._recorded.history(tool, persona),
        }

    def revert(self, tool: str, persona: str, to: int) -> dict[str, Any]:
        """Save a new revision with the code of an older one."""
        entry = self._healkit.vault.revert(tool, to, persona=persona)
        return {
            "label": entry.label,
            "revision": entry.revision,
            "code": entry.code,
            "history": self._recorded.history(tool, persona),
        }

    def rerun(self, log_id: int) -> dict[str, Any]:
        """Run the tool of that row at its active revision, with the row's arguments."""
        before = self._healkit.execution(log_id)
        run = self._healkit.rerun(log_id, on_output=no_output)
        return {"run": self._recorded.execution(run), "delta": self._delta(before, run)}

    def schema(self, tool: str, persona: str, text: str) -> dict[str, Any]:
        """Replace the input schema by a JSON text, or, if it is empty, by the schema from the code; return it."""
        new_schema = parse_arguments(text, "the schema") if text.strip() else None
        entry = self._healkit.vault.set_schema(tool, new_schema, persona)
        return {"schema": entry.input_schema, "derived": "input_schema" in entry.flags.get("derived", [])}

    def _run_of(self, entry: VaultEntry, persona: str, log_id: int | None) -> Execution | None:
        """Return the requested execution, else the newest failure of the active revision, else the newest execution."""
        if log_id is not None:
            return self._healkit.execution(log_id)
        failed = self._healkit.last_error(entry.tool_name, persona)
        if failed is not None and failed.revision == entry.revision:
            return failed
        newest = self._healkit.executions(tool=entry.tool_name, persona=persona, limit=1)
        return newest[0] if newest else None

    def _shown_arguments(self, arguments: dict[str, Any]) -> tuple[str, int]:
        """Return arguments as text to edit, and the number of hidden secrets; the secrets stay here."""
        cleaned = self._recorded.clean(arguments)
        text = json.dumps(cleaned.value, ensure_ascii=False)
        if len(text) > _ONE_LINE_CHARS:
            text = json.dumps(cleaned.value, ensure_ascii=False, indent=2)
        with self._lock:
            self._shown.append((text, cleaned.value, arguments))
        return text, sum(cleaned.hidden.values())

    def _kept(self, tool: str, persona: str, log_id: int | None) -> dict[str, Any]:
        """Return the arguments that the page shows but cannot edit, as they were in the execution."""
        entry = self._healkit.vault.get(tool, persona)
        run = None if log_id is None else self._healkit.execution(log_id)
        arguments, source = _arguments(run, entry)
        _, uneditable = _split(arguments)
        if not uneditable or log_id is None or source == _EXAMPLE:
            return uneditable
        return arguments_of(logged(self._healkit.log, log_id), names=uneditable)

    def _given(self, text: str) -> dict[str, Any]:
        """Read arguments from a text, and restore each hidden value that was not edited.

        Raises `ArgumentsInvalid` for a mark whose value is no longer known.
        """
        with self._lock:
            displayed = list(self._shown)
        marks: set[str] = set()
        exactly = [arguments for as_text, _, arguments in reversed(displayed) if as_text == text]
        if exactly:  # also if it was cut and is not JSON
            edited: dict[str, Any] = exactly[0]
        else:
            edited = parse_arguments(text or "{}", "the arguments")
            for _, cleaned, arguments in reversed(displayed):
                edited = dict(restored(edited, cleaned, arguments))
                marks |= _marks(cleaned) - _marks(arguments)
        remaining_marks = _marks(edited)
        if marks & remaining_marks or any(mark.startswith(HIDDEN_MARK) for mark in remaining_marks):
            raise ArgumentsInvalid(
                "These arguments hold a value that was hidden when they were shown or logged.",
                hint="Put the value itself in its place, or reset the arguments.",
            )
        return edited

    def _outcome(self, run: ExecutionData) -> str:
        text = "\n".join(_lines(self._clean(run)))
        return str(self._recorded.clean(plain.one_line(text, 300)).value)

    def _clean(self, run: ExecutionData) -> ShownExecution:
        return cleaning.execution(run, self._recorded.sanitizer.of_record(), in_list=True)

    def _delta(self, before: Execution | None, now: Execution) -> dict[str, Any] | None:
        """Compare an outcome with that of the previous execution; None if there is none."""
        if before is None or before.status == "RUNNING":
            return None
        was, is_now = _lines(before.uncleaned), _lines(now.uncleaned)
        same = was == is_now and before.ok == now.ok
        was, is_now = _lines(self._clean(before)), _lines(self._clean(now))
        diff = "" if before.ok != now.ok else "\n".join(difflib.unified_diff(was, is_now, lineterm="", n=2))
        outcomes = {"before": self._outcome(before), "now": self._outcome(now)}
        return {
            **outcomes,
            "log_id": before.log_id,
            "before_ok": before.ok,
            "same": same,
            "diff": self._recorded.shown("\n".join(diff.splitlines()[2:])[:8000]).value,
        }


class PatchEditor(Panel):
    """Editor of one tool; `log_id` is the execution whose arguments it tries, by default the newest failure."""

    KIND = "PatchEditor"

    def __init__(
        self, healkit: Healkit, tool: str, persona: str = "default", *, log_id: int | None = None
    ) -> None:
        self._entry = healkit.vault.get(tool, persona)
        super().__init__(healkit, {"tool": tool, "persona": persona, "log_id": log_id})
        self.operations |= Patching(healkit, self.recorded).operations

    def static_card(self) -> CellOutput | None:
        """Draw the current code."""
        return CellOutput.of(cards.entry(self._entry))


def _marks(value: object) -> set[str]:
    """Find all marks in it that may be the sanitiser's."""
    return set(_MARK.findall(json.dumps(value, ensure_ascii=False)))


def restored(edited: object, cleaned: object, original: object) -> Any:
    """Return edited data with the original of each value that was not edited."""
    if edited == cleaned and type(edited) is type(cleaned):
        return original
    if isinstance(edited, dict) and isinstance(cleaned, dict) and isinstance(original, dict):
        both = cleaned.keys() & original.keys()
        return {k: restored(v, cleaned[k], original[k]) if k in both else v for k, v in edited.items()}
    if (
        isinstance(edited, list)
        and isinstance(cleaned, list)
        and isinstance(original, list)
        and len(edited) == len(cleaned) == len(original)
    ):
        return [restored(*triple) for triple in zip(edited, cleaned, original, strict=True)]
    return edited


def _arguments(run: Execution | None, entry: VaultEntry) -> tuple[dict[str, Any], str]:
    """Return arguments to try a tool with, and their source.

    They come from an execution, else from an example, else from the tool's schema.
    """
    if run is not None and "…" not in run.arguments:  # the log's mark for cut arguments
        return run.uncleaned.arguments, f"log row {run.log_id}"
    for example in entry.examples:
        if isinstance(example, dict) and isinstance(example.get("arguments"), dict):
            return dict(values.remade(example["arguments"])), _EXAMPLE
    properties: dict[str, Any] = entry.input_schema.get("properties", {})
    required = entry.input_schema.get("required", [])
    samples = {name: _EXAMPLES.get(str(properties.get(name, {}).get("type"))) for name in required}
    plain_made, _ = to_jsonable(samples)
    return dict(plain_made), _EXAMPLE


def _split(arguments: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the arguments that are edited as JSON, and those that JSON cannot hold or that are too long for a box."""
    uneditable = {name: value for name, value in arguments.items() if not _is_typed(value)}
    return {name: value for name, value in arguments.items() if name not in uneditable}, uneditable


def _is_typed(value: object) -> bool:
    if not values.is_plain(value):
        return False
    text = json.dumps(value, ensure_ascii=False)
    return len(text) <= _TYPED_MAX_CHARS and not _LONE.search(text)


def _lines(run: ExecutionData) -> list[str]:
    """Return an outcome as lines to compare."""
    text = run.failure.summary if run.failure is not None else execution_card.result_text(run)
    return text.splitlines() or [""]
