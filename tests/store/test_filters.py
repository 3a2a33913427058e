"""Filters of the log: given by name, together, or as typed."""

from __future__ import annotations

import inspect
from datetime import UTC, date, datetime

import pytest
from store_samples import failed, started

from healkit import Healkit
from healkit.contracts.execution import FILTER_NAMES, Filters
from healkit.errors import UsageInvalid
from healkit.parsing import read_filters
from healkit.store.database import Database
from healkit.store.log_reader import Log
from healkit.store.log_writer import LogWriter


@pytest.fixture
def log(database: Database, writer: LogWriter) -> Log:
    """Make a log with a failure of each of two tools."""
    for tool in ("fibonacci", "share"):
        begun = started(tool)
        writer.begin(begun)
        writer.finish(failed(begun))
    return Log(database)


@pytest.mark.parametrize("method", [Log.query, Log.export, Healkit.executions])
def test_each_filter_is_shown_in_the_signature(method) -> None:
    assert set(FILTER_NAMES) <= set(inspect.signature(method).parameters)
    assert "filters" not in inspect.signature(method).parameters


def test_filters_by_name_change_those_given_together(log: Log) -> None:
    both = Filters(status="FAILURE", tool="share")
    assert [row.tool_name for row in log.query(filters=both)] == ["share"]
    assert [row.tool_name for row in log.query(filters=both, tool="fibonacci")] == ["fibonacci"]
    assert len(log.query(filters=both, tool=None)) == 2


def test_groups_and_sums_refuse_filters_that_they_do_not_count_by(log: Log) -> None:
    assert [group.tool_name for group in log.groups(tool="share")] == ["share"]
    with pytest.raises(TypeError, match="'run'"):
        log.groups(run="r1")
    with pytest.raises(TypeError, match="takes no filter 'run', only status"):
        log.groups(filters=Filters(run="r1"))
    with pytest.raises(TypeError, match="takes no filter 'fingerprint'"):
        log.summary(filters=Filters(fingerprint="v1:0"))


def test_typed_filters_are_read() -> None:
    typed = {
        "status": " failure ",
        "tool": "",
        "persona": None,
        "since": "2026-01-01T10:00+00:00",
        "limit": 5,
    }
    assert read_filters(typed) == Filters("FAILURE", since=datetime(2026, 1, 1, 10, tzinfo=UTC), tried=False)
    assert read_filters({"tried": True}) == Filters()


def test_an_until_of_a_form_includes_its_day() -> None:
    assert read_filters({"until": "2026-01-31"}, whole_days=True).until == date(2026, 2, 1)
    exclusive = read_filters({"until": "2026-01-31"}).until
    assert exclusive == datetime(2026, 1, 31).astimezone(UTC)


def test_an_unknown_status_is_refused() -> None:
    with pytest.raises(
        UsageInvalid, match=r"Not a status: 'broken'\. Write SUCCESS, FAILURE, REFUSED, RUNNING"
    ):
        read_filters({"status": "broken"})
