"""A clock that was set back: the newest execution stays the newest (audit R5)."""

from __future__ import annotations

import contextlib
import sys
from datetime import timedelta
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "store"))  # the store's samples are these tests' too
from store_samples import failed, started, succeeded

from healkit import Healkit
from healkit.contracts.records import utc_now
from healkit.store.log_writer import LogWriter

BEFORE = [timedelta(seconds=1), timedelta(hours=1), timedelta(hours=23)]


def written_before_the_clock_was_set_back(healkit: Healkit, by: timedelta) -> int:
    """Insert a failure and a success as the clock had them that is behind by that much now; return the failure's id."""
    with contextlib.closing(LogWriter(healkit.database)) as writer:
        begun, later = (started(timestamp=utc_now() + by + timedelta(seconds=second)) for second in (0, 1))
        log_id = writer.insert_finished(begun, failed(begun))
        writer.insert_finished(later, succeeded(later))
    return log_id


@pytest.mark.parametrize("by", BEFORE, ids=str)
def test_the_newest_failure_is_the_one_inserted_last(healkit: Healkit, by: timedelta) -> None:
    healkit.vault.add("divide", "def divide(n):\n    return 1 / n")
    healkit.vault.add("other", "def other():\n    return [][0]")
    written_before_the_clock_was_set_back(healkit, by)
    first = healkit.execute("divide", arguments={"n": 0})
    last, other = healkit.execute("divide", arguments={"n": 0}), healkit.execute("other")
    newest = [execution.log_id for execution in healkit.executions()]
    assert newest[:3] == [other.log_id, last.log_id, first.log_id]
    assert newest == [execution.log_id for execution in healkit.executions(tried=True)]
    assert newest == [row.id for row in healkit.log.query()]
    found, of_tool = healkit.last_error(), healkit.last_error("divide")
    assert found is not None
    assert of_tool is not None
    assert (found.log_id, of_tool.log_id) == (other.log_id, last.log_id)
    (group,) = healkit.log.groups(tool="divide")
    assert group.last_log_id == last.log_id
    assert [row.id for row in healkit.log.query(text="ZeroDivisionError", tool="divide")] == [
        last.log_id,
        first.log_id,
    ]
    assert last.timestamp == healkit.log.get(last.log_id or 0).timestamp  # type: ignore[union-attr]  # it is there


def test_a_clock_that_was_years_ahead_neither_hides_failures_nor_stays_in_force(healkit: Healkit) -> None:
    written_before_the_clock_was_set_back(healkit, timedelta(days=3650))
    assert healkit.last_error() is not None
    healkit.vault.add("other", "def other():\n    return [][0]")
    other = healkit.execute("other")
    found = healkit.last_error()
    assert found is not None
    assert found.log_id == other.log_id
    assert abs(found.timestamp - utc_now()) < timedelta(minutes=5)
