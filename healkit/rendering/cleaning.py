"""Secrets and personal data, out of all that is shown.

Every card, list and terminal text passes here: `text_of` and `html_of` clean the document that they write, the commands
what else they print. A record is cleaned as data before a card is built of it, because a card cuts long texts, and half
a secret matches no rule. What is hidden at one place of a record or a document is hidden at all others.

Not cleaned: the code of a tool where it is edited or written to a file, and the value that a command was asked for.
"""

from __future__ import annotations

import dataclasses
import functools
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from healkit.config import Config
from healkit.contracts.execution import CallRecord, DecisionRecord, ExecutionData
from healkit.contracts.failure import Failure
from healkit.crossing import values
from healkit.rendering.document import (
    Card,
    Code,
    Diff,
    Document,
    Facts,
    Fold,
    Items,
    Line,
    Only,
    Section,
    Span,
    Step,
    Steps,
    Table,
)

if TYPE_CHECKING:
    from healkit.sanitizer.cleaner import Cleaner
    from healkit.sanitizer.sanitizer import RecordCleaner, Sanitizer

Shown = TypeVar("Shown", bound=ExecutionData)

#: No size limit: what is shown is cut by those who draw it.
_UNLIMITED = 1 << 62
#: Longer arguments are cut before they are cleaned; no card shows as much.
_ARGUMENTS_MAX_BYTES = 64_000
#: Fields of a document's parts that hold no words; part → the others.
_NO_WORDS = frozenset({"look", "tone", "form", "terminal", "mark"})
_WORDED: dict[type, tuple[str, ...]] = {
    kind: tuple(field.name for field in dataclasses.fields(kind) if field.name not in _NO_WORDS)
    for kind in (Card, Code, Diff, Facts, Fold, Items, Line, Only, Section, Span, Step, Steps, Table)
}
#: How what stands for a hidden value begins.
HIDDEN_MARK = "[REDACTED"


def sanitizer() -> Sanitizer:
    """Return the sanitiser for what is shown; its tables are read with the first card."""
    from healkit.sanitizer.sanitizer import configured

    return configured(_config(tuple([item for item in os.environ.items() if item[0].startswith("HEALKIT_")])))


@functools.lru_cache(maxsize=4)
def _config(environment: tuple[tuple[str, str], ...]) -> Config:
    """Read the settings anew where the environment has changed."""
    return Config.from_environment(dict(environment))


def text(shown: str) -> str:
    """Return a text as it may be shown."""
    return str(sanitizer().text(shown).value)


def data(value: object, *, exact: tuple[str, ...] = (), cleaner: Cleaner | None = None) -> Any:
    """Return JSON data as a command may print it, or a page may get it; raise `TypeError` for what is none.

    exact: keys whose values stay as they are, such as `code`, which is read back. cleaner: instead of the
    environment's.
    """
    kept: list[Any] = []

    def aside(part: object) -> Any:
        if isinstance(part, list | tuple):
            return [aside(item) for item in part]
        if not isinstance(part, Mapping):
            if part is not None and not isinstance(part, str | int | float):
                raise TypeError(f"{type(part).__name__} is no JSON.")
            return part
        found = {}
        for key, item in part.items():
            if key in exact or str(key).startswith("image/"):
                kept.append(item)
                item = {_PLACE: len(kept) - 1}  # noqa: PLW2901 - what takes its place
            else:
                item = aside(item)  # noqa: PLW2901 - as above
            found[key] = item
        return found

    def back(part: object) -> Any:
        if isinstance(part, list):
            return [back(item) for item in part]
        if isinstance(part, dict):
            if part.keys() == {_PLACE}:
                return kept[part[_PLACE]]
            return {key: back(item) for key, item in part.items()}
        return part

    cleaned = (cleaner or sanitizer()).clean(aside(value), limit_bytes=_UNLIMITED).value
    return back(cleaned) if kept else cleaned


#: Key of what stands for a value that is set aside.
_PLACE = "\x00kept"


def document(shown: Document) -> Document:
    """Return the document with all its words cleaned."""
    final = sanitizer().of_record().texts(_words(shown))
    if list(final) == list(final.values()):
        return shown
    rebuilt: Document = _rebuilt(shown, final)
    return rebuilt


