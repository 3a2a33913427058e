"""Files, folders, encodings and the network."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from mimetypes import guess_type
from pathlib import Path

from healkit.core.contracts.patches import Edit
from healkit.core.pysource.nodes import called_name
from healkit.parts.explain.facts.scene import near_files
from healkit.parts.explain.keys import constants, quoted
from healkit.parts.explain.site import Proposal, Site

_ENTRIES_MAX = 2000


def near_file(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Open a file with a similar name in a granted folder, or a file of the same name in another one."""
    wrong = match["path"][1:-1]
    folder, name = os.path.split(wrong)
    files = [path for root in site.readable for path in _files(Path(root))]
    nodes = constants(site, wrong) or [n for n in constants(site, name) if name]
    if not nodes:
        return
    same = [path for path in files if path.name == name]
    near = [*(site.failure.near if site.failure else ()), *near_files(name, [path.name for path in files])]
    rights = [str(path) for path in same if str(path) != wrong]
    for right in near:
        if os.sep in right or (folder and right == name):  # the path of a file of that name in another folder
            rights.append(right if nodes[0].value == wrong else os.path.relpath(right, folder or os.curdir))
            continue
        here = nodes[0].value != wrong or Path(folder or ".").joinpath(right) in files or not files
        full_path = next((str(path) for path in files if path.name == right), right)
        rights.append((right if nodes[0].value == name else str(Path(folder) / right)) if here else full_path)
    whole = [right for right in dict.fromkeys(rights) if os.path.splitext(right)[0] == wrong]
    for number, right in enumerate(dict.fromkeys([*whole, *rights])):
        if len({guess_type(name)[0], guess_type(right)[0]} - {None}) > 1:
            continue  # what reads one format reads no other
        edits = site.source.replace(nodes[0], quoted(site, nodes[0], right))
        reason = f"The file {wrong!r} does not exist; {right!r} does."
        # Without its ending, a name is that of one file only.
        yield Proposal(reason, edits, less=0.05 * number, kind="restores" if whole == [right] else "")


def _files(root: Path) -> list[Path]:
    """Return the files of a granted folder, two levels deep; the file itself if a file is granted."""
    if root.is_file():
        return [root]
    paths: list[Path] = []
    try:
        for pattern in ("*", "*/*"):
            for path in root.glob(pattern):
                paths.append(path)
                if len(paths) >= _ENTRIES_MAX:
                    return paths
    except OSError:  # a folder that is gone, or closed
        return paths
    return [path for path in paths if path.is_file()]


#: Functions and methods that make a file.
_WRITERS = re.compile(
    r"to_(?!datetime|numeric)\w+|save\w*|imsave|imwrite|write_(?:text|bytes|csv|parquet|json|excel|html)"
)


def missing_folder(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Make the folder that a new file goes into."""
    folder = os.path.dirname(match["path"][1:-1])
    if not folder or site.statement is None:
        return
    writes = any(_writes(call) for call in site.nodes(ast.Call))
    edits = site.source.insert_before(site.statement, f"os.makedirs({folder!r}, exist_ok=True)")
    if writes and edits:
        more = [] if site.module_name("os") else site.add_import("import os")
        yield Proposal(f"The folder {folder!r} does not exist, so it is created first.", [*edits, *more])


def _writes(call: ast.Call) -> bool:
    name = called_name(call) or ""
    if name != "open":
        return _WRITERS.fullmatch(name) is not None
    modes = [*call.args[1:2], *(keyword.value for keyword in call.keywords if keyword.arg == "mode")]
    return any(isinstance(mode, ast.Constant) and str(mode.value)[:1] in "wax" for mode in modes)


def encoding(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Name another encoding than the one that failed."""
    used = match["codec"].lower().replace("_", "-")
    decoding = "can't decode" in match[0]
    names = [name for name in (("utf-8", "cp1252", "latin-1") if decoding else ("utf-8",)) if name != used]
    readers = {"open", "read_text", "write_text", "decode", "encode", "read_csv"}
    every = [call for call in site.body_nodes(ast.Call) if called_name(call) in readers]
    calls = [call for call in site.nodes(ast.Call, near=False) if call in every] or every
    for call in calls[:2]:
        for number, name in enumerate(names):
            yield Proposal(
                f"The file's encoding is {name}.", _with_encoding(site, call, name), less=0.05 * number
            )


def _with_encoding(site: Site, call: ast.Call, name: str) -> list[Edit]:
    encoding = next((k.value for k in call.keywords if k.arg == "encoding"), None)
    if encoding is None and called_name(call) in {"decode", "encode"} and call.args:
        encoding = call.args[0]
    if encoding is not None:
        return site.source.replace(encoding, f'"{name}"')
    in_place = called_name(call) in {"decode", "encode"}
    return site.source.add_argument(call, f'"{name}"' if in_place else f'encoding="{name}"')


def closed_file(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
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
