"""Pages of the site, executed, with outputs compared.

Cells run in one kernel, commands in the same folder.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from programs import python

_BLOCK = re.compile(r"^```(python|console|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LIMIT_S = 120


def commands(block: str) -> list[tuple[str, str]]:
    """Return each command of a console block (with its `>` lines) and the output shown under it."""
    found = []
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        lines = part.splitlines()
        more = [line[2:] for line in lines[1:] if line.startswith("> ") or line == ">"]
        found.append(("\n".join([lines[0], *more]), "\n".join(lines[1 + len(more) :])))
    return found


def missing_lines(shown: str, printed: str) -> list[str]:
    """Return the lines of a page that were not printed in this order, and a note for each gap that it does not mark.

    `…` stands for any text in a line, and alone in a line for any lines. Empty lines do not count. Times, durations,
    the tier and the width of columns differ from run to run.
    """
    pending = [text for line in printed.splitlines() if (text := folded(line))]
    missing, marked = [], False
    lines = list(filter(None, map(folded, shown.splitlines())))
    for line in lines:
        if line == "…":
            marked = True
            continue
        wanted = re.compile(".*".join(map(re.escape, line.split("…"))))
        place = next((place for place, text in enumerate(pending) if wanted.fullmatch(text)), None)
        if place is None:
            missing.append(line)
        else:
            if place and not marked:
                missing.append(f"before {line!r}, {pending[:place]} without …")
            del pending[: place + 1]
        marked = False
    if lines and pending and not marked:
        missing.append(f"at the end, {pending} without …")
    return missing


def folded(line: str) -> str:
    """Return a text without what differs from run to run: times, durations, the machine's tier, padding."""
    line = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", "<time>", line)
    line = re.sub(r"\b\d+(\.\d+)? m?s\b", "<duration>", line)
    line = re.sub(r"\b(namespaces|landlock)\b", "<tier>", line)
    return re.sub(r" {2,}", "  ", line).strip()


def run_exactly(
    text: str,
    kinds: list[str],
    folder: Path,
    surroundings: Mapping[str, str],
    shown_as: Callable[[str], str] = folded,
) -> None:
    """Run the blocks of a page as scripts and in a shell, and compare each output with all that the page shows."""
    blocks = re.findall(r"^```(python|console)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert [kind for kind, _ in blocks] == kinds
    for kind, block in blocks:
        if kind == "python":
            done = python(block, cwd=folder)
            assert (done.returncode, done.stderr) == (0, "")
        for command, shown in commands(block) if kind == "console" else ():
            ran = subprocess.run(
                ["bash", "-c", command],
                cwd=folder,
                env=surroundings,
                text=True,
                check=False,
                capture_output=True,
            )
            assert shown_as(ran.stdout) == shown_as(shown), command


def run_page(page: Path, folder: Path, environment: Mapping[str, str]) -> list[str]:
    """Run a page in a folder; return what it shows and nothing printed.

    A text block shows what the block before it printed. A block that raises has to be followed by one.
    """
    missing, printed = [], ""
    environment = dict(environment)
    environment.pop(
        "PYTEST_CURRENT_TEST", None
    )  # by which ipykernel knows that its outputs have no descriptor
    book = nbformat.v4.new_notebook()
    client = NotebookClient(
        book, timeout=_LIMIT_S, allow_errors=True, resources={"metadata": {"path": str(folder)}}
    )
    with client.setup_kernel(env=environment):
        blocks = _BLOCK.findall(page.read_text())
        for (kind, block), (next_kind, _) in pairwise([*blocks, ("end", "")]):
            if kind == "text":
                missing += [f"{line}   # printed: {printed[-500:]}" for line in missing_lines(block, printed)]
            elif kind == "python":
                cell = nbformat.v4.new_code_cell(block.rstrip("\n"))
                book.cells.append(cell)
                client.execute_cell(cell, len(book.cells) - 1)
                printed = _text_of(cell.outputs)
                if next_kind != "text" and (error := _error_of(cell.outputs)):
                    missing.append(error)
            else:
                missing += missing_from_shell(block, folder, environment)
                printed = ""
    return missing


def missing_from_shell(block: str, folder: Path, environment: Mapping[str, str]) -> list[str]:
    """Run the commands of a console block in a folder; return what it shows and they do not print."""
    missing = []
    for command, shown in commands(block):
        done = subprocess.run(
            ["bash", "-c", command], cwd=folder, env=environment, text=True, check=False,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=_LIMIT_S,
        )  # fmt: skip
        missing += missing_lines(shown, done.stdout)
    return missing


def _text_of(outputs: list[nbformat.NotebookNode]) -> str:
    """Return a cell's outputs as text; of an error its last line, unless the card below says it too."""
    texts = []
    for output in outputs:
        if output.output_type == "stream":
            texts.append(str(output.text))
        elif output.output_type != "error":
            texts.append(str(output.get("data", {}).get("text/plain", "")))
    return "\n".join(texts) or _error_of(outputs)


def _error_of(outputs: list[nbformat.NotebookNode]) -> str:
    return "".join(f"{output.ename}: {output.evalue}" for output in outputs if output.output_type == "error")
