"""Forged notebooks in JupyterLab: all of it stays data.

Each holds code of its author's wherever a notebook can hold a text, as Python and as JavaScript, and each of our buttons
is pressed in it.
"""

from __future__ import annotations

import json
import re
import urllib.parse
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import anywidget
import pytest
from browser_extension import fix_button, of_extension, open_side, text
from browser_lab import ASK, CLOSE, SLOW_MS, TELL, Lab, Notebook, SharedKernel
from browser_panels import LOAD, Open
from playwright.sync_api import Locator, expect

from healkit.faces.notebook.cell_output import text_hash
from healkit.faces.notebook.widgets.panel import bundle_hash, static

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600), pytest.mark.requirement("TRUST-1")]

FAILURE = "application/vnd.healkit.failure+json"
VIEW = "application/vnd.jupyter.widget-view+json"
STATE = "application/vnd.jupyter.widget-state+json"
FAILING = "total = 5\ntotl + 1"
COMMANDS = ("healkit:fix", "healkit:explain", "healkit:next-failing", "healkit:previous-failing")
Json = dict[str, Any]


class Payload(NamedTuple):
    """What the author wants to have run: each leaves the name of its notebook behind."""

    python: str
    javascript: str

    @property
    def html(self) -> str:
        return f'"><img src="x" onerror="{self.javascript}"><script>{self.javascript}</script>'

    @property
    def every(self) -> str:
        """All of it in one text, with each quote that could end a literal."""
        return f"1, '') or {self.python} or (0\n{self.python}\n\"\"\"');{self.python}#\\{self.html}`${{{self.javascript}}}`"


def error(ename: str = "NameError", evalue: str = "name 'totl' is not defined", *traceback: str) -> Json:
    return {
        "output_type": "error",
        "ename": ename,
        "evalue": evalue,
        "traceback": list(traceback) or [f"{ename}: {evalue}"],
    }


def shown(data: Mapping[str, Any], **metadata: Any) -> Json:
    return {"output_type": "display_data", "data": dict(data), "metadata": metadata}


def cell(*outputs: Json, count: Any = 1, source: str = FAILING, **more: Any) -> Json:
    """A failing cell, as it is saved."""
    made = {"cell_type": "code", "id": "forged", "metadata": {}, "execution_count": count, "source": source}
    return {**made, "outputs": [error(), *outputs], **more}


