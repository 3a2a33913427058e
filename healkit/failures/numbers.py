"""Numbers: read from text, or too large."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from healkit.failures.pattern import ExplanationText, FailurePattern, Fix, FixExample, Proposal
from healkit.failures.site import Site


def _mapped(site: Site) -> list[ast.Call]:
    """Return calls like `map(int, texts)`."""
    return [
        c for c in site.calls("map") if isinstance(c.args[0], ast.Name) and c.args[0].id in {"int", "float"}
    ]


def _number_text(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Remove what is not part of the number, or read a float first."""
    source, text = site.source, match["text"][1:-1]
    for call in site.calls("int", "float")[:2]:
        given = call.args[0]
        shown, base = source.segment(given), source.atom(given)
        for reason, new in _cleaned(text, base, shown):
            yield Proposal(reason, source.replace(given, new))
    for call in _mapped(site)[:1]:
        if re.fullmatch(r"-?\d+\.\d*", text):
            yield Proposal(f"{text!r} is not an integer; use `float`.", source.replace(call.args[0], "float"))
        elif not text.strip():
            texts = source.segment(call.args[1])
            yield Proposal(
                "Skip empty values.",
                source.replace(call.args[1], f"(x for x in {texts} if x.strip())"),
            )


def _cleaned(text: str, base: str, shown: str) -> Iterator[tuple[str, str]]:
    """Yield a reason and an expression that cleans the text so that it is a number."""
    if re.fullmatch(r"\s*-?\d+\.\d*\s*", text):
        yield f"{text!r} has a decimal point: convert it with `float` first.", f"float({shown})"
    if re.fullmatch(r"-?\d{1,3}(,\d{3})+(\.\d+)?", text):
        yield "Remove the thousands separators.", f'{base}.replace(",", "")'
    if re.fullmatch(r"-?\d+,\d+", text):
        yield "Replace the decimal comma with a point.", f'{base}.replace(",", ".")'
    if re.fullmatch(r"-?\d{1,3}(\.\d{3})+,\d+", text):
        yield "Replace the decimal comma with a point.", f'{base}.replace(".", "").replace(",", ".")'
    if re.fullmatch(r"-?\d+(_| )\d+", text):
        yield "Remove the spaces between thousands.", f'{base}.replace(" ", "")'
    if match := re.fullmatch(r"([^\d\s.+-]+)\s*-?[\d.]+", text):
        yield f"Remove {match[1]!r} before the number.", f"{base}.lstrip({match[1]!r})"
    if match := re.fullmatch(r"-?[\d.]+(\s*)([^\d\s.]+)", text):
        yield f"Remove {match[2]!r} after the number.", f"{base}.rstrip({match[2]!r})"
    if match := re.fullmatch(r"([^\d\s.+-]+)\s*-?\d[\d,]*(\.\d+)?", text):
        yield (
            "Remove everything that is not part of the number.",
            f'{base}.lstrip({match[1]!r}).replace(",", "")',
        )


def _empty_number(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Count an empty text as 0, which is a guess."""
    for call in site.calls("int", "float")[:1]:
        given, whole = site.source.segment(call.args[0]), site.source.segment(call)
        if not match["text"][1:-1].strip():
            text = f"({whole} if {given}.strip() else 0)"
            yield Proposal("Treat an empty string as 0.", site.source.replace(call, text), guard=True)


_OTHER = FixExample("def tool(a):\n    return int(a)\n", arguments={"a": "zzyzx"})


PATTERNS: tuple[FailurePattern, ...] = (
    FailurePattern(
        ("ValueError",),
        r"(?:invalid literal for int\(\) with base (?P<base>\d+)|could not convert string to float): (?P<text>.+)",
        explanations=(
            ExplanationText(
                "int_float_text",
                what="`int` cannot convert {text}: it has a decimal point.",
                why="`int` converts only strings that contain an integer.",
                hint="Do you need the digits after the decimal point?",
                fix="Write `float(…)`, or `int(float(…))` to cut them off.",
                example="int('3.5')",
                only=r"int\(\) with base 10: '-?\d+\.\d*'",
            ),
            ExplanationText(
                "int_empty",
                what="An empty string cannot be converted to a number.",
                why="An empty field is an empty string, which contains no number.",
                hint="Which number should an empty field become?",
                fix="Handle the empty string before this line, or skip the row.",
                example="int('')",
                only=r"(?:int\(\) with base 10|to float): ''",
            ),
            ExplanationText(
                "number_text",
                what="{text} cannot be converted to a number.",
                why=(
                    "The string may contain only digits, a sign and a decimal point. Remove units, "
                    "currency signs and thousands separators first."
                ),
                hint="Which value is it? Print it with `repr(…)` to see spaces too.",
                fix="Clean it first, with `.replace(…)` and `.strip()`.",
                example="float('12 kg')",
            ),
        ),
        fixes=(
            Fix(
                name="number_text",
                mistake="a number with a decimal point, commas or a unit in a string",
                only=r"(?:base 10|to float): '.*'",
                priority=0.85,
                propose=_number_text,
                example=FixExample(
                    "def tool(a):\n    return int(a)\n",
                    "def tool(a):\n    return int(float(a))\n",
                    {"a": "3.0"},
                ),
                lookalike=_OTHER,
            ),
            Fix(
                name="empty_number",
                mistake="a number from an empty string",
                only=r"(?:base 10|to float): '.*'",
                priority=0.3,
                propose=_empty_number,
                example=FixExample(
                    "def tool(a):\n    return int(a)\n",
                    "def tool(a):\n    return (int(a) if a.strip() else 0)\n",
                    {"a": ""},
                ),
                lookalike=_OTHER,
            ),
        ),
    ),
    FailurePattern(
        ("ValueError",),
        r"math domain error|expected a nonnegative input|expected a positive input",
        explanations=(
            ExplanationText(
                "math_domain",
                what="The function is not defined for this value.",
                why=(
                    "The square root of a negative number, or the logarithm of 0 or less, is not a real "
                    "number."
                ),
                hint="Which value was passed?",
                fix="Check the value first; `cmath` has functions for complex numbers.",
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
                what="A number is too large for its type.",
                why="The largest float is about 1.8e308. Powers and factorials reach it quickly.",
                hint="Which value grows?",
                fix="Use integers (`int` has no limit), or calculate with logarithms.",
                example="2.0 ** 10000",
            ),
        ),
        kind="value",
    ),
)
