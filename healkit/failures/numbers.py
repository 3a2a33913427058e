"""Numbers: read from text, too large, divided by zero."""

from __future__ import annotations

from healkit.failures.pattern import ExplanationText, FailurePattern

PATTERNS: tuple[FailurePattern, ...] = (
    FailurePattern(
        ("ValueError",),
        r"invalid literal for int\(\) with base 10: (?P<text>'-?\d+\.\d*')",
        explanations=(
            ExplanationText(
                "int_float_text",
                what="`int` cannot read {text}: it is a number with a point.",
                why="`int` reads whole numbers only, when it is given text.",
                hint="Do the digits after the point matter?",
                fix="Write `float(…)`, or `int(float(…))` to cut them off.",
                example="int('3.5')",
            ),
        ),
    ),
    FailurePattern(
        ("ValueError",),
        r"invalid literal for int\(\) with base 10: ''|could not convert string to float: ''",
        explanations=(
            ExplanationText(
                "int_empty",
                what="An empty text was to be read as a number.",
                why="A field that was left empty is text with nothing in it, and there is no number in that.",
                hint="What should an empty field count as?",
                fix="Handle it before: `int(text) if text.strip() else 0`, or leave the row out.",
                example="int('')",
            ),
        ),
    ),
    FailurePattern(
        ("ValueError",),
        r"(?:invalid literal for int\(\) with base (?P<base>\d+)|could not convert string to float): (?P<text>.+)",
        explanations=(
            ExplanationText(
                "number_text",
                what="{text} cannot be read as a number.",
                why=(
                    "Text becomes a number only if there is nothing in it but digits, a sign and perhaps a point. Units, currency "
                    "signs and commas between thousands have to go first."
                ),
                hint="Which value is it? Print it with `repr(…)` to see spaces too.",
                fix="Clean it first, such as `text.replace(',', '').strip()`.",
                example="float('12 kg')",
            ),
        ),
    ),
    FailurePattern(
        ("ValueError",),
        r"math domain error|expected a nonnegative input|expected a positive input",
        explanations=(
            ExplanationText(
                "math_domain",
                what="The mathematical function has no value there.",
                why="The square root of a negative number, or the logarithm of 0 or less, is no real number.",
                hint="Which value was it given?",
                fix="Test the value first; `cmath` has functions for complex numbers.",
                example="import math\nmath.sqrt(-1)",
            ),
        ),
    ),
    FailurePattern(
        ("OverflowError",),
        r"(?P<what>.*)",
        explanations=(
            ExplanationText(
                "overflow",
                what="A number became too large for its kind.",
                why="A float ends at about 1.8e308. Powers and factorials get there soon.",
                hint="Which value grows?",
                fix="Use whole numbers (`int` has no end), or calculate with logarithms.",
                example="2.0 ** 10000",
            ),
        ),
        kind="value",
    ),
    FailurePattern(
        ("ZeroDivisionError",),
        r"(?P<what>.*)",
        explanations=(
            ExplanationText(
                "zero_division",
                what="Something was divided by zero.",
                why=(
                    "The divisor was 0 when this line ran: often the length of an empty list, a count that has not begun, or a start "
                    "value that the first round of a loop still has."
                ),
                hint="Which value in this line can be 0, and in which round?",
                fix="Handle that case before the line, or ask whether the division is needed at all.",
                example="1 / 0",
            ),
        ),
        kind="zero",
    ),
)
