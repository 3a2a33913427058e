"""Names of revisions and cells, as shown and as typed."""

from __future__ import annotations

import re

_FILENAME = re.compile(r"<(?P<tool>[^.@<>]+)(?:\.(?P<persona>[^@<>]+))?@(?P<revision>\d+)>")


def revision_label(tool_name: str, persona: str, revision: int | None) -> str:
    """Write a revision as it is shown: `fibonacci v2`, or `fibonacci v2 (teacher)` for another persona."""
    number = "" if revision is None else f" v{revision}"
    return f"{tool_name}{number}" + ("" if persona == "default" else f" ({persona})")


def revision_address(tool_name: str, persona: str, revision: int) -> str:
    """Write a revision as it is typed and stored: `fibonacci@2`, or `fibonacci.teacher@2`."""
    return f"{tool_name}{'' if persona == 'default' else f'.{persona}'}@{revision}"


def place_label(filename: str) -> str:
    """Write a frame's file as it is shown: `fibonacci v2` for `<fibonacci@2>`, `In [3]` for `<In [3]>`."""
    match = _FILENAME.fullmatch(filename)
    if match is None:
        return filename.strip("<>")
    return revision_label(match["tool"], match["persona"] or "default", int(match["revision"]))
