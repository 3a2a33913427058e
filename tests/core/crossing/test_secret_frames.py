"""Kept tables with a secret's name on a part."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from healkit.core.crossing import values


def secret(columns: dict[str, Any]) -> list[str]:
    return [name for name in columns if name == "password"]


@pytest.mark.requirement("TRUST-4")
@pytest.mark.parametrize(
    "value",
    [
        pd.DataFrame({"password": ["hunter22"]}),
        pd.Series(["hunter22"], name="password"),
        {"of": [pd.Series(["hunter22"], name="password")]},
    ],
    ids=["frame", "series", "nested"],
)
def test_what_has_a_secrets_name_is_shown_by_columns(value: object) -> None:
    shown = values.without_secret_frames(values.kept(value), secret)
    assert "'columns': ['password']" in str(shown)
    assert "'@'" not in str(shown)


@pytest.mark.parametrize(
    "value",
    [pd.Series([1, 2], name="city"), pd.Series([1.5]), np.array([1, 2]), np.array([[1], [2]]), 3, "text"],
)
def test_all_else_is_kept_as_it_is(value: object) -> None:
    kept = values.kept(value)
    assert values.without_secret_frames(kept, secret) == kept
