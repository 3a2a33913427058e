"""Recorded data for pages: cleaned, cut, plain JSON.

The log may contain secrets, because a run can only be repeated with its original arguments. But pages end up in
screenshots and shared notebooks. So recorded data passes through the sanitiser on its way to a panel, and the panel
says how much was hidden.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from healkit.app import Healkit
from healkit.config import Config
from healkit.core.contracts.execution import HEALING_ORIGINS, TRIED_ORIGINS, ExecutionData, GroupInfo
from healkit.core.contracts.failure import Failure
from healkit.core.contracts.tools import place_label
from healkit.core.rendering import cleaning, execution_card, plain
from healkit.core.rendering.outputs import safe_output
from healkit.core.runtime.execution import Execution

if TYPE_CHECKING:
    from healkit.core.secrets.cleaner import Cleaned
    from healkit.parts.sanitizer.sanitizer import Sanitizer

#: Maximum size of recorded data in one answer, in bytes of JSON, and of one text in it, in characters.
_ANSWER_MAX_BYTES = 400_000
_TEXT_MAX_CHARS = 20_000
_OUTPUTS_MAX = 20
#: Fields that a page edits or stores for the user, and sends back; secrets in arguments are first hidden
#: reversibly.
_EDITED = ("code", "memory", "schema", "arguments")


class PageData:
    """Turns recorded data into content for a panel; each panel has one, and any thread may use it.

    may_heal: Tells whether a failure's page may offer a fix; by default it may not.
    """

    def __init__(self, healkit: Healkit | None, may_heal: Callable[[Config], bool] | None = None) -> None:
        self._healkit = healkit
        self._may_heal = may_heal
        self._lock = threading.Lock()
        self._sanitizer: Sanitizer | None = None

    @property
    def config(self) -> Config:
        """Configuration of the Healkit, or the environment's without a Healkit."""
        return Config.from_environment() if self._healkit is None else self._healkit.config

    @property
    def sanitizer(self) -> Sanitizer:
        """Sanitiser with the Healkit's configuration; made on first use."""
        with self._lock:
            if self._sanitizer is None:
                from healkit.parts.sanitizer.sanitizer import Sanitizer  # late: its tables load slowly

                self._sanitizer = Sanitizer.from_config(self.config)
            return self._sanitizer

    def clean(self, value: object) -> Cleaned:
        """Return the value without secrets and personal data."""
        return self.sanitizer.clean(value, limit_bytes=_ANSWER_MAX_BYTES)

    def on_page(self, message: dict[str, Any], exact: tuple[str, ...] = ()) -> dict[str, Any]:
        """Return a message to the page without secrets, whatever its source.

        Fields that the page edits are not changed: a tool's code, and the user's own input; `exact` names more such
        keys.
        """
        cleaned: dict[str, Any] = cleaning.data(message, exact=_EDITED + exact, cleaner=self.sanitizer)
        return cleaned

    def shown(self, value: object) -> Cleaned:
        """Clean text that is only read: characters that move or reorder it become visible, unlike in edited text."""
        return self.clean(_spelt_out(value))

    def execution(self, execution: Execution) -> dict[str, Any]:
        """Return the content of a panel for one execution."""
        hidden = self.shown(_payload(execution.uncleaned)).hidden  # only counted, not shown
        record = self.sanitizer.of_record()
        cleaned = self.shown(_payload(cleaning.execution(execution, record)))  # before it is cut
        fields = cleaned.value if isinstance(cleaned.value, dict) else {}
        return {
            **_facts(execution),
            **fields,
            "outputs": record.again(self.outputs(execution.outputs)),
            "hidden": sum(hidden.values()),
            "may_heal": self._may_heal is not None and self._may_heal(self.config),
        }

    def rows(self, executions: Sequence[Execution]) -> list[dict[str, Any]]:
        """Return a line of a list for each execution."""
        outcomes = [
            _outcome(cleaning.execution(run, self.sanitizer.of_record(), in_list=True)) for run in executions
        ]
        cleaned = self.clean(outcomes).value
        if not isinstance(cleaned, list):  # cut as a whole: a page of failures with very long messages
            cleaned = [self.clean(outcome[:200]).value for outcome in outcomes]
        return [
            {**_facts(execution), "outcome": outcome}
            for execution, outcome in zip(executions, cleaned, strict=True)
        ]

    def groups(self, groups: Sequence[GroupInfo]) -> list[dict[str, Any]]:
        """Return a line of a list for each group of similar failures."""
        if self._healkit is not None:
            groups = self._healkit.trends.shown_groups(groups)
        summaries = self.clean([plain.one_line(group.summary, 300) for group in groups]).value
        return [
            {
                "fingerprint": group.fingerprint,
                "tool": group.tool_name,
                "persona": group.persona,
                "count": group.count,
                "last": group.last_seen.isoformat(),
                "last_log_id": group.last_log_id,
                "cured_by": group.cured_by,
                "summary": summary,
            }
            for group, summary in zip(groups, summaries, strict=True)
        ]

    def history(self, name: str, persona: str) -> list[dict[str, Any]]:
        """List every revision with its runs and failures, and the time of its first failure."""
        assert self._healkit is not None
        revisions = self._healkit.vault.history(name, persona)
        failed = self._healkit.trends.first_failures(name)
        reasons = self.shown([revision.reason for revision in revisions]).value
        return [
            {
                **msgspec.to_builtins(revision),
                "reason": reason,
                "first_failure": msgspec.to_builtins(failed.get(revision.number)),
            }
            for revision, reason in zip(revisions, reasons, strict=True)
        ]

    def outputs(self, outputs: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return a tool's outputs reduced to parts that are safe to draw, with cleaned texts and unchanged images."""
        drawable = []
        for output in outputs[:_OUTPUTS_MAX]:
            safe = safe_output(output)
            if safe is None or safe["output_type"] == "error":
                continue
            if safe["output_type"] == "stream":
                text = _cut(safe["text"])
                drawable.append({"kind": "stream", "name": safe["name"], "text": self.clean(text).value})
            else:
                drawable.append({"kind": "data", "data": self._bundle(safe["data"])})
        return drawable

    def _bundle(self, data: Mapping[str, Any]) -> dict[str, Any]:
        images = {kind: value for kind, value in data.items() if kind.startswith("image/")}
        texts = {
            kind: _cut(value)
            for kind, value in data.items()
            if kind in {"text/plain", "text/html", "text/markdown"} and isinstance(value, str)
        }
        cleaned = {kind: self.clean(text).value for kind, text in texts.items()}
        for kind in cleaned.keys() & {"text/html", "text/markdown"}:
            # A tag or a link may have been cut or redacted in the middle: repair it.
            again = safe_output({"output_type": "display_data", "data": {kind: cleaned[kind]}})
            cleaned[kind] = "" if again is None else again["data"].get(kind, "")
        return {**images, **cleaned}


def _spelt_out(value: object) -> Any:
    if isinstance(value, dict):
        return {key: _spelt_out(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_spelt_out(part) for part in value]
    return plain.visible(value) if isinstance(value, str) else value


def _facts(execution: Execution) -> dict[str, Any]:
    """Return the fields that no tool wrote and no sanitiser may change: names, numbers, times, hashes."""
    return {
        "label": execution.label,
        "tool": execution.tool_name,
        "persona": execution.persona,
        "revision": execution.revision,
        "status": execution.status,
        "ok": execution.ok,
        "refused": execution.refused,
        "log_id": execution.log_id,
        "when": execution.timestamp.isoformat(),
        "took": plain.duration(execution.duration_ms),
        "isolation": execution.isolation,
        "origin": execution.origin,
        "tried": execution.origin in TRIED_ORIGINS,
        "healing": execution.origin in HEALING_ORIGINS,
    }


def _payload(execution: ExecutionData) -> dict[str, Any]:
    """Return the fields that come from a tool or a user."""
    failure = execution.failure
    calls = [
        {
            "mark": execution_card.call_mark(call),
            "name": f"{call.server}.{call.tool}",
            "took": plain.duration(call.duration_ms),
            "outcome": execution_card.call_outcome(call),
        }
        for call in execution.calls[:50]
    ]
    return {
        "arguments": plain.value_text(execution.arguments),
        "value": execution_card.result_text(execution) if execution.ok else "",
        "last_output": _cut(execution.last_output),
        "notes": list(execution_card.notes(execution)),
        "calls": calls,
        "failure": None if failure is None else _failure(execution, failure),
    }


def _failure(execution: ExecutionData, failure: Failure) -> dict[str, Any]:
    frame = failure.tool_frame
    groups = execution_card.grouped(failure.frames)
    return {
        "summary": plain.one_line(failure.summary, 600),
        "title": execution_card.title_of(execution, execution.explained),
        "ending": "" if failure.code == "TOOL_EXCEPTION" else execution_card.ending(failure),
        "ran": not execution.refused,
        "hint": failure.hint,
        "place": execution_card.place(execution),
        "line": execution_card.tool_line(execution),
        "lineno": None if frame is None else frame.lineno,
        "traceback": _cut(failure.traceback),
        "frames": [
            {
                "own": group.own,
                "where": group.where if group.own else group.folded,
                "lines": [f.line.strip() for f in group.frames][:50]
                if group.own
                else [
                    f"{place_label(f.filename)}, line {f.lineno}, in {f.name}: {f.line.strip()}"
                    for f in group.frames
                ][:50],
            }
            for group in groups[-40:]
        ],
    }


def _outcome(execution: ExecutionData) -> str:
    if execution.failure is not None:
        return plain.one_line(execution.failure.summary, 200)
    return "" if execution.status == "RUNNING" else execution_card.result_line(execution, 200)


def _cut(text: str) -> str:
    """Return the end of a long text, which matters most."""
    return text if len(text) <= _TEXT_MAX_CHARS else "…" + text[-_TEXT_MAX_CHARS:]
