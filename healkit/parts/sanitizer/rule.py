"""Rule of the sanitiser: one row of its tables.

A rule says where it looks (its keywords) and what it takes (its pattern, or a function that reads the surroundings). It
has its own proof: examples that it must catch, and similar texts that the whole table must not hide.

**A pattern is tried only at its keywords.** One pass of an Aho-Corasick automaton finds all keywords of all rules.
Searching the whole text for each rule would cost one pass per rule. A pattern's worst case would then depend on the
whole text instead of the part after the keyword.

Examples are templates: `‹w36›` stands for 36 random letters and digits. A complete invented key in a source file
triggers the scanners of code hosts, and a random one proves the format instead of one example.
"""

from __future__ import annotations

import dataclasses
import random
import re
import string
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Literal

from healkit.parts.sanitizer.secret_values import either, looks_like_token

#: Start, end and replacement (None: the rule's own) of a found text. An empty span hides nothing, but says up to where
#: the rule need not look again; its replacement is empty where that took no reading.
Span = tuple[int, int, str | None]
#: Reads `text` around a keyword at [start, end) and returns the span to hide, or None.
Locate = Callable[[str, int, int], Span | None]

_SETS = {
    "w": string.ascii_letters + string.digits,
    "l": string.ascii_lowercase + string.digits,
    "u": string.ascii_uppercase + string.digits,
    "h": "0123456789abcdef",
    "H": "0123456789ABCDEF",
    "d": string.digits,
    "b": string.ascii_letters + string.digits + "+/",
    "s": string.ascii_letters + string.digits + "_-",
    "a": string.ascii_lowercase,
    "A": string.ascii_uppercase,
    "t": string.ascii_uppercase + "234567",
}
_HOLE = re.compile(r"‹(\w)(\d+)›")


@dataclasses.dataclass(frozen=True)
class SanitizerRule:
    """Row of the tables: what is hidden, why, and the proof of it.

    id: Stable and kebab-case; hidden texts are counted under it.
    what: One line for readers.
    kind: Secrets are redacted, personal data is masked. If two rules hide the same text, the rule whose kind comes
        first gives the id: `token` (a published format), `place` (a syntax that contains secrets), `personal`, `named`
        (by the name it is assigned to).
    keywords: Lower-case literals at which the rule is tried. Without any, the pattern is searched everywhere.
    pattern: A regular expression; its group `secret`, or all of it, is hidden. Empty if `locate` does the work.
    before: How many characters before the keyword the pattern may begin.
    locate: Function that is used instead of a pattern.
    check: Refuses a match that only looks right (a checksum, a context).
    replacement: Text put in its place; by default `[REDACTED:id]`.
    caught, survives: Templates of texts that must be hidden, and of texts that must not.
    costly: The check takes long; in one text, only the first few hundred matches are checked, the others are hidden.
    among_numbers: The pattern is tried only on sequences of digits and their separators.
    stuck: The token is also found after a letter (`xghp_…`), if it looks like one.
    work: The cost of a `locate` try that finds nothing (see `allow_work`); a pattern is always tried.
    custom: A user's own rule. It searches the whole of any text with one of its keywords, and may be slow.
    """

    id: str
    what: str
    kind: Literal["token", "place", "personal", "named"] = "token"
    keywords: tuple[str, ...] = ()
    pattern: str = ""
    before: tuple[int, ...] = (0,)
    locate: Locate | None = None
    check: Callable[[re.Match[str]], bool] | None = None
    replacement: str = ""
    caught: tuple[str, ...] = ()
    survives: tuple[str, ...] = ()
    custom: bool = False
    costly: bool = False
    among_numbers: bool = False
    stuck: bool = False
    work: int = 5

    @property
    def shown(self) -> str:
        """Text that replaces what the rule hides."""
        return self.replacement or f"[REDACTED:{self.id}]"

    @property
    def of_words(self) -> bool:
        """Whether the rule is tried at the beginning of a word only."""
        return self.locate is None and self.before == (0,) and not self.stuck

    def locator(self) -> Locate:
        """Return the function to call at each of the rule's keywords."""
        return self.locate or _by_pattern(self)


def token(
    rule_id: str, what: str, keywords: str, forms: Mapping[str, str], *, then: str = "", **options: Any
) -> SanitizerRule:
    """Build the row of a token: its forms, each a pattern after its example, and the common end of all of them.

    keywords: Separated by blanks.
    options: Other fields of the rule.
    """
    fields = {"kind": "token", "keywords": tuple(keywords.split()), "caught": tuple(forms), **options}
    return SanitizerRule(rule_id, what, pattern=either(forms) + then, **fields)


def span_of(match: re.Match[str]) -> tuple[int, int]:
    """Return the span of a match's group `secret`, or of all of it."""
    return match.span("secret") if "secret" in match.re.groupindex else match.span()


def _whole(match: re.Match[str]) -> tuple[int, int]:
    """Return the span to hide of a token; a token that is longer than its pattern is hidden completely."""
    start, end = span_of(match)
    if end - start >= _LONG_CHARS and end == match.end():
        end = _TOKEN_REST.match(match.string, end).end()  # type: ignore[union-attr]  # it matches nothing too
    return start, end


_LONG_CHARS, _TOKEN_REST = 64, re.compile(r"[\w+/=~-]*")


def starts_word(text: str, start: int) -> bool:
    r"""Return True where a word may begin at `start`: not in the middle of a longer word.

    An escape (`\n`), a percent escape (`%3D`) or a colour (`ESC[31m`) ends in a letter but is not part of the word.
    """
    if (
        start == 0
        or not ((before := text[start - 1]).isalnum() or before == "_")
        or not before.isascii()  # Japanese and Chinese put no blank there
        or not text[start].isalnum()
    ):
        return True
    return before in _ENDS_ESCAPE and _ESCAPE_BEFORE.search(text[max(0, start - 8) : start]) is not None