def _words(shown: Document) -> dict[str, None]:
    """Return the words of a document as keys, in its order."""
    words: dict[str, None] = {}
    left: list[object] = [shown]
    while left:
        part = left.pop()
        if isinstance(part, str):
            words[part] = None
        elif isinstance(part, list | tuple):
            left.extend(reversed(part))
        elif type(part) in _WORDED:
            for name in _WORDED[type(part)][::-1]:
                left.append(getattr(part, name))  # noqa: PERF401 - a comprehension is a call more for each part
    return words


def _rebuilt(part: Any, told: Mapping[str, str]) -> Any:
    if isinstance(part, str):
        return told.get(part, part)
    if isinstance(part, list | tuple):
        return tuple([_rebuilt(item, told) for item in part])
    if type(part) not in _WORDED:
        return part
    changed = {name: _rebuilt(getattr(part, name), told) for name in _WORDED[type(part)]}
    return dataclasses.replace(part, **changed)


def execution(found: Shown, cleaner: RecordCleaner | None = None, *, in_list: bool = False) -> Shown:
    """Return an execution as a card may show it, with nothing cut.

    cleaner: of the record that it belongs to, where more of it is shown beside. in_list: of a failure, only the message
    is shown.
    """
    cleaner = sanitizer().of_record() if cleaner is None else cleaner
    changes: dict[str, Any] = {"arguments": _arguments(found.arguments, cleaner)}
    if found.failure is not None:
        changes["failure"] = _failure(found.failure, cleaner, in_list=in_list)
    if not in_list:
        changes["last_output"] = _text(found.last_output, cleaner)
        changes["calls"] = [_call(call, cleaner) for call in found.calls]
        changes["decisions"] = [_decision(decision, cleaner) for decision in found.decisions]
        changes["warnings"] = [_text(one, cleaner) for one in found.warnings]
    if found.result_summary:
        changes["result_summary"] = _text(found.result_summary, cleaner)
    if found.value is not None and values.is_plain(found.value):
        shown = cleaner.clean(found.value, limit_bytes=_ARGUMENTS_MAX_BYTES)
        changes["value"] = shown.value if shown.hidden else found.value
    cleaned = dataclasses.replace(found, **changes)
    return cleaned if in_list or not cleaner.has_hidden else _again(cleaned, cleaner)


def _again(found: Shown, cleaner: RecordCleaner) -> Shown:
    """Return the execution without what a later part of it has taught."""
    changes: dict[str, Any] = {"last_output": cleaner.again(found.last_output)}
    if found.failure is not None:
        told = {name: cleaner.again(getattr(found.failure, name)) for name in ("evalue", "traceback", "hint")}
        frames = [
            msgspec.structs.replace(frame, line=cleaner.again(frame.line)) for frame in found.failure.frames
        ]
        changes["failure"] = msgspec.structs.replace(found.failure, frames=frames, **told)
    if values.is_plain(found.arguments):
        changes["arguments"] = cleaner.again(found.arguments)
    return dataclasses.replace(found, **changes)


def _arguments(given: dict[str, Any], cleaner: RecordCleaner) -> dict[str, Any]:
    """Return the arguments with what is hidden of each; frames and arrays stay, a card shows their outline."""
    shown = {}
    for name, value in given.items():
        cleaned = None
        if values.is_plain({name: value}):
            cleaned = cleaner.clean({name: value}, limit_bytes=_ARGUMENTS_MAX_BYTES)
        if cleaned is None or not cleaned.hidden:
            shown[name] = value
        elif isinstance(cleaned.value, dict):
            shown |= cleaned.value
        else:
            shown[name] = cleaned.value
    return shown


def _failure(failure: Failure, cleaner: Cleaner, *, in_list: bool) -> Failure:
    from healkit.sanitizer.cleaner import cleaned_failure

    if in_list:
        return msgspec.structs.replace(failure, evalue=_text(failure.evalue, cleaner))
    return cleaned_failure(failure, cleaner)


def _call(call: CallRecord, cleaner: Cleaner) -> CallRecord:
    return msgspec.structs.replace(
        call, result_summary=_text(call.result_summary, cleaner), error=_text(call.error, cleaner)
    )


def _decision(decision: DecisionRecord, cleaner: Cleaner) -> DecisionRecord:
    outcome, condition = _text(decision.outcome, cleaner), _text(decision.condition, cleaner)
    return msgspec.structs.replace(decision, outcome=outcome, condition=condition)


def _text(shown: str, cleaner: Cleaner) -> str:
    return str(cleaner.clean(shown, limit_bytes=_UNLIMITED).value) if shown else shown
