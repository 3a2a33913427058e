"""Typed text as data: words, arguments, labels, times.

Magics and the command line share these functions, so both accept and refuse the same text.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from healkit.commands.options import GRANTS, Option
from healkit.core.contracts.execution import FILTER_NAMES, GROUP_FILTERS, STATUSES, SUMMARY_FILTERS, Filters
from healkit.core.crossing import values
from healkit.core.times import parse_since
from healkit.core.wire.encoding import read_int
from healkit.errors import ArgumentsInvalid, UsageInvalid, did_you_mean

if TYPE_CHECKING:
    from healkit.core.contracts.vault import VaultEntry

_PAIRS = {")": "(", "]": "[", "}": "{"}
#: `key=value`, but not `key==value`.
ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(?!=)(.*)", re.DOTALL)
_LABEL = re.compile(r"(?P<name>[^.@]+?)(?:\.(?P<persona>[^@]+?))?(?:(?:@|\s+v)(?P<revision>\d+))?")
#: Who makes a decision's choices.
CHOOSERS = ("person", "model")
_PLAN_HINT = 'A choice is {"type": "finalize", "finalViewName": "sales"}, or another of docs/decisions.md.'


def split_words(line: str, *, partial: bool = False) -> list[str]:
    """Split a line into words; quotes and brackets keep a word together and remain in it.

    `n=[1, 2] name='Ada L' --args {"n": 10}` has four words. Raises `UsageInvalid` for an unclosed quote or bracket,
    except if the line is `partial` (still being typed).
    """
    words, word, quote, open_brackets = [], "", "", [""]
    escaped = False
    for char in line:
        if quote:
            word += char
            if char == quote and not escaped:
                quote = ""
            escaped = char == "\\" and not escaped
        elif char.isspace() and len(open_brackets) == 1:
            words += [word] if word else []
            word = ""
        else:
            if char in "'\"" and _opens_quote(word, len(open_brackets) > 1):
                quote = char
            elif char in "([{":
                open_brackets.append(char)
            elif _PAIRS.get(char) == open_brackets[-1]:
                open_brackets.pop()
            word += char
    if not partial and (quote or len(open_brackets) > 1):
        raise UsageInvalid(f"In {line.strip()!r}, {quote or open_brackets[-1]} is opened and never closed.")
    return [*words, word] if word else words


def _opens_quote(word: str, in_brackets: bool) -> bool:
    """Tell if a quote opens here: not inside a plain word (`don't`), but after `=` and in `r'…'`."""
    return in_brackets or not word or "=" in word or not word[-1].isalnum()


def split_assignments(words: Iterable[str]) -> tuple[list[str], dict[str, str]]:
    """Separate the `key=value` words from the others; the values remain text, which each face reads in its own way."""
    rest, assigned = [], {}
    for word in words:
        match = None if word.startswith("-") else ASSIGNMENT.fullmatch(word)
        if match is None:
            rest.append(word)
        else:
            assigned[match[1]] = match[2]
    return rest, assigned


def value_of(text: str) -> Any:
    """Read a typed value: JSON or a Python literal, else plain text."""
    for read in (json.loads, ast.literal_eval):
        try:
            return read(text)
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            continue
    return text


def given_arguments(as_json: str | None, assigned: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of `--args` and of `key=value` words together; raise `UsageInvalid` for a duplicate."""
    arguments = {} if as_json is None else parse_arguments(as_json)
    if both := sorted(arguments.keys() & assigned.keys()):
        raise UsageInvalid(f"{both[0]!r} is given twice: in --args and as {both[0]}=….")
    return {**arguments, **assigned}


#: JSON Schema's type → an example value of that type.
_SAMPLES = {"integer": 1, "number": 1.5, "boolean": True, "string": "text", "array": [], "object": {}}


def sample_call(entry: VaultEntry, *, quote: Callable[[Any], str]) -> str:
    """Write sample arguments for a call of the tool, such as ` wins=1 games=1`; those of the first example, if any.

    quote: Function that quotes a value for the face.
    """
    for example in entry.examples:
        arguments = example.get("arguments")
        if (
            isinstance(arguments, dict)
            and all(map(str.isidentifier, arguments))
            and values.is_plain(arguments)
        ):
            return "".join(f" {name}={quote(value)}" for name, value in arguments.items())
    properties = entry.input_schema.get("properties", {})
    wanted = entry.input_schema.get("required", [])
    kinds = {name: properties.get(name, {}) for name in wanted}
    samples = {
        name: None if "format" in of else _SAMPLES.get(str(of.get("type"))) for name, of in kinds.items()
    }
    return "".join(f" {name}={'…' if sample is None else quote(sample)}" for name, sample in samples.items())


