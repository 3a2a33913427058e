"""Collector, MCP server and pages in Jupyter's server.

The collector is at `healkit/api/…` below the server's base URL, and also at `api/…` if no other handler answers there.
Then a client only needs the address of the server. The MCP server is at `healkit/mcp`, if the package `mcp` is
installed. `healkit/` is a page on the log, the vault and the runs. `healkit/api/panels` answers its requests, and those
of JupyterLab's side panel. Each opens a database with the first request that needs one. The authorizer is asked for
`read` or `write` on the resources `healkit_traces` and `healkit_mcp`, and for `read` on `healkit_log`.
"""

from __future__ import annotations

import importlib.util
from typing import Any

from tornado.web import Application

from healkit.config import Config
from healkit.faces.server import agents, collecting, pages
from healkit.parts.collect import handlers
from healkit.parts.collect.service import CollectorService

_PREFIX = "/healkit"


def _jupyter_server_extension_points() -> list[dict[str, str]]:
    """List the extension; called by Jupyter's server."""
    return [{"module": "healkit.faces.server"}]


def _load_jupyter_server_extension(serverapp: Any) -> None:
    """Mount everything; called by Jupyter's server when it starts.

    The database is only opened by the first request that needs it. Raises `ConfigError`.
    """
    application: Application = serverapp.web_app
    collector = CollectorService(Config.from_environment(), on_error=serverapp.log.warning)
    base = application.settings["base_url"].rstrip("/")
    mount_point = f"{base}{_PREFIX}"
    mounted = [mount_point, *([base] if collecting.is_free(application, base) else [])]
    rules = [rule for prefix in mounted for rule in collecting.routes(collector, prefix)]
    rules += pages.routes(mount_point, serverapp.root_dir)
    if importlib.util.find_spec("mcp") is not None:
        rules.append(agents.route(mount_point))
    application.add_handlers(".*$", rules)
    serverapp.log.info(
        "healkit collects traces at %s", " and ".join(f"{m}{handlers.TRACES}" for m in mounted)
    )
