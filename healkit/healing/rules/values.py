"""Texts that hold no number, or more pieces than names."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from healkit.contracts.healing import Edit
from healkit.healing.rules.records import Example, Fix, Rule
from healkit.healing.rules.sites import Site


def _mapped(site: Site) -> list[ast.Call]:
    """`map(int, texts)` and the like."""
    return [
        c for c in site.calls("map") if isinstance(c.args[0], ast.Name) and c.args[0].id in {"int", "float"}
    ]


def _number(site: Site, match: re.Match[str]) -> Iterator[Fix]:
    """What stands around the digits is taken away, or a whole number is read as one with a point first."""
    source, text = site.source, match["text"]
    for call in site.calls("int", "float")[:2]:
        given = call.args[0]
        shown, base = source.segment(given), source.atom(given)
        for reason, new in _cleaned(text, base, shown):
            yield Fix(reason, source.replace(given, new))
    for call in _mapped(site)[:1]:
        if re.fullmatch(r"-?\d+\.\d*", text):
            yield Fix(
                f"{text!r} is no whole number; it is read as a float.", source.replace(call.args[0], "float")
            )
        elif not text.strip():
            texts = source.segment(call.args[1])
            yield Fix(
                "What is empty is left out.",
                source.replace(call.args[1], f"(x for x in {texts} if x.strip())"),
            )


def _cleaned(text: str, base: str, shown: str) -> Iterator[tuple[str, str]]:
    """What the text could be cleaned by so that it is a number."""
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


def _number_default(site: Site, match: re.Match[str]) -> Iterator[Fix]:
    """What a text counts as that holds no number: 0 is a guess."""
    for call in site.calls("int", "float")[:1]:
        given, whole = site.source.segment(call.args[0]), site.source.segment(call)
        if not match["text"].strip():
            text = f"({whole} if {given}.strip() else 0)"
            yield Fix("An empty text counts as 0.", site.source.replace(call, text), guard=True)


def _pieces(site: Site, match: re.Match[str]) -> Iterator[Fix]:
    """A text in more pieces than names: it is split at the first place only, or at the last."""
    statement, source = site.statement, site.source
    if match["many"] is None:
        return
    targets = (
        statement.targets[0] if isinstance(statement, ast.Assign) else getattr(statement, "target", None)
    )
    count = len(targets.elts) if isinstance(targets, ast.Tuple | ast.List) else int(match["count"])
    for call in site.nodes(ast.Call, near=False):
        if (
            not isinstance(call.func, ast.Attribute)
            or call.func.attr not in {"split", "rsplit"}
            or len(call.args) > 1
        ):
            continue
        end = source.span(call)[1] - 1
        text = f", {count - 1}" if call.args else f"None, {count - 1}"
        edits = [Edit(end, end, text)]
        yield Fix(f"The text is split into {count} pieces at most.", edits)
        at = source.span(call.func)[1]
        if call.func.attr == "split" and call.args:
            yield Fix("The text is split from its end.", [Edit(at - 5, at, "rsplit"), *edits], less=0.1)
    if isinstance(targets, ast.Tuple) and targets.elts and isinstance(targets.elts[-1], ast.Name):
        last = targets.elts[-1]
        yield Fix("The last name takes up the rest.", source.replace(last, f"*{last.id}"), less=0.2)


def _raised_text(site: Site, match: re.Match[str]) -> Iterator[Fix]:
    statement = site.statement
    if isinstance(statement, ast.Raise) and isinstance(
        statement.exc, ast.Constant | ast.JoinedStr | ast.BinOp
    ):
        yield Fix("Only an exception can be raised.", site.source.wrap(statement.exc, "ValueError(", ")"))


_OTHER = Example("def tool(a):\n    return int(a)\n", arguments={"a": "zzyzx"})

RULES: tuple[Rule, ...] = (
    Rule(
        name="number_text",
        mends="a number is read from a text with a point, commas or a unit",
        enames=("ValueError",),
        message=r"(?:invalid literal for int\(\) with base 10|could not convert string to float): '(?P<text>.*)'",
        priority=0.85,
        propose=_number,
        example=Example(
            "def tool(a):\n    return int(a)\n", "def tool(a):\n    return int(float(a))\n", {"a": "3.0"}
        ),
        lookalike=_OTHER,
    ),
    Rule(
        name="empty_number",
        mends="a number is read from an empty text",
        enames=("ValueError",),
        message=r"(?:invalid literal for int\(\) with base 10|could not convert string to float): '(?P<text>.*)'",
        priority=0.3,
        propose=_number_default,
        example=Example(
            "def tool(a):\n    return int(a)\n",
            "def tool(a):\n    return (int(a) if a.strip() else 0)\n",
            {"a": ""},
        ),
        lookalike=_OTHER,
    ),
    Rule(
        name="pieces",
        mends="a text falls into more pieces than there are names",
        enames=("ValueError",),
        message=r"(?P<many>too many)?.*values to unpack \(expected (?P<count>\d+)",
        priority=0.9,
        propose=_pieces,
        example=Example(
            'def tool(a):\n    name, value = a.split("=")\n    return {name: value}\n',
            'def tool(a):\n    name, value = a.split("=", 1)\n    return {name: value}\n',
            {"a": "b=c=d"},
        ),
        lookalike=Example(
            'def tool(a):\n    name, value = a.split("=")\n    return {name: value}\n', arguments={"a": "b"}
        ),
    ),
    Rule(
        name="raised_text",
        mends="a text is raised",
        enames=("TypeError",),
        message=r"exceptions must derive from BaseException",
        priority=0.85,
        propose=_raised_text,
        example=Example(
            "def tool(a):\n    try:\n        raise 'odd'\n    except ValueError:\n        return a\n",
            "def tool(a):\n    try:\n        raise ValueError('odd')\n    except ValueError:\n        return a\n",
            {"a": 1},
        ),
        lookalike=Example("def tool(a):\n    raise a\n", arguments={"a": 1}),
    ),
)
