"""Data views on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from healkit import Healkit


@pytest.fixture
def kept(environment: dict[str, str]) -> pd.DataFrame:
    frame = pd.DataFrame({"a": range(300), "t": ["x", None, "z"] * 100})
    with Healkit(environment["HEALKIT_DB"]) as healkit:
        healkit.views.put(frame, "sales")
    return frame


@pytest.mark.requirement("DATA-3")
def test_views_are_listed_shown_exported_and_removed(cli, kept, tmp_path: Path):
    header, row = cli("views").stdout.splitlines()
    assert header.split() == ["view", "kind", "shape", "size", "made", "by", "when", "runs"]
    assert "sales" in row
    assert "300 rows × 2 columns" in row
    shown = cli("views", "show", "sales").stdout
    assert "float" not in shown
    assert [line.split() for line in shown.splitlines() if line.split()[:1] == ["t"]] == [["t", "str", "100"]]
    (told,) = json.loads(cli("views", "--json").stdout)
    assert (told["viewName"], told["rowCount"], told["createdBy"]) == ("sales", 300, "user")
    file = tmp_path / "out.parquet"
    assert "written" in cli("views", "export", "sales", str(file)).stdout
    pd.testing.assert_frame_equal(pd.read_parquet(file), kept)
    assert "removed" in cli("views", "remove", "sales").stdout
    assert "No data views" in cli("views").stdout


@pytest.mark.requirement("DATA-3")
def test_a_view_that_is_not_there_is_an_error_with_the_nearest_name(cli, kept):
    done = cli("views", "show", "sale")
    assert "Did you mean 'sales'" in done.stderr
