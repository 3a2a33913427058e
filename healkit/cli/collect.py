"""Command that collects traces: collect."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Annotated

import typer

from healkit.cli.command import OK, say
from healkit.config import Config


def collect(
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 takes any that is free.")] = 8008,
    db: Annotated[
        str | None,
        typer.Option(
            "--db",
            metavar="URL",
            help="The database: a path or a URL.",
            show_default="HEALKIT_COLLECT_DB, then as everywhere",
        ),
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="A file with the token that clients must send.",
            show_default="HEALKIT_COLLECT_TOKEN, else made up",
        ),
    ] = None,
    verbose: Annotated[bool, typer.Option("--verbose", help="Log each request on stderr.")] = False,
) -> int:
    """Collect the traces that other healkits send, until stopped.

    POST /api/traces stores them; GET /api/traces, /api/traces/ID, /api/health and /api/metrics read.
    """
    from healkit.collector.standalone import Address, given_token, serve

    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(message)s")
    logging.getLogger("healkit").setLevel(logging.INFO if verbose else logging.WARNING)

    def announce(where: str, made_up: str | None) -> None:
        say(f"Collecting traces at {where}/api/traces; stop with Ctrl-C.")
        if made_up is not None:
            say(f"The token, made up for this run and not shown again: {made_up}")

    serve(Config.from_environment(), db, Address(host, port), given_token(token_file, os.environ), announce)
    return OK
