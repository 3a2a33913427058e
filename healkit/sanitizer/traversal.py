"""Traversal of nested data: each leaf, judged by its key.

Structure says more than text: a value under `password` is a password whatever it looks like, and `{"name": …, "value":
…}`, `["--token", …]` and `("Authorization", …)` put the name beside the value.
"""

from __future__ import annotations

import base64
import re
from functools import lru_cache
from typing import Any, NamedTuple

from healkit.contracts.encoding import int_text, type_only
from healkit.sanitizer.matcher import Hidden, HiddenSpan, KnownValues, Matcher, replaced
from healkit.sanitizer.secret_names import Secrecy, secrecy_of, word_set, words_of
from healkit.sanitizer.secret_values import STRUCTURED, hides, looks_like_token, spells_bytes
from healkit.sanitizer.syntaxes import COMMAND_PASSWORD, JWK_MEMBERS, SECRET_NAME, argument_with_secret

#: Words of keys whose numbers are personal; the matcher gets them as the text `word: number`.
_PERSONAL_WORDS = word_set(
    "phone mobile tel telephone cell cellphone fax whatsapp msisdn sms ssn social card pan cc creditcard "
    "cardnumber phonenumber"
)
#: Keys that describe the secrets of a collection: `{"credentials": {"user": …, "host": …}}`.
_DESCRIBES = word_set(
    "user username login email host hostname name type kind id service provider region url port database db "
    "role"
)
_COLLECTIONS = frozenset(["secrets", "credentials", "creds", "passwords", "cookies"])
_PLAIN_KEY = re.compile(r"[A-Za-z_-]{1,40}\Z")
_NAME_KEYS = ("name", "key", "header", "Name", "Key")
_VALUE_KEYS = frozenset(["value", "val", "Value", "content"])
_LOGINS = {"auth", "basic_auth", "credentials", "proxy_auth"}
#: Of longer lists of texts none is taken for a program's arguments.
_ARGUMENTS_MAX = 60
_BLOB_KEYS = {"base64", "size_bytes"}
_WIDE_BITS, _SHORT_CHARS = 64, 64
_WIDE = 1 << (_WIDE_BITS - 1)
#: Smaller numbers are neither personal nor a password.
_LEAST_NUMBER = 1000
_BYTES_BEHIND = frozenset({Secrecy.TOKEN, Secrecy.SECRET, Secrecy.PASSWORD, Secrecy.PHRASE})


class _Facts(NamedTuple):
    """Facts about a key besides its secrecy."""

    personal: bool
    describes: bool
    collection: bool


@lru_cache(maxsize=16_384)
def _facts(name: str) -> _Facts:
    words = words_of(name[-80:])
    last = words[-1:]
    return _Facts(
        not _PERSONAL_WORDS.isdisjoint(words),
        not _DESCRIBES.isdisjoint(last),
        not _COLLECTIONS.isdisjoint(last),
    )


@lru_cache(maxsize=16_384)
def _is_plain_key(key: str) -> bool:
    return _PLAIN_KEY.match(key) is not None


