"""Magics, the face of healkit in a cell.

Each magic reads its line, calls Healkit and shows the result. `%load_ext healkit` imports this module in every
notebook, so modules that only some magics need are imported by those.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import importlib
import sys
import threading
from argparse import Namespace
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, get_args

from IPython.core.error import UsageError
from IPython.core.magic import Magics, cell_magic, line_cell_magic, line_magic, magics_class, no_var_expand
from traitlets import Enum

from healkit.commands.parsing import given_arguments, parse_arguments, sample_call, split_words, unknown
from healkit.config import Config, ExplainLevel
from healkit.errors import ArgumentsInvalid, HealkitError, ToolExecutionError, UsageInvalid
from healkit.faces.notebook import magic_parsers
from healkit.faces.notebook.magic_parsers import HelpWanted
from healkit.faces.notebook.magic_words import evaluate, take_assignments, words_of
from healkit.parts.cells.own_cells import CELLS_MAX, FailedCells

if TYPE_CHECKING:
    from IPython.core.interactiveshell import ExecutionInfo, ExecutionResult, InteractiveShell

    from healkit.app import Healkit
    from healkit.core.runtime.execution import Execution
    from healkit.faces.notebook.cell_output import CellOutput


_INTERRUPTED = "KeyboardInterrupt: %{} was interrupted. What it ran has ended; %executions lists it."


#: Magics whose `key=value` words are arguments, and magics whose words are not changed.
_WITH_ARGUMENTS, _AS_TYPED = {"run_tool", "decide"}, {"summarize", "healkit"}


def _magic(register: Callable[..., Any]) -> Callable[[Callable[..., Any]], Any]:
    """Turn a method into a magic of that kind, which gets the parsed options instead of the line.

    It prints its help for `--help`. It shows errors in the words of a notebook, and an interrupt in one line, because
    the stack below an interrupt is healkit's own.
    """

    def made(magic: Callable[..., Any]) -> Any:
        name = magic.__name__.removesuffix("_magic")

        @functools.wraps(magic)
        def wrapped(magics: HealkitMagics, line: str, *cell: str) -> Any:
            try:
                return magic(magics, _options(name, line, magics.shell.user_ns), *cell)
            except HealkitError as error:
                from healkit.faces.commands.hints import rephrase

                rephrase(error, "notebook", f"%%{name}" if name == "tool" else f"%{name}")
                raise
            except HelpWanted as help_wanted:
                from healkit.core.rendering.document import Card, Code
                from healkit.faces.notebook.cell_output import CellOutput

                CellOutput.of(Card(parts=(Code(str(help_wanted)),))).show()
                return None
            except KeyboardInterrupt as stopped:
                sentence = _INTERRUPTED.format(name)
                stopped._render_traceback_ = lambda: [sentence]  # type: ignore[attr-defined]  # IPython calls it for the stack
                raise

        return register(name)(no_var_expand(wrapped))

    return made


def _options(magic: str, line: str, namespace: dict[str, Any]) -> Namespace:
    """Parse a magic's line; the values of its `key=value` words are in `given`."""
    parser = magic_parsers.PARSERS[magic]()
    if magic in _AS_TYPED:
        return parser.read(split_words(line))
    words = words_of(line, namespace)
    if magic not in _WITH_ARGUMENTS:
        return parser.read(words)
    words, arguments = take_assignments(words, namespace)
    options = parser.read(words)
    options.given = arguments
    return options


@dataclasses.dataclass(frozen=True)
class FailedTool:
    """Failure of a tool that ended a cell, with the cell's text."""

    healkit: Healkit
    execution: Execution
    source: str


