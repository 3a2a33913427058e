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
            yield Proposal(
                f"{text!r} is no whole number; it is read as a float.", source.replace(call.args[0], "float")
            )
        elif not text.strip():
            texts = source.segment(call.args[1])
            yield Proposal(
                "What is empty is left out.",
                source.replace(call.args[1], f"(x for x in {texts} if x.strip())"),
            )


def _cleaned(text: str, base: str, shown: str) -> Iterator[tuple[str, str]]:
    """Yield a reason and an expression that cleans the text so that it is a number."""
    if re.fullmatch(r"\s*-?\d+\.\d*\s*", text):
        yield f"{text!r} has a point: it is read as a float first.", f"float({shown})"
    if re.fullmatch(r"-?\d{1,3}(,\d{3})+(\.\d+)?", text):
        yield "The commas between thousands are taken out.", f'{base}.replace(",", "")'
    if re.fullmatch(r"-?\d+,\d+", text):
        yield "The decimal comma becomes a point.", f'{base}.replace(",", ".")'
    if re.fullmatch(r"-?\d{1,3}(\.\d{3})+,\d+", text):
        yield "The decimal comma becomes a point.", f'{base}.replace(".", "").replace(",", ".")'
    if re.fullmatch(r"-?\d+(_| )\d+", text):
        yield "The gaps between thousands are taken out.", f'{base}.replace(" ", "")'
    if match := re.fullmatch(r"([^\d\s.+-]+)\s*-?[\d.]+", text):
        yield f"{match[1]!r} before the number is taken off.", f"{base}.lstrip({match[1]!r})"
    if match := re.fullmatch(r"-?[\d.]+(\s*)([^\d\s.]+)", text):
        yield f"{match[2]!r} behind the number is taken off.", f"{base}.rstrip({match[2]!r})"
    if match := re.fullmatch(r"([^\d\s.+-]+)\s*-?\d[\d,]*(\.\d+)?", text):
        yield "What is no part of the number is taken out.", f'{base}.lstrip({match[1]!r}).replace(",", "")'


def _empty_number(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Count an empty text as 0, which is a guess."""
    for call in site.calls("int", "float")[:1]:
        given, whole = site.source.segment(call.args[0]), site.source.segment(call)
        if not match["text"][1:-1].strip():
            text = f"({whole} if {given}.strip() else 0)"
            yield Proposal("An empty text counts as 0.", site.source.replace(call, text), guard=True)


_OTHER = FixExample("def tool(a):\n    return int(a)\n", arguments={"a": "zzyzx"})


PATTERNS: tuple[FailurePattern, ...] = (
    FailurePattern(
        ("ValueError",),
        r"(?:invalid literal for int\(\) with base (?P<base>\d+)|could not convert string to float): (?P<text>.+)",
        explanations=(
            ExplanationText(
                "int_float_text",
                what="`int` cannot read {text}: it is a number with a point.",
                why="`int` reads whole numbers only, when it is given text.",
                hint="Do the digits after the point matter?",
                fix="Write `float(…)`, or `int(float(…))` to cut them off.",
                example="int('3.5')",
                only=r"int\(\) with base 10: '-?\d+\.\d*'",
            ),
            ExplanationText(
                "int_empty",
                what="An empty text was to be read as a number.",
                why="A field that was left empty is text with nothing in it, and there is no number in that.",
                hint="What should an empty field count as?",
                fix="Handle it before: `int(text) if text.strip() else 0`, or leave the row out.",
                example="int('')",
                only=r"(?:int\(\) with base 10|to float): ''",
            ),
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
        fixes=(
            Fix(
                name="number_text",
                mistake="a number is read from a text with a point, commas or a unit",
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
                mistake="a number is read from an empty text",
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
)
