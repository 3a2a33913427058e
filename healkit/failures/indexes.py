"""Indexes that a list does not have."""

from __future__ import annotations

from healkit.failures.pattern import ExplanationText, FailurePattern

PATTERNS: tuple[FailurePattern, ...] = (
    FailurePattern(
        ("IndexError",),
        r"(?P<kind>list|tuple|string|bytearray|range object|deque)(?: assignment)? index out of range",
        explanations=(
            ExplanationText(
                "index_end",
                what="The {kind} has no item at that place.",
                why=(
                    "The first item has index 0, so the last one has the length minus 1. A loop over `range(len(x))` that reads "
                    "`x[i + 1]` is one too far at its end, and an empty {kind} has no item at all."
                ),
                hint="How long is the {kind}, and which index is asked for?",
                fix="Stop one earlier, or loop over the items themselves: `for item in items:`.",
                example="[1, 2, 3][3]",
            ),
        ),
    ),
    FailurePattern(
        ("IndexError",),
        r"pop from (?:an )?empty (?P<kind>\w+)",
        explanations=(
            ExplanationText(
                "pop_empty",
                what="Something was taken out of an empty {kind}.",
                why="Everything that was in it had been taken out before, or nothing was ever put in.",
                hint="When does the loop that empties it end?",
                fix="Test it first: `while items:`.",
                example="[].pop()",
            ),
        ),
    ),
    FailurePattern(
        ("IndexError",),
        r"index (?P<index>-?\d+) is out of bounds for axis (?P<axis>\d+) with size (?P<size>\d+)",
        explanations=(
            ExplanationText(
                "index_axis",
                what="The array has {size:item} along axis {axis}, and number {index} is not one of them.",
                why="Indexes begin at 0 and end one below the size.",
                hint="What does `.shape` say?",
                fix="Let the index end at the size minus 1.",
                example="import numpy\nnumpy.zeros(3)[3]",
            ),
        ),
    ),
    FailurePattern(
        ("ValueError",),
        r"(?P<function>max|min)\(\) (?:arg is an empty sequence|iterable argument is empty)",
        explanations=(
            ExplanationText(
                "empty_extreme",
                what="`{function}` was asked for the {function} of nothing.",
                why="There is no largest or smallest of no values. Often a filter before it has left nothing.",
                hint="Why is it empty here?",
                fix="Say what counts then: `{function}(values, default=0)`.",
                example="max([])",
            ),
        ),
    ),
)
