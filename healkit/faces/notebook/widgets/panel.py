"""Base of all panels.

The page sends requests as comm messages `{op, id, args}`, and gets `{id, value}` or `{id, error}`. A separate thread
answers each request, so that the user's kernel remains free. Every exception becomes an answer, because exceptions in a
widget's callback are otherwise lost. The state of a panel, which is saved in the notebook, names its content (a tool, a
row, filters) but does not include it. Only a timeline stores its story there, to be readable without a kernel. What the
page would lose in a reload (an unsaved patch) is kept here, in memory.

The saved state is small because `_esm` is a loader of a few lines. The bundle itself is sent once per page, as the
answer to the loader's request. If `_esm` were the bundle, nbclient would save half a megabyte for each panel.

The page draws a docked panel at the right-hand side of the window, if it has healkit's JupyterLab extension, and
otherwise in its cell. For each notebook, only one panel of a title is kept there, because a second log would only
obstruct the first.
"""

from __future__ import annotations

import contextvars
import hashlib
import threading
from collections import deque
from collections.abc import Callable, Mapping
from functools import cache
from importlib import resources
from typing import Any, Self

import anywidget
import traitlets
from IPython.display import DisplayHandle, display

from healkit.app import Healkit
from healkit.core.runtime.background import Stop
from healkit.errors import UsageInvalid
from healkit.faces.notebook.cell_output import CellOutput, fixes_offered, live_page
from healkit.faces.pages.operations import EXACT, Operation, described, taken
from healkit.faces.pages.page_data import PageData

#: Maximum size of a panel's memory for a page, in characters; more than an unsaved patch needs.
_MEMORY_MAX_CHARS = 1_000_000
#: Maximum number of concurrent requests to one panel; more means that a page is out of control.
_MAX_THREADS = 16
_MAX_OPEN = 100
#: Numbers of answers, and of request ids, that a panel keeps in case the page repeats a request.
_ANSWERS_MAX, _ASKED_MAX = 16, 1000
#: Time in which a page must report that it also shows a panel, in seconds.
_ROLL_CALL_S = 2.0
_IN_PLAIN_TEXT = "(Interactive panel: run the cell to see it.)"


@cache
def static(name: str) -> bytes:
    """Return a file of the bundle, as it was built."""
    return (resources.files("healkit.faces.notebook.widgets") / "static" / name).read_bytes()


@cache
def bundle_hash() -> str:
    """Return the hash of the bundle that a page needs; it must not use another version's."""
    return hashlib.sha256(static("panels.js")).hexdigest()[:16]