_ESCAPE_BEFORE = re.compile(
    r"(?:\\[nrtbfv]|\\u00[0-9a-fA-F]{2}|\\x[0-9a-fA-F]{2}|%[0-9A-Fa-f]{2}|\x1b\[[\d;]*m)$"
)
_ENDS_ESCAPE = frozenset("0123456789abcdefABCDEFnrtvm")


def checked(rule: SanitizerRule, match: re.Match[str]) -> bool:
    """Return True for a match to hide: the rule's check accepts it, fails on it, or has no time left for it."""
    if rule.costly and not may_check():
        return True
    try:
        return rule.check is None or rule.check(match)
    except Exception:  # noqa: BLE001 - a match that cannot be judged is hidden, and the rest is still cleaned
        return True


def word_behind(text: str, start: int, end: int) -> Span:
    """Return the word of the keyword at [start, end), which is hidden if its rule's function fails."""
    word = _WORD.match(text, end, end + _WORD_MAX_CHARS)
    return start, word.end() if word else end, None


#: A token may follow these without a blank, as in `MY_ghp_…`, if its end looks like one.
_JOINS = frozenset("_0123456789")
#: A match that its check refused is not tried again from so many of its characters: the check has seen what is there.
JUDGED_CHARS = 40
_WORD, _WORD_MAX_CHARS = re.compile(r"\S*"), 4096


def _by_pattern(rule: SanitizerRule) -> Locate:
    match_at = re.compile(rule.pattern).match
    before, stuck, is_token = rule.before, rule.stuck, rule.kind == "token" and not rule.costly

    def locate(text: str, start: int, _end: int) -> Span | None:
        for ahead in before:
            begin = start - ahead
            if begin < 0 or not (
                (alone := starts_word(text, begin)) or stuck or (is_token and text[begin - 1] in _JOINS)
            ):
                continue
            match = match_at(text, begin)
            if match is None:
                continue
            if (alone or looks_like_token(match[0][-16:])) and checked(rule, match):
                return (*_whole(match), None)
            if ahead == before[-1]:
                judged = min(match.end(), start + JUDGED_CHARS)
                return judged, judged, None
        return None

    return locate


def expand(template: str, source: random.Random) -> str:
    """Fill the template's holes at random, each with a digit and a letter where its set has both."""

    def fill(hole: re.Match[str]) -> str:
        letters, size = _SETS[hole[1]], int(hole[2])
        filled = [source.choice(letters) for _ in range(size)]
        for wanted in ("0123456789", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz"):
            present = [letter for letter in letters if letter in wanted]
            if present and size >= 8 and not any(letter in wanted for letter in filled):
                filled[source.randrange(1, size - 1)] = source.choice(present)
        return "".join(filled)

    return _HOLE.sub(fill, template)


# Limits of the work on one text and on one request.
#
# Keywords alone would cost seconds a megabyte, and a number may take the phone library 30 µs. So the functions of rules
# may do a limited amount of work, which grows with the text; costly checks have such a limit too. A try costs 1 where
# its name is none, and more where it reads on. Of 2,620 pieces of 10 KB from Python packages, those about tokens and
# passwords among them, none used more than two thirds. What is beyond is hidden unjudged. A server shares one limit
# among all texts of a request, because many small texts cost as much as a large one.


#: Work on a text, and later around what was hidden; costly checks. Each: at least, and characters for one more.
_TRIES, _LATER_TRIES, _CHECKS = (400, 3), (300, 8), (1_000, 2_000)
#: Work of a try that reads on, and of one that finds something.
READ_ON, FOUND = 18, 6
_TRIES_LEFT = ContextVar("_TRIES_LEFT", default=_TRIES[0])
_CHECKS_LEFT = ContextVar("_CHECKS_LEFT", default=_CHECKS[0])
_SHARED: ContextVar[list[int] | None] = ContextVar("_SHARED", default=None)


@contextmanager
def shared_limit(size: int) -> Iterator[None]:
    """Share one limit, of a text of `size` characters, among all texts that this thread cleans in the meantime."""
    token = _SHARED.set([_share_of(size, _TRIES) + _share_of(size, _LATER_TRIES), _share_of(size, _CHECKS)])
    try:
        yield
    finally:
        _SHARED.reset(token)


def allow_work(size: int) -> None:
    """Allow the work on the next text, of that many characters."""
    _TRIES_LEFT.set(_TRIES[0] + size // _TRIES[1])
    _CHECKS_LEFT.set(_CHECKS[0] + size // _CHECKS[1])


def allow_later_work(size: int) -> None:
    """Allow the later rounds on the current text."""
    _TRIES_LEFT.set(_share_of(size, _LATER_TRIES))


def tries_left() -> int:
    """Return how many more keywords of the current text may be tried."""
    shared = _SHARED.get()
    return _TRIES_LEFT.get() if shared is None else min(_TRIES_LEFT.get(), shared[0])


def spend_tries(count: int) -> None:
    """Count the keywords that were tried."""
    _TRIES_LEFT.set(_TRIES_LEFT.get() - count)
    if (shared := _SHARED.get()) is not None:
        shared[0] -= count


def may_check() -> bool:
    """Count one costly check; return False if none is left."""
    shared = _SHARED.get()
    remaining = _CHECKS_LEFT.get()
    if remaining <= 0 or (shared is not None and shared[1] <= 0):
        return False
    _CHECKS_LEFT.set(remaining - 1)
    if shared is not None:
        shared[1] -= 1
    return True


def _share_of(size: int, allowed: tuple[int, int]) -> int:
    fewest, chars_a_try = allowed
    return fewest + size // chars_a_try
