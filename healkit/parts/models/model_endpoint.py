"""Endpoint of a model: which one, where, and with whose key.

A provider's own key is sent only to that provider's own host. Otherwise a user with `OPENAI_API_KEY` set, who points
`heal_model_url` at another machine, would disclose the key. Any other host gets `HEALKIT_MODEL_KEY`, or the key for it
in the keyring.
"""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Mapping
from typing import Any, NoReturn
from urllib.parse import urlsplit

from healkit.config import Config
from healkit.parts.models.protocols import Adapter, AnthropicMessages, OpenAIChat

#: Variable with the key for any configured host.
KEY_VARIABLE = "HEALKIT_MODEL_KEY"
#: Service name of keys in the keyring; the user name there is the host.
KEYRING_SERVICE = "healkit"


class ApiKey:
    """Secret that no text shows: no message, no repr, no pickle. `source` says where it was found."""

    __slots__ = ("_text", "source")

    def __init__(self, text: str, source: str) -> None:
        self._text = text
        self.source = source

    def reveal(self) -> str:
        """Return the key itself, for a header."""
        return self._text

    @property
    def sendable(self) -> bool:
        """True if a header can contain the key."""
        return self._text.isascii() and self._text.isprintable() and " " not in self._text

    def kept_out(self, text: str) -> str:
        """Return the text with the key replaced, in case a server quoted it."""
        return text.replace(self._text, "***") if self._text else text

    def __bool__(self) -> bool:
        return bool(self._text)

    def __repr__(self) -> str:
        return f"ApiKey('***', {self.source!r})" if self._text else "ApiKey('')"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a key is not written down")


@dataclasses.dataclass(frozen=True)
class Availability:
    """Result of looking for a model; if it is not usable, `why` says what is missing and how to add it."""

    ok: bool
    why: str = ""

    def __bool__(self) -> bool:
        return self.ok


@dataclasses.dataclass(frozen=True)
class ModelEndpoint:
    """A model, the adapter for it, and its key."""

    model: str
    adapter: Adapter
    key: ApiKey

    @property
    def host(self) -> str:
        """Host of the model, as shown to the user."""
        return urlsplit(self.adapter.endpoint).netloc


@dataclasses.dataclass(frozen=True)
class ModelRequest:
    """Request to a model, with the limits of the whole exchange in seconds and bytes."""

    endpoint: ModelEndpoint
    body: dict[str, Any]
    timeout_s: float
    answer_max_bytes: int

    @property
    def headers(self) -> dict[str, str]:
        """All headers, including the key."""
        return {
            "Content-Type": "application/json",
            "Accept": "text/event-stream",
            "Accept-Encoding": "identity",  # so that its size is known without unpacking
            "User-Agent": "healkit",
            **self.endpoint.adapter.headers(self.endpoint.key.reveal()),
        }


def adapter_of(config: Config) -> Adapter:
    """Return the configured adapter, at the configured address."""
    kinds: dict[str, type[Adapter]] = {"openai": OpenAIChat, "anthropic": AnthropicMessages}
    return kinds[config.heal_model_provider](config.heal_model_url)


def find_endpoint(config: Config, environ: Mapping[str, str]) -> tuple[ModelEndpoint | None, Availability]:
    """Find the configured model, or the reason why it is not usable; send nothing."""
    if not config.heal_model:
        return None, Availability(
            False, "No model is configured: set HEALKIT_HEAL_MODEL to its name (docs/models.md)."
        )
    adapter = adapter_of(config)
    here, home = urlsplit(adapter.endpoint), urlsplit(adapter.default_url)
    host, is_default_host = here.hostname or "", here.hostname == home.hostname
    if is_default_host and here.scheme != home.scheme:
        return None, Availability(
            False, f"A key for {host} would be sent without encryption: write {home.scheme}."
        )
    key = _find_key(adapter, host, is_default_host, environ)
    if not key and is_default_host:
        return None, Availability(
            False,
            f"There is no key for {host}: set {adapter.key_variable} or {KEY_VARIABLE}, "
            f"or run: keyring set {KEYRING_SERVICE} {host}",
        )
    if not key.sendable:
        return None, Availability(
            False,
            f"The key from {key.source} contains characters that an HTTP header cannot contain. Was a line end copied?",
        )
    return ModelEndpoint(config.heal_model, adapter, key), Availability(True)


def _find_key(adapter: Adapter, host: str, own: bool, environ: Mapping[str, str]) -> ApiKey:
    for variable in (KEY_VARIABLE, *((adapter.key_variable,) if own else ())):
        if text := environ.get(variable, ""):
            return ApiKey(text, variable)
    return ApiKey(_from_keyring(host), "the keyring")


def _from_keyring(host: str) -> str:
    """Return the system keyring's key for that host; empty without a key, or without a keyring."""
    try:
        keyring = importlib.import_module("keyring")
    except ImportError:
        return ""
    try:
        return keyring.get_password(KEYRING_SERVICE, host) or ""
    except Exception:  # noqa: BLE001 - backends raise anything: locked, no bus, dismissed by the user
        return ""
