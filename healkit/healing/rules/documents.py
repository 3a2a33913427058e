"""Files and texts in a form: JSON, encodings, dates."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from datetime import datetime

from healkit.contracts.healing import Edit
from healkit.healing.rules.records import Example, Fix, Rule
from healkit.healing.rules.sites import Site

#: Forms that dates come in, the commoner first.
_FORMS = ("%Y-%m-%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%Y/%m/%d", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S",
          "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M", "%Y%m%d", "%d-%m-%Y", "%d %B %Y", "%B %d, %Y", "%d %b %Y", "%b %d, %Y", "%H:%M", "%H:%M:%S",
          "%I:%M %p", "%Y-%m", "%d.%m.%y", "%m/%d/%y", "%Y-%m-%dT%H:%M:%S%z", "%Y-%m-%dT%H:%M:%SZ")  # fmt: skip


def _quotes(site: Site, match: re.Match[str]) -> Iterator[Fix]:
    """What Python printed is no JSON: single quotes, True, None."""
    for call in site.calls("loads"):
        edits = site.source.replace(call.func, "ast.literal_eval")
        if "import ast" not in site.source.text:
            edits += site.source.add_import("import ast")
        if len(call.args) == 1 and not call.keywords:
            yield Fix("The text is Python's own, not JSON.", edits)


def _read_twice(site: Site, match: re.Match[str]) -> Iterator[Fix]:
    """`json.load` of a text, `json.loads` of a file, either of what has been read already."""
    message = site.failure.evalue if site.failure else ""
    source = site.source
    for call in site.calls("load", "loads"):
        func = source.segment(call.func)
        if func.endswith("load") and "'str' object" in message:
            yield Fix("A text is read by `loads`; `load` reads files.", source.wrap(call.func, "", "s"))
        elif func.endswith("loads") and (
            "TextIO" in message or "Buffered" in message or "StringIO" in message
        ):
            at = source.span(call.func)[1]
            yield Fix("A file is read by `load`; `loads` reads texts.", [Edit(at - 1, at, "")])
        else:
            yield Fix(
                "The value has been read already.",
                source.replace(call, source.segment(call.args[0])),
                less=0.05,
            )


def _unread(site: Site, match: re.Match[str]) -> Iterator[Fix]:
    """`json.dumps` of what JSON has no word for."""
    kind = match["kind"]
    for call in site.calls("dumps", "dump"):
        end = site.source.span(call)[1] - 1
        function = (
            "list" if kind in {"set", "frozenset", "dict_keys", "dict_values", "map", "range"} else "str"
        )
        yield Fix(
            f"What JSON has no word for is written by `{function}`.",
            [Edit(end, end, f", default={function}")],
        )


def _encoding(site: Site, match: re.Match[str]) -> Iterator[Fix]:
    """A file's encoding is named; what it was read as before is left out."""
    used = match["codec"].lower().replace("_", "-")
    decoding = match["way"] == "decode"
    names = [name for name in (("utf-8", "cp1252", "latin-1") if decoding else ("utf-8",)) if name != used]
    calls = [
        c
        for c in site.body_nodes(ast.Call)
        if _name(c) in {"open", "read_text", "write_text", "decode", "encode", "read_csv"}
    ]
    for call in calls[:2]:
        for number, name in enumerate(names):
            yield Fix(f"The text is {name}.", _with_encoding(site, call, name), less=0.05 * number)


def _name(call: ast.Call) -> str:
    return call.func.id if isinstance(call.func, ast.Name) else str(getattr(call.func, "attr", ""))


def _with_encoding(site: Site, call: ast.Call, name: str) -> list[Edit]:
    given = next((k.value for k in call.keywords if k.arg == "encoding"), None)
    if given is None and _name(call) in {"decode", "encode"} and call.args:
        given = call.args[0]
    if given is not None:
        return site.source.replace(given, f'"{name}"')
    end = site.source.span(call)[1] - 1
    comma = ", " if call.args or call.keywords else ""
    return [
        Edit(
            end,
            end,
            f'{comma}"{name}"' if _name(call) in {"decode", "encode"} else f'{comma}encoding="{name}"',
        )
    ]


def _date(site: Site, match: re.Match[str]) -> Iterator[Fix]:
    """Another form, which the text that could not be read has."""
    forms = []
    for form in _FORMS:
        try:
            datetime.strptime(match["text"], form)  # noqa: DTZ007 - only whether it can be read
        except ValueError:
            continue
        forms.append(form)
    nodes = [
        n for n in ast.walk(site.source.tree) if isinstance(n, ast.Constant) and n.value == match["form"]
    ]
    for number, form in enumerate(forms[:3]):
        edits = [edit for node in nodes for edit in site.source.replace(node, f'"{form}"')]
        if edits:
            yield Fix(f"Dates come in the form {form}.", edits, less=0.05 * number)


