"""Pages of the site, executed, with outputs compared.

The cells of a page share a kernel; its commands share a folder.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

import nbformat
from nbclient import NotebookClient

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
    """Return the lines of a page that were not printed, in this order.

    `…` stands for any text. Times, durations, the tier and the width of columns differ from run to run.
    """
    pending = list(map(_folded, printed.splitlines()))
    missing = []
    for line in filter(str.strip, shown.splitlines()):
        wanted = re.compile(".*".join(map(re.escape, _folded(line).split("…"))))
        place = next((place for place, text in enumerate(pending) if wanted.search(text)), None)
        if place is None:
            missing.append(line)
        else:
            del pending[: place + 1]
    return missing


def _folded(line: str) -> str:
    line = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", "<time>", line)
    line = re.sub(r"\b\d+(\.\d+)? m?s\b", "<duration>", line)
    line = re.sub(r"\b(namespaces|landlock)\b", "<tier>", line)
    return re.sub(r" {2,}", "  ", line).strip()


def run_page(page: Path, folder: Path, environment: Mapping[str, str]) -> list[str]:
    """Run a page in a folder; return what it shows and nothing printed.

    A text block shows what the block before it printed.
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
        for kind, block in _BLOCK.findall(page.read_text()):
            if kind == "text":
                missing += [f"{line}   # printed: {printed[-500:]}" for line in missing_lines(block, printed)]
            elif kind == "python":
                cell = nbformat.v4.new_code_cell(block.rstrip("\n"))
                book.cells.append(cell)
                client.execute_cell(cell, len(book.cells) - 1)
                printed = "\n".join(map(_text_of, cell.outputs))
            else:
                printed = ""
                for command, shown in commands(block):
                    done = subprocess.run(
                        ["bash", "-c", command], cwd=folder, env=environment, text=True, check=False,
                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=_LIMIT_S,
                    )  # fmt: skip
                    printed += done.stdout
                    missing += missing_lines(shown, done.stdout)
    return missing


def _text_of(output: nbformat.NotebookNode) -> str:
    """Return an output as text; of an error the last line, for one that a page does not show would go unseen."""
    if output.output_type == "error":
        return f"{output.ename}: {output.evalue}"
    if output.output_type == "stream":
        return str(output.text)
    return str(output.get("data", {}).get("text/plain", ""))
