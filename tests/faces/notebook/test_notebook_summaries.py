"""`%summarize` and `hk.summarize` show a card."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from healkit import Healkit
from healkit.errors import UsageInvalid
from healkit.parts.decide.summary_records import FrameSummary, TextSummary

pytestmark = pytest.mark.requirement("DECIDE-7", "FACE-2")


def test_a_variable_or_an_expression_is_summarised(shell: Any, healkit: Healkit) -> None:
    shell.run_line_magic("load_ext", "healkit")
    shell.user_ns["sales"] = pd.DataFrame({"price": [1, 2, 3]})
    found = shell.run_line_magic("summarize", "sales")
    assert isinstance(found, FrameSummary)
    formatted, _ = shell.display_formatter.format(found)
    assert formatted["text/plain"].startswith("pandas.DataFrame: 3 × 1")
    assert "<table" in formatted["text/html"]
    assert shell.run_line_magic("summarize", '"sales[sales.price > 2]"').shape == (1, 1)
    shell.user_ns["text"] = "one two one"
    found = shell.run_line_magic("summarize", "text --top 1")
    assert isinstance(found, TextSummary)
    assert [entry.text for entry in found.ngrams[1].top] == ["one"]
    assert healkit.summarize("one two one", top=1) == found
    with pytest.raises(UsageInvalid, match="nothing_here"):
        shell.run_line_magic("summarize", "nothing_here")
