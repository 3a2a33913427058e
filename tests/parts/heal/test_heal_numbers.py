"""Pages with numbers, compared with the kept results.

`HEALKIT_REGENERATE=1 pytest tests/parts/heal/test_heal_numbers.py` writes its tables anew; the diff is then reviewed.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "healing_numbers.md"
PAGES = {PAGE: 4, ROOT / "docs" / "fix_evidence.md": 1}
RESULTS = ROOT / "benchmarks" / "heal" / "results.json"
TABLE = re.compile(r"<!-- ([\w ,]+) -->\n(.*?)<!-- /\1 -->", re.DOTALL)


@pytest.fixture(scope="module")
def bench():
    """Import the benchmark and its tables, which are scripts' and not the package's."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        import bench_heal
        from heal import tables
    finally:
        sys.path.remove(str(ROOT / "benchmarks"))
    return SimpleNamespace(options_of=bench_heal.options_of, tables=tables)


@pytest.mark.requirement("HEAL-5")
@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_every_table_of_the_page_comes_from_measured_results(bench: Any, path: Path) -> None:
    results = json.loads(RESULTS.read_text())
    page = path.read_text()
    written = TABLE.sub(lambda match: _table(bench.tables, results, match[1]), page)
    if os.environ.get("HEALKIT_REGENERATE"):
        path.write_text(written)
    assert path.read_text() == written
    assert len(TABLE.findall(page)) >= PAGES[path]


@pytest.mark.requirement("HEAL-5")
def test_results_say_how_they_were_measured_and_on_how_many_programs() -> None:
    results = json.loads(RESULTS.read_text())
    assert results["own"]["programs"] >= 60
    assert {"gallery", "quixbugs, half visible", "mutants"} <= set(results)
    for name, result in results.items():
        assert result["budget_s"] > 0, name
        assert result["advisors"], name
        assert result["commit"], name
        assert result["claims"]["correct"] <= result["claims"]["cured"] <= 1000, name
        assert result["kept_correct"] <= result["any_correct"] <= result["plausible"] <= result["programs"], (
            name
        )


def test_the_benchmark_accepts_every_command_of_the_page(bench: Any) -> None:
    commands = re.findall(r"^python benchmarks/bench_heal.py (.*)$", PAGE.read_text(), re.MULTILINE)
    assert len(commands) >= 4
    for command in commands:
        assert bench.options_of(shlex.split(command)).set
    make = (ROOT / "Makefile").read_text()
    assert "bench-heal:" in make
    assert "$(QUIXBUGS)" in make


def _table(tables: Any, results: dict[str, Any], name: str) -> str:
    """Return a table between its marks, `overview`, `conditions`, `quoted` or `<set> by_<group>`."""
    if name in ("overview", "conditions", "quoted"):
        text = getattr(tables, name)(results)
    else:
        of, by = name.rsplit(" ", 1)
        text = tables.groups(results[of], by, "kind" if by == "by_kind" else "it")
    return f"<!-- {name} -->\n{text}\n<!-- /{name} -->"
