"""The mending face of Healkit: try, run again, decide, undo.

A mixin, like the other faces; nothing here changes a tool without being told to.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from healkit.runtime.execution import Execution
from healkit.runtime.repeats import arguments_of, ending_of, logged
from healkit.runtime.request import Mode, OnOutput, request_for
from healkit.runtime.runs import OpenRun
from healkit.store.entries import VaultEntry
from healkit.store.log import Log
from healkit.store.requests import Requests
from healkit.store.vault import Vault


class Mending:
    """What `Healkit` does about a tool's code beyond the vault itself."""

    vault: Vault
    log: Log
    _perform: Callable[..., Execution]
    #: Patches that wait for the user's word: `.pending()`, `.get(id)`, `.accept(id)`, `.decline(id, reason)`.
    requests: Requests

    def rerun(
        self,
        log_id: int,
        *,
        timeout: float | None = None,
        mode: Mode = "worker",
        on_output: OnOutput | None = None,
        record: bool | OpenRun | None = None,
    ) -> Execution:
        """Run the tool of a logged execution again, at its active revision, with the same arguments.

        A run folder says whether it ended as it had then. Raises `UsageInvalid` where there is no such row,
        `ArgumentsInvalid` where the log does not hold its arguments whole, and as `execute` does.
        """
        row = logged(self.log, log_id)
        request = request_for(row.tool_name, row.persona, arguments_of(row), timeout, "rerun", mode)
        return self._perform(request, on_output, record, "rerun", ending_of(row))

    def try_code(
        self,
        tool_name: str,
        code: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        persona: str = "default",
        timeout: float | None = None,
        mode: Mode = "worker",
        on_output: OnOutput | None = None,
        record: bool | OpenRun | None = None,
    ) -> Execution:
        """Run other code in a tool's place, with its grants, before anything of it is saved.

        It is on record like any execution, under no revision. Raises `CodeDoesNotParse`, `ToolShapeError` or
        `SqlNotAllowed` for code that could not be saved either, and as `execute` does.
        """
        request = request_for(tool_name, persona, arguments, timeout, "try", mode)
        return self._perform(dataclasses.replace(request, code=code), on_output, record, "try")

    def undo(self, tool: str, persona: str = "default") -> VaultEntry:
        """Take back a tool's active revision: a new one with the code that it was made from.

        Once more brings the code back. Raises `RevisionNotFound` where there is nothing to undo, and as
        `vault.revert` does.
        """
        return self.vault.undo(tool, persona)
