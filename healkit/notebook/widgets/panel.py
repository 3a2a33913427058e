"""Base of all panels, and the dock beside the notebook.

The page asks by comm messages `{op, id, args}`, and is answered by `{id, value}` or `{id, error}`. A question is
answered on a thread of its own, so that the user's kernel stays free, and every exception becomes an answer: what a
widget's callback raises is otherwise lost. The state of a panel, which is saved in the notebook, names
what is shown (a tool, a row, filters) and holds none of it; only a timeline keeps its story there, to be read without a
kernel. What the page would lose by being reloaded (an unsaved patch) is remembered here, in memory.

The saved state is small because `_esm` is a loader of a few lines: the bundle itself travels once a page, as the
answer to the loader's question. With `_esm` as the bundle, nbclient would save half a megabyte for each panel.

A panel can be docked at the right-hand side of the window: JupyterLab and Notebook 7 have a sidebar there, which no
kernel can reach by itself; ipylab's extension of them can, on a kernel's request. One panel of a title is kept there: a
second log would only be in the way of the first. A panel whose kernel was restarted is closed by the page, as soon as
the new kernel docks one of that title.
"""

from __future__ import annotations

import contextvars
import hashlib
import inspect
import json
import threading
import time
import traceback
import warnings
from collections import deque
from collections.abc import Callable, Mapping
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, get_type_hints

import anywidget
import msgspec
import traitlets
from IPython.display import DisplayHandle, display

from healkit.app import Healkit
from healkit.errors import DockUnavailable, HealkitError, UsageInvalid
from healkit.notebook.cell_output import CellOutput, live_page
from healkit.notebook.widgets.page_data import PageData
from healkit.rendering.document import Card
from healkit.runtime.background import Stop

if TYPE_CHECKING:
    import ipylab


#: An operation takes named arguments that came as JSON, and returns what goes back as JSON.
Operation = Callable[..., Any]

#: What a page may have a panel remember, in characters; more than an unsaved patch needs.
_MEMORY_MAX_CHARS = 1_000_000
#: Questions that one panel answers at a time; more than that is a page gone wild.
_MAX_THREADS = 16
_MAX_OPEN = 100
#: A database has no larger numbers.
_INTEGER_BITS = 62
#: How long a page has to say that it shows a panel too.
_ROLL_CALL_S = 2.0
_IN_PLAIN_TEXT = "(a live panel; it needs this notebook's kernel, the other output does not)"


