"""Errors for a server's refusals: wait, fix a setting, or end.

The codes are those that OpenAI (https://platform.openai.com/docs/guides/error-codes) and Anthropic
(https://platform.claude.com/docs/en/api/errors) publish; 529 is Anthropic's for overloaded.
"""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from urllib.parse import urlsplit

import msgspec

from healkit.errors import ModelError, ModelInputTooLarge, ModelKeyRefused, ModelUnavailable
from healkit.language_models.model_endpoint import KEY_VARIABLE, ModelEndpoint
from healkit.language_models.protocol import complaint_of, mapping
from healkit.sanitizer import Sanitizer
from healkit.tracing.delivery import readable, retry_after_s

#: Codes after which another try may succeed.
_PASSING = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
#: Words of a 429 that waiting does not help: the quota is used up.
_NO_QUOTA = ("insufficient_quota", "billing")


class TransientError(Exception):
    """A refusal or fault that may pass; `wait_s` is the pause that the server asks for, else 0."""

    def __init__(self, error: ModelUnavailable, wait_s: float = 0.0) -> None:
        super().__init__(str(error))
        self.error = error
        self.wait_s = wait_s


class UnsupportedRequest(Exception):
    """Refusal of a request that the server does not understand; `said` is its message."""

    def __init__(self, said: str, error: ModelError) -> None:
        super().__init__(said)
        self.said = said
        self.error = error


def refusal_of(status: int, headers: Mapping[str, str], body: bytes, endpoint: ModelEndpoint) -> Exception:
    """Return the exception for an answer that is no stream; `headers` have lower-case names."""
    kind, said = _said(body, endpoint)
    answered = f"The model's server at {endpoint.host} answered {_named(status)}" + (
        f": {said}" if said else ""
    )
    match status:
        case 200:
            return _no_stream(answered, headers)
        case 401 | 403:
            return ModelKeyRefused(f"{answered}.", hint=_key_hint(endpoint))
        case 404:
            hint = f"Has it a model {endpoint.model!r}, and is {endpoint.adapter.endpoint} its address?"
            return ModelError(f"{answered}.", hint=hint)
        case 413:
            return ModelInputTooLarge(f"{answered}.", hint="Lower heal_model_input_max_bytes.")
        case 402 | 429 if status == 402 or any(word in f"{kind} {said}" for word in _NO_QUOTA):
            return ModelError(f"{answered}.", hint="The account has no quota left.")
        case _ if status in _PASSING:
            wait_s = retry_after_s(headers.get("retry-after", ""))
            return TransientError(ModelUnavailable(f"{answered}.", hint="Try again later."), wait_s)
        case 400 | 422:
            return UnsupportedRequest(f"{kind} {said}", ModelError(f"{answered}."))
        case _ if 300 <= status < 400:
            return _redirect(answered, headers)
    return ModelError(f"{answered}.", hint="Is heal_model_url the address of such an API?")


def _no_stream(answered: str, headers: Mapping[str, str]) -> ModelError:
    kind = headers.get("content-type", "") or "no type"
    packed = headers.get("content-encoding", "identity")
    form = f"{kind} packed as {packed}" if packed != "identity" else kind
    return ModelError(
        f"{answered}, as {readable(form)!r} instead of a stream of events.",
        hint="Is heal_model_url the address of such an API, and heal_model_provider its protocol?",
    )


def _redirect(answered: str, headers: Mapping[str, str]) -> ModelError:
    try:
        place = urlsplit(headers.get("location", ""))
        target = f"to {place.hostname or ''}{place.path}"
    except ValueError:
        target = "elsewhere"
    return ModelError(
        f"{answered}: it points {readable(target)}, and a redirect is not followed, for the key would go there.",
        hint="If that is right, set heal_model_url to it.",
    )


def _key_hint(endpoint: ModelEndpoint) -> str:
    if not endpoint.key:
        return f"It wants a key: set {KEY_VARIABLE}."
    return f"The key is from {endpoint.key.source}: is it right, and may it use {endpoint.model!r}?"


def _said(body: bytes, endpoint: ModelEndpoint) -> tuple[str, str]:
    """Return kind and text of a JSON error in any common form, without key and secrets; else empty texts."""
    try:
        found = mapping(msgspec.json.decode(body))
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return "", ""
    for name in ("error", "message", "detail"):
        if found.get(name):
            kind, text = complaint_of(found[name])
            code = str(mapping(found[name]).get("code") or "")
            return endpoint.key.kept_out(f"{kind} {code}"), presentable(text, endpoint)
    return "", ""


def presentable(said: str, endpoint: ModelEndpoint) -> str:
    """Return a server's message as one line without the key, which some servers quote, and without other secrets."""
    return readable(str(Sanitizer().text(endpoint.key.kept_out(said)).value)).rstrip(".")


def _named(status: int) -> str:
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)
