"""Words that people type, as data."""

from __future__ import annotations

import datetime as dt
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from healkit.commands.parsing import parse_arguments, split_label, split_words, unquote
from healkit.core.times import parse_since
from healkit.errors import ArgumentsInvalid, HealkitError, UsageInvalid

NOW = dt.datetime(2025, 3, 1, 12, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("fib n=10", ["fib", "n=10"]),
        ("n=[1, 2] name='Ada L' --args {\"n\": 10}", ["n=[1, 2]", "name='Ada L'", "--args", '{"n": 10}']),
        ("--reason don't", ["--reason", "don't"]),
        ("--reason 'it is'", ["--reason", "'it is'"]),
        (r"s='it\'s fine' t=r'a b'", [r"s='it\'s fine'", "t=r'a b'"]),
        ("t='( ['  u=1", ["t='( ['", "u=1"]),
        ("", []),
    ],
)
def test_quotes_and_brackets_hold_words_together(line, words):
    assert split_words(line) == words


@pytest.mark.parametrize("line", ["'abc", "n=[1", 'n="', "f({)"])
def test_what_never_closes_is_refused(line):
    with pytest.raises(UsageInvalid, match="opened and never closed"):
        split_words(line)
    assert split_words(line, partial=True)


@settings(max_examples=50)
@given(st.text())
def test_any_line_is_split_or_refused_in_healkits_words(line):
    try:
        assert "".join(split_words(line)) == "".join(split_words(line, partial=True))
    except HealkitError:
        pass


@given(st.text())
def test_any_arguments_are_read_or_refused_in_healkits_words(text):
    try:
        assert isinstance(parse_arguments(text), dict)
    except ArgumentsInvalid:
        pass


def test_a_caret_stays_under_its_place_in_a_long_line():
    with pytest.raises(ArgumentsInvalid) as caught:
        parse_arguments('{"a": "' + "x" * 500 + '", }')
    _, line, caret, *_ = str(caught.value).splitlines()
    assert line[caret.index("^")] == ("," if sys.version_info >= (3, 13) else "}")
    assert len(line) < 120


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2h", NOW - dt.timedelta(hours=2)),
        ("3d", NOW - dt.timedelta(days=3)),
        ("1.5h", NOW - dt.timedelta(minutes=90)),
        ("2025-02-01T10:00+00:00", dt.datetime(2025, 2, 1, 10, tzinfo=dt.UTC)),
        ("2025-02-01", dt.datetime(2025, 2, 1).astimezone(dt.UTC)),
        ("99999999999w", dt.datetime.min.replace(tzinfo=dt.UTC)),
    ],
)
def test_times_are_ago_or_iso(text, moment):
    assert parse_since(text, NOW) == moment


def test_labels_name_tool_persona_and_revision():
    assert split_label("fib") == ("fib", None, None)
    assert split_label("fib.teacher@2") == ("fib", "teacher", 2)
    assert split_label("fib v2") == ("fib", None, 2)  # as it is shown
    with pytest.raises(UsageInvalid):
        split_label("@2")


def test_quotes_come_off_in_pairs():
    assert [unquote(word) for word in ("'a'", '"a"', "'a", "'", "")] == ["a", "a", "'a", "'", ""]
