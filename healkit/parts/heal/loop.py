"""Healing: observe, diagnose, propose, validate, ask, decide.

It has three steps, each with its own module: the case of a failing tool (`context.prepare`), the search for a patch
(`patch_search.PatchSearch`), and the decision (`deciding.PatchDecision`). The failure is reproduced first, and each
step is an event of the run folder. The chosen patch becomes a revision only with consent. It then runs once more on the
execution path, and is rolled back if it fails there.
"""

from __future__ import annotations

import glob
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from healkit.core.contracts.tools import Withheld
from healkit.core.rendering import plain
from healkit.parts.heal.advisor import Advisor, Case
from healkit.parts.heal.checks import missing_grant
from healkit.parts.heal.context import HealContext, HealOptions, prepare
from healkit.parts.heal.deciding import Ending, PatchDecision, best_of
from healkit.parts.heal.patch_search import PatchSearch
from healkit.parts.heal.record import HealRecord
from healkit.parts.heal.report import HealReport, nothing_cures, total_cost
from healkit.parts.runs.run_policy import HEAL_CAPS, RunPolicy
from healkit.parts.runs.runs import OpenRun

if TYPE_CHECKING:
    from healkit.services import Services


def run_healing(hk: Services, options: HealOptions) -> HealReport:
    """Heal one failure, from its record to the report.

    Raises `ConfigError` for bad options, and `HealError` if nothing shows that the tool fails.
    """
    context, case, advisors = prepare(hk, options)
    policy, entry = RunPolicy(options.policy, HEAL_CAPS), context.entry
    with hk.runs.begin(
        "heal",
        allow=glob.escape(entry.tool_name),
        policy=policy,
        mode="dry_run" if options.dry_run else "live",
        parameters={
            "persona": options.persona,
            "advisors": [advisor.name for advisor in advisors],
            "budget_s": options.budget_s,
            "auto": options.auto,
            "logged": entry.logged,
        },
        audited=True,
    ) as run:
        record = HealRecord(run, policy, case, context.read)
        search = PatchSearch(context, record, case, advisors)
        ending = search.ending() or PatchDecision(context, record, search.case).ending()
        ending = ending or _nothing_cures(context, search, advisors)
        run.finish("completed", f"{ending.outcome}: {ending.reason}", record.state)
        return _report(context, search, ending, run, advisors)


def _nothing_cures(context: HealContext, search: PatchSearch, advisors: Sequence[Advisor]) -> Ending:
    bench, case = context.bench, search.case
    spent_s = context.options.budget_s if search.spent or bench.left_s <= 0 else None
    searched = any(advisor.author == "search" for advisor in advisors)
    tried = bench.tried + len(case.attempts)
    return Ending("not_cured", nothing_cures(case, tried, spent_s, searched=searched, acts=context.acts))


def _report(
    context: HealContext, search: PatchSearch, ending: Ending, run: OpenRun, advisors: Sequence[Advisor]
) -> HealReport:
    case, entry, bench, validator = search.case, context.entry, context.bench, context.validator
    best = ending.refuted or best_of(case)
    passed = sum(result.outcome == "passed" for result in case.base)
    nearer = [attempt for attempt in case.attempts if attempt.passed > passed]
    notes = [*context.voice.notes, *_grants_note(context, case), *_calls_note(context)]
    report = HealReport(
        tool_name=entry.tool_name,
        persona=entry.persona,
        label=entry.label,
        outcome=ending.outcome,
        reason=ending.reason,
        diagnosis=search.diagnosis.sentence,
        attempts=tuple(
            best if best and original.number == best.number else original for original in case.attempts
        ),
        best=best,
        checks=case.checks,
        duration_s=time.monotonic() - context.started,
        think_time_s=bench.think_time_s,
        candidates_tried=bench.tried + len(case.attempts),
        run_id=run.run_id,
        folder=run.folder,
        revision=ending.revision,
        request_id=ending.request_id,
        questions=tuple(search.questions),
        notes=(*notes, *([run.problem] if run.problem else ())),
        cost=total_cost(case.attempts, advisors),
        calls_answered=validator.answered,
        calls_live=validator.made,
        nearest=max(nearer, key=lambda attempt: attempt.passed, default=None) if best is None else None,
    )
    return report if context.is_cell else context.voice.shown(report)


def _calls_note(context: HealContext) -> list[str]:
    """Say how the calls of the checks were answered, for a tool that makes any."""
    answered, live_count = context.validator.answered, context.validator.made
    if not answered and not live_count and "mcp" not in context.entry.code:
        return []
    more = " and ".join(f'"{name}:N"' for name in context.calls.refused)
    least = (
        [f"The allowed number of live calls was reached. To allow N calls: live=[{more}]."] if more else []
    )
    return [f"{plain.count(answered, 'call')} answered from the record, {live_count} live.", *least]


def _grants_note(context: HealContext, case: Case) -> list[str]:
    """Say which checks could not judge any patch, because a grant is missing."""
    tried = [attempt.results for attempt in case.attempts] or [context.validator.bare(case.checks)]
    lacking = [
        (at, name) for row in tried for at, result in enumerate(row) if (name := missing_grant(result))
    ]
    if not lacking:
        return []
    many = plain.count(len({at for at, _ in lacking}), "check")
    names = " and ".join(dict.fromkeys(_as_granted(context, *name) for _, name in lacking))
    lacks = "not decided for new code, which does not have the tool's grants"
    return [f"{many} of {len(case.checks):,} {lacks}: allow {names}."]


def _as_granted(context: HealContext, option: str, name: str) -> str:
    """Return what a person has to allow: for a file, its grant."""
    grants = context.entry.grants
    places = [path for path in (*grants.read, *grants.write) if Withheld((path,)).has(name)]
    return f"{option}=[{(places[0] if places and option == 'files' else name)!r}]"
