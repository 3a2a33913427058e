"""Secrets in what is shown: texts, URLs, addresses."""

from __future__ import annotations

import re

#: From the user's name to the last `@`: a password that was not escaped may hold any character.
_PASSWORD = re.compile(r"(?<=://)([^/?#:]*):.*@", re.DOTALL)
_USER = re.compile(r"(?<=://)[^/?#@]*@")
_OPTION = re.compile(
    r"\b(\w*(?:password|passwd|pwd|passphrase|secret|token|api[_-]?key|credentials?)\s*=)[^&#;\s]*",
    re.IGNORECASE,
)
_QUERY = re.compile(r"\?.*", re.DOTALL)


class Secret(str):
    """A text that shows as `'***'` wherever it is printed as part of something."""

    __slots__ = ()

    def __repr__(self) -> str:
        return repr("***" if self else "")


def shown_url(url: str) -> str:
    """Return a database's URL or path with `***` for its password, also where that is one of its options.

    It hides too much rather than too little where the URL cannot be read: all up to the last `@`.
    """
    return _OPTION.sub(r"\1***", _PASSWORD.sub(r"\1:***@", url))


def shown_address(url: str) -> str:
    """Return a web address without user, password and query, any of which may be a key."""
    return _QUERY.sub("", _USER.sub("", _PASSWORD.sub("", url)))
