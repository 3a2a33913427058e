"""Failure as data: a Python traceback, and its fingerprint.

The worker makes it, the host stores and renders it. The text is the one Python itself would have printed
with healkit's own frames taken out; the frames are the same thing for programs (folding, fingerprints,
search). Words are Jupyter's: `ename` is the exception's type name, `evalue` its message.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from healkit.core.contracts.tools import place_label

#: Bounds of what a failure says about names and values at hand.
NEAR_MAX, KNOWN_MAX, FACTS_MAX, FACT_MAX_CHARS = 3, 8, 12, 300
SECRETS_MAX, SECRET_MAX_CHARS = 50, 4096
#: Bounds of a failure's stack, and of the exceptions that it was raised from, or that a group of them holds.
FRAMES_MAX, LINKED_MAX = 200, 8
#: What another exception is to the one that ended the execution: the one that `raise … from` names, the one that was
#: being handled, a member of the group, or the one inside the tool that was called.
Link = Literal["cause", "context", "member", "call"]


class Frame(msgspec.Struct, frozen=True, omit_defaults=True):
    """Frame of a failure, outermost first in its list.

    `lineno` counts from 1. `in_tool` is true for the vault entry's own code, false for libraries'.
    """

    filename: str
    lineno: int
    name: str
    line: str = ""
    in_tool: bool = False

    @property
    def place(self) -> str:
        """Place as it is shown: `line 4 of fibonacci v1, in fibonacci`; outside of functions the line alone."""
        inside = "" if self.name == "<module>" else f", in {self.name}"
        return f"line {self.lineno} of {place_label(self.filename)}{inside}"


class Failure(msgspec.Struct, frozen=True, omit_defaults=True):
    """Reason why an execution has no value.

    `code` is from the closed catalogue in `healkit.errors` and says how the execution ended (`TOOL_EXCEPTION`,
    `TOOL_TIMEOUT`, …). `traceback` is the full text. `hint` is the next step. Where a name, a key or a file was not
    found, `near` are similar ones, and `known` the first that exist. `facts` are short texts that were read off the
    values at hand, by name; `about` says which sentence of the failure catalogue they are for. `linked` are the
    exceptions that it was raised from, or those that a group holds, each with what it is to this one (`link`); their
    tracebacks stand in this one's. `log_id` is the row of a linked one that ended a called tool. `secrets` are those
    variables of its frames that a secret's name has and whose values stand in its texts, so that whatever shows it can
    hide them: they leave with no text of it.
    """

    code: str
    ename: str
    evalue: str
    traceback: str
    frames: list[Frame] = []
    hint: str = ""
    near: list[str] = []
    known: list[str] = []
    facts: dict[str, str] = {}
    linked: list[Failure] = []
    link: Link | None = None
    log_id: int | None = None
    secrets: list[tuple[str, str]] = []

    @property
    def called(self) -> Failure | None:
        """Failure of the called tool that this one passes on; None where it passes on none."""
        return next((failure for failure in self.linked if failure.link == "call"), None)

    @property
    def summary(self) -> str:
        """Line that a person looks for first: `ZeroDivisionError: division by zero`."""
        return f"{self.ename}: {self.evalue}" if self.evalue else self.ename

    @property
    def named(self) -> list[dict[str, str]]:
        """Each of its secrets by its name."""
        return [{name: value} for name, value in self.secrets]

    @property
    def texts(self) -> str:
        """All its texts in one: what a secret may stand in."""
        parts = [self.evalue, self.traceback, *self.near, *self.known, *self.facts.values()]
        return "\n".join([*parts, *(failure.texts for failure in self.linked)])

    @property
    def observed(self) -> bool:
        """True where it says anything that was read off the values at hand."""
        return bool(self.near or self.known or self.facts)

    @property
    def tool_frame(self) -> Frame | None:
        """Innermost frame of the tool's own code, where its author would look."""
        return next((frame for frame in reversed(self.frames) if frame.in_tool), None)


#: Numbers and shapes as a worker may claim them.
ClaimedNumber = Annotated[int, msgspec.Meta(ge=-(2**31), lt=2**31)]
ClaimedShape = Annotated[list[Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]], msgspec.Meta(max_length=100)]


class KeptFrame(msgspec.Struct, frozen=True):
    """Frame of the failed stack: `number` counts from the outermost, 0. `in_tool` is false for a library's."""

    number: ClaimedNumber
    filename: str
    lineno: ClaimedNumber
    name: str
    line: str
    in_tool: bool


class Local(msgspec.Struct, frozen=True, omit_defaults=True):
    """Local variable: its type, its shape where it has one (as numpy means it), and a short repr."""

    name: str
    type: str
    repr: str
    shape: ClaimedShape | None = None
