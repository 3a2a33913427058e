"""`%heal` in a real kernel, where no person answers.

Also what it says to a cell of the user's own.
"""

from __future__ import annotations

import re

import pytest
from notebook_samples import text_of

from healkit import Healkit

BROKEN = "def mean(values: list):\n    return sum(values) / len(value)\n"
EXAMPLES = [{"arguments": {"values": [2, 4, 6]}, "result": 4.0}]


@pytest.mark.requirement("FACE-2", "HEAL-1", "HEAL-4")
def test_the_tool_that_failed_last_is_healed_and_the_report_is_the_cells_value(run, healkit: Healkit) -> None:
    healkit.vault.add("mean", BROKEN, examples=EXAMPLES)
    healkit.execute("mean", arguments={"values": [1]})
    book = run(
        "%load_ext healkit",
        "%heal --with rules",
        "%heal --with rules --auto",
        "%heal mean",
        "%heal --help",
        "%heal mean --with ruls",
        "report = %heal mean\nreport.outcome",
    )
    waits, kept, healthy, helped, typo, value = (text_of(cell) for cell in book.cells[1:])
    assert "a patch is waiting for your approval: fixed, no regressions" in waits
    assert "· Asking rules." in waits
    assert "%healkit requests accept" in waits
    assert " healkit trace show" not in waits  # a terminal's command
    assert "v2 is active: fixed, no regressions" in kept
    assert "+    return sum(values) / len(values)" in kept
    assert "nothing fails any more" in healthy
    assert "--dry-run" in helped
    assert "Did you mean 'rules'" in typo
    assert value.endswith("'healthy'")
    asks, page = (
        next(o.data["text/html"] for o in cell.outputs if "text/html" in o.get("data", {}))
        for cell in book.cells[1:3]
    )
    assert "<ins" in page
    assert ">%healkit requests accept 1</code> or " in asks  # what is typed in a notebook, as code
    assert ">%vault undo mean</code>" in page
    assert ">values</code>" in page
    for card in (asks, page):
        assert "`" not in card
        assert not re.search(r"(?<!%)\bhealkit (requests|vault|trace)", card)
    assert healkit.vault.get("mean").revision == 2
