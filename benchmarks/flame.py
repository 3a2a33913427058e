"""Flame graph of the host, from py-spy's samples.

Run `py-spy record --gil -F -f raw -o host.raw --pid PID` beside an executing process, then `python benchmarks/flame.py
host.raw docs/images/host_flame.svg`. Only samples that hold the interpreter's lock are counted. Frames of Python's own
event loop and threads are left out, because they are below everything.
"""

from __future__ import annotations

import re
import sys
from html import escape
from pathlib import Path

ROW_PX, WIDTH_PX, CHAR_PX = 17, 1000, 6.8
#: Number of rows that are drawn; higher ones are counted in the row below.
ROWS_MAX = 14
#: Frames without information: callers of everything else.
_BELOW = re.compile(
    r"^(Thread\.|BackgroundLoop\._serve|BaseEventLoop\.|Handle\._run|<module>|_worker |_WorkItem)"
)
_PLACE = re.compile(r" \((.*?):\d+\)$")
#: Colours of healkit, of Jupyter and ZeroMQ, and of Python.
_COLOURS = {"healkit": "#f5b642", "zmq": "#8fbcd4", "jupyter_client": "#8fbcd4", "traitlets": "#8fbcd4"}


class Node:
    """Function, with its samples and the functions that it has called."""

    def __init__(self, name: str, package: str) -> None:
        self.name, self.package, self.samples = name, package, 0
        self.callees: dict[str, Node] = {}


def read(file: Path) -> Node:
    """Read py-spy's raw stacks: frames from the outermost, and their number of samples."""
    root = Node("all", "")
    for line in file.read_text().splitlines():
        stack, _, count = line.rpartition(" ")
        node = root
        node.samples += int(count)
        for frame in stack.split(";"):
            if _BELOW.match(frame):
                continue
            place = _PLACE.search(frame)
            name, package = _PLACE.sub("", frame), place[1].split("/")[0] if place else ""
            node = node.callees.setdefault(frame, Node(name, package))
            node.samples += int(count)
    return root


def draw(node: Node, left_px: float, depth: int, scale: float, of: int, out: list[str]) -> int:
    """Draw a function above its caller; return the depth of the highest one."""
    width_px, deepest = node.samples * scale, depth
    share = f"{100 * node.samples / of:.1f} %"
    text = node.name[: int(width_px / CHAR_PX)] if width_px > 30 else ""
    fill = _COLOURS.get(node.package, "#d9d4c7")
    title = f"{escape(node.name)} {escape(node.package)} {share}"
    out.append(
        f'<g><title>{title}</title><rect x="{left_px:.1f}" y="{depth * ROW_PX}" '
        f'width="{max(width_px - 0.5, 0.2):.1f}" height="{ROW_PX - 1}" fill="{fill}"/>'
        f'<text x="{left_px + 3:.1f}" y="{depth * ROW_PX + 12}">{escape(text)}</text></g>'
    )
    for callee in sorted(node.callees.values(), key=lambda one: -one.samples):
        if callee.samples * scale >= 1 and depth < ROWS_MAX:
            deepest = max(deepest, draw(callee, left_px, depth + 1, scale, of, out))
        left_px += callee.samples * scale
    return deepest


def main() -> None:
    raw, target = Path(sys.argv[1]), Path(sys.argv[2])
    root, out = read(raw), []
    deepest = draw(root, 0, 0, WIDTH_PX / root.samples, root.samples, out)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH_PX} {(deepest + 1) * ROW_PX}" '
    style = "<style>text{font:11px monospace;fill:#222}</style>"
    target.write_text(f'{head}role="img">{style}{"".join(out)}</svg>\n')


if __name__ == "__main__":
    main()
