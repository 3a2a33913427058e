"""Which model may be asked, where, and with whose key.

A provider's own key goes to that provider's own host and nowhere else: whoever has `OPENAI_API_KEY` set and points
`heal_model_url` at another machine would otherwise hand it over. Any other host gets `HEALKIT_MODEL_KEY`, or what the
keyring holds for it.
"""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Mapping
from typing import NoReturn
from urllib.parse import urlsplit

from healkit.config import Config
from healkit.healing.advisors.model.anthropic_messages import AnthropicMessages
from healkit.healing.advisors.model.openai_chat import OpenAIChat
from healkit.healing.advisors.model.protocol import Adapter

#: The key for whatever host is configured.
KEY_VARIABLE = "HEALKIT_MODEL_KEY"
#: The name under which the keyring keeps keys; the user name there is the host's.
KEYRING_SERVICE = "healkit"


class Key:
    """A secret that no text shows: not a message, not a repr, not a pickle. `source` says where it was found."""

    __slots__ = ("_text", "source")

    def __init__(self, text: str, source: str) -> None:
        self._text = text
        self.source = source

    def reveal(self) -> str:
        """The key itself, for a header."""
        return self._text

    @property
    def sendable(self) -> bool:
        """Whether a header can carry it."""
        return self._text.isascii() and self._text.isprintable() and " " not in self._text

    def kept_out(self, text: str) -> str:
        """The text without the key, where somebody quoted it."""
        return text.replace(self._text, "***") if self._text else text

    def __bool__(self) -> bool:
        return bool(self._text)

    def __repr__(self) -> str:
        return f"Key('***', {self.source!r})" if self._text else "Key('')"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a key is not written down")


@dataclasses.dataclass(frozen=True)
class Availability:
    """Whether a model can be asked; `why` says what is missing, and how to add it."""

    ok: bool
    why: str = ""

    def __bool__(self) -> bool:
        return self.ok


@dataclasses.dataclass(frozen=True)
class Access:
    """A model, the protocol to ask it in, and the key to do so."""

    model: str
    adapter: Adapter
    key: Key

    @property
    def host(self) -> str:
        """Who is asked, as it is shown."""
        return urlsplit(self.adapter.endpoint).netloc


def adapter_of(config: Config) -> Adapter:
    """The configured protocol, at the configured address."""
    kinds: dict[str, type[OpenAIChat] | type[AnthropicMessages]] = {
        "openai": OpenAIChat,
        "anthropic": AnthropicMessages,
    }
    return kinds[config.heal_model_provider](config.heal_model_url)


def find_access(config: Config, environ: Mapping[str, str]) -> tuple[Access | None, Availability]:
    """How to ask the configured model, or why it cannot be asked; sends nothing."""
    if not config.heal_model:
        return None, Availability(
            False, "No model is configured: set HEALKIT_HEAL_MODEL to its name (docs/models.md)."
        )
    adapter = adapter_of(config)
    here, home = urlsplit(adapter.endpoint), urlsplit(adapter.default_url)
    host, own = here.hostname or "", here.hostname == home.hostname
    if own and here.scheme != home.scheme:
        return None, Availability(
            False, f"A key for {host} would go there in the clear: write {home.scheme}."
        )
    key = _find_key(adapter, host, own, environ)
    if not key and own:
        return None, Availability(
            False,
            f"There is no key for {host}: set {adapter.key_variable} or {KEY_VARIABLE}, "
            f"or run: keyring set {KEYRING_SERVICE} {host}",
        )
    if not key.sendable:
        return None, Availability(
            False,
            f"The key from {key.source} holds characters that no HTTP header can: was a line end copied?",
        )
    return Access(config.heal_model, adapter, key), Availability(True)


def _find_key(adapter: Adapter, host: str, own: bool, environ: Mapping[str, str]) -> Key:
    for variable in (KEY_VARIABLE, *((adapter.key_variable,) if own else ())):
        if text := environ.get(variable, ""):
            return Key(text, variable)
    return Key(_from_keyring(host), "the keyring")


def _from_keyring(host: str) -> str:
    """What the system's keyring holds for that host; empty where there is none, or no keyring at all."""
    try:
        keyring = importlib.import_module("keyring")
    except ImportError:
        return ""
    try:
        return keyring.get_password(KEYRING_SERVICE, host) or ""
    except Exception:  # noqa: BLE001 - a backend raises what it likes: locked, no bus, dismissed by its user
        return ""
