"""Magics that ask a person: `%heal` and `%decide`."""

from __future__ import annotations

import re
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from IPython import get_ipython

from healkit.commands.parsing import (
    ANSWER_PROMPT,
    DECISION_PROMPT,
    chooser_of,
    parse_decision,
    read_aliases,
    read_steps,
    split_commas,
)
from healkit.core.rendering.document import Diff
from healkit.errors import HealError, UsageInvalid
from healkit.faces.notebook import cards
from healkit.faces.notebook.cell_output import (
    CellOutput,
    explain_limit,
    fixes_offered,
    live_page,
    replace_cell,
)
from healkit.faces.notebook.magic_words import evaluate, refuse
from healkit.faces.notebook.vault_magics import put_into_cell
from healkit.parts.cells.own_cells import notebook_cells
from healkit.parts.decide.choosers import Person, ask_person
from healkit.plain_text import untick

if TYPE_CHECKING:
    from healkit.app import Healkit
    from healkit.parts.cells.own_cells import FailedCell
    from healkit.parts.heal.questions import Answer, Question
    from healkit.parts.heal.records import Attempt, CellFix
    from healkit.parts.heal.report import CellReport, HealReport


#: Advisor name for an editor in which a person writes the fix.
PERSON = "person"


#: A cell by its prompt: `12`, `In[12]`.
_PROMPT = re.compile(r"(?:In ?)?\[?(\d+)\]?")


def heal(healkit: Healkit, options: Namespace, cell: FailedCell | None) -> Any:
    """Heal the named tool or the cell with that prompt, else the newest failure; print the progress.

    cell: The notebook's cell that failed last. If a person is among the advisors, the editor opens for what the others
    did not cure.
    """
    if not fixes_offered(healkit.config):
        raise HealError(
            f"No fix is suggested here: failures are explained up to {explain_limit(healkit.config)!r}.",
            hint="HEALKIT_EXPLAIN or %config HealkitMagics.explain has set that; 'fix' turns healing on again.",
        )
    tool = options.tool
    names = None if options.advisors is None else [name.strip() for name in options.advisors.split(",")]
    if tool is not None and (prompt := _PROMPT.fullmatch(tool)) is not None:
        return _heal_cell(healkit, int(prompt[1]), options, names)
    if tool is None:
        row = healkit.log.last_error()
        if cell is not None and (row is None or row.timestamp < cell.execution.timestamp):
            return _heal_cell(healkit, cell.number, options, names)
        if row is None:
            raise HealError("Nothing has failed.", hint="Name a tool: %heal TOOL.")
        tool = row.tool_name
    refuse(options, ("pick",), "is for the edits of a cell", "Leave it out; %heal asks about a tool's patch.")
    if options.panel or options.dock:
        return _panel(healkit, tool, options, names)
    if names is not None and PERSON in names:
        names.remove(PERSON)
        report = _ask_others(healkit, tool, options, names) if names else None
        if report is None or not report.ok:
            return healkit.patch_editor(tool, options.persona, log_id=options.log_id)
        return report
    report = _ask_others(healkit, tool, options, names)
    if options.apply and report.ok:
        put_into_cell(healkit.vault.get(tool, options.persona), get_ipython()).show()
    return report


def _heal_cell(
    healkit: Healkit, number: int | None, options: Namespace, names: list[str] | None
) -> CellReport | None:
    """Heal a cell of the notebook; with `--apply`, this cell becomes the fixed one."""
    of_tools = ("panel", "dock", "auto", "later", "log_id", "live", "files")
    refuse(
        options, of_tools, "is for tools; a cell is healed without it", "Leave it out; %heal shows the fix."
    )
    cell = notebook_cells.find(number)
    if cell is not None and cell.advice is not None and cell.advice.reruns:
        cards.shown(cell.advice).show()
        return None
    report = healkit.heal_cell(number, advisors=names, budget_s=options.budget)
    if options.apply or options.pick is not None:
        fix = _picked(report, options.pick)
        replace_cell(get_ipython(), fix.code)
        what = "fixed text" if fix is report.fix else "text, if you mean this,"
        sentence = f"The {what} of {fix.cell} is in this cell now. Run it. {fix.said}"
        CellOutput.done(sentence, Diff(fix.diff), *fix.unknown).show()
        return None
    return report


def _picked(report: CellReport, number: int | None) -> CellFix:
    """Return the edit with that number on the card, or the one that the card proposes; raise `HealError`."""
    if number is None and report.chosen is not None:
        return report.chosen
    if not report.edits:
        raise HealError(f"There is no fix for {report.label}: {report.reason}")
    if number is None or not 0 < number <= len(report.edits):
        wrong = "Several edits are possible" if number is None else f"There is no edit {number}"
        raise HealError(
            f"{wrong} for {report.label}.", hint=f"%heal --pick N takes 1 to {len(report.edits)}."
        )
    return report.edits[number - 1]


