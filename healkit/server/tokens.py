"""Token of a collector that stands alone."""

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
    """Secret of which only a digest is kept, so that it cannot be shown by accident."""

    def __init__(self, text: str) -> None:
        if not (text.isascii() and text.isprintable() and " " not in text and 0 < len(text) <= 1000):
            raise ConfigError(
                "The collector's token is empty, too long, or has characters that a header cannot carry.",
                hint="Use up to 1,000 letters, digits and punctuation without spaces.",
            )
        self._digest = hashlib.sha256(text.encode()).digest()
        self.length = len(text)

    def matches(self, text: str) -> bool:
        """Return True for the same text; digests are compared by `hmac.compare_digest`."""
        given = hashlib.sha256(text.encode(errors="surrogatepass")).digest()
        return hmac.compare_digest(given, self._digest)

    def __repr__(self) -> str:
        return "Token(…)"


def given_token(file: Path | None, environ: Mapping[str, str]) -> Token | None:
    """Read the token from the file, else from `HEALKIT_COLLECT_TOKEN`, if given; raise `ConfigError`."""
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
    """Generate a token; return it with its text, to be shown once."""
    text = secrets.token_urlsafe(32)
    return Token(text), text


def is_loopback(host: str) -> bool:
    """Return True when only this machine can reach that address; names other than localhost count as public."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def check_public(host: str, token: Token | None) -> None:
    """Raise `ConfigError` where other machines can reach the address and the token is missing or too short."""
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