def _spent(site: Site, match: re.Match[str]) -> Iterator[Fix]:
    """A file is used below its `with` block: the line belongs into it."""
    source, statement = site.source, site.statement
    if statement is None:
        return
    block = getattr(source.parents.get(statement), "body", [])
    place = block.index(statement) if statement in block else 0
    before = block[place - 1] if place else None
    if isinstance(before, ast.With) and source.starts_line(statement):
        first, last = statement.lineno, statement.end_lineno or statement.lineno
        starts = [source.line_start(line) for line in range(first, last + 1)]
        edits = [Edit(at, at, source.indent_unit) for at in starts]
        yield Fix("The file is closed at the end of its block, so the line goes into it.", edits)


_JSON = "import json\n\n\ndef tool(a):\n    return json.{0}(a)\n"


RULES: tuple[Rule, ...] = (
    Rule(
        name="python_text",
        mends="Python's own text is read as JSON",
        enames=("JSONDecodeError",),
        message=r"Expecting property name enclosed in double quotes|Expecting value|Illegal trailing comma",
        priority=0.7,
        propose=_quotes,
        example=Example(
            _JSON.format("loads"),
            "import ast\nimport json\n\n\ndef tool(a):\n    return ast.literal_eval(a)\n",
            {"a": "{'b': 1}"},
        ),
        lookalike=Example(
            "import json\n\n\ndef tool(a):\n    return json.JSONDecoder().decode(a)\n",
            arguments={"a": "{'b': 1}"},
        ),
    ),
    Rule(
        name="load_or_loads",
        mends="JSON is read from a text as from a file, or read twice",
        enames=("AttributeError", "TypeError"),
        message=r"object has no attribute 'read'|the JSON object must be str, bytes or bytearray",
        priority=0.92,
        propose=_read_twice,
        example=Example(_JSON.format("load"), _JSON.format("loads"), {"a": "[1]"}),
        lookalike=Example("def tool(a):\n    return a.read()\n", arguments={"a": "1"}),
    ),
    Rule(
        name="no_json",
        mends="something is written as JSON that JSON has no word for",
        enames=("TypeError",),
        message=r"Object of type (?P<kind>[\w.]+) is not JSON serializable",
        priority=0.8,
        propose=_unread,
        example=Example(
            "import json\n\n\ndef tool(a):\n    return json.dumps(set(a))\n",
            "import json\n\n\ndef tool(a):\n    return json.dumps(set(a), default=list)\n",
            {"a": "b"},
        ),
        lookalike=Example(
            "import json\n\n\ndef tool(a):\n    return json.JSONEncoder().encode({a})\n", arguments={"a": 1}
        ),
    ),
    Rule(
        name="encoding",
        mends="bytes are read as text of another encoding",
        enames=("UnicodeDecodeError", "UnicodeEncodeError"),
        message=r"'(?P<codec>[\w-]+)' codec can't (?P<way>decode|encode)",
        priority=0.85,
        propose=_encoding,
        example=Example(
            "def tool(a):\n    return len(a.encode('ascii'))\n",
            'def tool(a):\n    return len(a.encode("utf-8"))\n',
            {"a": "é"},
        ),
        lookalike=Example(
            "import codecs\n\n\ndef tool(a):\n    return codecs.ascii_encode(a)\n", arguments={"a": "é"}
        ),
    ),
    Rule(
        name="date_form",
        mends="a date is not written in the form that is read",
        enames=("ValueError",),
        message=r"time data '(?P<text>.*)' does not match format '(?P<form>.*)'",
        priority=0.85,
        propose=_date,
        example=Example(
            "from datetime import datetime\n\n\ndef tool(a):\n    return datetime.strptime(a, '%Y-%m-%d').year\n",
            'from datetime import datetime\n\n\ndef tool(a):\n    return datetime.strptime(a, "%d.%m.%Y").year\n',
            {"a": "31.12.2024"},
        ),
        lookalike=Example(
            "from datetime import datetime\n\n\ndef tool(a):\n    return datetime.strptime(a, '%Y').year\n",
            arguments={"a": "soon"},
        ),
    ),
    Rule(
        name="closed_file",
        mends="a file is used below its block",
        enames=("ValueError",),
        message=r"I/O operation on closed file",
        priority=0.92,
        propose=_spent,
        example=Example(
            "import io\n\n\ndef tool(a):\n    with io.StringIO(a) as file:\n        head = file.readline()\n    rest = file.read()  # all\n    return rest\n",
            "import io\n\n\ndef tool(a):\n    with io.StringIO(a) as file:\n        head = file.readline()\n        rest = file.read()  # all\n    return rest\n",
            {"a": "b"},
        ),
        lookalike=Example(
            "import io\n\n\ndef tool(a):\n    file = io.StringIO(a)\n    file.close()\n    return file.read()\n",
            arguments={"a": "b"},
        ),
    ),
)
