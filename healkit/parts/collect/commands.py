"""Command that collects traces: collect."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Annotated

from healkit.commands.options import Option
from healkit.commands.table import DB, Answer, Command, Terminal
from healkit.config import Config

_HOST = Option("host", "the address to listen on", default="127.0.0.1")
_PORT = Option("port", "the port; 0 takes any free port", int, default=8008, least=0, most=65535)
_TOKEN_FILE = Option(
    "token_file",
    "a file with the token that clients must send",
    metavar="FILE",
    default_help="HEALKIT_COLLECT_TOKEN, else a new one",
)


def collect(
    host: Annotated[str, _HOST] = "127.0.0.1",
    port: Annotated[int, _PORT] = 8008,
    db: Annotated[str | None, DB] = None,
    token_file: Annotated[Path | None, _TOKEN_FILE] = None,
    verbose: Annotated[bool, Option("verbose", "log each request on stderr")] = False,
    *,
    terminal: Terminal,
) -> Answer:
    """Collect the traces that other healkits send, until stopped.

    POST /api/traces stores them; GET /api/traces, /api/traces/ID, /api/health and /api/metrics read.
    """
    from healkit.parts.collect.standalone import Address, given_token, serve

    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(message)s")
    logging.getLogger("healkit").setLevel(logging.INFO if verbose else logging.WARNING)

    def announce(where: str, made_up: str | None) -> None:
        terminal.say(f"Collecting traces at {where}/api/traces; stop with Ctrl-C.")
        if made_up is not None:
            terminal.say(f"The token, made for this start and not shown again: {made_up}")

    serve(Config.from_environment(), db, Address(host, port), given_token(token_file, os.environ), announce)
    return Answer()


COMMANDS = {"collect": Command(collect, json=False)}
