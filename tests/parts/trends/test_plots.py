"""Metrics as a table and as a figure, from real runs."""

from __future__ import annotations

import sys

import pytest

from healkit import Healkit
from healkit.errors import PlotUnavailable


@pytest.fixture(scope="module")
def used(tmp_path_factory):
    """Lend a log with four runs of one tool in two revisions."""
    with Healkit(tmp_path_factory.mktemp("plots") / "healkit.db") as healkit:
        healkit.vault.add("inverse", "def inverse(n: int):\n    return 1 / n\n")
        healkit.execute("inverse", arguments={"n": 0})
        healkit.execute("inverse", arguments={"n": 2})
        healkit.vault.patch("inverse", "def inverse(n: int):\n    return n and 1 / n\n")
        healkit.execute("inverse", arguments={"n": 0})
        healkit.execute("inverse", arguments={"n": 2})
        yield healkit


@pytest.mark.requirement("LOG-13")
def test_each_revision_is_plotted_with_failure_rate_and_durations(used):
    frame = used.log.metrics(tool="inverse")
    assert list(frame["revision"]) == [1, 2]
    assert list(frame["runs"]) == [2, 2]
    assert list(frame["failure_rate"]) == [0.5, 0.0]
    assert (frame["p50_ms"] <= frame["p95_ms"]).all()
    assert list(used.log.metrics(by=()).columns)[:2] == ["tool_name", "runs"]


@pytest.mark.slow
@pytest.mark.requirement("LOG-13")
def test_one_tool_is_drawn_by_run_and_all_tools_by_day(used, tmp_path):
    for plot in (used.plot("inverse"), used.plot()):
        bundle = plot._repr_mimebundle_()
        assert plot.png().startswith(b"\x89PNG")
        assert "inverse v1  2     50 %" in bundle["text/plain"]
        assert bundle.keys() == {"text/plain", "image/png"}
        labels = {text.get_text() for text in plot.figure.axes[0].get_legend().get_texts()}
        assert len(labels) == 2
    assert used.plot("inverse").save(tmp_path / "plot.svg").stat().st_size > 1000


@pytest.mark.requirement("LOG-13")
def test_without_matplotlib_the_error_names_the_extra(healkit, monkeypatch):
    for name in {"matplotlib", *(name for name in sys.modules if name.startswith("matplotlib."))}:
        monkeypatch.setitem(sys.modules, name, None)
    assert len(healkit.log.metrics()) == 0
    with pytest.raises(PlotUnavailable, match=r"^Plots need matplotlib.* pip install 'healkit\[plot\]'"):
        healkit.plot()
