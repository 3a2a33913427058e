"""State signatures: the state of a tool's world, as hashes.

Five hashes, each its own field, so that two signatures say *what* differs: the tool (name, persona and code), the
normalised failure (its fingerprint), the arguments, the outputs, and the worker. `state_key` joins the first three:
same code, same arguments and same failure are the same state, whatever was printed on the way and however isolated it
was. A revision's number is left out: to revert to a revision's code is to be back in its state.

A hash is the first 32 hexadecimal digits of the SHA-256 of `<version>:<field>:` and the value as JSON with sorted keys.
The caller passes values that are already clean: a hash of a short secret can be guessed back.
"""

from __future__ import annotations

import hashlib
from typing import Annotated, Any

import msgspec

#: Version of the fields; the same since the first run folders, which write it as the number 1.
SCHEMA_VERSION = "v1"
#: Version; it changes whenever the same state would get other hashes.
ALGORITHM = "sha256-128/1"

Hash = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{32}$")]
_encode = msgspec.json.Encoder(order="deterministic").encode


class StateSignature(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Signature of one state; a part that is not there yet (no failure, no outputs) is null."""

    schema_version: str
    algorithm: str
    tool: Hash
    failure: Hash | None
    arguments: Hash
    outputs: Hash | None
    worker: Hash | None
    state_key: Hash


def sign(
    *,
    tool_name: str,
    persona: str,
    code_hash: str | None,
    arguments: Any,
    fingerprint: str | None = None,
    outputs: Any = None,
    worker: Any = None,
) -> StateSignature:
    """Sign a state given by its parts: JSON values, and a failure's fingerprint or None."""
    tool = digest("tool", [tool_name, persona, code_hash])
    failure = None if fingerprint is None else digest("failure", fingerprint)
    given = digest("arguments", arguments)
    return StateSignature(
        SCHEMA_VERSION,
        ALGORITHM,
        tool=tool,
        failure=failure,
        arguments=given,
        outputs=None if outputs is None else digest("outputs", outputs),
        worker=None if worker is None else digest("worker", worker),
        state_key=state_key(tool, failure, given),
    )


def state_key(tool: str, failure: str | None, arguments: str) -> str:
    """Return the one hash that two signatures share if they are of the same state."""
    return digest("state", [tool, failure, arguments])


def digest(field: str, value: Any) -> str:
    """Hash a JSON value as that field; equal for equal values whatever the order of their keys."""
    try:
        encoded = _encode(value)
    except UnicodeEncodeError:  # a lone surrogate, which JSON's UTF-8 cannot hold
        encoded = repr(value).encode(errors="backslashreplace")
    return hashlib.sha256(f"{ALGORITHM}:{field}:".encode() + encoded).hexdigest()[:32]
