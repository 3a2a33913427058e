"""Look-ups of `%vault`, `%executions`, `%trace_last_error`, `%post_mortem`."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from healkit.config import ExplainLevel
from healkit.contracts.filters import GROUP_FILTERS, SUMMARY_FILTERS, Filters
from healkit.errors import PostMortemError, UsageInvalid
from healkit.notebook import cards
from healkit.notebook.cell_output import CellOutput, listed
from healkit.notebook.commands import VAULT_COMMANDS
from healkit.notebook.failed_cells import FailedCell
from healkit.parsing import parse_revision, read_filters, read_grants, split_label, unknown
from healkit.rendering import execution as rendered
from healkit.rendering import listings, reports, stats, variables
from healkit.rendering.asides import Aside
from healkit.rendering.document import Card
from healkit.runtime.execution import Execution

if TYPE_CHECKING:
    from healkit.app import Healkit
    from healkit.runtime.post_mortem import PostMortem

if TYPE_CHECKING:
    from healkit.notebook.widgets.panel import Panel


def panel(healkit: Healkit, kind: str, *about: Any, **more: Any) -> Callable[[], Panel] | None:
    """What makes a live panel of that kind; None where the configuration wants none.

    The panels are loaded when one is opened: a notebook that never fails need not wait for them.
    """

    def make() -> Panel:
        from healkit.notebook import widgets

        made: Panel = getattr(widgets, kind)(healkit, *about, **more)
        return made

    return make if healkit.config.panels else None


def is_newest(cell: FailedCell, logged: Execution | None, options: Namespace) -> bool:
    """Whether the notebook's own failing cell is what is meant: the newest failure, with no tool named."""
    if options.tool is not None or options.persona is not None:
        return False
    return logged is None or logged.timestamp < cell.execution.timestamp


def last_error(
    healkit: Healkit, options: Namespace, cell: FailedCell | None = None, explained: ExplainLevel = "fix"
) -> CellOutput:
    """The newest failure's card, or the report that says there is none.

    Unless a tool or persona is named, a failing cell of the notebook's own counts too.
    """
    if options.frames is not None and options.frames < 1:
        raise UsageInvalid(f"--frames must be 1 or more, got {options.frames}.")
    execution = healkit.last_error(options.tool, options.persona)
    if cell is not None and is_newest(cell, execution, options):
        return cards.of_cell(cell, explained)
    if execution is None:
        text = healkit.last_error_report(options.tool)
        if options.persona is not None and not text.startswith("No errors found"):
            text = f"No errors found for persona {options.persona!r}."
        return CellOutput.of(Card(parts=(text,)))
    note, asked = "", None
    if options.locals:
        from healkit.runtime.post_mortem import SHOWN_FRAMES

        try:
            asked = execution.post_mortem().all_locals(options.frames or SHOWN_FRAMES)
        except PostMortemError as error:
            note = f"Local variables cannot be shown. {error}"
    aside = Aside(explained=explained)
    card = rendered.card(execution, frames=options.frames, note=note, aside=aside)
    cards_shown = (card,) if asked is None else (card, variables.card(asked))
    return CellOutput.of(cards_shown, panel(healkit, "TracebackView", execution))


def post_mortem(healkit: Healkit, options: Namespace) -> PostMortem:
    """The newest failure's worker, to be asked."""
    execution = healkit.last_error(options.tool, options.persona)
    if execution is None:
        raise PostMortemError("There is no failure on record to look into.")
    return execution.post_mortem()


def executions(healkit: Healkit, options: Namespace) -> CellOutput:
    """One page of the log, its groups of failures, or each tool's sums."""
    if options.limit < 1:
        raise UsageInvalid(f"--limit must be 1 or more, got {options.limit}.")
    filters = read_filters(vars(options))
    if options.dock:
        return _docked(healkit, options, filters)
    if options.group or options.summary:
        return _stats(healkit, options, filters)
    rows = healkit.executions(filters=filters, before_id=options.before, limit=options.limit)
    return listed(rows, panel(healkit, "LogBrowser", **filters.given, tried=filters.tried))


def _docked(healkit: Healkit, options: Namespace, filters: Filters) -> CellOutput:
    for name in ("group", "summary", "before"):
        if getattr(options, name):
            raise UsageInvalid(f"--{name} cannot be combined with --dock.", hint="Choose it in the panel.")
    shown: CellOutput = healkit.browse(dock=True, **filters.given, tried=filters.tried).static_card()
    return shown