def unquote(word: str) -> str:
    """Return the word without its surrounding quotes, if any."""
    if len(word) >= 2 and word[0] == word[-1] and word[0] in "'\"":
        return word[1:-1]
    return word


def parse_arguments(text: str, flag: str = "--args") -> dict[str, Any]:
    """Read a JSON object; raise `ArgumentsInvalid` with the line, the column and a caret at the error."""
    try:
        value = json.loads(text, parse_int=read_int)
    except json.JSONDecodeError as error:
        line = text.split("\n")[error.lineno - 1] if text else ""
        start = max(error.colno - 60, 0)
        caret = f"\n    {line[start : start + 100]}\n    {' ' * (error.colno - 1 - start)}^"
        raise ArgumentsInvalid(
            f"{flag} is not JSON: {error.msg}, at line {error.lineno}, column {error.colno}.{caret}",
            hint='\nWrite an object, with double quotes: {"n": 10}',
        ) from None
    except RecursionError:
        raise ArgumentsInvalid(f"{flag} is nested too deeply to be read.") from None
    if not isinstance(value, dict):
        raise ArgumentsInvalid(
            f"{flag} must be a JSON object, got {text.strip()[:80]!r}.", hint='Name each argument: {"n": 10}'
        )
    return value


def read_steps(text: str, source: str) -> list[Any]:
    """Read a plan, a JSON list of choices; raise `UsageInvalid` with the name of the source."""
    try:
        steps = json.loads(text, parse_int=read_int)
    except json.JSONDecodeError as error:
        raise UsageInvalid(
            f"{source} is not JSON: {error.msg}, at line {error.lineno}, column {error.colno}."
        ) from None
    except RecursionError:
        raise UsageInvalid(f"{source} is nested too deeply to be read.") from None
    if not isinstance(steps, list):
        raise UsageInvalid(f"{source} must hold a JSON list of choices.", hint=_PLAN_HINT)
    return steps


def read_aliases(words: Sequence[str] | None) -> dict[str, list[str]]:
    """Read words such as `META=FB,Facebook` as the alternative names of each entity."""
    aliases: dict[str, list[str]] = {}
    for word in words or ():
        name, _, alias_text = word.partition("=")
        listed = split_commas(alias_text)
        if not name.strip() or not listed:
            raise UsageInvalid(f"Not an alias: {word!r}.", hint="Write NAME=A,B, such as META=FB,Facebook.")
        aliases.setdefault(name.strip(), []).extend(listed)
    return aliases


def read_code(source: str) -> str:
    """Read the text of a file, or of stdin for `-`; raise `UsageInvalid` if it cannot be read."""
    try:
        return sys.stdin.read() if source == "-" else Path(source).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise UsageInvalid(
            f"Cannot read {source!r}: {reason}.", hint="Name a file, or - for stdin."
        ) from None


def split_commas(text: str) -> list[str]:
    """Split `a, b` into its parts; skip blank parts."""
    return [part for piece in text.split(",") if (part := piece.strip())]


def chooser_of(plan: list[Any] | None, who: str | None) -> list[Any] | str:
    """Return a decision's chooser: the plan or the word. Exactly one of them must be given."""
    if plan is None and who is None:
        raise UsageInvalid("Say who chooses: --plan FILE, or --chooser person.")
    if plan is not None and who is not None:
        raise UsageInvalid(
            "There is a plan, and a chooser too.", hint=f"Leave out the plan, or --chooser {who}."
        )
    if who not in (None, *CHOOSERS):
        raise UsageInvalid(f"Not a chooser: {who!r}.", hint=f"Write {' or '.join(CHOOSERS)}.")
    return who if plan is None and who is not None else plan or []


def split_label(text: str) -> tuple[str, str | None, int | None]:
    """Split `fibonacci.teacher@2`, or `fibonacci v2`, into name, persona and revision; a missing part is None."""
    match = _LABEL.fullmatch(text)
    if match is None:
        raise UsageInvalid(
            f"{text!r} names no tool.", hint="Write NAME, NAME@REVISION or NAME.PERSONA@REVISION."
        )
    return match["name"], match["persona"], int(match["revision"]) if match["revision"] else None


