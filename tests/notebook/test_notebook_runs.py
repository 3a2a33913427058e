"""Runs from a notebook.

`%run_tool --record`, and cells inside `with hk.run()`.
"""

from __future__ import annotations

import pytest
from notebook_samples import BROKEN, text_of

from healkit.tracing.reader import validate_run
from healkit.tracing.run_folders import run_folders


@pytest.mark.slow
@pytest.mark.requirement("FACE-2", "RUN-1")
def test_a_recorded_execution_names_its_run_on_the_card_and_a_block_makes_steps(run, healkit):
    book = run(
        "%load_ext healkit",
        BROKEN,
        "%run_tool fibonacci n=10 --record",
        "from healkit.defaults import default_healkit\nhk = default_healkit()\nwith hk.run('lesson') as steps:\n"
        "    for n in (1, 2):\n        hk.execute('fibonacci', arguments={'n': n})\nprint(steps)",
    )
    alone, together = map(validate_run, run_folders(healkit.runs_dir))
    assert alone.problems == together.problems == []
    assert f"run {alone.run_id}" in text_of(book.cells[2])
    assert together.events[-1].result == {"outcome": "completed", "steps": 2, "failures": 2}
    assert f"<run {together.run_id}, ended, 2 steps, in " in text_of(book.cells[3])
    assert [row.run_id for row in healkit.log.query()] == [together.run_id, together.run_id, alone.run_id]
