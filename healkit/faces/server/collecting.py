"""Collector's routes, with Jupyter's identities of clients."""

from __future__ import annotations

from typing import Any

from jupyter_server.auth.decorator import allow_unauthenticated, authorized
from jupyter_server.base.handlers import APIHandler, Template404
from tornado.httputil import HTTPHeaders, HTTPServerRequest
from tornado.web import Application, ErrorHandler, authenticated, stream_request_body

from healkit.parts.collect import handlers
from healkit.parts.collect.service import CollectorService

#: Resource for the authorizer.
RESOURCE = "healkit_traces"


def routes(collector: CollectorService, prefix: str) -> list[Any]:
    """Return the collector's routes below that prefix."""
    return [(f"{prefix}{route}/?", handler, {"collector": collector}) for route, handler in _ROUTES]


def is_free(application: Application, base: str) -> bool:
    """Return True if no other handler answers at any of the short addresses."""
    return all(
        _is_unclaimed(application, base + path)
        for path in (handlers.TRACES, f"{handlers.TRACES}/x", handlers.HEALTH, handlers.METRICS)
    )


def _is_unclaimed(application: Application, path: str) -> bool:
    """Return True if only the application's own "not found" answers there."""
    request = HTTPServerRequest("GET", path, headers=HTTPHeaders({"Host": "localhost"}), host="localhost")
    kind = getattr(application.find_handler(request), "handler_class", ErrorHandler)
    return issubclass(kind, ErrorHandler | Template404)


class _JupyterHandler(handlers.CollectorHandler):
    """Identity of the client, as Jupyter's server knows it."""

    auth_resource = RESOURCE
    #: A sender in the background must not keep an idle server alive.
    _track_activity = False

    def identify(self) -> str | None:
        """Return the user's name; Jupyter makes one up for each request that only has the token."""
        user = self.current_user
        if not user:
            return None
        identity: Any = self.settings["identity_provider"]
        return "token" if identity.is_token_authenticated(self) else f"user {user.username}"

    def claims_identity(self) -> bool:
        """Return True also for a token in the address, which Jupyter accepts."""
        return super().claims_identity() or "token" in self.request.query_arguments

    def deliver(self, body: bytes, content_type: str) -> None:
        """Send the answer, with its type in the form for `APIHandler.finish`."""
        self.finish(body, set_content_type=content_type)  # type: ignore[call-arg]  # jupyter_server's own, with one argument more than tornado's

    def check_xsrf_cookie(self) -> None:
        """Check known users as Jupyter does; the handler itself refuses a request without a user."""
        if getattr(self, "_jupyter_current_user", None) is not None:
            super().check_xsrf_cookie()

    def set_cors_headers(self) -> None:
        """Set no headers: pages of other origins may not read traces."""


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


_ROUTES: tuple[tuple[str, type[handlers.CollectorHandler]], ...] = (
    (handlers.TRACES, _JupyterTraces),
    (handlers.TRACE, _JupyterTrace),
    (handlers.HEALTH, _JupyterHealth),
    (handlers.METRICS, _JupyterMetrics),
)
