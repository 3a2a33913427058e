"""Removal of secrets and personal data from all output.

Every card, list and terminal text is cleaned here: `text_of` and `html_of` clean the document that they write, and the
commands clean all other output. A record is cleaned as data before its card is built. A card cuts long texts, and no
rule recognises half a secret. A value that is hidden in one place of a record or a document is hidden everywhere in it.

Two things are not cleaned: the code of a tool that is edited or written to a file, and the value that a command
returns.
"""

from __future__ import annotations

import dataclasses
import functools
import operator
import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from healkit.config import Config
from healkit.core.contracts.execution import CallRecord, ExecutionData
from healkit.core.contracts.failure import Failure
from healkit.core.crossing import values
from healkit.core.crossing.codec import HIDDEN
from healkit.core.rendering.document import (
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
from healkit.core.secrets.cleaner import (
    cleaned_failure,
    cleaned_record,
    learn,
    sanitizer_of,
    secret_columns,
)
from healkit.errors import ConfigError

if TYPE_CHECKING:
    from healkit.core.secrets.cleaner import Cleaner, RecordCleaner

Whole = TypeVar("Whole")

#: No size limit: the display cuts long output.
_UNLIMITED = 1 << 62
#: Longer arguments are cut before cleaning; no card shows that much.
_ARGUMENTS_MAX_BYTES = 64_000
#: In a longer text, shown while a tool runs, only the secrets of the arguments are hidden, to avoid a delay.
_LIVE_MAX_CHARS = 100_000
#: Fields of document parts that contain no words. Next: part → its other fields.
_NO_WORDS = frozenset({"look", "tone", "form", "terminal", "mark"})
_WORDED: dict[type, tuple[str, ...]] = {
    kind: tuple(field.name for field in dataclasses.fields(kind) if field.name not in _NO_WORDS)
    for kind in (Card, Code, Diff, Facts, Fold, Items, Line, Only, Section, Span, Step, Steps, Table)
}
#: Beginning of the placeholder for a hidden value.
HIDDEN_MARK = "[REDACTED"


def sanitizer() -> Cleaner:
    """Return the sanitiser for output; its tables are loaded for the first card."""
    environment = tuple([item for item in os.environ.items() if item[0].startswith("HEALKIT_")])
    try:
        config = _config(environment)
    except ConfigError:  # the message about this error is shown too
        config = Config()
    return sanitizer_of(config)


@functools.lru_cache(maxsize=4)
def _config(environment: tuple[tuple[str, str], ...]) -> Config:
    """Read the settings again if the environment has changed."""
    return Config.from_environment(dict(environment))


def text(shown: str) -> str:
    """Return a text, cleaned for display."""
    return str(sanitizer().text(shown).value)


def data(value: object, *, exact: tuple[str, ...] = (), cleaner: Cleaner | None = None) -> Any:
    """Return JSON data, cleaned for a command's output or a page; raise `TypeError` for anything but JSON.

    exact: Keys whose values are not changed, such as `code`, which programs read back.
    cleaner: Used instead of the cleaner of the environment.
    """
    originals: list[Any] = []

    def aside(part: object) -> Any:
        if isinstance(part, list | tuple):
            return [aside(item) for item in part]
        if not isinstance(part, Mapping):
            if part is not None and not isinstance(part, str | int | float):
                raise TypeError(f"{type(part).__name__} is not JSON.")
            return part
        result = {}
        for key, item in part.items():
            if key in exact or str(key).startswith("image/"):
                originals.append(item)
                item = {_PLACE: len(originals) - 1}  # noqa: PLW2901 - a placeholder for it
            else:
                item = aside(item)  # noqa: PLW2901 - as above
            result[key] = item
        return result

    def back(part: object) -> Any:
        if isinstance(part, list):
            return [back(item) for item in part]
        if isinstance(part, dict):
            if part.keys() == {_PLACE}:
                return originals[part[_PLACE]]
            return {key: back(item) for key, item in part.items()}
        return part

    cleaned = (cleaner or sanitizer()).clean(aside(value), limit_bytes=_UNLIMITED).value
    return back(cleaned) if originals else cleaned


#: Key of the placeholder for a value that is not cleaned.
_PLACE = "\x00kept"


def document(shown: Document) -> Document:
    """Return the document with all its words cleaned."""
    final = sanitizer().of_record().texts(_words(shown))
    if list(final) == list(final.values()):
        return shown
    rebuilt: Document = _rebuilt(shown, final)
    return rebuilt


def _words(shown: Document) -> dict[str, None]:
    """Return all words of a document in order, as keys."""
    words: dict[str, None] = {}
    pending: list[object] = [shown]
    while pending:
        part = pending.pop()
        if isinstance(part, str):
            words[part] = None
        elif isinstance(part, list | tuple):
            pending.extend(reversed(part))
        elif type(part) in _WORDED:
            for name in _WORDED[type(part)][::-1]:
                pending.append(getattr(part, name))  # noqa: PERF401 - a comprehension costs one call more for each part
    return words


def _rebuilt(part: Any, texts: Mapping[str, str]) -> Any:
    if isinstance(part, str):
        return texts.get(part, part)
    if isinstance(part, list | tuple):
        return tuple([_rebuilt(item, texts) for item in part])
    if type(part) not in _WORDED:
        return part
    changed = {name: _rebuilt(getattr(part, name), texts) for name in _WORDED[type(part)]}
    return dataclasses.replace(part, **changed)


@dataclasses.dataclass(frozen=True)
class ShownExecution(ExecutionData):
    """Execution that is safe to show, made only by `execution`; `record` knows the values hidden in it."""

    record: RecordCleaner = dataclasses.field(kw_only=True, repr=False, compare=False)


def execution(
    found: ExecutionData, cleaner: RecordCleaner | None = None, *, in_list: bool = False
) -> ShownExecution:
    """Return an execution that is safe to show, with nothing cut.

    cleaner: The cleaner of its record, if other parts of the record are shown too.
    in_list: Of a failure, only the message is shown.
    """
    if isinstance(found, ShownExecution):
        return found
    cleaned: ShownExecution | None = (
        getattr(found, "shown", None) if cleaner is None and not in_list else None
    )
    if cleaned is None:
        cleaned = execution_texts(found, cleaner, in_list=in_list)
    return (
        cleaned
        if found.value is None
        else dataclasses.replace(cleaned, value=_value(found.value, cleaned.record))
    )


def execution_texts(
    found: ExecutionData, cleaner: RecordCleaner | None = None, *, in_list: bool = False
) -> ShownExecution:
    """Return an execution like `execution`, but without its value and outputs, which may be large."""
    raw = found.uncleaned
    cleaner = sanitizer().of_record() if cleaner is None else cleaner
    cleaned = dict(vars(raw))
    cleaned |= {"arguments": arguments(raw.arguments, cleaner), "value": None, "outputs": []}
    if raw.failure is not None:
        cleaned["failure"] = _failure(raw.failure, cleaner, in_list=in_list)
    if not in_list:
        cleaned["last_output"] = _text(raw.last_output, cleaner)
        cleaned["calls"] = [_call(call, cleaner) for call in raw.calls]
        cleaned["decisions"] = [cleaned_record(decision, cleaner) for decision in raw.decisions]
        cleaned["warnings"] = [_text(warning, cleaner) for warning in raw.warnings]
        cleaned["conversions"] = [_text(conversion, cleaner) for conversion in raw.conversions]
    if raw.result_summary:
        cleaned["result_summary"] = _json(raw.result_summary, cleaner)
    if cleaner.has_hidden:
        for name in _TEXTS:
            cleaned[name] = each_text(cleaned[name], functools.partial(_again, cleaner))
    return ShownExecution(**cleaned, record=cleaner)


_TEXTS = (
    "arguments",
    "failure",
    "last_output",
    "calls",
    "decisions",
    "warnings",
    "conversions",
    "result_summary",
)


def _value(value: Any, cleaner: RecordCleaner) -> Any:
    """Return a value that is safe to show; a frame with anything to hide becomes a preview."""
    if values.is_plain(value):
        cleaned = cleaner.clean(value, limit_bytes=_ARGUMENTS_MAX_BYTES)
        return cleaned.value if cleaned.hidden else value
    preview, _ = values.readable(value, functools.partial(secret_columns, cleaner))
    cleaned = cleaner.clean(preview, limit_bytes=_ARGUMENTS_MAX_BYTES)
    hides = cleaned.hidden or HIDDEN in str(preview)
    return values.recorded_value(cleaned.value) if hides else value


def outputs(shown: Sequence[Mapping[str, Any]], cleaner: Cleaner | None = None) -> list[dict[str, Any]]:
    """Return the outputs of a cell with cleaned texts and unchanged images."""
    cleaned: list[dict[str, Any]] = data(list(shown), cleaner=cleaner)
    return cleaned


class LiveOutputs:
    """Outputs of a running tool, without secrets; a secret that is printed in two parts is not found.

    Personal data is not hidden, because it may be the result that the user wants.
    """

    def __init__(self, given: Mapping[str, Any], show: Callable[[dict[str, Any]], None]) -> None:
        self._given, self._show = given, show
        self._cleaner: RecordCleaner | None = None

    def __call__(self, output: dict[str, Any]) -> None:
        """Show one output; called for each output, in order."""
        if self._cleaner is None:
            self._cleaner = sanitizer().of_record()
            arguments(self._given, self._cleaner)
        text = output.get("text")
        if isinstance(text, str) and len(text) > _LIVE_MAX_CHARS:
            self._show({**output, "text": self._cleaner.again(text)})
            return
        texts = {
            kind: content for kind, content in output.get("data", {}).items() if not kind.startswith("image/")
        }
        hidden = self._cleaner.clean([text, texts, output.get("traceback")], limit_bytes=_UNLIMITED).hidden
        secret = hidden.keys() - self._cleaner.personal_rules
        self._show(outputs([output], self._cleaner)[0] if secret else output)


def has_secret(text: str) -> bool:
    """Return whether the display would hide something in a text."""
    return bool(text) and bool(sanitizer().clean([text]).hidden)


def failure(found: Failure, cleaner: RecordCleaner) -> Failure:
    """Return a failure that is safe to show."""
    cleaned: Failure = each_text(cleaned_failure(found, cleaner), cleaner.again)
    return cleaned


def report(found: Whole, cleaner: RecordCleaner | None = None) -> Whole:
    """Return a report, or any structure of dataclasses, structs, lists and JSON, with its texts cleaned.

    Names, hashes and code are unchanged: programs read the code back, and the document that shows code cleans it.
    """
    cleaner = sanitizer().of_record() if cleaner is None else cleaner

    def clean(part: Any) -> Any:
        if isinstance(part, str):
            return _text(part, cleaner)
        part = values.without_secret_frames(part, functools.partial(secret_columns, cleaner))
        cleaned = cleaner.clean(part, limit_bytes=_ARGUMENTS_MAX_BYTES)
        return cleaned.value if cleaned.hidden else part

    cleaned = each_text(found, clean)
    result: Whole = each_text(cleaned, cleaner.again) if cleaner.has_hidden else cleaned
    return result


def each_text(part: Any, change: Callable[[Any], Any]) -> Any:
    """Return a report or record with `change` applied to each text and each JSON object in it."""
    if isinstance(part, str | dict):
        return change(part) if part else part
    if isinstance(part, list | tuple):
        items = [each_text(item, change) for item in part]
        if all(map(operator.is_, items, part)):
            return part
        return type(part)(*items) if hasattr(part, "_fields") else type(part)(items)
    replace: Callable[..., Any] = dataclasses.replace
    if dataclasses.is_dataclass(part) and not isinstance(part, type):
        names = [field.name for field in dataclasses.fields(part) if field.init]
    elif isinstance(part, msgspec.Struct):
        names, replace = list(part.__struct_fields__), msgspec.structs.replace
    else:
        return part
    fields = {name: getattr(part, name) for name in names if name not in _AS_IT_IS}
    changed = {name: each_text(value, change) for name, value in fields.items()}
    changed = {name: value for name, value in changed.items() if value is not fields[name]}
    return replace(part, **changed) if changed else part


#: Fields that are not texts of a tool or a user: names, hashes and ids; and code, which programs read back.
_AS_IT_IS = frozenset({
    "advisor", "author", "before", "cell", "cell_id", "client", "code", "diff", "error_code", "ename", "filename",
    "folder", "label", "link", "name", "node", "origin", "outcome", "path", "persona", "run_id", "server", "setup",
    "source", "state", "step_id", "task_id", "tool", "tool_name", "trace_id", "verdict", "answered_from", "after_task",
    "fingerprint",
})  # fmt: skip


def arguments(given: Mapping[str, Any], cleaner: RecordCleaner) -> dict[str, Any]:
    """Return the cleaned arguments; each is cleaned separately, so that one long argument does not affect others."""
    result: dict[str, Any] = {}
    for name, value in given.items():
        cleaned = _value({name: value}, cleaner)
        result |= cleaned if isinstance(cleaned, dict) else {name: cleaned}
    return result


def _again(cleaner: RecordCleaner, part: Any) -> Any:
    if isinstance(part, dict) and not values.is_plain(part):
        return {name: _again(cleaner, value) for name, value in part.items()}
    return cleaner.again(part) if values.is_plain(part) else part


def _call(call: CallRecord, cleaner: RecordCleaner) -> CallRecord:
    arguments, summary = _json(call.arguments, cleaner), _json(call.result_summary, cleaner)
    error = _text(call.error, cleaner)
    return msgspec.structs.replace(call, arguments=arguments, result_summary=summary, error=error)


def _json(written: str, cleaner: RecordCleaner) -> str:
    """Clean a text as JSON data if it is JSON, because the keys help to recognise the values."""
    try:
        decoded = msgspec.json.decode(written)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return _text(written, cleaner)
    decoded = values.without_secret_frames(decoded, functools.partial(secret_columns, cleaner))
    cleaned = cleaner.clean(decoded, limit_bytes=_UNLIMITED)
    return msgspec.json.encode(cleaned.value).decode() if cleaned.hidden else written


def _failure(failure: Failure, cleaner: RecordCleaner, *, in_list: bool) -> Failure:
    if in_list:
        failure = learn(failure, cleaner)
        return msgspec.structs.replace(failure, evalue=_text(failure.evalue, cleaner))
    return cleaned_failure(failure, cleaner)


def _text(shown: str, cleaner: Cleaner) -> str:
    return str(cleaner.clean(shown, limit_bytes=_UNLIMITED).value) if shown else shown
