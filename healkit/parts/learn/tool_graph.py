"""`hk.graph`: which tools go together, asked and drawn.

An edge's weight is that of its kind times that of its confidence; its cost is the reciprocal. An edge that a trace
showed three times is *observed*, fewer times is *inferred*. An edge that only the code of a vault tool shows is a
*template*. `parallel` edges are not paths, and have no cost.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from html import escape
from typing import TYPE_CHECKING, Any, Literal, get_args

from sqlalchemy import select

from healkit.core.pysource.nodes import called_by
from healkit.core.store.database import Database
from healkit.core.store.vault_rows import active_rows
from healkit.errors import UsageInvalid, did_you_mean
from healkit.parts.learn.answers import Answers, sentence_of
from healkit.parts.learn.facts import load_extra, node_of
from healkit.parts.learn.tables import TOOL_EDGES, TOOL_NODES

if TYPE_CHECKING:
    import networkx
    import pandas as pd

#: `dependency`: the code of one names the other. `contains`: one called the other. `provides`: a value of one's result
#: was an argument of the other. `sequence`: one began after the other had ended. `parallel`: they overlapped.
Kind = Literal["dependency", "contains", "provides", "sequence", "parallel"]
Confidence = Literal["observed", "inferred", "template"]
Direction = Literal["out", "in", "both"]
_KINDS = {"dependency": 1.0, "contains": 0.8, "provides": 0.7, "sequence": 0.5, "parallel": 0.0}
_CONFIDENCES = {"observed": 1.0, "inferred": 0.7, "template": 0.5}
_OBSERVED_MIN = 3
#: Edges and tools that a drawing has at most: the heaviest ones.
_DRAWN_MAX, _SVG_TOOLS_MAX = 40, 30
_Z = 1.96


@dataclass(frozen=True, slots=True)
class ToolEdge:
    """Edge of the graph, with how often it was seen, how often its target ended well, and when."""

    source: str
    target: str
    kind: Kind
    count: int = 0
    successes: int = 0
    first_seen: datetime | None = None
    last_seen: datetime | None = None

    @property
    def confidence(self) -> Confidence:
        """Confidence that the two go together."""
        if self.count == 0:
            return "template"
        return "observed" if self.count >= _OBSERVED_MIN else "inferred"

    @property
    def weight(self) -> float:
        """Weight of its kind times that of its confidence, from 0 to 1."""
        return _KINDS[self.kind] * _CONFIDENCES[self.confidence]

    @property
    def cost(self) -> float:
        """Cost of a step along it."""
        return 1 / self.weight if self.weight else math.inf

    @property
    def success_least(self) -> float:
        """Lower end of the 95 % interval of its success rate (Wilson 1927)."""
        return wilson_least(self.successes, self.count)

    def to_json(self) -> dict[str, Any]:
        """Return it as a row: the ends, the kind, and its facts."""
        more = {name: getattr(self, name) for name in ("success_least", "confidence", "weight", "cost")}
        return dataclasses.asdict(self) | more

    def __str__(self) -> str:
        arrow = "—" if self.kind == "parallel" else "→"
        frequency = f"{self.count:,} seen" if self.count else "in its code"
        return f"{self.source} {arrow} {self.target}  {self.kind}, {frequency}"


def wilson_least(successes: int, count: int) -> float:
    """Return the lower end of the 95 % Wilson interval; 0 without observations."""
    if not count:
        return 0.0
    share, square = successes / count, _Z * _Z
    spread = _Z * math.sqrt(share * (1 - share) / count + square / (4 * count * count))
    return max(0.0, (share + square / (2 * count) - spread) / (1 + square / count))


class Drawn(Answers[ToolEdge]):
    """Part of the graph, which shows itself: as Mermaid if a page can draw that, as SVG, as text."""

    def __init__(self, edges: Iterable[ToolEdge], empty: str, waiting: int = 0) -> None:
        super().__init__(edges, waiting)
        self._empty = empty

    def __repr__(self) -> str:
        hidden_count = len(self) - _DRAWN_MAX
        lines = [str(edge) for edge in self[:_DRAWN_MAX]] or [self._empty]
        lines += [f"… and {hidden_count:,} more"] if hidden_count > 0 else []
        return "\n".join([*lines, *([sentence_of(self.waiting)] if self.waiting else [])])

    def mermaid(self) -> str:
        """Return the drawing in Mermaid's language."""
        drawn_edges = self[:_DRAWN_MAX]
        at = {name: f"t{number}" for number, name in enumerate(_names(drawn_edges))}
        title = ["---", f"title: {json.dumps(sentence_of(self.waiting))}", "---"] if self.waiting else []
        lines = [*title, "flowchart LR", *(f'  {at[name]}["{_quoted(name)}"]' for name in at)]
        for edge in drawn_edges:
            label = f"{edge.kind} {edge.count}" if edge.count else edge.kind
            line = "---" if edge.kind == "parallel" else "-->" if edge.count else "-.->"
            lines.append(f"  {at[edge.source]} {line}|{label}| {at[edge.target]}")
        return "\n".join(lines)

    def svg(self) -> str:
        """Return the drawing as SVG; its tools are on a circle, those that go together side by side."""
        names = _names(self)[:_SVG_TOOLS_MAX]
        radius = max(120, 14 * len(names))
        width, height, centre = 2 * radius + 320, 2 * radius + 60, (radius + 160, radius + 30)
        place = {}
        for number, name in enumerate(names):
            turn = 2 * math.pi * number / len(names)
            place[name] = (centre[0] + radius * math.cos(turn), centre[1] + radius * math.sin(turn))
        parts = [
            (
                f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
                f'font-family="sans-serif" font-size="12" role="img" aria-label="Tools that go together">'
                '<defs><marker id="healkit-end" viewBox="0 0 8 8" refX="14" refY="4" markerWidth="8" markerHeight="8" '
                'orient="auto"><path d="M0 0L8 4L0 8z" fill="#888"/></marker></defs>'
            )
        ]
        for edge in self[:_DRAWN_MAX]:
            if edge.source in place and edge.target in place and edge.source != edge.target:
                (x1, y1), (x2, y2) = place[edge.source], place[edge.target]
                end = "" if edge.kind == "parallel" else ' marker-end="url(#healkit-end)"'
                dash = "" if edge.count else ' stroke-dasharray="4"'
                parts.append(
                    f'<line x1="{x1:.0f}" y1="{y1:.0f}" x2="{x2:.0f}" y2="{y2:.0f}" stroke="#888" '
                    f'stroke-width="{0.5 + 2 * edge.weight:.1f}"{dash}{end}><title>{escape(str(edge))}</title></line>'
                )
        for name, (x, y) in place.items():
            side, step = ("end", -10) if x < centre[0] - 1 else ("start", 10)
            parts.append(
                f'<circle cx="{x:.0f}" cy="{y:.0f}" r="6" fill="#4878a8"/><text x="{x + step:.0f}" y="{y + 4:.0f}" '
                f'text-anchor="{side}" fill="currentColor">{escape(name)}</text>'
            )
        if self.waiting:
            parts.append(
                f'<text x="8" y="{height - 8}" fill="currentColor">{sentence_of(self.waiting)}</text>'
            )
        return "".join([*parts, "</svg>"])

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        """Return every form; called by IPython's display formatter."""
        if not self:
            return {"text/plain": self._empty}
        return {"text/plain": repr(self), "text/vnd.mermaid": self.mermaid(), "image/svg+xml": self.svg()}