class Panel(anywidget.AnyWidget):
    """Panel in a notebook.

    Subclasses name their JavaScript component in `KIND` and put the page's operations into `operations`. The component
    gets `spec` when it opens; `spec` must not contain a payload.
    """

    KIND = ""
    #: Whether it shows the same as its static card, which is then folded below it.
    SAME_AS_CARD = False
    #: Title of its tab at the side of the window, where it replaces a panel of the same title; empty for a
    #: panel that stays in its cell.
    title = ""
    #: Called when no page shows the panel any more. A panel that is shown again restarts what it needs.
    endings: tuple[Callable[[], object], ...] = ()

    bundle = traitlets.Unicode().tag(sync=True)

    def __init__(self, healkit: Healkit | None, spec: Mapping[str, Any] | None = None) -> None:
        self._esm = static("loader.js").decode()
        super().__init__(bundle=bundle_hash())
        self._healkit = healkit
        self.recorded = PageData(healkit, fixes_offered)
        self.spec = dict(spec or {})
        self._seen = threading.Event()
        self.operations: dict[str, Operation] = {
            "hello": self._hello,
            "remember": self._remember,
            "here": self._seen.set,
            "left": self._left,
        }
        self._memory: dict[str, Any] = {}
        self._running: dict[str, Stop] = {}
        #: Requests so far, the newest with their answers, because a page repeats a request that may have been
        #: lost.
        self._answers: dict[str, tuple[dict[str, Any], tuple[str, ...]] | None] = {}
        #: Whether it is docked at the right-hand side of the window.
        self._docked = False
        #: Whether no page has drawn it yet; only a new panel may come to the front.
        self._is_new = True
        self._lock = threading.Lock()
        self.on_msg(self._received)
        _keep(self)

    @property
    def healkit(self) -> Healkit:
        """Its Healkit; a panel about the user's own cells has none and must not use it."""
        assert self._healkit is not None
        return self._healkit

    def static_card(self) -> CellOutput | None:
        """Draw the card to display above the panel; None if it is already there."""
        return None

    def docked(self) -> Self:
        """Dock it at the right-hand side of the window, if the page has healkit's extension; return it."""
        self._docked = True
        return self

    def show(self, *, card: bool = True) -> None:
        """Display the panel, and the static card unless the caller has; the more informative one comes first."""
        live = live_page() and self.recorded.config.panels
        output = self.static_card() if card else None
        if output is not None and not (live and self.SAME_AS_CARD):
            output.show()
        if live:
            display(self._view(), raw=True)
        if output is not None and live and self.SAME_AS_CARD:
            output.folded().show()

    def close(self) -> None:
        """Release the panel, in the kernel and on the page; safe to call twice."""
        self._end()
        if self.comm is not None:
            self.layout.close()
        super().close()

    def _ipython_display_(self, **_: object) -> None:
        """Show the panel; called by IPython if a panel is a cell's value."""
        self.show()

    def _view(self) -> dict[str, Any]:
        bundle, _ = self._repr_mimebundle_() or ({}, {})
        return {**bundle, "text/plain": _IN_PLAIN_TEXT}

    def _hello(self) -> dict[str, Any]:
        """Return what a view needs to start, also after a reload of the page."""
        self._seen.set()
        place = {"title": self.title, "docked": self._docked, "new": self._is_new}
        self._is_new = False
        about = {"kind": self.KIND, "panel": self.model_id, "place": place}
        return {**about, "spec": self.spec, "memory": self._memory}

    def _left(self) -> None:
        """End what no page shows any more because its cell was deleted or its tab closed; not during a reload.

        The pages are asked instead of counted, because a page that was reloaded or lost its connection sends no
        message.
        """
        self._seen.clear()
        self._reply({"event": "who"})
        if not self._seen.wait(_ROLL_CALL_S):
            self._end()

    def _end(self) -> None:
        for end in self.endings:
            end()

    def _remember(self, key: str, value: Any) -> None:
        if len(repr(value)) > _MEMORY_MAX_CHARS:
            raise UsageInvalid("That is too long to be remembered over a reload of the page.")
        self._memory = {**self._memory, key: value}

    def _received(self, _: object, content: object, _buffers: object) -> None:
        """Take a message from the page; called by ipywidgets, which swallows all exceptions.

        It runs on the kernel's main thread, or on a subshell's while a cell runs. So it only passes the message on.
        """
        message = content if isinstance(content, dict) else {}
        op, question = str(message.get("op", "")), str(message.get("id", ""))
        if op == "bundle":
            self._reply({"bundle": bundle_hash()}, [static("panels.js")])
        elif op == "stop":
            with self._lock:
                running = self._running.get(question)
            if running is not None:
                running.ask()
        else:
            arguments = message.get("args")
            self._begin(op, question, arguments if isinstance(arguments, dict) else {})

    def _begin(self, op: str, question: str, arguments: dict[str, Any]) -> None:
        stop = Stop()
        with self._lock:
            # A message without an id, such as a goodbye, expects no answer, so it is never a repetition.
            before, answer = bool(question) and question in self._answers, self._answers.get(question)
            full = len(self._running) >= _MAX_THREADS
            if not full and not before:
                self._running[question] = stop
                self._answers[question] = None
        if before:
            if answer is not None:
                self._reply(answer[0], exact=answer[1])
            return
        if full:
            busy = UsageInvalid(
                "This panel is busy with other questions.", hint="Wait for one of them to end."
            )
            self._reply({"id": question, "error": described(busy)})
            return
        begin("healkit-panel", self._answer, op, question, arguments, stop)

    def _answer(self, op: str, question: str, arguments: dict[str, Any], stop: Stop) -> None:
        try:
            try:
                with stop.heard():
                    answer = {"id": question, "value": self._asked(op, arguments)}
            except Exception as error:  # noqa: BLE001 - the panel shows all of them
                answer = {"id": question, "error": self.recorded.shown(described(error)).value}
            self._keep_answer(question, answer, EXACT.get(op, ()))
            self._reply(answer, exact=EXACT.get(op, ()))
        except Exception as error:  # noqa: BLE001 - report to the page that the answer could not be sent
            message = f"The answer could not be shown ({type(error).__name__})."
            self._reply({"id": question, "error": {"code": "PANEL_ERROR", "message": message}})
        finally:
            with self._lock:
                self._running.pop(question, None)

    def _keep_answer(self, question: str, answer: dict[str, Any], exact: tuple[str, ...]) -> None:
        with self._lock:
            self._answers[question] = (answer, exact)
            for old in list(self._answers)[:-_ANSWERS_MAX]:
                self._answers[old] = None
            for old in list(self._answers)[:-_ASKED_MAX]:
                del self._answers[old]

    def _asked(self, op: str, arguments: dict[str, Any]) -> Any:
        if op not in self.operations:
            raise UsageInvalid(
                f"This panel has no operation {op[:50]!r}.", hint="Reload the page, then try again."
            )
        operation = self.operations[op]
        return operation(**taken(operation, op, arguments))

    def _reply(
        self, content: dict[str, Any], buffers: list[bytes] | None = None, *, exact: tuple[str, ...] = ()
    ) -> None:
        """Send a message to the page; `exact` names the keys whose values are not changed."""
        if self.comm is not None:  # None after the panel was closed
            self.send(self.recorded.on_page(content, exact), buffers)


