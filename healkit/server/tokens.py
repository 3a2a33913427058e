"""The token of a collector that stands alone: where it comes from, and how one is compared with it."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import secrets
from collections.abc import Mapping
from pathlib import Path

from healkit.errors import ConfigError

VARIABLE = "HEALKIT_COLLECT_TOKEN"

#: The fewest characters of a token that guards an address which others can reach.
PUBLIC_MIN_CHARS = 16


class Token:
    """A secret that is compared in constant time and never shown by accident."""

    def __init__(self, text: str) -> None:
        if not (text.isascii() and text.isprintable() and " " not in text and 0 < len(text) <= 1000):
            raise ConfigError(
                "The collector's token is empty, too long, or has characters that a header cannot carry.",
                hint="Use up to 1,000 letters, digits and punctuation without spaces.",
            )
        self._digest = hashlib.sha256(text.encode()).digest()
        self.length = len(text)

    def matches(self, text: str) -> bool:
        """Whether it is the same; takes as long for a near miss as for a far one."""
        given = hashlib.sha256(text.encode(errors="surrogatepass")).digest()
        return hmac.compare_digest(given, self._digest)

    def __repr__(self) -> str:
        return "Token(…)"


def given_token(file: Path | None, environ: Mapping[str, str]) -> Token | None:
    """The token of the file, else of `HEALKIT_COLLECT_TOKEN`; None where neither is given. Raises `ConfigError`."""
    if file is None:
        return Token(environ[VARIABLE].strip()) if VARIABLE in environ else None
    try:
        with file.open(encoding="utf-8") as lines:
            return Token(lines.read(2000).strip())
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise ConfigError(
            f"The token cannot be read from {str(file)!r}: {reason}.",
            hint="Write the token alone into that file.",
        ) from None


def generated_token() -> tuple[Token, str]:
    """A new token, and its text to be told once."""
    text = secrets.token_urlsafe(32)
    return Token(text), text


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach that address; a name other than localhost is taken to be public."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def check_public(host: str, token: Token | None) -> None:
    """Raise `ConfigError` where others could reach the address, and no token worth the name is given."""
    if is_loopback(host):
        return
    if token is None:
        raise ConfigError(
            f"{host!r} can be reached from other machines, and no token is given.",
            hint=f"Set {VARIABLE} or --token-file, or bind to 127.0.0.1.",
        )
    if token.length < PUBLIC_MIN_CHARS:
        raise ConfigError(
            f"{host!r} can be reached from other machines, and the token has only {token.length} characters.",
            hint=f"Take one of at least {PUBLIC_MIN_CHARS}, such as: openssl rand -hex 32",
        )
