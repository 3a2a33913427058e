"""Collector as a server of its own: `healkit collect`.

It uses plain HTTP; a proxy adds encryption. When it is stopped, it takes no new connections, answers the running
requests, and closes the database.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import hashlib
import hmac
import ipaddress
import logging
import os
import re
import secrets
import signal
import socket
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tornado.httpserver import HTTPServer
from tornado.iostream import IOStream
from tornado.netutil import bind_sockets
from tornado.web import Application, RequestHandler, stream_request_body

from healkit.config import Config
from healkit.errors import ConfigError
from healkit.parts.collect import handlers
from healkit.parts.collect.limits import Connections
from healkit.parts.collect.service import CollectorService

#: How long requests that have begun may take after a stop signal.
DRAIN_S = 10.0

#: Bytes of a request's line and headers.
_MAX_HEADER_BYTES = 16 * 1024
#: How long an idle connection is kept; `connections` bounds the first headers and the number.
_IDLE_S = 60.0

_log = logging.getLogger("healkit.collect")


@dataclasses.dataclass(frozen=True)
class Address:
    """Address that the server listens on; port 0 takes any free port."""

    host: str = "127.0.0.1"
    port: int = 8008


class _Alone(handlers.CollectorHandler):
    """Identity by one token, in a header only: in an address it would end up in logs."""

    def identify(self) -> str | None:
        """Return a constant for the right token, else None."""
        kind, _, credentials = self.request.headers.get("Authorization", "").partition(" ")
        token: Token = self.settings["healkit_token"]
        return "token" if kind.lower() in {"bearer", "token"} and token.matches(credentials.strip()) else None


@stream_request_body
class _Traces(_Alone, handlers.TracesHandler): ...


@stream_request_body
class _Trace(_Alone, handlers.TraceHandler): ...


@stream_request_body
class _Health(_Alone, handlers.HealthHandler): ...


@stream_request_body
class _Metrics(_Alone, handlers.MetricsHandler): ...


@stream_request_body
class _Unknown(_Alone, handlers.UnknownHandler): ...


class BoundedServer(HTTPServer):
    """Server of an application whose settings hold its `Connections`."""

    def handle_stream(self, stream: IOStream, address: tuple[Any, ...]) -> None:
        """Take a connection; called by tornado."""
        self._bounds.opened(stream, str(address[0]))
        super().handle_stream(stream, address)

    def on_close(self, server_conn: object) -> None:
        """Forget a connection; called by tornado when either side closes it."""
        super().on_close(server_conn)
        self._bounds.closed(server_conn.stream)  # type: ignore[attr-defined]  # tornado's HTTP1ServerConnection

    @property
    def _bounds(self) -> Connections:
        connections: Connections = self.request_callback.settings["healkit_connections"]  # type: ignore[union-attr]  # an Application
        return connections


def make_application(
    collector: CollectorService, token: Token, connections: Connections | None = None
) -> Application:
    """Make an application of the routes, for a `BoundedServer`; for a JupyterHub service also below its prefix."""
    served: dict[str, Any] = {
        handlers.TRACES: _Traces, handlers.TRACE: _Trace, handlers.HEALTH: _Health, handlers.METRICS: _Metrics,
    }  # fmt: skip
    prefix = re.escape(os.environ.get("JUPYTERHUB_SERVICE_PREFIX", "").rstrip("/"))
    routes: list[Any] = [
        (f"(?:{prefix})?{path}", handler, {"collector": collector})
        for path, handler in [*served.items(), (".*", _Unknown)]
    ]
    return Application(
        routes,
        healkit_token=token,
        healkit_connections=Connections() if connections is None else connections,
        log_function=_log_request,
    )


def serve(
    config: Config,
    db: str | None,
    address: Address,
    token: Token | None,
    announce: Callable[[str, str | None], None],
) -> None:
    """Serve until SIGTERM or SIGINT.

    announce: Called when connections are accepted, with the address and a generated token, if any.

    Raises `ConfigError` for an address that is not available or needs its own token, and `DatabaseError`.
    """
    check_public(address.host, token)
    generated = None
    if token is None:
        token, generated = generated_token()
    sockets = bind(address)
    try:
        collector = CollectorService(config, db, on_error=_log.warning)
        collector.make_ready()  # fail now, not at the first request, for a database that cannot be opened
        application = make_application(collector, token)
        where = f"http://{_shown(address.host)}:{sockets[0].getsockname()[1]}"
        asyncio.run(_run(collector, application, sockets, lambda: announce(where, generated)))
    finally:
        for listener in sockets:
            listener.close()


async def _run(
    collector: CollectorService,
    application: Application,
    sockets: list[socket.socket],
    ready: Callable[[], None],
) -> None:
    server = BoundedServer(
        application,
        idle_connection_timeout=_IDLE_S,
        body_timeout=collector.config.collect_timeout_s,
        max_header_size=_MAX_HEADER_BYTES,
        max_body_size=collector.config.collect_max_bytes + handlers.DRAINED_BYTES,
    )
    with stop_signals() as stopped:
        server.add_sockets(sockets)
        ready()
        await stopped.wait()
        server.stop()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(collector.idle.wait(), DRAIN_S)
        await server.close_all_connections()
        await asyncio.to_thread(collector.close)


@contextlib.contextmanager
def stop_signals() -> Iterator[asyncio.Event]:
    """Yield an event that is set by SIGTERM or SIGINT."""
    stopped, loop = asyncio.Event(), asyncio.get_running_loop()
    numbers = (signal.SIGTERM, signal.SIGINT)
    for number in numbers:
        loop.add_signal_handler(number, stopped.set)
    try:
        yield stopped
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)


def bind(address: Address) -> list[socket.socket]:
    """Return sockets that listen there; raise `ConfigError` if that fails."""
    try:
        return bind_sockets(address.port, address.host)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(
            f"Cannot listen on {address.host!r}, port {address.port}: {reason}.",
            hint="Choose another --port (0 takes any free port) or --host.",
        ) from None


def _shown(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _log_request(handler: RequestHandler) -> None:
    """Log a request without its parameters, which may contain tokens; called by tornado."""
    request, status = handler.request, handler.get_status()
    level = logging.WARNING if status >= 500 else logging.INFO
    milliseconds = 1000 * request.request_time()
    _log.log(
        level, "%s %r %d %.1f ms %s", request.method, request.path, status, milliseconds, request.remote_ip
    )


# The token.


VARIABLE = "HEALKIT_COLLECT_TOKEN"

#: The fewest characters of a token that guards an address which others can reach.
PUBLIC_MIN_CHARS = 16


class Token:
    """Secret of which only a digest is kept, so that it cannot be shown by accident."""

    def __init__(self, text: str) -> None:
        if not (text.isascii() and text.isprintable() and " " not in text and 0 < len(text) <= 1000):
            raise ConfigError(
                "The token is empty, too long, or has characters that a header cannot carry.",
                hint="Use up to 1,000 letters, digits and punctuation without spaces.",
            )
        self._digest = hashlib.sha256(text.encode()).digest()
        self.length = len(text)

    def matches(self, text: str) -> bool:
        """Return True for the same text; digests are compared by `hmac.compare_digest`."""
        digest = hashlib.sha256(text.encode(errors="surrogatepass")).digest()
        return hmac.compare_digest(digest, self._digest)

    def __repr__(self) -> str:
        return "Token(…)"


def given_token(file: Path | None, environ: Mapping[str, str], variable: str = VARIABLE) -> Token | None:
    """Read the token from the file, else from the variable, if given; raise `ConfigError`."""
    if file is None:
        return Token(environ[variable].strip()) if variable in environ else None
    try:
        with file.open(encoding="utf-8") as lines:
            return Token(lines.read(2000).strip())
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise ConfigError(
            f"The token cannot be read from {str(file)!r}: {reason}.",
            hint="The file must contain only the token.",
        ) from None


def generated_token() -> tuple[Token, str]:
    """Generate a token; return it with its text, to be shown once."""
    text = secrets.token_urlsafe(32)
    return Token(text), text


def is_loopback(host: str) -> bool:
    """Return True if only this machine can reach that address; names other than localhost count as public."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def check_public(host: str, token: Token | None) -> None:
    """Raise `ConfigError` if other machines can reach the address and the token is missing or too short."""
    if is_loopback(host):
        return
    if token is None:
        raise ConfigError(
            f"{host!r} can be reached from other machines, but there is no token.",
            hint="Give a token with --token-file, or listen on 127.0.0.1.",
        )
    if token.length < PUBLIC_MIN_CHARS:
        raise ConfigError(
            f"{host!r} can be reached from other machines, but the token has only {token.length} characters.",
            hint=f"Use a token of at least {PUBLIC_MIN_CHARS}, such as: openssl rand -hex 32",
        )