@cache
def static(name: str) -> bytes:
    """Return a file of the bundle, as it was built."""
    return (resources.files("healkit.notebook.widgets") / "static" / name).read_bytes()


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
    #: What a dock's tab is called; where one is docked already that is called so, this one takes its place.
    title = ""
    #: Called when no page shows the panel any more. A panel that comes back starts again what it needs.
    endings: tuple[Callable[[], object], ...] = ()

    bundle = traitlets.Unicode().tag(sync=True)

    def __init__(self, healkit: Healkit | None, spec: Mapping[str, Any] | None = None) -> None:
        self._esm = static("loader.js").decode()
        super().__init__(bundle=bundle_hash())
        self._healkit = healkit
        self.recorded = PageData(healkit)
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
        #: The dock's box around it, in the page's words; None where it is in a cell.
        self.box_id: str | None = None
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

    @property
    def is_docked(self) -> bool:
        """True when it is at the right-hand side of the window, and in no cell."""
        return self.box_id is not None

    def static_card(self) -> CellOutput | None:
        """Draw what is displayed above the panel, or where it is when docked; None where that is there already."""
        if not self.is_docked:
            return None
        said = f"{self.title}: open at the right-hand side of the window"
        return CellOutput.of(Card(tone="info", parts=(said,)))

    def docked(self) -> Panel:
        """Move this panel to the right-hand side of the window and return it; raise `DockUnavailable`."""
        _open.remove(self)
        try:
            add_to_dock(self)
        except BaseException:
            self.close()
            raise
        return self

    def show(self, *, card: bool = True) -> None:
        """Display the static card, unless the caller has, and the panel; first what says more."""
        live = live_page() and self.recorded.config.panels and not self.is_docked
        shown = self.static_card() if card else None
        if shown is not None and not (live and self.SAME_AS_CARD):
            shown.show()
        if live:
            display(self._view(), raw=True)
        if shown is not None and live and self.SAME_AS_CARD:
            shown.folded().show()

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
        docked = None
        if self.box_id is not None:
            docked, self._is_new = {"box": self.box_id, "title": self.title, "new": self._is_new}, False
        about = {"kind": self.KIND, "panel": self.model_id, "docked": docked}
        return {**about, "spec": self.spec, "memory": self._memory}

    def _left(self) -> None:
        """End what no page shows any more: its cell was deleted, or its tab closed; not as the page is reloaded.

        The pages are asked rather than counted: one that was reloaded or lost its connection sends no goodbye.
        """
        self._seen.clear()
        self._reply({"event": "who"})
        if self._seen.wait(_ROLL_CALL_S):
            return
        if self.is_docked:
            take_from_dock(self)
        else:
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
        asked = content if isinstance(content, dict) else {}
        op, question = str(asked.get("op", "")), str(asked.get("id", ""))
        if op == "bundle":
            self._reply({"bundle": bundle_hash()}, [static("panels.js")])
        elif op == "stop":
            with self._lock:
                running = self._running.get(question)
            if running is not None:
                running.ask()
        else:
            arguments = asked.get("args")
            self._begin(op, question, arguments if isinstance(arguments, dict) else {})

    def _begin(self, op: str, question: str, arguments: dict[str, Any]) -> None:
        stop = Stop()
        with self._lock:
            full = len(self._running) >= _MAX_THREADS
            if not full:
                self._running[question] = stop
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
            self._reply(answer, exact=("value",) if op == "code" else ())
        except Exception as error:  # noqa: BLE001 - the page is told that the answer could not be shown
            message = f"The answer could not be shown ({type(error).__name__})."
            self._reply({"id": question, "error": {"code": "PANEL_ERROR", "message": message}})
        finally:
            with self._lock:
                self._running.pop(question, None)

    def _asked(self, op: str, arguments: dict[str, Any]) -> Any:
        if op not in self.operations:
            raise UsageInvalid(
                f"This panel has no operation {op[:50]!r}.", hint="Reload the page, then try again."
            )
        operation = self.operations[op]
        return operation(**_taken(operation, op, arguments))

    def _reply(
        self, content: dict[str, Any], buffers: list[bytes] | None = None, *, exact: tuple[str, ...] = ()
    ) -> None:
        """Send to the page; `exact` names what holds code to edit, and goes as it is."""
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


class Operations:
    """Questions of a page on one subject: `NAMES` are the methods, which the page calls by `PREFIX` and name."""

    PREFIX = ""
    NAMES: tuple[str, ...] = ()

    def __init__(self, healkit: Healkit, recorded: PageData) -> None:
        self._healkit, self._recorded = healkit, recorded

    @property
    def operations(self) -> dict[str, Operation]:
        """Operations that a page may ask for."""
        return {f"{self.PREFIX}{name}": getattr(self, name) for name in self.NAMES}


class CardedPanel(Panel):
    """Panel of something that goes on: the card above it becomes the result in its place."""

    def __init__(self, healkit: Healkit | None, spec: Mapping[str, Any] | None = None) -> None:
        self._card: DisplayHandle | None = None
        self._carded: str | None = None
        super().__init__(healkit, spec)
        self.operations |= {"card": self._card_data}

    def show(self, *, card: bool = True) -> None:
        """Display the card, and the panel below it."""
        if card and (shown := self.static_card()) is not None:
            self._carded = shown.html
            self._card = display(shown, metadata=self._mark, display_id=True)
        super().show(card=False)

    @property
    def _mark(self) -> dict[str, Any]:
        """Metadata by which a page finds the card among the outputs: a reloaded page gets no display updates."""
        return {"healkit": {"panel": self.model_id}}

    def _card_data(self) -> dict[str, str] | None:
        """Return the card for a page to put in its place; None where there is none to be replaced."""
        shown = None if self._card is None else self.static_card()
        return None if shown is None else shown._repr_mimebundle_()

    def _redraw_card(self) -> None:
        """Update the card where it says something else by now."""
        shown = None if self._card is None else self.static_card()
        if shown is not None and shown.html != self._carded:
            self._carded = shown.html
            self._card.update(shown, metadata=self._mark)  # type: ignore[union-attr]  # it is there: see above


