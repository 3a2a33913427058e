"""Numbers, JSON and dates that are read from text."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from datetime import datetime

from healkit.contracts.healing import Edit
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


NUMBERS: tuple[FailurePattern, ...] = (
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


# JSON and dates


#: Formats of dates, the commoner first.
_FORMS = ("%Y-%m-%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%Y/%m/%d", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S",
          "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M", "%Y%m%d", "%d-%m-%Y", "%d %B %Y", "%B %d, %Y", "%d %b %Y", "%b %d, %Y", "%H:%M", "%H:%M:%S",
          "%I:%M %p", "%Y-%m", "%d.%m.%y", "%m/%d/%y", "%Y-%m-%dT%H:%M:%S%z", "%Y-%m-%dT%H:%M:%SZ")  # fmt: skip


def _python_text(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Read what Python printed with `ast.literal_eval`: single quotes, True and None are not JSON."""
    for call in site.calls("loads"):
        edits = site.source.replace(call.func, "ast.literal_eval")
        if "import ast" not in site.source.text:
            edits += site.source.add_import("import ast")
        if len(call.args) == 1 and not call.keywords:
            yield Proposal("The string is a Python literal, not JSON.", edits)


def _load_or_loads(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Read text with `loads` and files with `load`, and do not read what is read already."""
    message = site.failure.evalue if site.failure else ""
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
        else:
            yield Proposal(
                "The value is already parsed.",
                source.replace(call, source.segment(call.args[0])),
                less=0.05,
            )


def _no_json(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Give `json.dumps` a `default` for what JSON cannot write."""
    kind = match["kind"]
    for call in site.calls("dumps", "dump"):
        end = site.source.span(call)[1] - 1
        function = (
            "list" if kind in {"set", "frozenset", "dict_keys", "dict_values", "map", "range"} else "str"
        )
        yield Proposal(
            f"Convert values that JSON does not support with `{function}`.",
            [Edit(end, end, f", default={function}")],
        )


def _date_form(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Use the form that the text has."""
    forms = []
    for form in _FORMS:
        try:
            datetime.strptime(match["text"][1:-1], form)  # noqa: DTZ007 - only whether it can be read
        except ValueError:
            continue
        forms.append(form)
    nodes = [
        n
        for n in ast.walk(site.source.tree)
        if isinstance(n, ast.Constant) and n.value == match["format"][1:-1]
    ]
    for number, form in enumerate(forms[:3]):
        edits = [edit for node in nodes for edit in site.source.replace(node, f'"{form}"')]
        if edits:
            yield Proposal(f"The dates have the format {form}.", edits, less=0.05 * number)


_JSON = "import json\n\n\ndef tool(a):\n    return json.{0}(a)\n"


PATTERNS: tuple[FailurePattern, ...] = (
    FailurePattern(
        ("JSONDecodeError",),
        r"(?P<what>.+): line (?P<line>\d+) column (?P<column>\d+)",
        explanations=(
            ExplanationText(
                "json_empty",
                what="There is no JSON at the very beginning of the string.",
                why=(
                    "The string is empty, or begins with something else: an error page, a message, or the "
                    "wrong kind of quotation mark."
                ),
                hint="What are the first characters? Print their `repr(…)`.",
                fix="Find out why the input is not JSON before you parse it.",
                example="import json\njson.loads('')",
                only=r"Expecting value: line 1 column 1 \(char 0\)",
            ),
            ExplanationText(
                "json",
                what="Invalid JSON at line {line}, column {column}: {what}.",
                why="JSON is stricter than Python: double quotes only, no comma after the last item, no comments, `true` and `null`.",
                hint="What comes right before that position?",
                fix="Fix the string; if Python printed it, read it with `ast.literal_eval`.",
                example="import json\njson.loads(\"{'a': 1}\")",
            ),
        ),
        fixes=(
            Fix(
                name="python_text",
                mistake="a Python literal that is read as JSON",
                only=r"Expecting property name enclosed in double quotes|Expecting value|Illegal trailing comma",
                priority=0.7,
                propose=_python_text,
                example=FixExample(
                    _JSON.format("loads"),
                    "import ast\nimport json\n\n\ndef tool(a):\n    return ast.literal_eval(a)\n",
                    {"a": "{'b': 1}"},
                ),
                lookalike=FixExample(
                    "import json\n\n\ndef tool(a):\n    return json.JSONDecoder().decode(a)\n",
                    arguments={"a": "{'b': 1}"},
                ),
            ),
        ),
    ),
    FailurePattern(
        ("AttributeError", "TypeError"),
        r"object has no attribute 'read'|the JSON object must be str, bytes or bytearray",
        fixes=(
            Fix(
                name="load_or_loads",
                mistake="a string that is read as a JSON file, or JSON that is read twice",
                priority=0.92,
                propose=_load_or_loads,
                example=FixExample(_JSON.format("load"), _JSON.format("loads"), {"a": "[1]"}),
                lookalike=FixExample("def tool(a):\n    return a.read()\n", arguments={"a": "1"}),
            ),
        ),
    ),
    FailurePattern(
        ("TypeError",),
        r"Object of type (?P<kind>\w+) is not JSON serializable",
        explanations=(
            ExplanationText(
                "not_json",
                what="JSON cannot represent a `{kind}`.",
                why=(
                    "JSON supports strings, numbers, true and false, null, lists, and dicts with strings "
                    "as keys."
                ),
                hint="What should the reader of the JSON get instead?",
                fix="Convert it first: `list(…)`, `str(…)`, `.isoformat()`, `.item()`, `.to_dict()`.",
                example="import json\njson.dumps({1, 2})",
            ),
        ),
        fixes=(
            Fix(
                name="no_json",
                mistake="a value that JSON does not support",
                priority=0.8,
                propose=_no_json,
                example=FixExample(
                    "import json\n\n\ndef tool(a):\n    return json.dumps(set(a))\n",
                    "import json\n\n\ndef tool(a):\n    return json.dumps(set(a), default=list)\n",
                    {"a": "b"},
                ),
                lookalike=FixExample(
                    "import json\n\n\ndef tool(a):\n    return json.JSONEncoder().encode({a})\n",
                    arguments={"a": 1},
                ),
            ),
        ),
    ),
    FailurePattern(
        ("ValueError",),
        r"time data (?P<text>.+?) does not match format (?P<format>'[^']*')|Invalid isoformat string: (?P<iso>.+)",
        explanations=(
            ExplanationText(
                "iso_format",
                what="{iso} is not a date or time in ISO format.",
                why="`fromisoformat` reads only the forms of ISO 8601, where a date begins with its year.",
                hint="Which form do your dates have?",
                fix="Parse any other form with a format of its own.",
                only="Invalid isoformat",
                example="from datetime import date\ndate.fromisoformat('3.5.2024')",
            ),
            ExplanationText(
                "time_format",
                what="{text} does not match the expected format {format}.",
                why=(
                    "Every character of the format must match: `%d` is a day, `%m` a month, `%Y` a year of "
                    "four digits, `%H:%M` a time."
                ),
                hint="Where does the string differ from the format?",
                fix="Change the format to match the data.",
                example="from datetime import datetime\ndatetime.strptime('3.5.2024', '%Y-%m-%d')",
            ),
        ),
        fixes=(
            Fix(
                name="date_form",
                mistake="a date that does not match its format",
                only=r"time data '.*' does not match format '",
                priority=0.85,
                propose=_date_form,
                example=FixExample(
                    "from datetime import datetime\n\n\ndef tool(a):\n    return datetime.strptime(a, '%Y-%m-%d').year\n",
                    'from datetime import datetime\n\n\ndef tool(a):\n    return datetime.strptime(a, "%d.%m.%Y").year\n',
                    {"a": "31.12.2024"},
                ),
                lookalike=FixExample(
                    "from datetime import datetime\n\n\ndef tool(a):\n    return datetime.strptime(a, '%Y').year\n",
                    arguments={"a": "soon"},
                ),
            ),
        ),
    ),
)
