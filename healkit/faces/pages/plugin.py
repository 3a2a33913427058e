"""Hooks of the pages: the requests that they can send."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from healkit.hooks import hookimpl

if TYPE_CHECKING:
    from healkit.app import Healkit
    from healkit.faces.pages.operations import Operations
    from healkit.faces.pages.page_data import PageData


@hookimpl
def pages(healkit: Healkit, recorded: PageData) -> Sequence[Operations]:
    """Return healkit's own requests: on the log, the tools, runs, the audit, patch requests and the status."""
    from healkit.faces.pages.audit_reading import AuditReading
    from healkit.faces.pages.log_reading import ExecutionReading, LogReading
    from healkit.faces.pages.request_reading import RequestReading
    from healkit.faces.pages.run_reading import RunReading
    from healkit.faces.pages.side_panel import StateReading
    from healkit.faces.pages.tool_reading import ToolReading

    own = (LogReading, ExecutionReading, ToolReading, RunReading, AuditReading, RequestReading, StateReading)
    return [subject(healkit, recorded) for subject in own]