def begin(name: str, work: Callable[..., object], *about: object) -> threading.Thread:
    """Start a thread of that name, which does the work.

    Its context contains the message with the request, so that displayed output belongs to the panel's cell.
    """
    context = contextvars.copy_context()
    thread = threading.Thread(target=context.run, args=(work, *about), name=name, daemon=True)
    thread.start()
    return thread


class CardedPanel(Panel):
    """Panel of something in progress: the card above it is replaced by the result."""

    def __init__(self, healkit: Healkit | None, spec: Mapping[str, Any] | None = None) -> None:
        self._card: DisplayHandle | None = None
        self._carded: str | None = None
        super().__init__(healkit, spec)
        self.operations |= {"card": self._card_data}

    def show(self, *, card: bool = True) -> None:
        """Display the card, and the panel below it."""
        if card and (output := self.static_card()) is not None:
            self._carded = output.html
            self._card = display(output, metadata=self._mark, display_id=True)
        super().show(card=False)

    @property
    def _mark(self) -> dict[str, Any]:
        """Metadata by which a page finds the card among the outputs, since a reloaded page gets no display updates."""
        return {"healkit": {"panel": self.model_id}}

    def _card_data(self) -> dict[str, object] | None:
        """Return the card with which a page replaces the old one; None if there is none to replace."""
        output = None if self._card is None else self.static_card()
        return None if output is None else output._repr_mimebundle_()

    def _redraw_card(self) -> None:
        """Update the card if its content has changed."""
        output = None if self._card is None else self.static_card()
        if output is not None and output.html != self._carded:
            self._carded = output.html
            self._card.update(output, metadata=self._mark)  # type: ignore[union-attr]  # it is there: see above


#: Panels that can be used, oldest first; ipywidgets itself would keep every one for the life of the kernel.
_open: deque[Panel] = deque()


def _keep(panel: Panel) -> None:
    """Release the oldest panels, whose cells were run again or are no longer visible."""
    _open.append(panel)
    while len(_open) > _MAX_OPEN:
        _open.popleft().close()


def close_all() -> None:
    """Close every panel; called on `%unload_ext healkit`."""
    while _open:
        _open.popleft().close()
