"""Calls of JupyterLab's extension, in a kernel.

A notebook comes from anywhere, so nothing of it may become code. The extension has the kernel run one constant piece of
code (js/lab/src/call.py), which calls `answer`; what it wants is one JSON text in the request's own metadata, and is
checked here. Why not a comm: its target would have to be there first, and a kernel need not have loaded healkit.
"""

from __future__ import annotations

import os
from typing import Annotated

import msgspec
from IPython import get_ipython

from healkit.config import ExplainLevel
from healkit.errors import UsageInvalid
from healkit.faces.notebook.fixing import show_fix


class _Call(msgspec.Struct, forbid_unknown_fields=True, frozen=True, tag_field="call"):
    """Base of all calls."""


class Fix(_Call, frozen=True, tag="fix"):
    """**Fix** or *Explain*, pressed on a failing cell that has no panel."""

    execution_count: Annotated[int, msgspec.Meta(ge=1)]
    source: Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{16}\Z")]

    def run(self) -> None:
        """Display the card and the panel."""
        show_fix(self.execution_count, self.source)


class Settings(_Call, frozen=True, tag="settings"):
    """Settings of JupyterLab's editor, where *load healkit in every notebook* is on.

    Called once a kernel is connected, after each restart, and when a setting changes. It has only what the person has
    set; the rest stays as the kernel's environment and configuration have it.
    """

    explain: ExplainLevel | None = None
    cards: bool | None = None
    panels: bool | None = None
    advisors: list[str] | None = None

    def run(self) -> None:
        """Load healkit, and apply them; advisors and panels to what is opened from now on."""
        shell = get_ipython()
        shell.extension_manager.load_extension("healkit")
        magics = shell.magics_manager.registry["HealkitMagics"]
        if self.explain is not None:
            magics.explain = self.explain
        if self.cards is not None:
            magics.cards = self.cards
        if self.panels is not None:
            os.environ["HEALKIT_PANELS"] = str(int(self.panels))
        if self.advisors is not None:
            os.environ["HEALKIT_HEAL_ADVISORS"] = ",".join(self.advisors)


#: A new call is a class above and a name here; js/lab/src/kernels.ts has the same list.
_CALLS = Fix | Settings


def answer() -> None:
    """Do what the request that is being answered asks for; raise `UsageInvalid` where that is not a call."""
    request = get_ipython().kernel.get_parent("shell")["metadata"].get("healkit")
    try:
        call = msgspec.json.decode(request, type=_CALLS)
    except (msgspec.MsgspecError, TypeError) as error:
        raise UsageInvalid(
            f"The page asked for something that this healkit does not know: {error}.",
            hint="Reload the page; healkit may be another version in Jupyter's server than in this kernel.",
        ) from None
    call.run()
