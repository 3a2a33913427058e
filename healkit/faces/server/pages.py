"""Stand-alone page, and answers to pages and side panels.

A few threads do the reading, so that neither a slow request nor a large log blocks Jupyter's server. If too many
requests wait, the newest one is refused. The database is the one that a notebook in the server's folder uses. Nothing
here needs a kernel, and nothing changes the log: a person's trust is stored in their data folder.

The page has no inline script or style. Its Content-Security-Policy only allows those with its own nonce (the code
editor writes its styles into the page). So text from a tool could not run even if it became HTML.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec
from jupyter_server.auth.decorator import authorized
from jupyter_server.base.handlers import APIHandler, JupyterHandler
from tornado.web import HTTPError, authenticated

from healkit.core.store.locations import resolve_url, sqlite_path
from healkit.errors import HealkitError, UsageInvalid

if TYPE_CHECKING:
    from healkit.faces.pages.side_panel import SidePanelPages

#: Resource for the authorizer: `read`, and `write` to trust a database.
RESOURCE = "healkit_log"
#: Maximum number of requests that are answered concurrently, and of all open requests.
_THREADS, _OPEN_MAX = 4, 64
_QUESTION_MAX_BYTES = 100_000
_KINDS = {"web.js": "text/javascript", "web.css": "text/css", "LICENSES.txt": "text/plain"}


def routes(prefix: str, folder: str) -> list[Any]:
    """Return the routes below that prefix; `folder` contains the server's notebooks."""
    reader = Reader(folder)
    return [
        (f"{prefix}/api/panels", _Panels, {"reader": reader}),
        (f"{prefix}/api/trust", _Trust, {"reader": reader}),
        (f"{prefix}/?", _Page, {"reader": reader}),
        (f"{prefix}/static/([a-zA-Z.]{{1,40}})", _Static),
    ]


class Reader:
    """Answers requests on its own threads."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._pages: SidePanelPages | None = None
        self._url = ""
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="healkit-page")
        self._open = 0

    async def answer(self, question: object) -> tuple[int, bytes]:
        """Return the HTTP status and `{value}` or `{error}` as JSON for a page's request, `{op, args}`."""
        if self._open >= _OPEN_MAX:
            busy = UsageInvalid("The server has too many questions to answer.", hint="Try again in a moment.")
            return 503, _told(busy)
        self._open += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, self._answer, question)
        finally:
            self._open -= 1

    def warm(self) -> None:
        """Start to load what the first answer needs, which takes a second, because a page will soon send a request."""
        asyncio.get_running_loop().run_in_executor(
            self._threads, self._answer, {"op": "groups", "args": {"filters": {}}}
        )

    def _answer(self, question: object) -> tuple[int, bytes]:
        recorded = None
        try:
            match question:
                case {"op": "waiting"} if not self._in_use():
                    return 200, msgspec.json.encode({"value": None})
                case {"op": str(op), **rest} if isinstance(arguments := rest.get("args", {}), dict):
                    pages = self._opened()
                    recorded = pages.recorded
                    return 200, msgspec.json.encode(pages.answer(op, arguments))
            raise UsageInvalid("A question is a JSON object with `op`, a text, and `args`, an object.")
        except HealkitError as error:
            return 400, _told(error, recorded)
        except Exception as error:  # noqa: BLE001 - the page gets the error; the server must continue
            return 500, _told(error, recorded)

    async def trust(self, place: str, identity: str) -> None:
        """Trust the database that a person was shown; raise `UsageInvalid` if another one is there by now."""
        await asyncio.get_running_loop().run_in_executor(self._threads, self._trust, place, identity)

    def _trust(self, place: str, identity: str) -> None:
        database = self._opened().healkit.database
        if (place, identity) != (database.place, database.identity()):
            raise UsageInvalid(
                "That database is not in use any more.", hint="Reload the page, then look again."
            )
        database.trust()

    def _in_use(self) -> bool:
        """Return False while there is no database and no page was opened, so that a poll does not create one."""
        if self._pages is not None:
            return True
        path = sqlite_path(resolve_url(cwd=self._folder))
        return path is None or path.exists()

    def _opened(self) -> SidePanelPages:
        """Return the pages of the database that notebooks in the server's folder use at present."""
        # SQLAlchemy takes a while to import, and most servers get no request.
        from healkit.faces.defaults import default_healkit
        from healkit.faces.pages.side_panel import SidePanelPages

        healkit = default_healkit(resolve_url(cwd=self._folder))
        with self._lock:
            if self._pages is None or self._pages.healkit is not healkit:
                self._pages = SidePanelPages(healkit)
            return self._pages


