"""Loops and unpacking."""

from __future__ import annotations

from healkit.failures.pattern import ExplanationText, FailurePattern

PATTERNS: tuple[FailurePattern, ...] = (
    FailurePattern(
        ("TypeError",),
        r"(?:'(?P<kind>[\w.]+)' object is not iterable|argument of type '(?P<other>[\w.]+)' is not (?:iterable|a container))",
        explanations=(
            ExplanationText(
                "not_iterable",
                what="A `{kind}{other}` cannot be gone through one by one.",
                why="`for`, `in`, `list`, `sum` and unpacking need something with items. A number has none.",
                hint="Should there be `range(…)` around the number, or brackets around the value?",
                fix="Write `range(n)` to count to n, or `[value]` for a list of one.",
                example="for i in 3:\n    pass",
            ),
        ),
    ),
    FailurePattern(
        ("ValueError",),
        r"too many values to unpack \(expected (?P<count>\d+)",
        explanations=(
            ExplanationText(
                "unpack_many",
                what="The left of `=` has {count:name}, and the right has more values.",
                why="Unpacking needs exactly as many values as names.",
                hint="How many pieces does the value on the right have? Print it.",
                fix="Split once only (`text.split('=', 1)`), or take up the rest with `*rest`.",
                example="a, b = 'x=y=z'.split('=')",
            ),
        ),
    ),
    FailurePattern(
        ("ValueError",),
        r"not enough values to unpack \(expected (?:at least )?(?P<count>\d+), got (?P<got>\d+)\)",
        explanations=(
            ExplanationText(
                "unpack_few",
                what="It takes {count:value}, and there were {got}.",
                why="Unpacking needs exactly as many values as names. A line without the separator stays in one piece.",
                hint="Which value is it? Print it before it is taken apart.",
                fix="Leave such values out, or use `text.partition('=')`, which always gives three.",
                example="a, b = 'x'.split('=')",
            ),
        ),
    ),
    FailurePattern(
        ("RuntimeError",),
        r"(?P<kind>dictionary|Set|OrderedDict|deque) (?:changed size|mutated|changed) during iteration|dictionary keys changed",
        explanations=(
            ExplanationText(
                "changed_size",
                what="A collection was changed while a loop went through it.",
                why="The loop would lose its place, so Python stops it. Lists do not say so: they silently skip items.",
                hint="Which line in the loop adds or removes something?",
                fix="Loop over a copy: `for key in list(things):`.",
                example="d = {1: 2}\nfor k in d:\n    d[k + 1] = 0",
            ),
        ),
    ),
    FailurePattern(
        ("ValueError",),
        r"(?:(?P<text>.+) is not in (?:list|tuple|deque)|list\.(?:remove|index)\(x\): x not in list|substring not found|tuple\.index)",
        explanations=(
            ExplanationText(
                "not_in_list",
                what="What was looked for is not in there.",
                why="`index` and `remove` need the value to be there, alike in kind and spelling.",
                hint="What is in it at this line?",
                fix="Ask first: `if value in items:`. For text, `find` gives -1 instead of an error.",
                example="[1].remove(2)",
            ),
        ),
    ),
    FailurePattern(
        ("StopIteration",),
        r"(?P<what>.*)",
        explanations=(
            ExplanationText(
                "stop_iteration",
                what="`next` was asked for one more, and there was none.",
                why="The generator or iterator had given everything already; each can be gone through once only.",
                hint="Was it used up further up, by `list` or a loop?",
                fix="Give a default: `next(items, None)`; or make the iterator anew.",
                example="next(iter([]))",
            ),
        ),
    ),
)