def _stats(healkit: Healkit, options: Namespace, filters: Filters) -> CellOutput:
    more = {"before": options.before is not None, "trials": filters.tried}
    known = SUMMARY_FILTERS if options.summary else GROUP_FILTERS
    left = sorted(
        {*(filters.given.keys() - set(known)), *(name for name, is_given in more.items() if is_given)}
    )
    if options.group and options.summary:
        left = ["group"]
    if left:
        flag = "--summary" if options.summary else "--group"
        raise UsageInvalid(f"--{left[0]} cannot be combined with {flag}.")
    if options.summary:
        sums = healkit.log.summary(**filters.given).rows
        return CellOutput.of(stats.summary(sums))
    groups = healkit.log.groups(**filters.given, limit=options.limit).rows
    return CellOutput.of(stats.groups(groups))


def check_vault_words(options: Namespace) -> None:
    """Refuse an unknown subcommand, and one with too few or too many words."""
    if options.command not in VAULT_COMMANDS:
        raise unknown("subcommand of %vault called", options.command, VAULT_COMMANDS)
    least, most, what = VAULT_COMMANDS[options.command]
    if not least <= len(options.words) <= most:
        raise UsageInvalid(f"%vault {options.command} takes {what}.")
    if options.command != "grant" and (options.clear or grants_typed(options)):
        raise UsageInvalid(f"%vault {options.command} changes no grants.", hint="Write %vault grant NAME.")


def grants_typed(options: Namespace) -> dict[str, Any]:
    """The grants on a magic's line."""
    return read_grants(vars(options))


def editing_cell(healkit: Healkit, options: Namespace) -> str:
    """A `%%tool` cell with the entry's code, to change and to save as its next revision."""
    name, persona, revision = _which(options)
    entry = healkit.vault.get(name, persona, revision)
    flags = "" if entry.persona == "default" else f" --persona {entry.persona}"
    return f"%%tool {entry.tool_name}{flags}\n{entry.code}"


def _list(healkit: Healkit, options: Namespace) -> CellOutput:
    entries = healkit.vault.list(options.persona)
    return CellOutput.of(listings.vault(entries))


def _show(healkit: Healkit, options: Namespace) -> CellOutput:
    name, persona, revision = _which(options)
    entry = healkit.vault.get(name, persona, revision)
    live = panel(healkit, "PatchEditor", name, entry.persona) if revision is None else None
    return CellOutput.of(listings.entry(entry), live)


def _diff(healkit: Healkit, options: Namespace) -> CellOutput:
    name, persona, revision = _which(options)
    ends = [parse_revision(word) for word in options.words[1:]]
    if revision is not None:
        ends.append(revision)
    a, b = (ends[0] if ends else None), (ends[1] if len(ends) > 1 else None)
    text = healkit.vault.diff(name, a, b, persona=persona)
    return CellOutput.of(reports.diff(name, text))


def _history(healkit: Healkit, options: Namespace) -> CellOutput:
    name, persona, _ = _which(options)
    revisions = healkit.vault.history(name, persona)
    return CellOutput.of(listings.history(name, revisions))


def _blame(healkit: Healkit, options: Namespace) -> CellOutput:
    name, persona, _ = _which(options)
    blame = healkit.vault.blame(name, persona=persona)
    return CellOutput.of(reports.blame(name, blame))


def _revert(healkit: Healkit, options: Namespace) -> CellOutput:
    name, persona, _ = _which(options)
    to = parse_revision(options.words[1])
    entry = healkit.vault.revert(name, to, persona=persona, reason=options.reason)
    said = f"{entry.label} saved (the code of @{to} again)"
    return CellOutput.done(said)


def _undo(healkit: Healkit, options: Namespace) -> CellOutput:
    name, persona, _ = _which(options)
    before = healkit.vault.get(name, persona)
    said = f"{healkit.undo(name, persona).label} saved ({before.label} is undone)"
    return CellOutput.done(said)


def _grant(healkit: Healkit, options: Namespace) -> CellOutput:
    name, persona, _ = _which(options)
    changes = grants_typed(options)
    if changes or options.clear:
        entry = healkit.vault.set_grants(name, persona, clear=options.clear, **changes)
    else:
        entry = healkit.vault.get(name, persona)
    return CellOutput.of(listings.grants(entry))


def _which(options: Namespace) -> tuple[str, str, int | None]:
    """Name, persona and revision of the first word; `--persona` wins over `NAME.PERSONA`."""
    name, persona, revision = split_label(options.words[0])
    return name, options.persona or persona or "default", revision


#: The subcommand's name → what it shows.
VAULT: dict[str, Callable[[Healkit, Namespace], CellOutput]] = {
    "list": _list,
    "show": _show,
    "diff": _diff,
    "history": _history,
    "blame": _blame,
    "revert": _revert,
    "undo": _undo,
    "grant": _grant,
}
