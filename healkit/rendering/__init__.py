"""Executions, lists and reports as text and as HTML.

The worker side never imports this package; what it names is loaded when it is first used, since an
`Execution` that nobody looks at needs none of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from healkit.lazy import lazy_names

if TYPE_CHECKING:
    from healkit.rendering.asides import Aside
    from healkit.rendering.execution import execution_html, execution_text, success_html, success_line
    from healkit.rendering.listings import (
        entry_html,
        entry_text,
        executions_html,
        executions_text,
        first_line,
        grants_html,
        grants_text,
        history_html,
        history_text,
        left_out_line,
        saved_html,
        saved_text,
        vault_html,
        vault_text,
    )
    from healkit.rendering.locals import locals_html, locals_text
    from healkit.rendering.outputs import safe_output
    from healkit.rendering.reports import (
        blame_html,
        blame_text,
        diff_html,
        doctor_html,
        doctor_text,
        status_html,
        status_text,
    )
    from healkit.rendering.requests import request_html, request_text, requests_html, requests_text
    from healkit.rendering.runs import problems_text, run_diff_text, run_text, runs_text
    from healkit.rendering.tallies import groups_html, groups_text, summary_html, summary_text
    from healkit.rendering.timeline import story_of, timeline_html, timeline_text

_HOMES = {
    "Aside": "asides",
    "blame_html": "reports",
    "blame_text": "reports",
    "diff_html": "reports",
    "doctor_html": "reports",
    "doctor_text": "reports",
    "entry_html": "listings",
    "entry_text": "listings",
    "execution_html": "execution",
    "execution_text": "execution",
    "executions_html": "listings",
    "executions_text": "listings",
    "first_line": "listings",
    "grants_html": "listings",
    "grants_text": "listings",
    "groups_html": "tallies",
    "groups_text": "tallies",
    "history_html": "listings",
    "history_text": "listings",
    "left_out_line": "listings",
    "locals_html": "locals",
    "locals_text": "locals",
    "problems_text": "runs",
    "request_html": "requests",
    "request_text": "requests",
    "requests_html": "requests",
    "requests_text": "requests",
    "run_diff_text": "runs",
    "run_text": "runs",
    "runs_text": "runs",
    "safe_output": "outputs",
    "saved_html": "listings",
    "saved_text": "listings",
    "status_html": "reports",
    "status_text": "reports",
    "story_of": "timeline",
    "success_html": "execution",
    "success_line": "execution",
    "summary_html": "tallies",
    "summary_text": "tallies",
    "timeline_html": "timeline",
    "timeline_text": "timeline",
    "vault_html": "listings",
    "vault_text": "listings",
}

__all__ = [
    "Aside",
    "blame_html",
    "blame_text",
    "diff_html",
    "doctor_html",
    "doctor_text",
    "entry_html",
    "entry_text",
    "execution_html",
    "execution_text",
    "executions_html",
    "executions_text",
    "first_line",
    "grants_html",
    "grants_text",
    "groups_html",
    "groups_text",
    "history_html",
    "history_text",
    "left_out_line",
    "locals_html",
    "locals_text",
    "problems_text",
    "request_html",
    "request_text",
    "requests_html",
    "requests_text",
    "run_diff_text",
    "run_text",
    "runs_text",
    "safe_output",
    "saved_html",
    "saved_text",
    "status_html",
    "status_text",
    "story_of",
    "success_html",
    "success_line",
    "summary_html",
    "summary_text",
    "timeline_html",
    "timeline_text",
    "vault_html",
    "vault_text",
]

__getattr__ = lazy_names(__name__, _HOMES)
