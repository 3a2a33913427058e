"""Patch requests: patches that wait for consent."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

import msgspec

from healkit.contracts.healing import VERDICTS, Verdict
from healkit.contracts.labels import revision_label

#: `pending` until it is decided. `overtaken`: it was accepted, but by then the tool had another revision that this
#: patch was not made from; nothing was changed.
RequestState = Literal["pending", "accepted", "declined", "overtaken"]
#: Author of the patch, in the words for a revision's author.
RequestAuthor = Literal["person", "rule", "search", "model", "agent"]


class PatchRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Proposed code for a tool.

    parent: the revision that it was made from. diff: from that one's code to this. advisor: the proposer, in the
    advisor's own name for itself. verdict: of its validation, empty without one. motivating_log_id, run_id: the
    execution that it answers, and the healing that made it. revision: the one that it became once it was accepted.
    note: why it was declined, or both sides where it was overtaken.
    """

    id: int
    tool_name: str
    persona: str
    parent: int
    code: str
    code_hash: str
    diff: str
    author: RequestAuthor
    created_at: datetime
    advisor: str = ""
    reason: str = ""
    verdict: Verdict | Literal[""] = ""
    motivating_log_id: int | None = None
    run_id: str | None = None
    state: RequestState = "pending"
    decided_at: datetime | None = None
    decided_by: str = ""
    revision: int | None = None
    note: str = ""

    @property
    def label(self) -> str:
        """Revision that it was made from: `fibonacci v2`, or `fibonacci v2 (teacher)`."""
        return revision_label(self.tool_name, self.persona, self.parent)

    @property
    def said(self) -> str:
        """Verdict in words."""
        return VERDICTS[self.verdict].words if self.verdict else "not validated"
