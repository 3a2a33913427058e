"""Cell sources as plain Python, with magics blanked out.

IPython's own transformer turns a cell magic into a call with the cell's text as a string, which hides its names. Here a
line of magic is blanked and the lines keep their numbers; of a cell magic that runs its body in the notebook's
namespace (`%%time`) the body stays. Works without IPython.
"""

from __future__ import annotations

import ast
import re
import textwrap
import warnings
from dataclasses import dataclass, field

#: Cell magics whose body is Python that runs in the notebook's own namespace.
_TRANSPARENT = frozenset(
    {"time", "capture", "prun", "debug", "memit", "mprun", "lprun", "snakeviz", "pyinstrument"}
)
#: Line magics that may define any name.
_OPAQUE = frozenset({"run", "pylab", "store", "load", "autoreload", "rerun", "recall", "macro"})
_LINE = re.compile(r"^(?P<indent>\s*)(?P<target>[\w ,.]+=\s*)?(?P<mark>%|!|\?)(?P<rest>.*)$")
_HELP = re.compile(r"^(?P<indent>\s*)[\w.%]+\?{1,2}\s*$")
_CELL = re.compile(r"^%%(?P<name>\w+)(?P<options>.*)$")
_CLEARING = re.compile(r"^\s*%(?P<magic>reset(?:_selective)?|xdel)\b(?P<options>.*)$", re.MULTILINE)


@dataclass(frozen=True)
class CellSource:
    """Python part of a cell.

    tree: None if it does not parse. bound: names that its magics bind, with their lines. opaque: a magic that may
    define any name, or an empty text.
    """

    code: str
    tree: ast.Module | None
    bound: dict[str, int] = field(default_factory=dict)
    opaque: str = ""


def read_cell(source: str) -> CellSource:
    """Return a cell's text with its magics blanked, and parsed; never raises."""
    lines = source.expandtabs(4).split("\n") if "\t" in source else source.split("\n")
    bound: dict[str, int] = {}
    first = next((i for i, line in enumerate(lines) if line.strip()), 0)
    if (match := _CELL.match(lines[first].strip())) is not None:
        if match["name"] not in _TRANSPARENT:
            return CellSource("", ast.Module([], []))
        if match["name"] == "capture":
            bound |= {word: first + 1 for word in match["options"].split() if word.isidentifier()}
        lines[first] = ""
    code = "\n".join(lines)
    if (tree := _parsed(code)) is not None:
        return CellSource(code, tree, bound)
    opaque, blanked = "", []
    for line in lines:
        replaced, magic = _blanked(line)
        opaque = magic or opaque
        blanked.append(replaced)
    code = "\n".join(blanked)
    tree = _parsed(code)
    if tree is None:
        code = textwrap.dedent(code)
        tree = _parsed(code)
    return CellSource(code, tree, bound, opaque)


def clearing_magic(source: str, name: str) -> str:
    """Return the magic in a cell that deletes this name, such as `%reset -f`, or an empty text."""
    for match in _CLEARING.finditer(source):
        options = match["options"].split()
        if match["magic"] == "reset" or name in options:
            return f"%{match['magic']}{match['options'].rstrip()}"
        if match["magic"] == "reset_selective" and any(_finds(word, name) for word in options):
            return f"%{match['magic']}{match['options'].rstrip()}"
    return ""


def _finds(pattern: str, name: str) -> bool:
    try:
        return not pattern.startswith("-") and re.search(pattern, name) is not None
    except re.error:
        return False


def _parsed(code: str) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python itself warns of a strange escape when the cell runs
            return ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _blanked(line: str) -> tuple[str, str]:
    """Return the line as Python, and a magic in it that may define any name."""
    if (match := _LINE.match(line)) is not None and match["rest"].strip():
        words = match["rest"].split()
        name = words[0].lstrip("%")
        opaque = f"%{' '.join([name, *words[1:]])}" if match["mark"] == "%" and name in _OPAQUE else ""
        target = match["target"] or ""
        return f"{match['indent']}{target.strip()} None" if target else f"{match['indent']}pass", opaque
    if (match := _HELP.match(line)) is not None:
        return f"{match['indent']}pass", ""
    return line, ""