@magics_class
class HealkitMagics(Magics):
    """healkit's magics in one notebook.

    `cards` says whether they show cards. A failure's card waits in `waiting` until the cell's own error output is
    shown; the card follows below.
    """

    explain = Enum(
        get_args(ExplainLevel),
        default_value="fix",
        help="how far a card explains a failure: off, what, … fix",
    ).tag(config=True)

    def __init__(self, shell: InteractiveShell) -> None:
        super().__init__(shell)
        self.cards = True
        self.waiting: list[Execution] = []
        self.cells = FailedCells(shell)
        #: The latest failures of tools, by the prompt of the cell that they ended.
        self.of_tools: dict[int, FailedTool] = {}
        self._warmed = self._tipped = self._warmed_up = False

    def before_cell(self, info: ExecutionInfo | None = None) -> None:
        """Save the values that the cell will change; called by IPython as `pre_run_cell`."""
        if info is not None and info.store_history:
            self.cells.values.remember(info.raw_cell or "")

    def after_cell(self, result: ExecutionResult | None = None) -> None:
        """Show the cards of the cell's failures; called by IPython as `post_run_cell`.

        If a card cannot be drawn, one line says so, instead of a second traceback.
        """
        waiting, self.waiting = self.waiting, []
        if not self._warmed:
            self._warmed = True
            threading.Thread(target=_load_cards, name="healkit-cards", daemon=True).start()
        try:
            for execution in waiting:
                self._show_failure(self.healkit, execution, result)
            error = None if result is None else result.error_in_exec or result.error_before_exec
            if error is not None:
                self._after_error(error, result, {execution.trace_id for execution in waiting})
            self.cells.runs.note(result)
        except Exception as trouble:  # noqa: BLE001 - see above
            print(f"healkit could not draw its card: {type(trouble).__name__}: {trouble}", file=sys.stderr)  # noqa: T201 - the last resort, when nothing can be drawn

    def _show_failure(
        self, healkit: Healkit, execution: Execution, result: ExecutionResult | None = None
    ) -> None:
        """Show a tool's card, with the live panel below, both from the database that holds the failure."""
        text = "" if result is None or result.info is None else result.info.raw_cell or ""
        if result is not None and result.execution_count is not None:
            self.of_tools.pop(result.execution_count, None)
            self.of_tools[result.execution_count] = FailedTool(healkit, execution, text)
            while len(self.of_tools) > CELLS_MAX:
                del self.of_tools[next(iter(self.of_tools))]
        self._show(self.failure_card(healkit, execution, text))

    def failure_card(self, healkit: Healkit, execution: Execution, source: str) -> CellOutput:
        """Draw a tool's failure: its card, and the panel below; source: text of the cell that ran it."""
        from healkit.faces.notebook import cards
        from healkit.faces.notebook.cell_output import panel_of

        card = cards.of_tool(healkit, execution, self.explain, source=source)
        return dataclasses.replace(card, panel=panel_of(healkit, "TracebackView", execution))

    def _after_error(self, error: BaseException, result: ExecutionResult, carded: set[str]) -> None:
        """Show the cell's own exception: a tool's failure that no magic has shown, or an error of the cell."""
        if isinstance(error, ToolExecutionError):
            from healkit.faces.defaults import find_execution

            if error.trace_id not in carded and (failed_run := find_execution(error.trace_id)) is not None:
                self._show_failure(*failed_run, result)
            return
        if isinstance(error, HealkitError | UsageError | KeyboardInterrupt | SystemExit):
            return  # its one line is enough
        info = result.info
        cell = self.cells.add(error, info.raw_cell or "", result.execution_count, info.cell_id)
        if not self.cards:
            return
        from healkit.faces.notebook import cards
        from healkit.faces.notebook.cell_output import fixes_offered, live_page

        tip, self._tipped = ("" if self._tipped else cards.TIP), True
        self._show(cards.of_cell(cell, self.explain, tip))
        may_heal = live_page() and fixes_offered(Config.from_environment())
        if not self._warmed_up and may_heal and (cell.advice is None or not cell.advice.reruns):
            self._warmed_up = True
            threading.Thread(
                target=_warm_up, args=(dict(self.shell.user_ns),), name="healkit-warm", daemon=True
            ).start()

    @property
    def healkit(self) -> Healkit:
        """Healkit of the default database; HEALKIT_DB may change while the notebook runs."""
        from healkit.faces.defaults import (
            default_healkit,  # late, because it takes longer to import than the extension
        )

        return default_healkit()

    @_magic(cell_magic)
    def tool(self, options: Namespace, cell: str) -> Any:
        """Save the cell's body in the vault as a tool."""
        from healkit.faces.notebook import vault_magics

        arguments = None if options.run is None else parse_arguments(options.run, "--run")
        if options.take:
            self._show(vault_magics.take(self.healkit, options, cell, self.shell))
            return None
        entry, output = vault_magics.save(self.healkit, options, cell, self.cells.texts)
        self._show(output)
        if arguments is None:
            return None
        return self._run(entry.tool_name, entry.persona, arguments, None)

    @_magic(line_magic)
    def run_tool(self, options: Namespace) -> Any:
        """Run a tool in a restricted worker; return its value, or with --map the report."""
        if options.map is not None:
            from healkit.faces.notebook.asking_magics import map_inputs

            return map_inputs(self.healkit, options, self.shell.user_ns)
        arguments = given_arguments(options.args, options.given)
        return self._run(
            options.name,
            options.persona,
            arguments,
            options.timeout,
            record=options.record,
            retry=options.retry,
        )

    @_magic(line_magic)
    def trace_last_error(self, options: Namespace) -> None:
        """Show the newest failure in the log."""
        from healkit.faces.notebook import log_magics

        if options.notebook is not None or options.markdown:
            log_magics.export(self.healkit, options, self.cells.last, self.shell.user_ns).show()
            return
        log_magics.last_error(self.healkit, options, self.cells.last, self.explain).show()

    @_magic(line_magic)
    def post_mortem(self, options: Namespace) -> Any:
        """Return the newest failure's worker, for questions."""
        from healkit.faces.notebook import log_magics

        return log_magics.post_mortem(self.healkit, options)

    @_magic(line_magic)
    def heal(self, options: Namespace) -> Any:
        """Search for a patch of a failed tool; return the report, which shows itself."""
        from healkit.faces.notebook import asking_magics

        return asking_magics.heal(self.healkit, options, self.cells.last)

    @_magic(line_magic)
    def vault(self, options: Namespace) -> None:
        """Show or change the vault."""
        from healkit.faces.notebook import vault_magics

        vault_magics.check_vault_words(options)
        if options.command == "show" and options.edit:
            self.shell.set_next_input(vault_magics.editing_cell(self.healkit, options))
            return
        vault_magics.vault(self.healkit, options).show()

    @_magic(line_magic)
    def executions(self, options: Namespace) -> None:
        """List executions, newest first."""
        from healkit.faces.notebook import log_magics

        log_magics.executions(self.healkit, options).show()

    @_magic(line_magic)
    def summarize(self, options: Namespace) -> Any:
        """Summarise a text, a frame or an array; return the summary, which shows itself."""
        value = evaluate(options.value, self.shell.user_ns)
        return self.healkit.summarize(value, top=options.top)

    @_magic(line_cell_magic)
    def decide(self, options: Namespace, cell: str | None = None) -> Any:
        """Answer a question about data, with the cell's body as the plan; return the decision, which shows itself."""
        from healkit.faces.notebook import asking_magics

        plan = None if cell is None else asking_magics.plan_in(cell, self.shell.user_ns)
        has_page = getattr(self.shell, "kernel", None) is not None and self.healkit.config.panels
        return asking_magics.decide(self.healkit, options, options.given, plan, has_page=has_page)

    @_magic(line_magic)
    def graph(self, options: Namespace) -> Any:
        """Show which tools are used together; return that part of the graph, which shows itself."""
        return self.healkit.graph.drawn(options.tool)

    @_magic(line_magic)
    def suggest(self, options: Namespace) -> Any:
        """Suggest tools to call; return the suggestions, which show themselves."""
        return self.healkit.suggest(options.intent, after=options.after or (), k=options.limit)

    @_magic(line_magic)
    def views(self, options: Namespace) -> None:
        """List the data that tools received or returned, or show one piece of it."""
        from healkit.faces.commands import rows
        from healkit.faces.notebook.cell_output import CellOutput

        command, words = ("show", [options.name]) if options.name else ("list", [])
        answer = rows.group("views")[command].answer_magic(self.healkit, words, vars(options))
        CellOutput.answered(answer, self.healkit).show()

    @_magic(line_magic)
    def healkit_magic(self, options: Namespace) -> None:
        """Switch cards on or off, or show the status."""
        from healkit.faces.notebook import vault_magics

        command = options.command
        if command not in magic_parsers.HEALKIT_COMMANDS:
            raise unknown("subcommand of %healkit called", command, magic_parsers.HEALKIT_COMMANDS)
        if command == "keep":
            self._show(vault_magics.keep(self.healkit, options, self.shell, self.cells))
        elif command == "requests":
            vault_magics.requests(self.healkit, options).show()
        elif command == "trust":
            vault_magics.trust(options).show()
        elif options.name is not None or options.cell is not None:
            raise UsageInvalid(f"%healkit {command} takes no name.", hint="Write %healkit keep NAME.")
        elif command in {"on", "off"}:
            self.cards = command == "on"
            what = "are shown below cells" if self.cards else "are not shown; errors are raised as before"
            print(f"healkit is {command}: its cards {what}.")  # noqa: T201 - a magic's answer
        else:
            vault_magics.REPORTS[command](self.healkit).show()

    def _run(
        self,
        name: str,
        persona: str,
        arguments: dict[str, Any],
        timeout: float | None,
        *,
        record: bool = False,
        retry: bool = False,
    ) -> Any:
        """Run a tool, and return its value or raise, because nbclient and papermill must see a failure."""
        self._warn(name, persona, arguments)
        try:
            execution = self.healkit.execute(
                name,
                persona,
                arguments,
                timeout=timeout,
                origin="magic",
                on_output=_show_live,
                record=record or None,
                retry=retry,
            )
        except ArgumentsInvalid as error:
            entry = self.healkit.vault.get(name, persona)
            if error.message.startswith(entry.label):  # about names of arguments, not about size
                error.hint = f"{error.hint} Write %run_tool {name}{sample_call(entry, quote=repr)}".lstrip()
            raise
        if execution.failure is not None:
            self.waiting.append(execution)
        else:
            from healkit.core.rendering import execution_card as rendered
            from healkit.faces.notebook.cell_output import CellOutput

            # One line: the value itself is the cell's own result, directly below.
            self._show(CellOutput.of(rendered.success(execution)))
        from healkit.core.runtime.runner import value_or_raise

        return value_or_raise(execution)

    def _warn(self, name: str, persona: str, arguments: dict[str, Any]) -> None:
        """Warn before a run that is very likely to fail, with the evidence."""
        from healkit.parts.learn import success

        with contextlib.suppress(HealkitError):  # the run itself reports it
            entry = self.healkit.vault.lookup(name, persona)
            warning = success.warning_of(self.healkit.database, entry.tool_name, arguments, entry.code_hash)
            if warning and self.cards:
                print(f"This run is likely to fail: {warning}")  # noqa: T201 - a magic's answer

    def _show(self, shown: CellOutput) -> None:
        if self.cards:
            shown.show()


def _show_live(output: dict[str, Any]) -> None:
    """Display one live output of the tool; the card shows a traceback."""
    if output.get("output_type") != "error":
        from healkit.core.runtime.background import show_output

        show_output(output)


def _load_cards() -> None:
    """Load the sanitiser's tables and the catalogue, which the first card needs; on a thread, since it takes long."""
    from healkit.core.rendering import cleaning
    from healkit.parts.explain import catalogue

    cleaning.sanitizer()
    catalogue.subjects()
    for name in ("healkit.faces.notebook.cards", "healkit.parts.cells.advice"):
        importlib.import_module(name)  # by name, because nothing of it is used here


def _warm_up(namespace: dict[str, Any]) -> None:
    """Prepare the first healing of a cell, while the person reads the card."""
    from healkit.core.runtime import background
    from healkit.parts.heal.cell_healing import warm_up

    with contextlib.suppress(HealkitError):  # the healing itself will report why it cannot start
        background.loop.wait_for(warm_up(Config.from_environment(), namespace))
