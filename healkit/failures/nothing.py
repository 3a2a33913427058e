"""`None` where a value was expected."""

from __future__ import annotations

from healkit.failures.pattern import ExplanationText, FailurePattern

PATTERNS: tuple[FailurePattern, ...] = (
    FailurePattern(
        ("TypeError",),
        r"unsupported operand type\(s\) for (?P<operator>.+?): (?:'NoneType'|.+'NoneType')",
        explanations=(
            ExplanationText(
                "operand_none",
                what="`{operator}` was asked to work with `None`.",
                why=(
                    "One of the two values is `None`: often what a function without `return` gives, or a dict's `.get` of a key that "
                    "is not there."
                ),
                hint="Which of the two is `None`, and where does it come from?",
                fix="Give that value a start or a default, or handle `None` before this line.",
                example="None + 1",
            ),
        ),
    ),
    FailurePattern(
        ("TypeError",),
        r"'NoneType' object is not (?P<what>subscriptable|iterable)|'NoneType' object does not support item",
        explanations=(
            ExplanationText(
                "none_subscript",
                what="The line looks into `None`.",
                why=(
                    "Something that was expected to give a list, a dict or text gave `None`: a function without `return`, or one that "
                    "found nothing."
                ),
                hint="Which call gave `None`?",
                fix="Return the value from that function, or handle the case that there is none.",
                example="None[0]",
            ),
        ),
    ),
)
