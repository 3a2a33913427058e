"""Collector and MCP server in Jupyter's server.

The collector is mounted below the server's base URL at `healkit/api/…`, which is ours, and also at `api/…` where no
other handler answers there: a client then only needs the address of the server. The MCP server is at `healkit/mcp`,
where the package `mcp` is installed. Both open a database with the first request that needs one. The authorizer is
asked for `read` or `write` on the resources `healkit_traces` and `healkit_mcp`.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
from collections.abc import MutableMapping
from typing import Any

from jupyter_server.auth.decorator import allow_unauthenticated, authorized
from jupyter_server.base.handlers import APIHandler, Template404
from tornado.httputil import HTTPHeaders, HTTPServerRequest
from tornado.iostream import StreamClosedError
from tornado.web import Application, ErrorHandler, authenticated, stream_request_body

from healkit.collector import handlers
from healkit.collector.service import CollectorService
from healkit.config import Config

#: The resource that the authorizer is asked for.
RESOURCE, AGENTS = "healkit_traces", "healkit_mcp"

_PREFIX = "/healkit"


class _JupyterHandler(handlers.CollectorHandler):
    """Identity of the client, as Jupyter's server knows it."""

    auth_resource = RESOURCE
    #: A sender in the background is no reason to keep an idle server alive.
    _track_activity = False

    def identify(self) -> str | None:
        """Return the user's name; Jupyter invents one for each request that sends the token itself."""
        user = self.current_user
        if not user:
            return None
        identity: Any = self.settings["identity_provider"]
        return "token" if identity.is_token_authenticated(self) else f"user {user.username}"

    def claims_identity(self) -> bool:
        """Return True for a token in the address too, which Jupyter accepts."""
        return super().claims_identity() or "token" in self.request.query_arguments

    def deliver(self, body: bytes, content_type: str) -> None:
        """Send the answer, with the type as `APIHandler.finish` wants it."""
        self.finish(body, set_content_type=content_type)  # type: ignore[call-arg]  # jupyter_server's own, with one argument more than tornado's

    def check_xsrf_cookie(self) -> None:
        """Check as Jupyter does for known users; a request without one is refused by the handler itself."""
        if getattr(self, "_jupyter_current_user", None) is not None:
            super().check_xsrf_cookie()

    def set_cors_headers(self) -> None:
        """Set none: no page of another origin reads traces."""


@stream_request_body
class _JupyterTraces(_JupyterHandler, handlers.TracesHandler, APIHandler):  # type: ignore[misc]  # two bases with the same methods; jupyter_server carries no types
    @authenticated
    @authorized
    async def post(self) -> None:  # type: ignore[override]  # tornado lets each handler take its own arguments
        await super().post()

    @authenticated
    @authorized
    async def get(self) -> None:  # type: ignore[override]  # tornado lets each handler take its own arguments
        await super().get()


@stream_request_body
class _JupyterTrace(_JupyterHandler, handlers.TraceHandler, APIHandler):  # type: ignore[misc]  # two bases with the same methods; jupyter_server carries no types
    @authenticated
    @authorized
    async def get(self, trace_id: str) -> None:  # type: ignore[override]  # tornado lets each handler take its own arguments
        await super().get(trace_id)


@stream_request_body
class _JupyterMetrics(_JupyterHandler, handlers.MetricsHandler, APIHandler):  # type: ignore[misc]  # two bases with the same methods; jupyter_server carries no types
    @authenticated
    @authorized
    async def get(self) -> None:  # type: ignore[override]  # tornado lets each handler take its own arguments
        await super().get()


@stream_request_body
class _JupyterHealth(_JupyterHandler, handlers.HealthHandler, APIHandler):  # type: ignore[misc]  # two bases with the same methods; jupyter_server carries no types
    @allow_unauthenticated
    async def get(self) -> None:
        await super().get()


class Agents:
    """MCP server of this Jupyter server: an ASGI application, started by the first request."""

    def __init__(self) -> None:
        self._starting = asyncio.Lock()
        self._app: Any = None

    async def app(self) -> Any:
        """Return the application, on a database that stays open as long as Jupyter's server runs."""
        async with self._starting:
            if self._app is None:
                from healkit.defaults import default_healkit
                from healkit.mcp_server.server import AgentServer
                from healkit.mcp_server.transports import http_app

                served = AgentServer(default_healkit, Config.from_environment()).protocol
                app = http_app(served, None)  # Jupyter's server has checked the host
                ready = asyncio.Event()
                self._serving = asyncio.create_task(_serve(served, ready))
                await ready.wait()
                self._app = app
            return self._app


async def _serve(served: Any, ready: asyncio.Event) -> None:
    """Keep the sessions open; in a task of its own, because the SDK's scopes end in the task that has entered them."""
    async with served.session_manager.run():
        ready.set()
        await asyncio.Event().wait()


class _JupyterAgents(APIHandler):
    """Gives a request to the application, and its answer back piece by piece."""

    auth_resource = AGENTS

    def initialize(self, agents: Agents) -> None:
        """Take the server; called by tornado."""
        self._agents, self._gone = agents, asyncio.Event()

    def on_connection_close(self) -> None:
        """Note that the client has gone; called by tornado."""
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


_ROUTES: tuple[tuple[str, type[handlers.CollectorHandler]], ...] = (
    (handlers.TRACES, _JupyterTraces),
    (handlers.TRACE, _JupyterTrace),
    (handlers.HEALTH, _JupyterHealth),
    (handlers.METRICS, _JupyterMetrics),
)


def _jupyter_server_extension_points() -> list[dict[str, str]]:
    """List the extension; called by Jupyter's server."""
    return [{"module": "healkit.server"}]


def _load_jupyter_server_extension(serverapp: Any) -> None:
    """Mount the collector; called by Jupyter's server as it starts.

    The database is only opened by the first request that needs it. Raises `ConfigError`.
    """
    application: Application = serverapp.web_app
    collector = CollectorService(Config.from_environment(), on_error=serverapp.log.warning)
    base = application.settings["base_url"].rstrip("/")
    mounted = [f"{base}{_PREFIX}", *([base] if _is_free(application, base) else [])]
    rules: list[Any] = [
        (f"{prefix}{route}/?", handler, {"collector": collector})
        for prefix in mounted
        for route, handler in _ROUTES
    ]
    if importlib.util.find_spec("mcp") is not None:
        rules.append((f"{base}{_PREFIX}/mcp", _JupyterAgents, {"agents": Agents()}))
    application.add_handlers(".*$", rules)
    serverapp.log.info(
        "healkit collects traces at %s", " and ".join(f"{m}{handlers.TRACES}" for m in mounted)
    )


def _is_free(application: Application, base: str) -> bool:
    """Return True when no other handler answers at any of the short addresses."""
    return all(
        _is_unclaimed(application, base + path)
        for path in (handlers.TRACES, f"{handlers.TRACES}/x", handlers.HEALTH, handlers.METRICS)
    )


def _is_unclaimed(application: Application, path: str) -> bool:
    """Return True when only the application's own "not found" answers there."""
    request = HTTPServerRequest("GET", path, headers=HTTPHeaders({"Host": "localhost"}), host="localhost")
    kind = getattr(application.find_handler(request), "handler_class", ErrorHandler)
    return issubclass(kind, ErrorHandler | Template404)
