"""Failure as data: a Python traceback, and its fingerprint.

The worker makes it; the host stores and renders it. The text is the traceback that Python would print, without
healkit's own frames. The frames hold the same traceback for programs (folding, fingerprints, search). The words are
Jupyter's: `ename` is the exception's type name, `evalue` its message.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from healkit.core.contracts.tools import place_label

#: Limits of the lists of similar names, of known names and of facts, and of the length of one fact in
#: characters.
NEAR_MAX, KNOWN_MAX, FACTS_MAX, FACT_MAX_CHARS = 3, 8, 12, 300
SECRETS_MAX, SECRET_MAX_CHARS = 50, 4096
#: Limits of a failure's frames, and of its linked exceptions: its causes, or the members of its group.
FRAMES_MAX, LINKED_MAX = 200, 8
#: Relation of another exception to the one that ended the execution. It was named in `raise … from`, being
#: handled at that time, a member of the group, or raised in a tool that was called.
Link = Literal["cause", "context", "member", "call"]


class Frame(msgspec.Struct, frozen=True, omit_defaults=True):
    """Frame of a failure; a list of frames begins with the outermost.

    `lineno` counts from 1. `in_tool` is true for the vault entry's own code, false for libraries.
    """

    filename: str
    lineno: int
    name: str
    line: str = ""
    in_tool: bool = False

    @property
    def place(self) -> str:
        """Place as it is shown: `line 4 of fibonacci v1, in fibonacci`; outside of functions only the line."""
        inside = "" if self.name == "<module>" else f", in {self.name}"
        return f"line {self.lineno} of {place_label(self.filename)}{inside}"


class Failure(msgspec.Struct, frozen=True, omit_defaults=True):
    """Reason why an execution has no value.

    code: How the execution ended (`TOOL_EXCEPTION`, `TOOL_TIMEOUT`, …), from the catalogue in `healkit.errors`.
    traceback: The full text.
    hint: The next step.
    near, known: For a missing name, key or file: similar ones, and the first that exist.
    facts: Short texts about the values at the failure, by name.
    linked: Exceptions that caused this one, or that its group contains. Their tracebacks are part of this one's.
    link: Relation of a linked exception to the failure that lists it.
    log_id: Row of the called tool, for a linked exception that ended one.
    secrets: Variables of the frames that have a secret's name and whose values occur in the texts. Every display hides
        these values.
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
        """Failure of the called tool that this failure passes on; None if there is none."""
        return next((failure for failure in self.linked if failure.link == "call"), None)

    @property
    def summary(self) -> str:
        """Line that a person looks for first, such as `ZeroDivisionError: division by zero`."""
        return f"{self.ename}: {self.evalue}" if self.evalue else self.ename

    @property
    def named(self) -> list[dict[str, str]]:
        """Its secrets, each as one name with its value."""
        return [{name: value} for name, value in self.secrets]

    @property
    def texts(self) -> str:
        """Texts that may contain a secret, joined into one."""
        parts = [self.evalue, self.traceback, *self.near, *self.known, *self.facts.values()]
        return "\n".join([*parts, *(failure.texts for failure in self.linked)])

    @property
    def observed(self) -> bool:
        """True if it contains information about the values at the failure."""
        return bool(self.near or self.known or self.facts)

    @property
    def tool_frame(self) -> Frame | None:
        """Innermost frame of the tool's own code, where its author would look first."""
        return next((frame for frame in reversed(self.frames) if frame.in_tool), None)


#: Numbers and shapes that a worker may report.
ClaimedNumber = Annotated[int, msgspec.Meta(ge=-(2**31), lt=2**31)]
ClaimedShape = Annotated[list[Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]], msgspec.Meta(max_length=100)]


class KeptFrame(msgspec.Struct, frozen=True):
    """Frame of the failed stack: `number` counts from the outermost, 0. `in_tool` is false for a library."""

    number: ClaimedNumber
    filename: str
    lineno: ClaimedNumber
    name: str
    line: str
    in_tool: bool


class Local(msgspec.Struct, frozen=True, omit_defaults=True):
    """Local variable: its type, its shape if any (as in numpy), and a short repr."""

    name: str
    type: str
    repr: str
    shape: ClaimedShape | None = None
