"""Tools of agents: propose_patch, heal, check_notebook."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from healkit.commands.agents import AgentAnswer, AgentCaller, AgentTool, uri
from healkit.config import HEAL_BUDGET_S
from healkit.errors import AgentRefused
from healkit.parts.heal import render_check as notebook_check
from healkit.parts.heal.checks import check_text, told_apart
from healkit.parts.heal.context import HealOptions
from healkit.parts.heal.loop import run_healing
from healkit.parts.heal.records import Attempt, Patch

if TYPE_CHECKING:
    from healkit.parts.heal.advisor import Case, Workbench
    from healkit.parts.heal.notebook_check import NotebookReport
    from healkit.parts.heal.report import HealReport
    from healkit.parts.heal.service import HealService

Json = dict[str, Any]
Report = TypeVar("Report")


class AgentAdvisor:
    """Advisor that proposes the one patch that an agent has sent; implements `healing.advisor.Advisor`."""

    author: Literal["agent"] = "agent"

    def __init__(self, name: str, code: str, reason: str) -> None:
        self.name, self._code, self._reason = name, code, reason

    def propose(self, case: Case, bench: Workbench) -> Iterator[Patch]:
        """Yield the patch; called by the loop."""
        if self._code != case.entry.code:
            yield Patch(code=self._code, advisor=self.name, author=self.author, reason=self._reason)


async def propose_patch(
    call: AgentCaller, name: str, code: str, reason: str, log_id: int | None = None
) -> AgentAnswer:
    """Validate the tool's whole new code on what failed, on recorded runs and examples. A person then consents."""
    active = await asyncio.to_thread(call.services.vault.active, name, call.persona)
    if active.code == code:
        raise AgentRefused(f"{active.label} already has this code.", hint="Send other code.")
    advisor = AgentAdvisor(call.client_name, code, reason)
    return await _healed(call, name, log_id, advisors=(advisor,), advisors_named=True, improves=True)


async def heal(
    call: AgentCaller, name: str, log_id: int | None = None, budget_s: float = HEAL_BUDGET_S
) -> AgentAnswer:
    """Let healkit look for a patch of a failing tool: rules, search, and what else is set up."""
    return await _healed(call, name, log_id, budget_s=budget_s)


async def check_notebook(
    call: AgentCaller, path: str, heal: bool = False, timeout_s: float = 600.0
) -> AgentAnswer:
    """Run a notebook of the working directory restricted, top to bottom; heal: propose fixes. Writes nothing."""
    file, limit_s, stop = _below_here(path), call.limited(timeout_s), threading.Event()

    def run() -> NotebookReport:
        healing: HealService = call.services.healing
        return healing.check_notebook(file, heal=heal, timeout=limit_s, progress=call.say, stop=stop)

    report = await _in_thread(run, stop)
    data = {"report": notebook_check.data(report)}
    return AgentAnswer(data, text=str(report), failed=report.outcome != "passed")


def _options(call: AgentCaller, name: str, log_id: int | None, **more: Any) -> HealOptions:
    config = call.services.config
    if log_id is not None:
        call.execution(log_id)  # refused where it is another persona's
    options: dict[str, Any] = {"advisors": config.heal_advisors, "budget_s": HEAL_BUDGET_S, **more}
    options["budget_s"] = call.limited(options["budget_s"])
    return HealOptions(
        tool_name=name, persona=call.persona, log_id=log_id, progress=call.say,
        client=call.client_name, **options,
    )  # fmt: skip


async def _healed(call: AgentCaller, name: str, log_id: int | None, **more: Any) -> AgentAnswer:
    """Heal a tool, and return its proposal."""
    stop = threading.Event()

    def heal() -> AgentAnswer:
        report = run_healing(call.services, _options(call, name, log_id, stop=stop, **more))
        call.note(report.run_id)
        return _proposal(call, report)

    return await _in_thread(heal, stop)


def _proposal(call: AgentCaller, report: HealReport) -> AgentAnswer:
    """Return a validated proposal: the verdict, each check, and the waiting request."""
    best = report.best or next(iter(report.attempts), None) or report.nearest
    names = ("outcome", "reason", "diagnosis", "verdict", "request_id", "revision", "notes")
    details: Json = {name: getattr(report, name) for name in names}
    details["run"] = uri("runs", report.run_id, "trace.jsonl")
    if best is not None:
        details |= {
            "diff": best.diff,
            "checks": list(_checks(report, best)),
            "reaches_further": list(best.reach),
            "lost": best.lost,
        }
    if report.request_id is not None:
        request = call.services.requests.get(report.request_id)
        details |= {"code_hash": request.code_hash}
        details["next"] = f"apply_patch(request_id={request.id}, code_hash={request.code_hash!r})"
    elif report.outcome == "not_cured":
        details["next"] = "Look at the failing checks, then propose other code."
    return AgentAnswer(
        {name: value for name, value in details.items() if value not in (None, "", [], ())},
        exact=("diff",),
        failed=not (report.ok or report.outcome in ("pending", "shown")),
    )


def _checks(report: HealReport, attempt: Attempt) -> Iterator[Json]:
    """Yield each check of an attempt: the call, how it ended, and the difference in type and size, never a value.

    The input comes from the record and the examples, which the session can read; the result does not.
    """
    for check, result in zip(report.checks, attempt.results, strict=False):
        details: Json = {"call": check_text(check), "from": check.origin, "outcome": result.outcome}
        if result.outcome != "passed":
            details["difference"] = told_apart(check, result, attempt.patch.code)
        if check.log_id is not None:
            details["log_id"] = check.log_id
        yield details


def _below_here(path: str) -> Path:
    file = Path(path).resolve()
    if not file.is_relative_to(Path.cwd()):
        here = f"It is {str(Path.cwd())!r}."
        raise AgentRefused(f"{path!r} is not inside the server's working directory.", hint=here)
    return file


async def _in_thread(work: Callable[[], Report], stop: threading.Event) -> Report:
    """Do long work in a thread; cancelling it sets `stop`."""
    try:
        return await asyncio.to_thread(work)
    except asyncio.CancelledError:
        stop.set()
        raise


TOOLS = {
    "propose_patch": AgentTool(propose_patch, repeats=True),
    "heal": AgentTool(heal, repeats=True),
    "check_notebook": AgentTool(check_notebook, repeats=True),
}