def document(*cells: Json, **metadata: Any) -> Json:
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return {
        "cells": list(cells),
        "metadata": {"kernelspec": kernel, **metadata},
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def failure(cards: Any, source: str = FAILING, **more: Any) -> Json:
    """Return an output with a card of healkit, as data and as text."""
    data = {"version": 1, "source": text_hash(source), "fixable": True, "cards": cards, **more}
    return {FAILURE: data, "text/plain": "a card"}


def parts(every: str) -> list[Any]:
    """Each kind of part that a card can have, with that text in all of its places."""
    looks = ("code", "label", "ticked", "strong", "state", "mark", "struck", "quiet", "moment", every)
    inner = [
        every,
        [every, [every]],
        *({"span": every, "look": look, "tone": every} for look in looks),
        {"line": every, "look": every},
        {"items": [every, {"span": every}]},
        {"code": every, "max_height_px": f"1px;background:url({every})"},
        {"diff": f"@@ {every}\n+{every}\n-{every}", "compact": every},
        {"table": [[every, every]], "headers": [every], "narrow_first": every},
        {"facts": [[every, every]]},
        {"fold": every, "body": [every], "open": True, "look": every, "tone": every},
        {"section": [every], "last": every},
    ]
    return [{"card": every, "mark": every, "tone": every, "line": every, "below": inner, "parts": inner}]


def widget(state: Json, **metadata: Any) -> Json:
    """Return a notebook with a healkit panel and its saved state."""
    version = anywidget.AnyWidget.class_traits()["_model_module_version"].default_value
    models = {
        "panel": {
            "model_name": "AnyModel",
            "model_module": "anywidget",
            "model_module_version": version,
            "state": {
                "_model_module": "anywidget", "_model_name": "AnyModel", "_model_module_version": version,
                "_view_module": "anywidget", "_view_name": "AnyView", "_view_module_version": version,
                "_anywidget_id": "healkit.faces.notebook.widgets.panel.Panel", "_esm": static("loader.js").decode(),
                "bundle": bundle_hash(), "layout": "IPY_MODEL_layout", **state,
            },
        },
        "layout": {
            "model_name": "LayoutModel", "model_module": "@jupyter-widgets/base", "model_module_version": "2.0.0",
            "state": {},
        },
    }  # fmt: skip
    view = shown(
        {VIEW: {"model_id": "panel", "version_major": 2, "version_minor": 0}, "text/plain": "a panel"}
    )
    saved = {STATE: {"version_major": 2, "version_minor": 0, "state": models}}
    return document(cell(view), widgets=saved, **metadata)


def story(every: str) -> Json:
    """A healing to be stepped through, as a timeline keeps it in the notebook."""
    check = {"mark": every, "origin": every, "what": every, "outcome": every, "got": every, "wanted": every}
    step = {
        "title": every, "tone": every, "after": every, "text": [every], "facts": [[every, every]], "attempt": 1,
        "checks": [check], "code": every, "base": every,
    }  # fmt: skip
    attempt = {
        "number": every, "mark": every, "words": every, "tone": every, "advisor": every, "decision": every, "at": 1,
    }  # fmt: skip
    steps = [{**step, "kind": kind} for kind in ("failed", "diagnosed", "proposed", "judged")]
    return {
        "profile": "heal", "label": every, "run_id": every, "tool": every, "persona": every, "log_id": 1, "base": every,
        "arguments": {"n": every}, "problems": [every], "attempts": [attempt], "steps": steps, "teach": True,
        "failing": {"lineno": 1, "message": every}, "total": 4,
    }  # fmt: skip


# fmt: off
#: Kind of forgery → the notebook, for what its author wants to have run.
FORGERIES: dict[str, Callable[[Payload], Json]] = {
    "count that ends the call": lambda p: document(cell(count=f"1, '') or {p.python} or (0")),
    "count of several lines": lambda p: document(cell(count=f'1, "")\n{p.python}\n(0, ""')),
    "count with a comment": lambda p: document(cell(count=f"1);{p.python}#")),
    "count that is a list": lambda p: document(cell(count=[p.python, f"');{p.python}#"])),
    "count with every quote": lambda p: document(cell(count=p.every)),
    "count that is not an integer": lambda p: document(*(cell(count=one) for one in (True, -1, 1.5, 1e300, "1", None))),
    "source that ends each literal": lambda p: document(cell(source=f"{p.every}\n{FAILING}")),
    "ids of cells": lambda p: document(cell(id=p.every), cell(id="__proto__"), cell(id=f"');{p.python}#")),
    "metadata of cells": lambda p: document(
        cell(
            metadata={
                "name": p.every, "tags": [p.every], "healkit": {"panel": p.every, "cell": p.every},
                "execution": {"iopub.execute_input": p.every}, "__proto__": {"healkit": p.every}, p.every: p.every,
            }
        )
    ),
    "metadata of the notebook": lambda p: document(
        cell(),
        title=p.every,
        healkit={"fix": p.every, "advisors": [p.every]},
        language_info={"name": p.every, "version": p.every, "mimetype": p.every},
        toc={"base_numbering": p.every},
    ),
    "attachments": lambda p: document(
        cell(attachments={p.every: {"image/svg+xml": p.html, "text/html": p.html}}),
        {
            "cell_type": "markdown", "id": "text", "metadata": {}, "source": f"![x](attachment:{p.python})",
            "attachments": {p.python: {"image/png": p.python, FAILURE: p.every}},
        },
    ),
    "errors": lambda p: document(
        {**cell(), "outputs": [error(p.every, p.every, p.every, f"\x1b[31m{p.html}\x1b]8;;javascript:{p.javascript}\x07x")]}
    ),
    "output whose metadata are ours": lambda p: document(
        cell(shown({"text/plain": p.every, FAILURE: p.every}, healkit={"panel": p.every}, isolated=p.every))
    ),
    "card of every part": lambda p: document(cell(shown(failure(parts(p.every))))),
    "card beside HTML": lambda p: document(
        cell(shown({**failure([{"card": p.every}]), "text/html": p.html, "text/markdown": p.html, "image/svg+xml": p.html}))
    ),
    "card of another form": lambda p: document(
        cell(
            shown(failure(p.every)), shown(failure([{p.every: p.every}])), shown({FAILURE: p.every}), shown({FAILURE: None}),
            shown(failure([], version=p.every)), shown(failure([{"card": {"toString": p.every}, "parts": {"length": 3}}])),
        )
    ),
    "card of another cell": lambda p: document(cell(shown(failure(parts(p.every), source=f"');{p.python}#")))),
    "card that says which hash": lambda p: document(cell(shown(failure([], source=p.every, fixable=p.every)))),
    "panel that no kernel has": lambda p: document(
        *(
            cell(shown({VIEW: {"model_id": one, "version_major": 2, "version_minor": 0}, "text/plain": p.every}))
            for one in ("__proto__", p.every, "constructor", [p.python])
        )
    ),
    "saved panel": lambda p: widget({"bundle": bundle_hash(), "spec": {"tool": p.every}, "kind": p.every}),
    "saved panel of another bundle": lambda p: widget({"bundle": p.every}),
    "saved timeline": lambda p: widget({"story": story(p.every)}),
    "saved timeline of another form": lambda p: widget(
        {"story": {**story(p.every), "steps": [{"kind": p.every, "title": p.every, "text": [], "facts": []}], "attempts": []}}
    ),
}
# fmt: on


@pytest.fixture
def marks(tmp_path: Path) -> Path:
    folder = tmp_path / "marks"
    folder.mkdir()
    return folder


@pytest.fixture
def forge(notebook: Open, lab: Lab, kernel: SharedKernel, marks: Path) -> Iterator[Callable[..., Notebook]]:
    """Open a forged notebook in the page, in the kernel that the test has; the one before it is closed."""
    first = notebook("first", "1")
    # A server that has read the database of an earlier file's tests answers nothing until there is another one.
    assert first.page.evaluate(TELL, "__import__('healkit').Healkit().close()")["status"] == "ok"
    first.page.set_viewport_size({"width": 1500, "height": 900})
    opened: list[Notebook] = []

    def make(name: str, book: Json, *, trusted: bool = False) -> Notebook:
        path = lab.folder / f"{name}.ipynb"
        path.write_text(json.dumps(book))
        if trusted:
            lab.api("POST", f"api/contents/{urllib.parse.quote(path.name)}/trust")
        close()
        kernel.begin(path)
        opened.append(Notebook(lab, first.page, path))
        opened[-1].open_in_place()
        return opened[-1]

    def close() -> None:
        for one in opened:
            assert not of_extension(one), one.path.name
            one.let_go()
        opened.clear()
        first.page.evaluate(CLOSE)

    yield make
    close()
    first.open_in_place()


def payload(marks: Path, name: str) -> Payload:
    mark = str(marks / re.sub(r"\W", "-", name))
    return Payload(
        f"__import__('pathlib').Path('{mark}').touch()", f"window.forged = (window.forged || '') + '{name}; '"
    )


#: More than a panel shows at a time.
PANEL_BUTTONS = 20


def press_all(book: Notebook) -> int:
    """Press each healkit button, run each command on each cell, and return the number of presses."""
    page, pressed = book.page, 0
    for number in range(book.cells()):
        for button in book.cell(number).locator(".hk-lab-fix").all():
            button.click()
            expect(button).to_be_enabled(timeout=SLOW_MS)
            pressed += 1
        in_panel = book.cell(number).locator(".hk button:enabled:visible")
        for at in range(PANEL_BUTTONS):
            if at < in_panel.count():  # each press may draw the panel anew
                in_panel.nth(at).click()
                pressed += 1
        for fold in book.cell(number).locator(".hk-lab-card summary:visible").all():
            fold.click()
        page.evaluate(
            """async ([number, commands]) => {
              jupyterapp.shell.currentWidget.content.activeCellIndex = number;
              for (const command of commands) await jupyterapp.commands.execute(command);
            }""",
            [number, COMMANDS],
        )
    return pressed


#: Panels that are drawn without a kernel.
DRAWN = ("saved panel", "saved timeline", "saved timeline of another form")
#: No fix is offered where the card is of another text than the cell's.
NOT_OFFERED = {"card of another cell", "card that says which hash", "output whose metadata are ours"}


@pytest.mark.parametrize("trusted", [False, True], ids=["as it came", "trusted"])
def test_no_byte_of_a_forged_notebook_is_run_whichever_button_is_pressed(
    forge: Callable[..., Notebook], marks: Path, trusted: bool
) -> None:
    pressed = {}
    for name, made in FORGERIES.items():
        book = forge(f"{name} {trusted:d}", made(payload(marks, name)), trusted=trusted)
        if not pressed:
            open_side(book.page)
        if trusted and name in DRAWN:  # a panel of a notebook that is not trusted is not drawn
            book.panel(0)
        pressed[name] = press_all(book)
        ran = [mark.name for mark in marks.iterdir()]
        assert (ran, book.page.evaluate("() => window.forged ?? null")) == ([], None), name
    assert {name for name, times in pressed.items() if not times} == NOT_OFFERED
    if trusted:
        assert pressed["saved timeline"] > 3
    assert book.page.evaluate(ASK, "[one for one in In if one]") == "[]"


# fmt: off
#: Kind of forgery → the cell that is run, and what else is in the notebook.
RUN: dict[str, Callable[[Payload], Json]] = {
    "text that ends each literal": lambda p: document(cell(source=f'total = 5\nnote = r"""{p.python}\n\'); #"""\ntotl + 1')),
    "text that reads another way": lambda p: document(cell(source="total = 5  # \u202e1 + latot\u202c\u2066\u200b\ntotl + 1")),
    "names and marks of another cell": lambda p: document(
        cell(
            shown(failure(parts(p.every)), healkit={"panel": p.every}),
            metadata={"healkit": p.every, "name": p.every, "execution": {"cell_id": "other"}}, id="same",
            attachments={p.every: {"text/plain": p.every}},
        ),
        cell(source=f"total = 5\ntotl + 1; {p.python}", id="other", count=3),
        cell(source=f"other = {p.python}", id="same", count=2),
    ),
    "name.ipynb'\"; $(touch x)\n<img src=x>": lambda p: document(cell(count=p.every)),
}
# fmt: on


def test_what_apply_inserts_is_what_was_shown(forge: Callable[..., Notebook], marks: Path) -> None:
    for name, made in RUN.items():
        book = forge(name, made(payload(marks, name)))
        before = [text(book, number) for number in range(book.cells())]
        book.page.evaluate(
            """(code) => jupyterapp.shell.currentWidget.sessionContext.session.kernel
              .requestExecute({ code, silent: true, store_history: false }).done.then(() => null)""",
            LOAD,
        )
        book.run(0)
        fix_button(book, 0).click()
        proposal = book.cell(0).get_by_role("group", name="proposal")
        apply = proposal.get_by_role("button", name="Apply and run")
        apply.wait_for(timeout=SLOW_MS)
        shown_text = in_editor(proposal)
        apply.click()
        expect(fix_button(book, 0)).to_have_count(0, timeout=SLOW_MS)
        after = [text(book, number) for number in range(book.cells())]
        assert re.sub(r"[\u200b-\u200f\u202a-\u202e\u2066-\u2069]", "•", after[0]) == shown_text, name
        assert after[0] == before[0].replace("\ntotl + 1", "\ntotal + 1"), name
        assert after[1:] == before[1:], name
        assert list(marks.iterdir()) == [], name


def in_editor(proposal: Locator) -> str:
    """Return the new text as the page shows it, with a dot for each sign that cannot be seen."""
    proposal.locator(".cm-merge-b .cm-line").first.wait_for()
    return "\n".join(proposal.locator(".cm-merge-b .cm-line").all_text_contents())


def test_forty_forged_notebooks_are_opened() -> None:
    assert 2 * len(FORGERIES) + len(RUN) >= 40
