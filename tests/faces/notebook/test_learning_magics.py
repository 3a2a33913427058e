"""Magics of what was learned: warning, graph, suggestions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from healkit import Healkit

CONVERT = "def convert(value, **more):\n    return value * {'km': 1.0}[more['unit']]\n"


@pytest.mark.requirement("LEARN-3")
def test_a_run_like_those_that_failed_is_warned_of_and_runs(
    shell: Any, database: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Healkit(database) as healkit:
        healkit.vault.add("convert", CONVERT)
        for value in range(6):
            healkit.execute("convert", arguments={"value": value, "unit": "km"})
            healkit.execute("convert", arguments={"value": value})
    shell.run_cell("%load_ext healkit")
    capsys.readouterr()
    assert shell.run_cell("%run_tool convert value=9 unit='km'").result == 9
    assert "likely to fail" not in capsys.readouterr().out
    shell.run_cell("%run_tool convert value=9")
    said = "This run is likely to fail: 6 of the last 6 runs with `unit` missing failed: KeyError."
    assert said in capsys.readouterr().out
    with Healkit(database) as healkit:
        assert healkit.log.count(tool="convert", status="FAILURE") == 7


@pytest.mark.requirement("LEARN-2", "LEARN-3")
def test_the_magics_return_what_they_show(shell: Any, database: Path) -> None:
    with Healkit(database) as healkit:
        healkit.vault.add(
            "total", "def total(n):\n    return mcp.vault.price(n=n) * 2\n", description="Sum of an order."
        )
        healkit.vault.add("price", "def price(n):\n    return n + 1\n")
        for n in range(3):
            healkit.execute("total", arguments={"n": n})
        healkit.learning.catch_up()
    shell.run_cell("%load_ext healkit")
    assert shell.run_line_magic("suggest", '"the sum of my order" --limit 1')[0].tool == "total"
    (contains,) = [edge for edge in shell.run_line_magic("graph", "total") if edge.kind == "contains"]
    assert (contains.target, contains.count) == ("price", 3)
    assert "text/vnd.mermaid" in shell.run_line_magic("graph", "")._repr_mimebundle_()