def parse_revision(text: str) -> int:
    """Read `2`, `v2` or `@2` as a number."""
    number = text.removeprefix("@").removeprefix("v")
    if not number.isdecimal():
        raise UsageInvalid(f"Not a revision: {text!r}.", hint="Write a number, such as 2, v2 or @2.")
    return int(number)


def read_filters(options: Mapping[str, Any], *, whole_days: bool = False) -> Filters:
    """Read typed filters of the log; blank values and other options are ignored.

    whole_days: An `until` that is a date includes that day, as is usual in a form. Raises `UsageInvalid`.
    """
    texts = {
        name: str(options[name]).strip() for name in FILTER_NAMES if options.get(name) not in (None, False)
    }
    filters: dict[str, Any] = {name: text for name, text in texts.items() if text}
    if Filters(status=filters.get("status")).status not in (None, *STATUSES):
        raise UsageInvalid(f"Not a status: {filters['status']!r}.", hint=f"Write {', '.join(STATUSES)}.")
    for name in ("since", "until"):
        if name in filters:
            filters[name] = parse_since(filters[name])
    if whole_days and re.fullmatch(r"\d{4}-\d\d-\d\d", texts.get("until", "")):
        filters["until"] = date.fromisoformat(texts["until"]) + timedelta(days=1)
    return Filters(**{**filters, "tried": "tried" in filters})


def check_tallied(filters: Filters, *, group: bool, summary: bool, **more: bool) -> None:
    """Raise `UsageInvalid` for options of a list that groups of failures, or summaries, do not support.

    more: Options of the list besides the filters, and whether each was given.
    """
    flag = "--summary" if summary else "--group"
    beyond = filters.given.keys() - set(SUMMARY_FILTERS if summary else GROUP_FILTERS)
    extras = {"group": group and summary, "trials": filters.tried, **more}
    if refused := sorted({*beyond, *(name for name, is_given in extras.items() if is_given)}):
        first = "group" if group and summary else refused[0]
        raise UsageInvalid(f"--{first} cannot be combined with {flag}.")


#: A grant's option → its name in the vault.
_GRANT_NAMES = {"memory": "memory_mb", "cpu": "cpu_s", "timeout": "timeout_s"}


def read_grants(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return only the grants that were typed, by their names in the vault; ignore other options.

    A word of `packages` or `calls` may name several, separated by commas. `none` alone grants none, `all` grants all
    packages, and `default` restores the default. Raises `UsageInvalid` for an `own_grants` other than `yes` or `no`.
    """
    grants: dict[str, Any] = {}
    for option in GRANTS:
        value = options.get(option.name)
        if option.name in {"packages", "calls"}:
            value = _names(value)
        elif option.many:
            value = list(value or ()) or None
        elif option.name == "own_grants" and value is not None:
            value = _yes_or_no(option, value)
        if value is not None:
            grants[_GRANT_NAMES.get(option.name, option.name)] = value
    resets = {"packages": (["all"], ["default"]), "calls": (["default"],)}
    return {name: None if value in resets.get(name, ()) else value for name, value in grants.items()}


def _yes_or_no(option: Option, word: str) -> bool:
    try:
        return {"yes": True, "no": False}[word.strip().lower()]
    except KeyError:
        raise UsageInvalid(f"{option.long_flag} takes yes or no, not {word!r}.") from None


def _names(words: Iterable[str] | None) -> list[str] | None:
    """Split `a,b` and `c` into a, b, c; return None if nothing was typed."""
    if not words:
        return None
    names = [name.strip() for word in words for name in word.split(",") if name.strip()]
    return [] if names == ["none"] else names


def unknown(kind: str, word: str, known: Iterable[str]) -> UsageInvalid:
    """Return the error for an unknown flag or subcommand, with near matches or the full list."""
    known = list(known)
    near = did_you_mean(word, known)
    return UsageInvalid(
        f"There is no {kind} {word!r}.{near}", hint="" if near else f"There are: {', '.join(known)}."
    )


#: Prompt after a question about patches, and after a patch was chosen.
ANSWER_PROMPT = "Number, or another value as JSON (empty: not known)"
DECISION_PROMPT = "Keep it? [y]es, [n]o, [l]ater"


def parse_decision(text: str) -> bool | None:
    """Read the answer to `DECISION_PROMPT`: True for yes, False for no, None to decide later."""
    return {"y": True, "n": False}.get(text.strip().lower()[:1])
