"""Secrets and personal data, out of all that is shown.

Every card, list and terminal text passes here: `text_of` and `html_of` clean the document that they write, the commands
what else they print. A record is cleaned as data before a card is built of it, because a card cuts long texts, and half
a secret matches no rule. What is hidden at one place of a record or a document is hidden at all others.

Not cleaned: the code of a tool where it is edited or written to a file, and the value that a command was asked for.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from healkit.config import Config
from healkit.contracts.execution import CallRecord, DecisionRecord, ExecutionData
from healkit.contracts.failure import Failure
from healkit.crossing import values
from healkit.rendering.document import Document

if TYPE_CHECKING:
    from healkit.sanitizer.cleaner import Cleaner
    from healkit.sanitizer.sanitizer import RecordCleaner, Sanitizer

Shown = TypeVar("Shown", bound=ExecutionData)

#: No size limit: what is shown is cut by those who draw it.
_UNLIMITED = 1 << 62
#: Longer arguments are cut before they are cleaned; no card shows as much.
_ARGUMENTS_MAX_BYTES = 64_000
#: Fields of a document's parts that hold no words.
_NO_WORDS = frozenset({"look", "tone", "form", "terminal", "mark"})
#: How what stands for a hidden value begins.
HIDDEN_MARK = "[REDACTED"


def sanitizer() -> Sanitizer:
    """Return the sanitiser for what is shown; its tables are read with the first card."""
    from healkit.sanitizer.sanitizer import configured

    return configured(Config.from_environment())


def text(shown: str) -> str:
    """Return a text as it may be shown."""
    return str(sanitizer().text(shown).value)


def data(value: Any, *, exact: tuple[str, ...] = (), cleaner: Cleaner | None = None) -> Any:
    """Return JSON data as a command may print it, or a page may get it; raise `TypeError` for what is none.

    exact: keys whose values stay as they are, such as `code`, which is read back. cleaner: instead of the
    environment's.
    """
    kept: list[Any] = []

    def aside(part: Any) -> Any:
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
                item = _Kept(len(kept) - 1)  # noqa: PLW2901 - what takes its place
            else:
                item = aside(item)  # noqa: PLW2901 - as above
            found[key] = item
        return found

    def back(part: Any) -> Any:
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


class _Kept(dict[str, int]):
    def __init__(self, number: int) -> None:
        super().__init__({_PLACE: number})


def document(shown: Document) -> Document:
    """Return the document with all its words cleaned."""
    cleaner = sanitizer().of_record()
    texts: dict[str, str] = {}

    def learn(words: str) -> str:
        if words not in texts:
            texts[words] = str(cleaner.text(words).value)
        return words

    _rebuilt(shown, learn)
    final = {words: cleaner.again(cleaned) for words, cleaned in texts.items()}
    if all(words == cleaned for words, cleaned in final.items()):
        return shown
    rebuilt: Document = _rebuilt(shown, final.__getitem__)
    return rebuilt


def _rebuilt(part: Any, told: Callable[[str], str]) -> Any:
    if isinstance(part, str):
        return told(part) if part else part
    if isinstance(part, list | tuple):
        return tuple(_rebuilt(item, told) for item in part)
    if not dataclasses.is_dataclass(part) or isinstance(part, type):
        return part
    changed = {
        field.name: _rebuilt(getattr(part, field.name), told)
        for field in dataclasses.fields(part)
        if field.name not in _NO_WORDS
    }
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
    return cleaned if in_list else _again(cleaned, cleaner)


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