class ToolGraph:
    """Graph of the tools of one database, from traces and from the vault's code.

    soon: Learns from the newest traces if that is quick, and returns how many are waiting; called before each answer.

    Example:
    >>> _ = hk.vault.add("wind", "def wind(): return 3")
    >>> _ = hk.vault.add("sailing", "def sailing(): return mcp.vault.wind() > 2")
    >>> hk.graph.neighbours("sailing")
    sailing → wind  dependency, in its code
    """

    def __init__(self, database: Database, soon: Callable[[], int] = lambda: 0) -> None:
        self._database, self._soon = database, soon

    def edges(self) -> Answers[ToolEdge]:
        """Return every edge, the heaviest first.

        Example:
        >>> _ = hk.vault.add("toll", "def toll(km): return km * 2")
        >>> _ = hk.vault.add("trip", "def trip(km): return 5 + mcp.vault.toll(km=km)")
        >>> [(edge.target, edge.kind) for edge in hk.graph.edges() if edge.source == "trip"]
        [('toll', 'dependency')]
        """
        return self._read()[0]

    def tools(self) -> list[str]:
        """Return the name of every tool: those that were called, and those of the vault.

        Example:
        >>> "mean" in hk.graph.tools()
        True
        """
        return self._read()[1]

    def neighbours(self, tool: str, kind: Kind | None = None, direction: Direction = "both") -> Drawn:
        """Return the edges of a tool, the heaviest first.

        kind: Only edges of that kind: `dependency`, `contains`, `provides`, `sequence` or `parallel`.
        direction: `out` for edges that start at it, `in` for edges that end at it.

        Raises `UsageInvalid` for an unknown tool, kind or direction.

        Example:
        >>> _ = hk.vault.add("rain", "def rain(): return 3")
        >>> _ = hk.vault.add("forecast", "def forecast(): return mcp.vault.rain()")
        >>> _ = hk.execute("forecast")
        >>> _ = hk.learning.catch_up()
        >>> hk.graph.neighbours("forecast", direction="out")
        forecast → rain  contains, 1 seen
        forecast → rain  dependency, in its code
        """
        for word, choices in ((kind, get_args(Kind)), (direction, get_args(Direction))):
            if word is not None and word not in choices:
                raise UsageInvalid(
                    f"{word!r} is not one of {', '.join(choices)}.{did_you_mean(word, choices)}"
                )
        ends = {"out": ("source",), "in": ("target",), "both": ("source", "target")}[direction]
        known = self._edges_of(tool)
        edges = [
            edge
            for edge in known
            if kind in (None, edge.kind) and tool in [getattr(edge, end) for end in ends]
        ]
        return Drawn(edges, f"No trace contains {tool} and another tool.", known.waiting)

    def path(self, start: str, end: str) -> Drawn:
        """Return the cheapest path from one tool to another, in its order; empty if there is none.

        Raises `UsageInvalid` for an unknown tool, and if networkx is not installed.

        Example:
        >>> _ = hk.vault.add("flour", "def flour(): return 1")
        >>> _ = hk.vault.add("bread", "def bread(): return mcp.vault.flour()")
        >>> _ = hk.vault.add("lunch", "def lunch(): return mcp.vault.bread()")
        >>> hk.graph.path("lunch", "flour")
        lunch → bread  dependency, in its code
        bread → flour  dependency, in its code
        """
        networkx = load_extra("networkx")
        edges = self._edges_of(start, end)
        best = {(edge.source, edge.target): edge for edge in reversed(edges) if edge.weight}
        graph = networkx.DiGraph()
        graph.add_nodes_from((start, end))
        graph.add_weighted_edges_from((*pair, edge.cost) for pair, edge in best.items())
        try:
            names = networkx.shortest_path(graph, start, end, weight="weight")
        except networkx.NetworkXNoPath:
            return Drawn([], f"There is no path from {start} to {end}.", edges.waiting)
        steps = [best[pair] for pair in itertools.pairwise(names)]
        return Drawn(steps, "It is the same tool.", edges.waiting)

    def to_networkx(self) -> networkx.MultiDiGraph[Any]:
        """Return the whole graph for networkx: a `MultiDiGraph` whose edges' keys are their kinds.

        Raises `UsageInvalid` if networkx is not installed.

        Example:
        >>> graph = hk.graph.to_networkx()
        >>> "mean" in graph.nodes
        True
        """
        graph = load_extra("networkx").MultiDiGraph()
        edges, tools = self._read()
        graph.add_nodes_from(tools)
        for edge in edges:
            row = edge.to_json()
            graph.add_edge(row.pop("source"), row.pop("target"), row.pop("kind"), **row)
        return graph

    def to_pandas(self) -> pd.DataFrame:
        """Return every edge as a row of a frame, the heaviest first.

        Example:
        >>> _ = hk.vault.add("page", "def page(): return 1")
        >>> _ = hk.vault.add("book", "def book(): return mcp.vault.page()")
        >>> edges = hk.graph.to_pandas()
        >>> edges.loc[edges["source"] == "book", ["source", "target", "kind"]].to_dict("records")
        [{'source': 'book', 'target': 'page', 'kind': 'dependency'}]
        """
        import pandas as pd

        columns = list(ToolEdge("", "", "sequence").to_json())
        return pd.DataFrame([edge.to_json() for edge in self.edges()], columns=columns)

    def drawn(self, tool: str | None = None) -> Drawn:
        """Return the part to draw: all of it, or a tool's neighbours.

        Example:
        >>> _ = hk.vault.add("wheel", "def wheel(): return 1")
        >>> _ = hk.vault.add("bike", "def bike(): return 2 * mcp.vault.wheel()")
        >>> hk.graph.drawn("bike")
        bike → wheel  dependency, in its code
        """
        if tool is not None:
            return self.neighbours(tool)
        edges = self.edges()
        return Drawn(edges, "No trace contains two tools yet.", edges.waiting)

    def __repr__(self) -> str:
        return repr(self.drawn())

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        """Return every form; called by IPython's display formatter."""
        return self.drawn()._repr_mimebundle_()

    def _read(self) -> tuple[Answers[ToolEdge], list[str]]:
        """Return the edges, the heaviest first, and the names of all tools."""
        waiting = self._soon()
        with self._database.read() as session:
            edges = [ToolEdge(*row) for row in session.execute(select(TOOL_EDGES))]
            called = set(session.scalars(select(TOOL_NODES.c.name)))
            code = {(tool.tool_name, code.code) for tool, _, code in active_rows(session, None)}
        # Nothing is counted for these: the calls themselves are those of `contains`.
        for name, text in code:
            targets = {node_of(call.replace(".", ":", 1)) for call in called_by(text) if call is not None}
            edges += [ToolEdge(name, target, "dependency") for target in targets]
        ordered = sorted(set(edges), key=lambda edge: (-edge.weight, -edge.count, edge.source, edge.target))
        return Answers(ordered, waiting), sorted(called | {name for name, _ in code})

    def _edges_of(self, *tools: str) -> Answers[ToolEdge]:
        """Return every edge; raise `UsageInvalid` if one of the tools is unknown."""
        edges, names = self._read()
        tool_names = {*names, *_names(edges)}
        for name in tools:
            if name not in tool_names:
                raise UsageInvalid(f"No tool named {name!r} was called.{did_you_mean(name, tool_names)}")
        return edges


def _names(edges: Iterable[ToolEdge]) -> list[str]:
    return list(dict.fromkeys(name for edge in edges for name in (edge.source, edge.target)))


def _quoted(name: str) -> str:
    """Return a name in a form that Mermaid can read within quotes."""
    return "".join(
        character if character.isalnum() or character in "_:. -" else f"#{ord(character)};"
        for character in name
    )