def _told(error: Exception, recorded: Any = None) -> bytes:
    """Return an error for the page, without secrets once the sanitiser is loaded."""
    from healkit.faces.pages.operations import described

    description = described(error)
    return msgspec.json.encode(
        {"error": description if recorded is None else recorded.shown(description).value}
    )


class _Panels(APIHandler):
    auth_resource = RESOURCE
    #: An open page must not keep an idle server alive.
    _track_activity = False

    def initialize(self, reader: Reader) -> None:
        """Store the reader; called by tornado."""
        self._reader = reader

    @authenticated
    @authorized("read")
    async def post(self) -> None:
        if len(self.request.body) > _QUESTION_MAX_BYTES:
            raise HTTPError(413, f"A question has at most {_QUESTION_MAX_BYTES:,} bytes.")
        try:
            question = json.loads(self.request.body)
        except (ValueError, RecursionError):
            question = None
        status, answer = await self._reader.answer(question)
        self.set_status(status)
        self.set_header("Cache-Control", "no-store")
        self.finish(answer)


class _Trust(APIHandler):
    """Takes the answer of a person who was asked whether they trust the database."""

    auth_resource = RESOURCE

    def initialize(self, reader: Reader) -> None:
        """Store the reader; called by tornado."""
        self._reader = reader

    @authenticated
    @authorized("write")
    async def post(self) -> None:
        match self.get_json_body():
            case {"place": str(place), "identity": str(identity)}:
                try:
                    await self._reader.trust(place, identity)
                except HealkitError as error:
                    self.set_status(400)
                    self.finish(_told(error))
                else:
                    self.finish({})
            case _:
                raise HTTPError(400, "A database is named by `place` and `identity`.")


@cache
def _file(name: str) -> bytes:
    return (resources.files("healkit.faces.server") / "static" / name).read_bytes()


class _Page(JupyterHandler):
    auth_resource = RESOURCE
    _POLICY: ClassVar[tuple[str, ...]] = (
        "default-src 'none'",
        "script-src 'nonce-{nonce}'",
        "style-src 'self' 'nonce-{nonce}'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
    )

    def initialize(self, reader: Reader) -> None:
        """Store the reader; called by tornado."""
        self._reader = reader

    @authenticated
    @authorized("read")
    def get(self) -> None:
        if not self.request.path.endswith("/"):
            self.redirect(f"{self.request.path}/", permanent=False)
            return
        self._reader.warm()
        nonce = secrets.token_urlsafe(16)
        policy = "; ".join(self._POLICY).format(nonce=nonce)
        self.set_header("Content-Security-Policy", f"{self.content_security_policy}; {policy}")
        self.set_header("Content-Type", "text/html; charset=utf-8")
        self.set_header("Cache-Control", "no-store")
        self.set_header("Referrer-Policy", "no-referrer")
        _ = self.xsrf_token  # sets the cookie that the page's requests send back
        self.finish(_file("index.html").replace(b"{nonce}", nonce.encode()))


class _Static(JupyterHandler):
    auth_resource = RESOURCE

    @authenticated
    @authorized("read")
    def get(self, name: str) -> None:
        if name not in _KINDS:
            raise HTTPError(404)
        self.set_header("Content-Type", f"{_KINDS[name]}; charset=utf-8")
        self.set_header("Cache-Control", "no-cache")
        self.finish(_file(name))