class Traversal:
    """Cleaning of one value, with the count of what is hidden so far.

    cut: the value was clean before parts of it were cut off; of its texts, only the ends are searched again. known:
    what was hidden earlier in the same record.
    """

    def __init__(self, matcher: Matcher, *, cut: bool = False, known: KnownValues | None = None) -> None:
        self._matcher, self._cut = matcher, cut
        #: Short texts in which nothing was hidden, and these with their keys: data repeats them.
        self._plain: set[str] = set()
        self._plain_items: set[tuple[str, str, Secrecy]] = set()
        self.hidden = Hidden(known)

    def value(self, value: object, name: str = "", under: Secrecy = Secrecy.NONE) -> Any:
        """Return the value cleaned; `name` is its key, `under` the kind of the collection around it.

        A part that cannot be cleaned is replaced by its type's name; the values around it stay.
        """
        try:
            if isinstance(value, str):
                return self._text(value, name, under)
            if isinstance(value, dict):
                return self._object(value, name, under)
            if isinstance(value, list):
                return self._list(value, name, under)
            if isinstance(value, int) and not isinstance(value, bool):
                return self._number(value, name)
            return value
        except Exception:  # noqa: BLE001 - a part that cannot be cleaned costs itself only
            self.hidden["unreadable"] += 1
            return type_only(value)

    def _text(self, text: str, name: str, under: Secrecy) -> str:
        level = secrecy_of(name) if name else Secrecy.NONE
        if level is Secrecy.QUERY or (level is Secrecy.NONE and under and not _facts(name).describes):
            level = under
        if level is Secrecy.NONE:
            if name and len(text) <= 40 and _facts(name).personal:
                return self._personal(text, name)
            if text in self._plain:
                return text
            cleaned = self._matcher.text(text, self.hidden, cut=self._cut)
            if cleaned is text and len(text) <= _SHORT_CHARS:
                self._plain.add(text)
            return cleaned
        if level is Secrecy.LOCATOR:
            cleaned = self._matcher.text(text, self.hidden, cut=self._cut)
            return (
                cleaned if cleaned != text or not hides(level, name, text, STRUCTURED) else self._hide(text)
            )
        if not hides(level, name, text, STRUCTURED):
            return self._matcher.text(text, self.hidden, cut=self._cut)
        return self._hide(text)

    def _hide(self, text: str) -> str:
        """Hide the whole text; count it under its format where that is known."""
        start = len(text) - len(text.partition(" ")[2]) if _SCHEME.match(text) else 0
        known = [
            item
            for item in self._matcher.find(text[:4096])
            if 2 * (item.end - item.start) >= len(text) - start
        ]
        rule = known[0].rule if known else SECRET_NAME
        if known and rule.kind == "personal":
            rule = SECRET_NAME
        return replaced(text, [HiddenSpan(start, len(text), 0, rule, None)], self.hidden)

    def _personal(self, text: str, name: str) -> str:
        ahead = f"{' '.join(words_of(name))}: "
        found = [item for item in self._matcher.find(ahead + text) if item.start >= len(ahead)]
        moved = [item._replace(start=item.start - len(ahead), end=item.end - len(ahead)) for item in found]
        return self._matcher.text(replaced(text, moved, self.hidden), self.hidden)

    def _number(self, value: int, name: str) -> int | str:
        if value.bit_length() > _WIDE_BITS - 1:
            return int_text(value)
        if not name or not _LEAST_NUMBER <= value < 10**19:
            return value
        level = secrecy_of(name)
        if level in {Secrecy.PASSWORD, Secrecy.PIN} and not name.endswith("s"):
            return self._hide(str(value))
        if _facts(name).personal:
            cleaned = self._personal(str(value), name)
            return value if cleaned == str(value) else cleaned
        return value

    def _object(self, value: dict[str, Any], name: str, under: Secrecy) -> dict[str, Any]:
        if value.keys() == _BLOB_KEYS and isinstance(value["base64"], str):
            return self._blob(value, name)
        if name and _facts(name).collection:
            under = Secrecy.PASSWORD if "password" in name.lower() else Secrecy.SECRET
        stated = self._stated_name(value)
        result: dict[str, Any] = {}
        web_key = "kty" in value
        usual = not stated and not web_key
        for key, item in value.items():
            kind = type(item)
            if kind is str and usual and key not in result and (key, item, under) in self._plain_items:
                result[key] = item
                continue
            shown = key if _is_plain_key(key) else self._matcher.text(key, self.hidden)
            if shown in result or (shown != key and shown in value):
                shown = self._another(shown, value, result)
            if web_key and key in JWK_MEMBERS and kind is str and len(item) >= 16:
                result[shown] = self._hide(item)
                continue
            if kind is float or item is None or (kind is int and 0 <= item < _LEAST_NUMBER):
                result[shown] = item
                continue
            result[shown] = self.value(item, stated if stated and key in _VALUE_KEYS else key, under)
            if usual and kind is str and result[shown] is item and shown is key and len(item) <= _SHORT_CHARS:
                self._plain_items.add((key, item, under))
        return result

    def _blob(self, value: dict[str, Any], name: str) -> dict[str, Any]:
        """Clean bytes as `healkit.contracts.encoding` writes them: base64 of a text is searched like any text."""
        try:
            text = base64.b64decode(value["base64"]).decode()
        except ValueError:
            return value
        before = self.hidden.total()
        cleaned = self.value(text, name)
        if self.hidden.total() == before:
            return value
        return {"text": cleaned, "size_bytes": value["size_bytes"]}

    @staticmethod
    def _stated_name(value: dict[str, Any]) -> str:
        """Return the secret's name in `{"name": "DB_PASSWORD", "value": …}`, or an empty text."""
        if len(value) > 12 or _VALUE_KEYS.isdisjoint(value):
            return ""
        for key in _NAME_KEYS:
            stated = value.get(key)
            if isinstance(stated, str) and len(stated) <= 80 and secrecy_of(stated) is not Secrecy.NONE:
                return stated
        return ""

    @staticmethod
    def _another(shown: str, *taken: dict[str, Any]) -> str:
        """Return a free key for a second one that reads the same after cleaning."""
        turn = 2
        while any(f"{shown} {turn}" in other for other in taken):
            turn += 1
        return f"{shown} {turn}"

    def _list(self, value: list[Any], name: str, under: Secrecy) -> list[Any]:
        level = secrecy_of(name) if name else Secrecy.NONE
        if level in _BYTES_BEHIND and len(value) >= 8 and all(type(item) is int for item in value):
            numbers = ", ".join(map(str, value))
            if spells_bytes(numbers, level):
                return [self._hide(numbers)]
        pair = len(value) == 2 and isinstance(value[0], str) and isinstance(value[1], str) and not name
        result: list[Any] = []
        previous = ""
        if 3 <= len(value) <= _ARGUMENTS_MAX and all(isinstance(item, str) for item in value):
            value = self._arguments(value)
        plain_numbers = level not in {Secrecy.PASSWORD, Secrecy.PIN} and not (name and _facts(name).personal)
        for position, item in enumerate(value):
            if type(item) is float or (plain_numbers and type(item) is int and -_WIDE < item < _WIDE):
                result.append(item)
                previous = ""
                continue
            beside = ""
            if position == 1 and len(value) == 2 and name.lower() in _LOGINS and isinstance(item, str):
                beside = "password"  # `auth=("user", "…")`, as HTTP clients take it
            elif (
                isinstance(item, str) and previous and ((pair and position == 1) or previous.startswith("-"))
            ):
                beside = self._beside(previous, item)
            result.append(self.value(item, beside or name, under))
            previous = item if isinstance(item, str) and len(item) <= 80 else ""
        return result

    def _arguments(self, value: list[str]) -> list[str]:
        """Return the arguments of a program without the secret among them: `["docker", "login", "-p", "…"]`."""
        found = argument_with_secret(value)
        if found is None:
            return value
        position, start = found
        item = value[position]
        hidden = replaced(item, [HiddenSpan(start, len(item), 0, COMMAND_PASSWORD, None)], self.hidden)
        return [*value[:position], hidden, *value[position + 1 :]]

    @staticmethod
    def _beside(previous: str, item: str) -> str:
        """Return the name that the item before gives this one: an option, or the name of a header or parameter."""
        if (
            item.startswith("-")
            or " " in previous
            or "=" in previous
            or secrecy_of(previous) in {Secrecy.NONE, Secrecy.WEAK}
        ):
            return ""
        return previous if previous.startswith("-") or looks_like_token(item.rpartition(" ")[2]) else ""


_SCHEME = re.compile(r"(?:Basic|Bearer|Digest|Token|ApiKey|SSWS)\s+\S", re.IGNORECASE)
