"""Lists, dicts and text used as another kind of value."""

from __future__ import annotations

from healkit.failures.pattern import ExplanationText, FailurePattern

PATTERNS: tuple[FailurePattern, ...] = (
    FailurePattern(
        ("TypeError",),
        r"'(?P<kind>[\w.]+)' object is not subscriptable",
        explanations=(
            ExplanationText(
                "not_subscriptable",
                what="A `{kind}` has no items that brackets could pick.",
                why="Lists, text, dicts and tables have items; numbers and most other values do not.",
                hint="Is the value what you think it is? What does `type(…)` say?",
                fix="Find where the value is made: there may be one index too many.",
                example="(3)[0]",
            ),
        ),
    ),
    FailurePattern(
        ("TypeError",),
        r"unhashable type: '(?P<kind>[\w.]+)'|cannot use '(?P<other>[\w.]+)' as a",
        explanations=(
            ExplanationText(
                "unhashable",
                what="A `{kind}{other}` cannot be a key of a dict or an item of a set.",
                why="Keys must never change, and lists, dicts and sets can.",
                hint="Does the key have to be the whole `{kind}{other}`?",
                fix="Use `tuple(…)` of a list, or one value out of it, as the key.",
                example="{[1, 2]: 'x'}",
            ),
        ),
    ),
    FailurePattern(
        ("TypeError",),
        r"(?P<kind>list|string|tuple|str|byte|range object) ?ind(?:ices|ex) must be integers?(?: or slices)?,? not '?(?P<other>[\w.]+)'?",
        explanations=(
            ExplanationText(
                "index_kind",
                what="A `{kind}` was asked for an item by a `{other}`.",
                why=(
                    "Items of a `{kind}` are counted: 0, 1, 2 … A division with `/` gives a float even when it comes out even, and "
                    "a name in brackets is for dicts."
                ),
                hint="Where does the value in the brackets come from?",
                fix="Use `//` for whole division; if the data should be a dict, look at how it is made.",
                example="[1, 2, 3][3 / 2]",
            ),
        ),
    ),
    FailurePattern(
        ("TypeError",),
        r"'(?P<kind>[\w.]+)' object does not support item (?P<what>assignment|deletion)",
        explanations=(
            ExplanationText(
                "no_assignment",
                what="An item of a `{kind}` cannot be changed.",
                why="Tuples and text never change; what looks like a change makes a new one.",
                hint="Does it have to be a `{kind}`?",
                fix="Use a list, or build a new value: `text[:2] + 'x' + text[3:]`.",
                example="(1, 2)[0] = 3",
            ),
        ),
    ),
    FailurePattern(
        ("TypeError",),
        r"object of type '(?P<kind>[\w.]+)' has no len\(\)",
        explanations=(
            ExplanationText(
                "no_len",
                what="A `{kind}` has no length.",
                why="Only what has items has a length. A generator does not know how many it will give.",
                hint="Is the value what you think it is?",
                fix="Wrap a generator in `list(…)`; for the digits of a number, take `len(str(…))`.",
                example="len(3)",
            ),
        ),
    ),
)
