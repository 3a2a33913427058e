"""Calls of JupyterLab's extension, in a kernel.

A notebook may come from anywhere, so nothing in it may become code. The extension makes the kernel run one constant
piece of code (js/lab/src/call.py), which calls `answer`. The actual call is one JSON text in the request's metadata,
which is checked here. A comm is not suitable: its target would have to exist before, and a kernel may not have loaded
healkit.
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
    """**Fix** or *Explain*, pressed on a failed cell without a panel."""

    execution_count: Annotated[int, msgspec.Meta(ge=1)]
    source: Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{16}\Z")]

    def run(self) -> None:
        """Display the card and the panel."""
        show_fix(self.execution_count, self.source)


class Settings(_Call, frozen=True, tag="settings"):
    """Settings of JupyterLab's editor, if *load healkit in every notebook* is on.

    Called when a kernel is connected, after each restart, and when a setting changes. It only contains settings that
    the person has made; all others come from the kernel's environment and configuration.
    """

    explain: ExplainLevel | None = None
    cards: bool | None = None
    panels: bool | None = None
    advisors: list[str] | None = None

    def run(self) -> None:
        """Load healkit, and apply them; advisors and panels apply to whatever is opened from now on."""
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


#: A new call needs a class above and a name here; js/lab/src/kernels.ts has the same list.
_CALLS = Fix | Settings


def answer() -> None:
    """Perform the call in the current request; raise `UsageInvalid` if it is not a call."""
    request = get_ipython().kernel.get_parent("shell")["metadata"].get("healkit")
    try:
        call = msgspec.json.decode(request, type=_CALLS)
    except (msgspec.MsgspecError, TypeError) as error:
        raise UsageInvalid(
            f"The page asked for something that this healkit does not know: {error}.",
            hint="Reload the page; healkit may be another version in Jupyter's server than in this kernel.",
        ) from None
    call.run()
