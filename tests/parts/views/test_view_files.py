"""Files of data views hold the value exactly."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import pandas as hypothesis_pandas

from healkit.core.crossing.values import BadValue
from healkit.parts.views import view_files

DATA_3 = pytest.mark.requirement("DATA-3")
NOON = pd.Timestamp("2026-03-01 12:00", tz="Europe/Berlin")

FRAMES: dict[str, Any] = {
    "numbers": pd.DataFrame(
        {"i": range(300), "f": np.linspace(0, 1, 300), "small": np.arange(300, dtype="i1")}
    ),
    "every NaN and both zeros": pd.DataFrame({"x": np.array([1, np.nan, -np.nan, 0.0, -0.0]).repeat(60)}),
    "texts": pd.DataFrame({"t": ["a", None, "ü"] * 100, "c": pd.Categorical(["x", "y", None] * 100)}),
    "masked": pd.DataFrame(
        {"i": pd.array([1, None] * 150, "Int64"), "b": pd.array([True, None] * 150, "boolean")}
    ),
    "times": pd.DataFrame({"z": pd.date_range(NOON, periods=300), "d": pd.to_timedelta(range(300), "s")}),
    "a frequency": pd.DataFrame({"v": range(300)}, index=pd.date_range("2026", periods=300, name="day")),
    "levels": pd.DataFrame({"a": range(300), "b": ["x", "y"] * 150, "v": 1.5}).set_index(["a", "b"]),
    "attributes": pd.DataFrame({"a": range(300)}),
    "numbers for labels": pd.DataFrame(np.ones((100, 3))),
    "labels of two types": pd.DataFrame({"a": range(300), 1: 1.5}),
    "a table": pa.table({"n": range(300), "t": ["x"] * 300}),
    "chunks": pa.concat_tables([pa.table({"n": [1] * 200}), pa.table({"n": [2] * 100})]),
    "polars": polars.DataFrame({"n": range(300), "t": ["x"] * 300}),
}
FRAMES["attributes"].attrs = {"source": ("a", 1)}
OTHERS: dict[str, Any] = {
    "two columns of one name": pd.DataFrame(np.ones((150, 2)), columns=["a", "a"]),
    "labels with one text": pd.DataFrame({"1": range(300), 1: 1.5}),
    "objects": pd.DataFrame({"o": [{"x": 1}, 2, "three"] * 100}),
    "a series": pd.Series(range(300), name="s"),
    "an array": np.arange(600.0).reshape(100, 3, 2),
    "a structure": np.zeros(300, [("a", "i4"), ("b", "f8", 2)]),
}


def kept(value: Any, folder: Path) -> tuple[Path, str, Any]:
    whole = view_files.encoded(value)
    digest = view_files.identity(whole)
    file = view_files.write_view(value, whole, digest, folder)
    assert file.stat().st_mode & 0o777 == 0o600
    again = view_files.read_view(folder, file.name)
    assert type(again) is type(value)
    assert view_files.identity(view_files.encoded(again)) == digest
    return file, file.suffix[1:], again


@DATA_3
def test_a_frame_is_kept_as_parquet_and_comes_back_as_it_was(tmp_path: Path) -> None:
    for name, frame in FRAMES.items():
        file, form, _ = kept(frame, tmp_path)
        assert form == "parquet", name
        assert len(pd.read_parquet(file)) == len(frame), name
    assert len([*tmp_path.iterdir()]) == len(FRAMES)


@DATA_3
def test_what_parquet_cannot_hold_exactly_is_kept_as_it_crossed(tmp_path: Path) -> None:
    assert {name: kept(value, tmp_path)[1] for name, value in OTHERS.items()} == dict.fromkeys(
        OTHERS, "contents"
    )


@DATA_3
@settings(max_examples=20, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(
    hypothesis_pandas.data_frames(
        [
            hypothesis_pandas.column("i", dtype=np.int64),
            hypothesis_pandas.column("f", dtype=np.float64),
            hypothesis_pandas.column("t", elements=st.none() | st.text(max_size=4)),
            hypothesis_pandas.column("b", dtype=bool),
        ],
        index=hypothesis_pandas.range_indexes(max_size=8),
    )
)
def test_any_frame_comes_back_as_it_was(tmp_path: Path, frame: pd.DataFrame) -> None:
    kept(frame, tmp_path)


@DATA_3
@pytest.mark.parametrize("name", ["numbers", "an array"])
def test_a_damaged_file_is_one_clear_error(name: str, tmp_path: Path) -> None:
    file, _, _ = kept({**FRAMES, **OTHERS}[name], tmp_path)
    whole = file.read_bytes()
    for damaged in (b"", whole[:20], whole[:-3], whole + b"x", b"\xff" * len(whole)):
        file.write_bytes(damaged)
        with pytest.raises(BadValue):
            view_files.read_view(tmp_path, file.name)
