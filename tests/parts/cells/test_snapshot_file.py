"""Snapshot files: written once, read by many."""

from __future__ import annotations

import dataclasses
import datetime
import enum
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from healkit.core.crossing.values import CannotCross, equal
from healkit.parts.cells import snapshot_file

FRAME = pd.DataFrame(
    {
        "name": ["a", "bb", None, "é"],
        "n": [1, 2, 3, 4],
        "when": pd.to_datetime(["2026-01-01", "2026-02-01", None, "2026-03-01"]),
        "kind": pd.Categorical(["x", "y", "x", "x"]),
        "maybe": pd.array([1, None, 3, 4], "Int64"),
    }
)


@dataclasses.dataclass
class Point:
    """Object of a class that no other process has."""

    x: int
    y: int


class Colour(enum.Enum):
    """Constants of such a class."""

    RED = 1


VALUES: dict[str, Any] = {
    "frame": FRAME,
    "indexed": FRAME.set_index("name")["n"],
    "array": np.arange(12.0).reshape(3, 4),
    "table": pa.table({"a": [1, 2], "b": ["x", None]}),
    "texts": pd.array(["long " * 1000] * 100, "string"),
    "rows": [{"a": 1, "b": (2, {3})}, datetime.date(2026, 1, 2)],
    "empty": FRAME.head(0),
}


def test_values_arrive_equal_whichever_their_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for names in (list(VALUES), list(reversed(VALUES))):
        snapshot_file.write_snapshot(tmp_path, {name: VALUES[name] for name in names})
        found = snapshot_file.load_snapshot(str(tmp_path), {})
        assert list(found) == names
        for name, value in found.items():
            assert equal(VALUES[name], value), name


def test_what_one_reader_writes_no_other_sees(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    snapshot_file.write_snapshot(tmp_path, VALUES)
    first = snapshot_file.load_snapshot(str(tmp_path), {})
    first["array"][0, 0] = 99
    first["frame"].loc[0, "n"] = 99
    second = snapshot_file.load_snapshot(str(tmp_path), {})
    assert second["array"][0, 0] == 0
    assert second["frame"].loc[0, "n"] == 1


def test_what_cannot_cross_is_named_by_its_place(tmp_path: Path) -> None:
    with pytest.raises(CannotCross) as caught:
        snapshot_file.write_snapshot(tmp_path, {"frame": FRAME, "rows": [1, iter([])]})
    assert caught.value.path == "$.rows[1]"


@pytest.mark.parametrize("value", [Point(1, 2), Colour.RED, [Point(1, 2)]])
def test_what_would_arrive_as_another_type_is_refused(tmp_path: Path, value: object) -> None:
    with pytest.raises(CannotCross, match=r"\$\.value.*arrives as"):
        snapshot_file.write_snapshot(tmp_path, {"value": value})


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (None, ""),
        (FRAME, "a table of 4 rows × 5 columns"),
        (FRAME["n"], "a column of 4 values"),
        (np.zeros((2, 3)), "an array of shape (2, 3)"),
        (np.float64(1.5), "1.5 (float64)"),
        ("x" * 100, "a str of 100 characters"),
        (list(range(50)), "a list of 50 items"),
        ([1, 2], "[1, 2]"),
        ([object()], "a list of 1 item"),
        (object(), "an object"),
    ],
)
def test_a_value_is_described_in_a_few_words(value: object, said: str) -> None:
    assert snapshot_file.described(value) == said
