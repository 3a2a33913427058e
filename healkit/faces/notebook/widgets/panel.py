"""Base of all panels.

The page asks by comm messages `{op, id, args}`, and is answered by `{id, value}` or `{id, error}`. A question is
answered on a thread of its own, so that the user's kernel stays free, and every exception becomes an answer: what a
widget's callback raises is otherwise lost. The state of a panel, which is saved in the notebook, names
what is shown (a tool, a row, filters) and holds none of it; only a timeline keeps its story there, to be read without a
kernel. What the page would lose by being reloaded (an unsaved patch) is remembered here, in memory.

The saved state is small because `_esm` is a loader of a few lines: the bundle itself travels once a page, as the
answer to the loader's question. With `_esm` as the bundle, nbclient would save half a megabyte for each panel.

A panel that is docked is drawn at the right-hand side of the window by the page, where that has healkit's JupyterLab
extension, and in its cell elsewhere. One panel of a title is kept there for each notebook: a second log would only be
in the way of the first.
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

#: What a page may have a panel remember, in characters; more than an unsaved patch needs.
_MEMORY_MAX_CHARS = 1_000_000
#: Questions that one panel answers at a time; more than that is a page gone wild.
_MAX_THREADS = 16
_MAX_OPEN = 100
#: How many answers, and ids of questions, a panel keeps in case the page asks once more.
_ANSWERS_MAX, _ASKED_MAX = 16, 1000
#: How long a page has to say that it shows a panel too.
_ROLL_CALL_S = 2.0
_IN_PLAIN_TEXT = "(Interactive panel: run the cell to see it.)"


@cache
def static(name: str) -> bytes:
    """Return a file of the bundle, as it was built."""
    return (resources.files("healkit.faces.notebook.widgets") / "static" / name).read_bytes()


@cache
def bundle_hash() -> str:
    """Return the hash of the bundle that a page needs; it must not take another version's."""
    return hashlib.sha256(static("panels.js")).hexdigest()[:16]


class Panel(anywidget.AnyWidget):
    """Panel in a notebook.

    Subclasses name their JavaScript component in `KIND` and put what the page may ask into `operations`. `spec` is
    what the component gets when it opens; it must hold no payload.
    """

    KIND = ""
    #: Whether it shows what its static card does, which is folded below it then.
    SAME_AS_CARD = False
    #: What its tab is called at the side of the window, where a panel of the same title is replaced; empty for one that
    #: stays in its cell.
    title = ""
    #: Called when no page shows the panel any more. A panel that comes back starts again what it needs.
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
        #: Questions so far, the newest with their answers: a page asks again what may have been lost on the way.
        self._answers: dict[str, tuple[dict[str, Any], tuple[str, ...]] | None] = {}
        #: Whether it belongs at the right-hand side of the window.
        self._docked = False
        #: Whether no page has drawn it yet: one that is drawn again must not push itself to the front.
        self._is_new = True
        self._lock = threading.Lock()
        self.on_msg(self._received)
        _keep(self)

    @property
    def healkit(self) -> Healkit:
        """Healkit that it shows; a panel about the user's own cells has none and must not ask."""
        assert self._healkit is not None
        return self._healkit

    def static_card(self) -> CellOutput | None:
        """Draw what is displayed above the panel; None where that is there already."""
        return None

    def docked(self) -> Self:
        """Have it drawn at the right-hand side of the window, where the page has healkit's extension; return it."""
        self._docked = True
        return self

    def show(self, *, card: bool = True) -> None:
        """Display the static card, unless the caller has, and the panel; first what says more."""
        live = live_page() and self.recorded.config.panels
        output = self.static_card() if card else None
        if output is not None and not (live and self.SAME_AS_CARD):
            output.show()
        if live:
            display(self._view(), raw=True)
        if output is not None and live and self.SAME_AS_CARD:
            output.folded().show()

    def close(self) -> None:
        """Let go of the panel, in the kernel and on the page; safe to call twice."""
        self._end()
        if self.comm is not None:
            self.layout.close()
        super().close()

    def _ipython_display_(self, **_: object) -> None:
        """Show the panel; called by IPython for a panel that is a cell's value."""
        self.show()

    def _view(self) -> dict[str, Any]:
        bundle, _ = self._repr_mimebundle_() or ({}, {})
        return {**bundle, "text/plain": _IN_PLAIN_TEXT}

    def _hello(self) -> dict[str, Any]:
        """Return what a view needs to begin, also after the page was reloaded."""
        self._seen.set()
        place = {"title": self.title, "docked": self._docked, "new": self._is_new}
        self._is_new = False
        about = {"kind": self.KIND, "panel": self.model_id, "place": place}
        return {**about, "spec": self.spec, "memory": self._memory}

    def _left(self) -> None:
        """End what no page shows any more: its cell was deleted, or its tab closed; not as the page is reloaded.

        The pages are asked rather than counted: one that was reloaded or lost its connection sends no goodbye.
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
        """Take a message from the page; called by ipywidgets, which swallows whatever this raises.

        On the kernel's main thread, or on a subshell's while a cell runs; so no more is done here than to pass it on.
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
            # What has no id expects no answer, so each one is another: a goodbye.
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
            except Exception as error:  # noqa: BLE001 - all of them are shown in the panel
                answer = {"id": question, "error": self.recorded.shown(described(error)).value}
            self._keep_answer(question, answer, EXACT.get(op, ()))
            self._reply(answer, exact=EXACT.get(op, ()))
        except Exception as error:  # noqa: BLE001 - the page is told that the answer could not be shown
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
        """Send to the page; `exact` names the keys whose values go as they are."""
        if self.comm is not None:  # None once the panel was closed
            self.send(self.recorded.on_page(content, exact), buffers)


def begin(name: str, work: Callable[..., object], *about: object) -> threading.Thread:
    """Begin a thread of that name, which does the work.

    Its context names the message that asked: what is displayed belongs to the panel's cell.
    """
    context = contextvars.copy_context()
    thread = threading.Thread(target=context.run, args=(work, *about), name=name, daemon=True)
    thread.start()
    return thread


class CardedPanel(Panel):
    """Panel of something that goes on: the card above it becomes the result in its place."""

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
        """Metadata by which a page finds the card among the outputs: a reloaded page gets no display updates."""
        return {"healkit": {"panel": self.model_id}}

    def _card_data(self) -> dict[str, object] | None:
        """Return the card for a page to put in its place; None where there is none to be replaced."""
        output = None if self._card is None else self.static_card()
        return None if output is None else output._repr_mimebundle_()

    def _redraw_card(self) -> None:
        """Update the card where it says something else by now."""
        output = None if self._card is None else self.static_card()
        if output is not None and output.html != self._carded:
            self._carded = output.html
            self._card.update(output, metadata=self._mark)  # type: ignore[union-attr]  # it is there: see above


#: Panels that can be asked, oldest first; ipywidgets itself would keep every one for as long as the kernel lives.
_open: deque[Panel] = deque()


def _keep(panel: Panel) -> None:
    """Let the oldest panels go, whose cells have long been scrolled away or run again."""
    _open.append(panel)
    while len(_open) > _MAX_OPEN:
        _open.popleft().close()


def close_all() -> None:
    """Close every panel; called on `%unload_ext healkit`."""
    while _open:
        _open.popleft().close()