def _panel(healkit: Healkit, tool: str, options: Namespace, names: list[str] | None) -> Any:
    """Open a panel, in which nothing happens without a click; it has an editor for a person."""
    alone = ("apply", "auto", "dry_run", "later")
    refuse(options, alone, "cannot be combined with --panel", "The panel asks before anything is kept.")
    if not live_page():
        raise UsageInvalid("There is no page to open a panel in.", hint="Leave --panel out: %heal asks here.")
    if names is not None:
        names = [name for name in names if name != PERSON] or None
    chosen = {"advisors": names, "budget_s": options.budget, "log_id": options.log_id, **_allowed(options)}
    return healkit.heal_panel(tool, options.persona, **chosen, dock=options.dock)


def _ask_others(healkit: Healkit, tool: str, options: Namespace, names: list[str] | None) -> HealReport:
    return healkit.heal(
        tool,
        options.persona,
        advisors=names,
        auto=options.auto,
        budget_s=options.budget,
        log_id=options.log_id,
        dry_run=options.dry_run,
        **_allowed(options),
        ask=_ask,
        confirm=None if options.later else _confirm,
        progress=lambda sentence: print(f"· {untick(sentence)}"),  # noqa: T201 - a magic's progress, in its cell
    )


def _allowed(options: Namespace) -> dict[str, Any]:
    """Return what checks may call and read, by name."""
    return {"live": split_commas(options.live or ""), "files": split_commas(options.files or "")}


def _ask(question: Question) -> Answer | None:
    from healkit.parts.heal.questions import answer_of
    from healkit.parts.heal.render import question_text

    print(question_text(question.call, (choice.lines for choice in question.choices), question.tables))  # noqa: T201 - as above
    return answer_of(question, said(f"{ANSWER_PROMPT}: "))


def _confirm(best: Attempt) -> bool | None:
    from healkit.parts.heal.render import consent_text

    print(f"\n{consent_text(best)}")  # noqa: T201 - as above
    return parse_decision(said(f"{DECISION_PROMPT}: "))


def said(prompt: str) -> str:
    """Read a line that the person types; empty if no one can type, as in a notebook that nbclient runs."""
    try:
        return input(prompt)
    except Exception as error:
        if type(error).__name__ in ("StdinNotImplementedError", "EOFError"):
            return ""
        raise


def plan_in(cell: str, namespace: Mapping[str, Any]) -> list[Any]:
    """Return the plan in a cell's body, as Python or JSON; raise `UsageInvalid` for anything else."""
    if not cell.strip():
        raise UsageInvalid("The cell holds no plan.", hint="Write a list of choices below %%decide.")
    steps = evaluate(cell.strip(), namespace)
    if not isinstance(steps, list | tuple):
        raise UsageInvalid(f"A plan is a list of choices, not a {type(steps).__name__}.")
    return list(steps)


def decide(
    healkit: Healkit,
    options: Namespace,
    data: dict[str, Any],
    plan: list[Any] | None,
    *,
    has_page: bool = False,
) -> Any:
    """Decide, and ask in the cell when a person is needed; return the decision, or its panel if one is wanted.

    Without a plan and a chooser, a notebook opens a panel in which a person chooses. A person who chooses is not asked
    which value is meant, because the candidates are cells.
    """
    if options.question is None and options.resume is None:
        raise UsageInvalid(
            "A decision needs a question.", hint='Write it in quotes: %decide "Which?" sales=frame'
        )
    if not data and options.resume is None:
        raise UsageInvalid(
            "A decision needs data.", hint='Name a frame after the question: %decide "Which?" sales=frame'
        )
    if options.plan is not None:
        if plan is not None:
            raise UsageInvalid("There are two plans: --plan and the cell's body.", hint="Leave one out.")
        plan = read_steps(_text_of(options.plan), options.plan)
    has_own = plan is None and options.chooser is None and options.resume is not None
    if plan is None and options.chooser is None and has_page and not has_own:
        options.chooser, options.panel = "person", True
    chooser = None if has_own else chooser_of(plan, options.chooser)
    settings: dict[str, Any] = {
        "tools": None if options.tools is None else split_commas(options.tools),
        "persona": options.persona,
        "share": options.share or (),
        "aliases": read_aliases(options.alias),
        "heal": options.heal,
        "analyst": "model" if options.analysis else None,
        "timeout": options.timeout,
    }
    by_person = chooser == "person"
    if by_person and options.panel and options.resume is None:
        return healkit.decide_panel(options.question, data, **settings)
    decision = healkit.decide(
        options.question,
        data or None,
        resume=options.resume,
        chooser=Person(said) if by_person else chooser,
        ask=None if by_person else lambda question: ask_person(question, said),
        **settings,
    )
    return healkit.audit_panel(decision) if options.panel else decision


def _text_of(file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise UsageInvalid(f"Cannot read {file!r}: {reason}.") from None


def map_inputs(healkit: Healkit, options: Namespace, namespace: dict[str, Any]) -> Any:
    """Map a tool over a file or a value of the notebook, as the line says; return the report, or the panel."""
    inputs = options.map if Path(options.map).is_file() else evaluate(options.map, namespace)
    more = {"persona": options.persona, "timeout": options.timeout, "run_id": options.run_id}
    if options.panel:
        return healkit.panels.open("MapPanel", options.name, inputs, **more)
    return healkit.map(options.name, inputs, **more)