def _taken(operation: Operation, op: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a question as the operation takes them; raise `UsageInvalid` for any other."""
    known, hints = inspect.signature(operation).parameters, get_type_hints(operation)
    missing = [name for name, one in known.items() if name not in arguments and one.default is one.empty]
    wrong = [f"{name!r} is missing" for name in missing]
    wrong += [f"{name[:50]!r} is unknown" for name in arguments if name not in known]
    for name in known.keys() & arguments.keys():
        try:
            json.dumps(arguments[name], ensure_ascii=False).encode()
            msgspec.convert(arguments[name], hints.get(name, Any))
        except UnicodeEncodeError:
            wrong.append(f"{name!r} holds half a character")
        except msgspec.ValidationError as error:
            wrong.append(f"{name!r}: {error}")
        if type(arguments[name]) is int and arguments[name].bit_length() > _INTEGER_BITS:
            wrong.append(f"{name!r} is too large")
    if wrong:
        raise UsageInvalid(
            f"The page asked for {op!r} in a way that this panel does not know: {'; '.join(sorted(wrong))}.",
            hint="Reload the page, or run the cell again for a new panel.",
        )
    return arguments


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
    close_dock()


def described(error: Exception) -> dict[str, Any]:
    """Return an exception for the page: healkit's own in one sentence, any other with its traceback folded."""
    if isinstance(error, HealkitError):
        return {"code": error.code, "message": error.message, "hint": error.hint, "detail": ""}
    detail = "".join(traceback.format_exception(error))
    return {
        "code": "PANEL_ERROR",
        "message": f"{type(error).__name__}: {error}",
        "hint": "This is a fault of healkit's, not of your code.",
        "detail": detail,
    }


# The dock.


#: ipylab's handle on the window; one for the kernel, made when it is first needed.
_window: ipylab.JupyterFrontEnd | None = None
#: What is docked: a panel's title → the box around it, and the panel.
_docked: dict[str, tuple[ipylab.Panel, Panel]] = {}


def add_to_dock(panel: Panel) -> None:
    """Show a panel in the window's right sidebar, in place of the one of its title; raises `DockUnavailable`."""
    global _window
    try:
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", DeprecationWarning
            )  # traitlets has one for the way it lists its traits
            import ipylab
    except ImportError:
        raise DockUnavailable(
            "A panel can be docked only where ipylab is installed.",
            hint="pip install 'healkit[dock]', for this kernel and for Jupyter; then reload the page.",
        ) from None
    if not live_page():
        raise DockUnavailable("There is no window to dock a panel in.", hint="Leave the dock out.")
    if _window is None:
        _window = ipylab.JupyterFrontEnd()
    if panel.title in _docked:
        take_from_dock(_docked[panel.title][1])
    box = ipylab.Panel(children=[panel])
    box.title.label = panel.title
    box.title.caption = f"{panel.title} (healkit)"
    panel.box_id = box.model_id

    def to_front(tab: str) -> None:
        bring_to_front(panel, tab)

    panel.operations["front"] = to_front
    _docked[panel.title] = box, panel
    # A tab that is newer has a lower rank, and so is the first: also where another kernel's are, or a dead one's.
    _window.shell.add(box, "right", {"rank": -time.time()})


def take_from_dock(panel: Panel) -> None:
    """Close a panel and its tab, if it is docked still."""
    box, docked = _docked.get(panel.title, (None, None))
    if box is None or docked is not panel:
        return
    del _docked[panel.title]
    if _window is not None:  # a reloaded page draws what this list holds
        entry = f"IPY_MODEL_{box.model_id}"
        kept = [one for one in _window.shell._widgets if one.get("serializedWidget") != entry]
        _window.shell.set_trait("_widgets", kept)
    for part in (panel, box.layout, box.title, box):
        part.close()


def close_dock() -> None:
    """Take everything away that was docked, and let go of the window."""
    global _window
    for _, panel in list(_docked.values()):
        take_from_dock(panel)
    window, _window = _window, None
    if window is not None:
        for part in (window.shell, window.commands, window.sessions, window.menu, window.toolbar, window):
            part.close()


def bring_to_front(panel: Panel, tab: str) -> None:
    """Bring a panel to the front that its page reports as hidden; `tab` is the page's id for it.

    Only the newest panel comes: an older one whose page was slow would hide it. Notebook 7 has only a command that
    toggles. JupyterLab has that too, but it would close the sidebar when another panel is at the front by then.
    """
    if _window is None or panel.title != next(reversed(_docked), None):
        return
    if "application:toggle-panel" in _window.commands.list_commands():
        asked = {"side": "right", "title": panel.title, "id": tab}
        _window.commands.execute("application:toggle-panel", asked)
    else:
        _window.commands.execute("tabsmenu:activate-by-id", {"id": tab})
