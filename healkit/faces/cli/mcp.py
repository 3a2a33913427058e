"""Command that serves agents: mcp."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import importlib.util
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from healkit.commands import options
from healkit.commands.options import Option
from healkit.commands.table import DB, Answer, Command, wrong
from healkit.config import Config
from healkit.errors import ConfigError, DatabaseMissing
from healkit.faces.cli.command import open_healkit, say

if TYPE_CHECKING:
    from healkit.app import Healkit

_HTTP = Option("http", "serve streamable HTTP instead of standard input and output", bool, default=False)
_HOST = Option("host", "with --http, the address to listen on", default="127.0.0.1")
_PORT = Option(
    "port", "with --http, the port; 0 takes any that is free", int, default=8009, least=0, most=65535
)
_TOKEN = Option(
    "token_file",
    "with --http, a file with the token that clients send",
    metavar="FILE",
    default_help="HEALKIT_MCP_TOKEN, else made up",
)
_TOOLS = Option(
    "tools", "which of the vault's tools are listed; run_tool runs all", default="*", metavar="PATTERN"
)
_REQUESTS = Option(
    "requests_only", "never ask for consent through the client: requests wait", bool, default=False
)
_DEMO = Option("demo", "add the samples and the broken tools that are not there yet", bool, default=False)
_PRINT = Option("print_config", "print the configuration of a client, and end", metavar="CLIENT")
_VARIABLE = "HEALKIT_MCP_TOKEN"


def mcp(
    persona: Annotated[
        str, options.PERSONA.replace(help="the persona whose tools and rows clients have")
    ] = "default",
    tools: Annotated[str, _TOOLS] = "*",
    requests_only: Annotated[bool, _REQUESTS] = False,
    demo: Annotated[bool, _DEMO] = False,
    http: Annotated[bool, _HTTP] = False,
    host: Annotated[str, _HOST] = "127.0.0.1",
    port: Annotated[int, _PORT] = 8009,
    token_file: Annotated[Path | None, _TOKEN] = None,
    print_config: Annotated[str | None, _PRINT] = None,
    db: Annotated[str | None, DB] = None,
) -> Answer:
    """Serve agents over MCP: the vault's tools, the log, healing. Standard output carries only the protocol."""
    if importlib.util.find_spec("mcp") is None:
        raise ConfigError("The MCP server needs the package mcp.", hint="pip install 'healkit[mcp]'")
    if print_config is not None:
        return _configuration(print_config, persona, tools, db, requests_only=requests_only, demo=demo)
    from healkit.faces.mcp_server.transports import Wire, serve_http, serve_stdio

    if not http and sys.stdin.isatty():
        say(
            "Serving MCP on standard input, for a client that starts this; see --print-config. Stop with Ctrl-D."
        )
    _require_trust(db)
    wire = None if http else Wire()
    # While the SDK is imported: its thousands of classes stay, and scanning them repeatedly takes a tenth of
    # a second.
    gc.disable()
    from healkit.faces.mcp_server.server import AgentServer, ServerOptions

    gc.freeze()
    gc.enable()
    with contextlib.ExitStack() as stack:

        def opened() -> Healkit:
            healkit = stack.enter_context(open_healkit(db, create=True, many_runs=True))
            if demo:
                healkit.seed()
            return healkit

        chosen = ServerOptions(persona, tools, through_client=not requests_only)
        server = AgentServer(opened, Config.from_environment(), chosen)
        stack.callback(server.close)
        served = server.protocol
        if wire is not None:
            asyncio.run(serve_stdio(served, wire))
        else:
            from healkit.parts.collect.standalone import Address, given_token

            token = given_token(token_file, os.environ, _VARIABLE)
            asyncio.run(serve_http(served, Address(host, port), token, _announce))
    return Answer()


def _require_trust(db: str | None) -> None:
    """Refuse to serve an untrusted database before a client connects, where the user sees the reason."""
    from healkit.core.store.database import Database, resolve_url

    with contextlib.suppress(DatabaseMissing):  # the first call creates it
        database = Database(resolve_url(db), create=False, only_read=True)
        try:
            database.require_trust("Agents cannot be served")
        finally:
            database.close()


def _announce(where: str, made_up: str | None) -> None:
    say(f"Serving MCP at {where}; stop with Ctrl-C.")
    if made_up is not None:
        say(f"The token, made up for this run and not shown again: {made_up}")


def _configuration(
    client: str, persona: str, tools: str, db: str | None, *, requests_only: bool, demo: bool
) -> Answer:
    from healkit.core.store.database import resolve_url
    from healkit.faces.mcp_server.clients import configuration

    url = resolve_url(db)
    if "@" in url:
        wrong("The database's URL holds a user or password, which a configuration file should not.",
              "Set HEALKIT_DB in the client's environment instead, and leave out --db.")  # fmt: skip
    arguments = ["--persona", persona] if persona != "default" else []
    arguments += ["--tools", tools] if tools != "*" else []
    arguments += ["--requests-only"] if requests_only else []
    arguments += ["--demo"] if demo else []
    line, where = configuration(client, arguments, url)
    return Answer(
        text=line, notes=["Run it in a terminal." if where == "a shell" else f"It goes into {where}."]
    )


COMMANDS = {"mcp": Command(mcp, json=False)}
