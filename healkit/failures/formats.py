"""Text in a format: JSON and dates."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from datetime import datetime

from healkit.contracts.healing import Edit
from healkit.failures.pattern import ExplanationText, FailurePattern, Fix, FixExample, Proposal
from healkit.failures.site import Site

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
