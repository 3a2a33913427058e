"""Numbers, JSON and dates that are read from text."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from datetime import datetime
from typing import Literal

from healkit.core.contracts.patches import Edit, EditKind
from healkit.core.pysource.nodes import called_name
from healkit.parts.explain.facts.values import cleanings
from healkit.parts.explain.site import Proposal, Site


def _mapped(site: Site) -> list[ast.Call]:
    """Return calls like `map(int, texts)`."""
    return [
        c for c in site.calls("map") if isinstance(c.args[0], ast.Name) and c.args[0].id in {"int", "float"}
    ]


def mixed(site: Site) -> float:
    """Return how much less likely a cleaning is if none turns all other texts into numbers too."""
    return 0.3 if site.facts.get("cleaning") == "none" else 0.0


def reading(site: Site, reason: str) -> EditKind | Literal[""]:
    """Return `assumes` for a removed percent sign if nothing shows what 100 % is."""
    is_percentage = site.statement is not None and re.search(
        r"\b(?:100|0\.01)\b", site.source.segment(site.statement)
    )
    return "assumes" if "'%'" in reason and not is_percentage else ""


def number_text(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Remove what is not part of the number, or read a float first."""
    source, text = site.source, match["text"][1:-1]
    for call in site.calls("int", "float")[:2]:
        argument = call.args[0]
        argument_text, base = source.segment(argument), source.atom(argument)
        # Digits after the point are lost in an integer, or were meant: that is for a person to say.
        whole = called_name(call) == "float" or not re.fullmatch(r"\s*-?\d+\.\d*[1-9]\d*\s*", text)
        for reason, new in cleaned(site, text, base, argument_text):
            kind: EditKind | Literal[""] = reading(site, reason) if whole else "assumes"
            yield Proposal(reason, source.replace(argument, new), mixed(site), kind=kind)
        if not whole:
            message = f"{text!r} has digits after its point: `float` keeps them."
            yield Proposal(message, source.replace(call.func, "float"), less=0.02, kind="assumes")
    for call in _mapped(site)[:1]:
        if re.fullmatch(r"-?\d+\.\d*", text):
            yield Proposal(f"{text!r} is not an integer; use `float`.", source.replace(call.args[0], "float"))
        elif not text.strip():
            texts = source.segment(call.args[1])
            yield Proposal(
                "Skip empty values.", source.replace(call.args[1], f"(x for x in {texts} if x.strip())")
            )


def cleaned(site: Site, text: str, base: str, shown: str) -> Iterator[tuple[str, str]]:
    """Yield a reason and an expression that turns the text, and all other known texts, into numbers."""
    wanted = site.facts.get("cleaning", "none")
    if re.fullmatch(r"\s*-?\d+\.\d*\s*", text):
        yield f"{text!r} has a decimal point: convert it with `float` first.", f"float({shown})"
    for reason, steps in cleanings(text):
        if wanted in (reason, "none"):
            yield reason, base + "".join(f".{step.method}({', '.join(step.arguments)})" for step in steps)


def empty_number(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Count an empty text as 0, which is a guess."""
    for call in site.calls("int", "float")[:1]:
        argument, whole = site.source.segment(call.args[0]), site.source.segment(call)
        if not match["text"][1:-1].strip():
            text = f"({whole} if {argument}.strip() else 0)"
            yield Proposal("Treat an empty string as 0.", site.source.replace(call, text), guard=True)


# JSON and dates


#: Formats of dates, the commoner first.
_FORMS = ("%Y-%m-%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%Y/%m/%d", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S",
          "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M", "%Y%m%d", "%d-%m-%Y", "%d %B %Y", "%B %d, %Y", "%d %b %Y", "%b %d, %Y", "%H:%M", "%H:%M:%S",
          "%I:%M %p", "%Y-%m", "%d.%m.%y", "%m/%d/%y", "%Y-%m-%dT%H:%M:%S%z", "%Y-%m-%dT%H:%M:%SZ")  # fmt: skip


def python_text(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Read what Python printed with `ast.literal_eval`: single quotes, True and None are not JSON."""
    for call in site.calls("loads"):
        edits = site.source.replace(call.func, "ast.literal_eval")
        if "import ast" not in site.source.text:
            edits += site.add_import("import ast")
        if len(call.args) == 1 and not call.keywords:
            yield Proposal("The string is a Python literal, not JSON.", edits)


def load_or_loads(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Read text with `loads` and files with `load`, and do not parse a parsed value again."""
    message = site.message
    source = site.source
    for call in site.calls("load", "loads"):
        func = source.segment(call.func)
        if func.endswith("load") and "'str' object" in message:
            yield Proposal("`loads` reads strings; `load` reads files.", source.wrap(call.func, "", "s"))
        elif func.endswith("loads") and (
            "TextIO" in message or "Buffered" in message or "StringIO" in message
        ):
            at = source.span(call.func)[1]
            yield Proposal("`load` reads files; `loads` reads strings.", [Edit(at - 1, at, "")])
        elif "NoneType" not in message:
            yield Proposal(
                "The value is already parsed.", source.replace(call, source.segment(call.args[0])), less=0.05
            )


#: Types that JSON cannot write → the function whose result it can; for any other, `str`.
_FOR_JSON = {
    **dict.fromkeys(("set", "frozenset", "dict_keys", "dict_values", "map", "range", "deque"), "list"),
    **dict.fromkeys(("Decimal", "Fraction"), "float"),
    **dict.fromkeys(("ndarray", "Series", "Index", "RangeIndex"), "lambda x: x.tolist()"),
}
_NUMPY_SCALAR = re.compile(r"u?int\d+|float\d+|bool_?")


def no_json(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Give `json.dumps` a `default` for what JSON cannot write."""
    kind = "ndarray" if _NUMPY_SCALAR.fullmatch(match["kind"]) else match["kind"]
    function = _FOR_JSON.get(kind, "str")
    for call in site.calls("dumps", "dump"):
        yield Proposal(
            f"Convert values that JSON does not support with `{function}`.",
            site.source.add_argument(call, f"default={function}"),
        )


def date_form(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Use the form that the text has."""
    forms = []
    for form in _FORMS:
        try:
            datetime.strptime(match["text"][1:-1], form)  # noqa: DTZ007 - only whether it can be read
        except ValueError:
            continue
        forms.append(form)
    nodes = [node for node in site.all(ast.Constant) if node.value == match["format"][1:-1]]
    for number, form in enumerate(forms[:3]):
        edits = site.source.replace_all(nodes, f'"{form}"')
        if edits:
            yield Proposal(f"The dates have the format {form}.", edits, less=0.05 * number)
