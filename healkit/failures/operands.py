"""Operators between values that do not go together."""

from __future__ import annotations

from healkit.failures.pattern import ExplanationText, FailurePattern

PATTERNS: tuple[FailurePattern, ...] = (
    FailurePattern(
        ("TypeError",),
        r"can only concatenate (?P<kind>\w+) \(not \"(?P<other>[\w.]+)\"\) to \w+",
        explanations=(
            ExplanationText(
                "text_plus_other",
                what="`+` has a `{kind}` on its left and a `{other}` on its right.",
                why="`+` joins two values of one kind, or adds two numbers; Python does not guess which of them was meant.",
                hint="Should the outcome be text or a number?",
                fix='Turn one into the other: `str(…)` for text, `int(…)` or `float(…)` for a number, or write `f"… {{value}}"`.',
                example="'You are ' + 12",
            ),
        ),
    ),
    FailurePattern(
        ("TypeError",),
        r"unsupported operand type\(s\) for (?P<operator>.+?): '(?P<left>[\w.]+)' and '(?P<right>[\w.]+)'",
        explanations=(
            ExplanationText(
                "operand_types",
                what="`{operator}` does not work between a `{left}` and a `{right}`.",
                why="Both sides must be of kinds that the operator knows together.",
                hint="What does `type(…)` say of the value that surprises you?",
                fix="Convert one of them first: values that were typed in, or read from a file, are text until they are converted.",
                example="'3' - 1",
            ),
        ),
    ),
    FailurePattern(
        ("TypeError",),
        r"'(?P<operator>.+?)' not supported between instances of '(?P<left>[\w.]+)' and '(?P<right>[\w.]+)'",
        explanations=(
            ExplanationText(
                "compare_types",
                what="A `{left}` and a `{right}` cannot be put in an order.",
                why="`{operator}`, `sorted`, `min` and `max` compare values of one kind: numbers with numbers, text with text.",
                hint="Where do the two kinds come from?",
                fix="Convert one of them, or leave out the values that are missing.",
                example="max([3, 'four'])",
            ),
        ),
    ),
)
