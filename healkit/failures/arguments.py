"""Calls whose arguments do not fit the function."""

from __future__ import annotations

from healkit.failures.pattern import ExplanationText, FailurePattern

PATTERNS: tuple[FailurePattern, ...] = (
    FailurePattern(
        ("TypeError",),
        r"(?P<function>[\w.<>]+)\(\) missing (?P<count>\d+) required (?:positional|keyword-only) arguments?: (?P<names>.+)",
        explanations=(
            ExplanationText(
                "missing_arguments",
                what="`{function}` was called without {names}.",
                why=(
                    "Every parameter without a default value must be given. For a method, `self` is given by the object: calling it "
                    "on the class leaves one too few."
                ),
                hint="Which value in the call is meant for which parameter?",
                fix="Add {names} to the call, or give the parameter a default value.",
                example="def area(width, height):\n    return width * height\narea(3)",
            ),
        ),
    ),
    FailurePattern(
        ("TypeError",),
        r"(?P<function>[\w.<>]+)\(\) takes (?P<most>.+?) positional arguments? but (?P<count>\d+) (?:was|were) given",
        explanations=(
            ExplanationText(
                "too_many_arguments",
                what="`{function}` was given {count:value} and takes {most}.",
                why="For a method, the object itself counts as the first one: a missing `self` shows in this way.",
                hint="Count the values in the call and the names in the `def` line.",
                fix="Take out what is too many, pass it by name, or add a parameter.",
                example="def area(width):\n    return width\narea(3, 4)",
            ),
        ),
    ),
    FailurePattern(
        ("TypeError",),
        r"(?P<function>[\w.]+)\(\) got an unexpected keyword argument '(?P<name>\w+)'",
        explanations=(
            ExplanationText(
                "keyword_near",
                what="`{function}` has no parameter called `{name}`.",
                why="It has one much like it: {near}.",
                hint="Compare the spelling with the `def` line.",
                fix="Write {near} in the place of `{name}`.",
                needs="near",
                example="def area(width=1):\n    return width\narea(widht=3)",
            ),
            ExplanationText(
                "keyword",
                what="`{function}` has no parameter called `{name}`.",
                why="Its parameters have other names, or it is of another version than the one that was read about.",
                hint="What does `help({function})` list?",
                fix="Use one of the names in its `def` line.",
                example="def area(width=1):\n    return width\narea(zzyzx=3)",
            ),
        ),
    ),
    FailurePattern(
        ("TypeError",),
        r"(?P<function>[\w.]+)\(\) got multiple values for (?:keyword )?argument '(?P<name>\w+)'",
        explanations=(
            ExplanationText(
                "twice_given",
                what="`{function}` was given `{name}` twice.",
                why="Once by its place in the call, and once by its name.",
                hint="Which value in the call is the first parameter's?",
                fix="Keep one of the two.",
                example="def area(width, height=1):\n    return width\narea(3, width=4)",
            ),
        ),
    ),
)
