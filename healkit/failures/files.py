"""Files, folders, encodings and the network."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from pathlib import Path

from healkit.contracts.healing import Edit
from healkit.failures.keys import constants, quoted
from healkit.failures.pattern import ExplanationText, FailurePattern, Fix, FixExample, Proposal
from healkit.failures.site import Site

_ENTRIES_MAX = 2000


def _near_file(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Open a file of nearly that name in a folder that the tool is granted, or of that name in another one."""
    wrong = match["path"][1:-1]
    folder, name = os.path.split(wrong)
    files = [path for root in site.readable for path in _files(Path(root))]
    nodes = constants(site, wrong) or [n for n in constants(site, name) if name]
    if not nodes:
        return
    same = [path for path in files if path.name == name]
    near = site.near(name, [path.name for path in files])
    rights = [str(path) for path in same if str(path) != wrong]
    for right in near:
        here = nodes[0].value != wrong or Path(folder or ".").joinpath(right) in files or not files
        found = next((str(path) for path in files if path.name == right), right)
        rights.append((right if nodes[0].value == name else str(Path(folder) / right)) if here else found)
    for number, right in enumerate(dict.fromkeys(rights)):
        edits = site.source.replace(nodes[0], quoted(site, nodes[0], right))
        yield Proposal(f"The file {wrong!r} does not exist; {right!r} does.", edits, less=0.05 * number)


def _files(root: Path) -> list[Path]:
    """Return the files of a granted folder, two levels deep; the file itself if a file is granted."""
    if root.is_file():
        return [root]
    found: list[Path] = []
    try:
        for pattern in ("*", "*/*"):
            for path in root.glob(pattern):
                found.append(path)
                if len(found) >= _ENTRIES_MAX:
                    return found
    except OSError:  # a folder that is gone, or closed
        return found
    return [path for path in found if path.is_file()]


