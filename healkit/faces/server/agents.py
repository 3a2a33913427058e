"""MCP server's route in Jupyter's server."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import MutableMapping
from typing import Any

from jupyter_server.auth.decorator import authorized
from jupyter_server.base.handlers import APIHandler
from tornado.iostream import StreamClosedError
from tornado.web import authenticated

from healkit.config import Config

#: Resource for the authorizer.
RESOURCE = "healkit_mcp"


def route(prefix: str) -> Any:
    """Return the route below that prefix; the server starts with the first request."""
    return (f"{prefix}/mcp", _JupyterAgents, {"agents": Agents()})


class Agents:
    """MCP server of this Jupyter server: an ASGI application, started by the first request."""

    def __init__(self) -> None:
        self._starting = asyncio.Lock()
        self._app: Any = None

    async def app(self) -> Any:
        """Return the application, on a database that remains open as long as Jupyter's server runs."""
        async with self._starting:
            if self._app is None:
                from healkit.faces.defaults import default_healkit
                from healkit.faces.mcp_server.server import AgentServer
                from healkit.faces.mcp_server.transports import http_app

                served = AgentServer(default_healkit, Config.from_environment()).protocol
                app = http_app(served, None)  # Jupyter's server has checked the host
                ready = asyncio.Event()
                self._serving = asyncio.create_task(_serve(served, ready))
                await ready.wait()
                self._app = app
            return self._app


async def _serve(served: Any, ready: asyncio.Event) -> None:
    """Keep the sessions open, in a separate task, because the SDK's scopes must end in the task that entered them."""
    async with served.session_manager.run():
        ready.set()
        await asyncio.Event().wait()


class _JupyterAgents(APIHandler):
    """Passes a request to the application, and returns its answer piece by piece."""

    auth_resource = RESOURCE

    def initialize(self, agents: Agents) -> None:
        """Store the server; called by tornado."""
        self._agents, self._gone = agents, asyncio.Event()

    def on_connection_close(self) -> None:
        """Note that the client has disconnected; called by tornado."""
        self._gone.set()

    @authenticated
    @authorized
    async def post(self) -> None:
        request, asked = self.request, False
        headers = [(name.lower().encode(), value.encode()) for name, value in request.headers.get_all()]
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": request.method,
            "scheme": request.protocol,
            "path": "/mcp",
            "raw_path": b"/mcp",
            "root_path": "",
            "query_string": request.query.encode(),
            "headers": headers,
            "client": (request.remote_ip, 0),
            "server": None,
        }

        async def receive() -> dict[str, Any]:
            nonlocal asked
            if not asked:
                asked = True
                return {"type": "http.request", "body": request.body, "more_body": False}
            await self._gone.wait()
            return {"type": "http.disconnect"}

        async def send(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                self.set_status(message["status"])
                for name, value in message["headers"]:
                    self.set_header(name.decode(), value.decode("latin-1"))
            elif not self._gone.is_set():
                self.write(message.get("body", b""))
                with contextlib.suppress(StreamClosedError):
                    await self.flush()

        await (await self._agents.app())(scope, receive, send)
        if not self._gone.is_set():
            with contextlib.suppress(StreamClosedError):
                await self.finish(set_content_type=self._headers.get("Content-Type"))

    get = delete = post
