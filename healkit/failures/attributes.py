"""Attributes and methods that an object does not have."""

from __future__ import annotations

from healkit.failures.pattern import ExplanationText, FailurePattern

PATTERNS: tuple[FailurePattern, ...] = (
    FailurePattern(
        ("AttributeError",),
        r"'NoneType' object has no attribute '(?P<name>\w+)'",
        explanations=(
            ExplanationText(
                "attribute_of_none",
                what="`.{name}` is asked of `None`, and `None` has nothing of that kind.",
                why=(
                    "Something that was expected to give an object gave `None`: a function without `return`, a search that found "
                    "nothing, or a method that changes its object in place (`list.sort`, `list.append`) and returns nothing."
                ),
                hint="Which call in this line, or above it, gave `None`?",
                fix="Look at what stands before `.{name}`; test it with `if … is not None:` if nothing found is a normal case.",
                example="import re\nre.match('a', 'b').group()",
            ),
        ),
    ),
    FailurePattern(
        ("AttributeError",),
        r"'dict' object has no attribute '(?P<name>\w+)'",
        explanations=(
            ExplanationText(
                "attribute_dict",
                what="A dict has no attribute `{name}`.",
                why="What a dict holds is found by its key in brackets. A dot asks for a method of the dict itself.",
                hint="Is `{name}` a key of the dict?",
                fix='Write `["{name}"]` in the place of `.{name}`.',
                example="{'zzyzx': 1}.zzyzx",
            ),
        ),
    ),
    FailurePattern(
        ("AttributeError",),
        r"(?:'(?P<kind>[\w.]+)' object|module '(?P<module>[\w.]+)'|type object '(?P<cls>\w+)') has no attribute '(?P<name>\w+)'",
        explanations=(
            ExplanationText(
                "attribute_near",
                what="{kind}{module}{cls} has no `{name}`.",
                why="It has something much like it: {near}.",
                hint="Compare the spelling.",
                fix="If {near} was meant, write that in the place of `{name}`.",
                needs="near",
                example="'text'.uper()",
            ),
            ExplanationText(
                "attribute",
                what="{kind}{module}{cls} has no `{name}`.",
                why="The value is of another kind than the line expects, or the name has changed with the library's version.",
                hint="What does `type(…)` say of the value before `.{name}`?",
                fix="Look at `dir(…)` of the value for what it has.",
                example="(3).zzyzx",
            ),
        ),
    ),
    FailurePattern(
        ("TypeError",),
        r"'(?P<kind>[\w.]+)' object is not callable",
        explanations=(
            ExplanationText(
                "not_callable_shadow",
                what="Round brackets come after a `{kind}`, as if it were a function.",
                why=(
                    "Either a variable has taken the name of a function (`list = …`, `sum = …`), or an operator or comma is missing "
                    "before the bracket, or square brackets were meant."
                ),
                hint="What does the name before the bracket stand for at this line?",
                fix="Give the variable another name (`del list` brings Python's own back), or write `[…]` to look something up.",
                only=r"'(?:list|dict|str|int|float|set|tuple|bool|DataFrame|Series|module)' object",
                example="list = [1]\nlist('ab')",
            ),
            ExplanationText(
                "not_callable",
                what="Round brackets come after a `{kind}`, and that cannot be called.",
                why="What stands before the bracket is not a function: often it is the outcome of one.",
                hint="Is there one pair of brackets too many?",
                fix="Take the brackets away, or call what gives the function.",
                example="None()",
            ),
        ),
    ),
    FailurePattern(
        ("TypeError",),
        r"'(?P<kind>builtin_function_or_method|method|function|type)' object is not subscriptable",
        explanations=(
            ExplanationText(
                "method_subscript",
                what="Square brackets come after a function.",
                why="A function is called with round brackets; square ones look something up.",
                hint="Which of the two was meant?",
                fix="Write `(…)`, or put the brackets after the call.",
                example="'text'.split[0]",
            ),
        ),
    ),
)