def _encoding(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Name another encoding than the one that failed."""
    used = match["codec"].lower().replace("_", "-")
    decoding = "can't decode" in match[0]
    names = [name for name in (("utf-8", "cp1252", "latin-1") if decoding else ("utf-8",)) if name != used]
    calls = [
        c
        for c in site.body_nodes(ast.Call)
        if _name(c) in {"open", "read_text", "write_text", "decode", "encode", "read_csv"}
    ]
    for call in calls[:2]:
        for number, name in enumerate(names):
            yield Proposal(
                f"The file's encoding is {name}.", _with_encoding(site, call, name), less=0.05 * number
            )


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


def _closed_file(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Move a line that uses a closed file into the `with` block above it."""
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
        yield Proposal(
            ("The file is closed at the end of its `with` block, so the line moves into the block."), edits
        )


_ENCODING = Fix(
    name="encoding",
    mistake="bytes that are decoded with the wrong encoding",
    priority=0.85,
    propose=_encoding,
    example=FixExample(
        "def tool(a):\n    return len(a.encode('ascii'))\n",
        'def tool(a):\n    return len(a.encode("utf-8"))\n',
        {"a": "é"},
    ),
    lookalike=FixExample(
        "import codecs\n\n\ndef tool(a):\n    return codecs.ascii_encode(a)\n", arguments={"a": "é"}
    ),
)

PATTERNS: tuple[FailurePattern, ...] = (
    FailurePattern(
        ("FileNotFoundError",),
        r"No such file or directory: (?P<path>'.*')",
        explanations=(
            ExplanationText(
                "file_near",
                what="The file {path} does not exist.",
                why="The same folder contains a file with a similar name: {near}.",
                hint="Compare the spelling and the file extension.",
                fix="If you mean {near}, open that file.",
                needs="near",
                example=(
                    "import os, tempfile\nfolder = tempfile.mkdtemp()\nwith open(os.path.join(folder, 'sales.csv'), 'w'):\n"
                    "    pass\nopen(os.path.join(folder, 'sale.csv'))"
                ),
            ),
            ExplanationText(
                "file",
                what="The file {path} does not exist, or this code cannot see it.",
                why=(
                    "A relative path is looked up in the working directory. A tool sees only its own "
                    "temporary folder and the paths that you granted it."
                ),
                hint="What does `os.getcwd()` return, and which files are there?",
                fix="Write the full path; for a tool, grant it with `%vault grant NAME --read PATH`.",
                example="open('zzyzx/not/there')",
            ),
        ),
        fixes=(
            Fix(
                name="near_file",
                mistake="a misspelt file name or a missing folder",
                only=r"directory: '.+'",
                priority=0.85,
                propose=_near_file,
                example=FixExample(
                    "def tool():\n    with open('{folder}/prises.csv') as file:\n        return file.read()\n",
                    "def tool():\n    with open('{folder}/prices.csv') as file:\n        return file.read()\n",
                ),
                lookalike=FixExample(
                    "def tool():\n    with open('{folder}/zzyzx') as file:\n        return file.read()\n"
                ),
            ),
        ),
    ),
    FailurePattern(
        ("PermissionError",),
        r"(?:\[Errno \d+\] )?(?P<what>.*)",
        explanations=(
            ExplanationText(
                "permission",
                what="The operating system did not allow this: {what}.",
                why=(
                    "This code has no permission for the file or service. In a worker this is "
                    "intended: a tool has no network, starts no processes, and writes only to its "
                    "temporary folder."
                ),
                hint="Should this tool be allowed to do that?",
                fix=(
                    "Grant it the path (`%vault grant NAME --write PATH`), or let it call a function "
                    "of yours (`hk.provide`)."
                ),
                example="open('/sys/kernel/zzyzx', 'w')",
            ),
        ),
    ),
    FailurePattern(
        ("IsADirectoryError",),
        r"Is a directory: (?P<path>'.*')",
        explanations=(
            ExplanationText(
                "is_folder",
                what="{path} is a folder, but the code opens it as a file.",
                why="Only files can be read or written.",
                hint="Is the file name missing at the end of the path?",
                fix="Add the name; `os.listdir(…)` lists the files in the folder.",
                example="open('/')",
            ),
        ),
    ),
    FailurePattern(
        ("UnicodeDecodeError",),
        r"'(?P<codec>[\w-]+)' codec can't decode byte (?P<byte>0x\w+) in position (?P<position>\d+)",
        explanations=(
            ExplanationText(
                "decode",
                what="The data is not valid {codec}: byte {byte} at position {position} cannot be decoded.",
                why=(
                    "The data was written in another encoding, or it is not text: an image, an archive or "
                    "a spreadsheet."
                ),
                hint="Which program wrote the file?",
                fix=(
                    "Try `encoding='cp1252'` or `'latin-1'` for files of older Windows programs; open "
                    "other files with `'rb'`."
                ),
                example="b'caf\\xe9'.decode('utf-8')",
            ),
        ),
        fixes=(_ENCODING,),
    ),
    FailurePattern(
        ("UnicodeDecodeError",),
        r"'(?P<codec>[\w-]+)' codec can't decode bytes",
        fixes=(_ENCODING,),
    ),
    FailurePattern(
        ("UnicodeEncodeError",),
        r"'(?P<codec>[\w-]+)' codec can't encode characters? (?P<text>\S+)?",
        explanations=(
            ExplanationText(
                "encode",
                what="The text contains a character that {codec} cannot encode.",
                why="Older encodings have few characters; `utf-8` has all of them.",
                hint="Which program will read the output?",
                fix="Write with `encoding='utf-8'`.",
                example="'ż'.encode('ascii')",
            ),
        ),
        fixes=(_ENCODING,),
    ),
    FailurePattern(
        ("ValueError",),
        r"I/O operation on closed file",
        explanations=(
            ExplanationText(
                "closed_file",
                what="The file was used after it was closed.",
                why="A file is closed at the end of its `with` block.",
                hint="Is the line indented as far as the block?",
                fix="Move the line into the block, or read what you need before the block ends.",
                example="import io\nf = io.StringIO()\nf.close()\nf.read()",
            ),
        ),
        fixes=(
            Fix(
                name="closed_file",
                mistake="a file that is used after its `with` block",
                priority=0.92,
                propose=_closed_file,
                example=FixExample(
                    "import io\n\n\ndef tool(a):\n    with io.StringIO(a) as file:\n        head = file.readline()\n    rest = file.read()  # all\n    return rest\n",
                    "import io\n\n\ndef tool(a):\n    with io.StringIO(a) as file:\n        head = file.readline()\n        rest = file.read()  # all\n    return rest\n",
                    {"a": "b"},
                ),
                lookalike=FixExample(
                    "import io\n\n\ndef tool(a):\n    file = io.StringIO(a)\n    file.close()\n    return file.read()\n",
                    arguments={"a": "b"},
                ),
            ),
        ),
    ),
    FailurePattern(
        (
            "ConnectionError",
            "ConnectionRefusedError",
            "URLError",
            "gaierror",
            "ConnectError",
            "TimeoutError",
            "OSError",
        ),
        r"(?P<what>Connection refused|Name or service not known|Temporary failure in name resolution|Network is unreachable|timed out|Max retries)",
        explanations=(
            ExplanationText(
                "no_network",
                what="The network connection failed: {what}.",
                why=(
                    "The address does not answer from here. A tool in a worker has no network access at all."
                ),
                hint="Does the same request work in a cell of this notebook?",
                fix="Let a function of yours fetch the data and call that from the tool (`hk.provide`).",
                example="import socket\nsocket.create_connection(('127.0.0.1', 1), 5)",
            ),
        ),
    ),
)
