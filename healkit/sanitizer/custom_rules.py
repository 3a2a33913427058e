"""Custom rules: a file with rows like the built-in table's.

Each row proves itself when it is loaded: a rule that misses one of its own `caught` examples, or takes one of its
`survives`, is refused with its id and place. Patterns run on google-re2 where that is installed (`healkit[speed]`): it
takes linear time for every pattern. Otherwise they run on Python's `re`.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from healkit.errors import RulesInvalid
from healkit.sanitizer.matcher import Matcher
from healkit.sanitizer.rule import SanitizerRule

_FIELDS = {
    "id": str,
    "what": str,
    "pattern": str,
    "keywords": list,
    "replacement": str,
    "caught": list,
    "survives": list,
}
_ID = re.compile(r"[a-z][a-z0-9-]{0,62}\Z")


def load_rules(path: str | Path) -> tuple[SanitizerRule, ...]:
    """Read the rules of a file; raise `RulesInvalid` with the rule's id, or number, and the fault."""
    place = Path(path).expanduser()
    try:
        text = place.read_text()
        data = json.loads(text) if place.suffix == ".json" else tomllib.loads(text)
    except OSError as error:
        raise RulesInvalid(
            f"The sanitiser's rules {str(path)!r} cannot be read: {error.strerror}.",
            hint="Set sanitizer_rules to a TOML or JSON file that exists.",
        ) from error
    except ValueError as error:  # both readers' errors name line and column
        raise RulesInvalid(
            f"The sanitiser's rules {str(path)!r} do not parse: {error}.", hint=_FORM
        ) from error
    rows = data.get("rule", []) if isinstance(data, dict) else data
    if not isinstance(rows, list) or not rows:
        raise RulesInvalid(f"The sanitiser's rules {str(path)!r} hold no rule.", hint=_FORM)
    rules = tuple(_rule(row, f"rule {number} of {str(path)!r}") for number, row in enumerate(rows, 1))
    seen: set[str] = set()
    for rule in rules:
        if rule.id in seen:
            raise RulesInvalid(
                f"Two rules of {str(path)!r} are called {rule.id!r}.", hint="Give each an id of its own."
            )
        seen.add(rule.id)
    return rules


_FORM = "Write [[rule]] tables with id, what and pattern; keywords, replacement, caught and survives are optional."


def _rule(row: Any, place: str) -> SanitizerRule:
    """Build the rule of one row and try its examples."""
    if not isinstance(row, dict):
        raise RulesInvalid(f"{place} is a {type(row).__name__}, not a table.", hint=_FORM)
    where = f"{place} ({row['id']!r})" if "id" in row else place
    for name, value in row.items():
        wanted = _FIELDS.get(name)
        if wanted is None:
            raise RulesInvalid(
                f"{where} has an unknown field {name!r}.", hint=f"The fields are {', '.join(_FIELDS)}."
            )
        if not isinstance(value, wanted) or (
            wanted is list and not all(isinstance(item, str) and item for item in value)
        ):
            kind = "a list of texts" if wanted is list else "a text"
            raise RulesInvalid(f"{where}: {name}={value!r} is not {kind}.", hint=_FORM)
    for name in ("id", "pattern"):
        if not row.get(name):
            raise RulesInvalid(f"{where} has no {name}.", hint=_FORM)
    if not _ID.match(row["id"]):
        raise RulesInvalid(
            f"{where}: id={row['id']!r} is not lower-case words joined by dashes.",
            hint="For example acme-token.",
        )
    compiled_pattern(row["pattern"], where)
    rule = SanitizerRule(
        str(row["id"]),
        str(row.get("what", row["id"])),
        "place",
        keywords=tuple(word.lower() for word in row.get("keywords", ())),
        pattern=row["pattern"],
        replacement=row.get("replacement", ""),
        caught=tuple(row.get("caught", ())),
        survives=tuple(row.get("survives", ())),
        custom=True,
    )
    _prove(rule, where)
    return rule


def _prove(rule: SanitizerRule, where: str) -> None:
    matcher = Matcher((rule,))
    for text in rule.caught:
        if not matcher.find(text):
            raise RulesInvalid(
                f"{where} does not catch its own example {text!r}.",
                hint="Mind that one of its keywords, if it has any, must stand in the text.",
            )
    for text in (*rule.survives, ""):
        if matcher.find(text) or (not text and re.match(rule.pattern, "")):
            raise RulesInvalid(
                f"{where} takes {text!r}, which must survive.", hint="Make its pattern narrower."
            )


def compiled_pattern(pattern: str, where: str) -> re.Pattern[str]:
    """Compile a pattern for `re`; raise `RulesInvalid` with the position of the fault."""
    try:
        return re.compile(pattern)
    except re.error as error:
        position = f" at position {error.pos}" if error.pos is not None else ""
        raise RulesInvalid(
            f"{where}: pattern {pattern!r} is no regular expression: {error.msg}{position}.",
            hint="Patterns are Python's; in TOML, write them in single quotes.",
        ) from error


def compiled_allow(patterns: Sequence[str]) -> tuple[re.Pattern[str], ...]:
    """Compile the allow-list; raise `RulesInvalid` for an entry that is no regular expression."""
    return tuple(
        compiled_pattern(pattern, f"sanitizer_allow[{place}]") for place, pattern in enumerate(patterns)
    )
