"""`%run_tool NAME --map INPUTS`, and its panel."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from healkit import Healkit

pytestmark = pytest.mark.requirement("SCALE-4")

INVERSE = "import time\ndef inverse(n: int):\n    time.sleep(0.02)\n    return 1 / n\n"


@pytest.fixture
def loaded(shell: Any, database: Path) -> Any:
    with Healkit(database) as healkit:
        healkit.vault.add("inverse", INVERSE)
    shell.run_cell("%load_ext healkit")
    return shell


def test_a_frame_a_list_and_a_file_are_mapped(loaded: Any, tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    pd.DataFrame({"n": [1, 4]}).to_csv(file, index=False)
    loaded.user_ns["df"] = pd.DataFrame({"n": [1, 4]})
    for inputs in ("df", "[1,4]", str(file)):
        report = loaded.run_cell(f"%run_tool inverse --map {inputs}").result
        assert report.to_pandas()["result"].tolist() == [1.0, 0.25]
    again = loaded.run_cell(f"%run_tool inverse --map df --run-id {report.run_id}").result
    assert again.earlier == 2
    with pytest.raises(Exception, match="not defined"):
        loaded.run_cell("%run_tool inverse --map nothing").raise_error()
    with pytest.raises(Exception, match="needs inputs"):
        loaded.run_cell("%run_tool inverse --map 3").raise_error()


def test_the_panel_maps_and_stops(loaded: Any) -> None:
    panel = loaded.run_cell("%run_tool inverse --map [1,0,4] --panel").result
    report = panel.wait(60)
    assert (report.done, report.failed) == (3, 1)
    bar, button = panel.children[0].children
    assert "1 failed" in panel.children[1].value
    assert (bar.value, button.disabled) == (1.0, True)
    panel = loaded.run_cell("%run_tool inverse --map list(range(1,2000)) --panel").result
    panel.children[0].children[1].click()
    report = panel.wait(60)
    assert report.stopped
    assert report.done < 1999
    assert report.run_id in panel.children[1].value


def test_the_panel_shows_what_is_wrong(loaded: Any) -> None:
    panel = loaded.run_cell("%run_tool inverse --map 3 --panel").result
    assert panel.wait(60) is None
    assert "needs inputs" in panel.children[1].value
    loaded.run_cell("def broken():\n    yield 1\n    raise OSError('the line is down')")
    panel = loaded.run_cell("%run_tool inverse --map broken() --panel").result
    assert panel.wait(60) is None
    assert "the line is down" in panel.children[1].value
    with pytest.raises(Exception, match="inverze"):
        loaded.run_cell("%run_tool inverze --map [1] --panel").raise_error()
