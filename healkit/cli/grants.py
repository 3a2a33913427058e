"""Options for what a tool may do; `parsing.read_grants` reads them."""

from __future__ import annotations

from typing import Annotated

import typer

ReadOption = Annotated[
    list[str] | None, typer.Option("--read", metavar="PATH", help="A path it may read; repeatable.")
]
WriteOption = Annotated[
    list[str] | None,
    typer.Option("--write", metavar="PATH", help="A path it may read and write; repeatable."),
]
MemoryOption = Annotated[
    int | None,
    typer.Option("--memory", metavar="MB", help="Memory, instead of the configured.", show_default=False),
]
CpuOption = Annotated[
    int | None, typer.Option("--cpu", metavar="S", help="Processor time; the same.", show_default=False)
]
TimeoutOption = Annotated[
    float | None, typer.Option("--timeout", metavar="S", help="Wall time; the same.", show_default=False)
]
PackagesOption = Annotated[
    list[str] | None,
    typer.Option("--packages", metavar="A,B", help="The packages it sees, or none. [default: all]"),
]
CallsOption = Annotated[
    list[str] | None,
    typer.Option("--calls", metavar="X.*", help="What it may call through mcp, as server.tool, or none."),
]
PythonOption = Annotated[
    str | None,
    typer.Option("--python", metavar="PATH", help="Another interpreter to run it in.", show_default=False),
]
