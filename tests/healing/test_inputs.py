"""Other inputs for a tool: small and of the same kind.

None of them is known already.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from healkit.healing.inputs import size, variants

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-50, 50) | st.floats(-10, 10) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
ARGUMENTS = st.dictionaries(st.sampled_from(["a", "b", "text"]), VALUES, min_size=1, max_size=3)


@pytest.mark.slow
@given(ARGUMENTS)
def test_variants_are_new_distinct_and_smallest_first(known: dict[str, Any]) -> None:
    found = variants([known], lambda _: True, 30)
    sizes = [size(arguments) for arguments in found]
    assert sizes == sorted(sizes)
    assert len(set(sizes)) == len(sizes)
    assert size(known) not in sizes
    assert all(arguments.keys() == known.keys() for arguments in found)


def test_variants_keep_types_and_fit_the_schema() -> None:
    found = variants([{"n": 5, "text": "ab"}], lambda given: given["n"] > 0, 50)
    assert found
    assert all(type(arguments["n"]) is int and arguments["n"] > 0 for arguments in found)
    assert all(type(arguments["text"]) is str for arguments in found)
    assert {"n": 1, "text": "ab"} in found
    assert {"n": 5, "text": ""} in found


def test_there_are_at_most_limit_variants() -> None:
    assert len(variants([{"values": [1, 2, 3]}], lambda _: True, 5)) == 5
    assert variants([], lambda _: True, 5) == []
