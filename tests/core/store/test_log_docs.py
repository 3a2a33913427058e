"""Code of the docs page on the log runs."""

from __future__ import annotations

import ast
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from cli_samples import call

from healkit.core.contracts.execution import FILTER_NAMES

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))
from bench_log_scale import questions

DOCS = Path(__file__).parents[3] / "docs"
PAGE = (DOCS / "log.md").read_text()
BLOCKS, COSTS = (
    re.findall(r"^```(\w+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    for text in (PAGE, (DOCS / "log_costs.md").read_text())
)


def test_the_benchmark_asks_every_question_of_the_page() -> None:
    """R9: questions were documented that no benchmark asked."""
    asked = questions()
    named = {keyword.arg for text in asked for keyword in ast.parse(text, mode="eval").body.keywords}  # type: ignore[attr-defined]  # each is a call
    assert set(FILTER_NAMES) <= named
    methods = {text.partition("(")[0] for text in asked}
    shown = set(re.findall(r"\bhk\.(?:log\.\w+|executions|last_error)(?=\()", PAGE))
    assert shown - methods == {"hk.log.prune"}
    assert len(asked) > 50


@pytest.mark.slow
@pytest.mark.requirement("LOG-10", "LOG-11", "LOG-12")
def test_the_docs_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    *python, last = (block for kind, block in BLOCKS if kind == "python")
    (console,) = (block for kind, block in BLOCKS if kind == "console")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HEALKIT_DB", str(tmp_path / "healkit.db"))
    monkeypatch.setenv("HOME", str(tmp_path))

    def run(program: str) -> None:
        words = [sys.executable, "-W", "error", "-c", program]
        done = subprocess.run(words, capture_output=True, text=True, timeout=100, check=False)
        assert done.returncode == 0, done.stderr

    ((_, questions_asked),) = COSTS
    run("".join([*python, questions_asked]))
    for part in re.split(r"^\$ ", console, flags=re.MULTILINE)[1:]:
        command, _, shown = part.partition("\n")
        program, *words = shlex.split(command)
        done = call(*words)
        assert (program, done.returncode, done.stdout) == ("healkit", 0, shown), (command, done.stderr)
    run(python[0].partition("hk.vault")[0] + last)
