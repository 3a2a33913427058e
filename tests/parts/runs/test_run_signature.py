"""State signatures differ exactly where the state does."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from healkit.parts.runs.contract import ALGORITHM, StateSignature, sign, state_key

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
PARTS: dict[str, Any] = {
    "tool_name": "f", "persona": "default", "code_hash": "c" * 64, "arguments": {"n": 1}, "fingerprint": "v1:a",
    "outputs": ["1", []], "worker": ["namespaces", "worker"],
}  # fmt: skip
#: Part → the field that tells of it, and whether it is part of what makes a state the same.
TOLD = {
    "tool_name": ("tool", True), "persona": ("tool", True), "code_hash": ("tool", True),
    "arguments": ("arguments", True), "fingerprint": ("failure", True), "outputs": ("outputs", False),
    "worker": ("worker", False),
}  # fmt: skip


def shuffled(value: Any) -> Any:
    """Return the same value with the keys of its objects the other way round."""
    if isinstance(value, dict):
        return {key: shuffled(item) for key, item in reversed(value.items())}
    return [shuffled(item) for item in value] if isinstance(value, list) else value


@pytest.mark.slow
@pytest.mark.requirement("RUN-5")
@given(st.dictionaries(st.text(), JSON), JSON)
def test_the_order_of_keys_does_not_change_a_signature(arguments: dict[str, Any], outputs: Any) -> None:
    left = sign(**{**PARTS, "arguments": arguments, "outputs": outputs})
    right = sign(**{**PARTS, "arguments": shuffled(arguments), "outputs": shuffled(outputs)})
    assert left == right
    assert left.state_key == state_key(left.tool, left.failure, left.arguments)


@pytest.mark.requirement("RUN-5")
@given(part=st.sampled_from(list(PARTS)), other=st.text(min_size=1))
def test_a_changed_part_changes_only_its_own_field(part: str, other: str) -> None:
    first, second = sign(**PARTS), sign(**{**PARTS, part: other})
    field, decides = TOLD[part]
    fields = [
        name for name in StateSignature.__struct_fields__ if getattr(first, name) != getattr(second, name)
    ]
    assert fields == ([field, "state_key"] if decides else [field]) or PARTS[part] == other


@pytest.mark.requirement("RUN-5")
def test_a_missing_part_is_null() -> None:
    before = sign(tool_name="f", persona="default", code_hash=None, arguments={})
    assert (before.failure, before.outputs, before.worker) == (None, None, None)
    assert (before.schema_version, before.algorithm) == ("v1", ALGORITHM)
    assert sign(tool_name="f", persona="default", code_hash=None, arguments={}, fingerprint="") != before
    assert (
        sign(tool_name="f", persona="default", code_hash=None, arguments="a\ud800").arguments
        != before.arguments
    )


@pytest.mark.requirement("RUN-5")
def test_the_hashes_do_not_change() -> None:
    """Whoever changes one of these changes ALGORITHM too: runs are compared across versions."""
    signature = sign(**PARTS)
    assert (signature.algorithm, signature.tool, signature.state_key) == (
        "sha256-128/1", "888b1356efc5c48a9095bd652fe07957", "e3c14c208d988a0dd0038e787ff7564c",
    )  # fmt: skip
