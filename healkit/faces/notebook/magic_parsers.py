"""Parsers of the magics' lines.

`magic_words.words_of` splits a line, and the magic's own parser reads the words. Three readers use the parsers as data:
the magics themselves, `--help`, and completion.

IPython's `magic_arguments` prints a stack for a typing mistake, has no `--help`, and suggests no similar flag.
`MagicParser` is argparse without these three problems.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, NamedTuple, NoReturn

from healkit.commands import options as o
from healkit.commands.parsing import unknown, unquote
from healkit.errors import UsageInvalid

#: Subcommand → its number of words (minimum, maximum), and its help.
VAULT_COMMANDS: dict[str, tuple[int, int, str]] = {
    "list": (0, 0, "all tools; with --removed, those that were removed"),
    "show": (1, 1, "NAME[@REVISION]: code, arguments, grants"),
    "diff": (1, 3, "NAME [FROM [TO]]: by default the active revision against its parent"),
    "history": (1, 1, "NAME: every revision, with runs and failures"),
    "blame": (1, 1, "NAME: which revision brought the newest failure in, and which resolved it"),
    "revert": (2, 2, "NAME REVISION: a new revision with that one's code"),
    "undo": (1, 1, "NAME: take back the active revision; a new one with the code that it was made from"),
    "rename": (2, 2, "OLD NEW: the old name still means the tool"),
    "remove": (1, 1, "NAME: list and run it no more; its code, revisions and runs are kept"),
    "restore": (1, 1, "NAME: bring a removed tool back as it was"),
    "grant": (1, 1, "NAME: change what it may do, with the flags --read to --clear; without any, show it"),
}
HEALKIT_COMMANDS: dict[str, str] = {
    "on": "show cards below cells in this notebook (the default)",
    "off": "show no cards; errors are raised as before",
    "keep": "NAME: save the cell that failed last (or --cell N) as a tool; the names it reads become arguments",
    "requests": "[accept|decline|show ID]: the patches waiting for approval, or a decision on one",
    "trust": "[PATH]: trust a database that was made elsewhere, once; --show says what it would grant",
    "status": "which database, how many tools and executions, what is wrong if anything",
    "doctor": "what this machine can enforce, tried for real",
}
#: Subcommands of `%healkit requests`.
REQUEST_COMMANDS = ("list", "show", "accept", "decline")


#: Messages of argparse → plain ones.
_SAID_BY_ARGPARSE = (
    (r"unrecognized arguments: (.*)", r"too many words: \1"),
    (r"argument (\S+): invalid int value: (.*)", r"\1 takes a whole number, not \2"),
    (r"argument (\S+): invalid float value: (.*)", r"\1 takes a number, not \2"),
    (r"argument (\S+): expected one argument", r"\1 needs a value"),
)


class HelpWanted(Exception):
    """Raised for `--help` on the line; contains the text to print."""


class _Own(NamedTuple):
    """Word or flag of one magic, in argparse's form."""

    names: tuple[str, ...]
    about: dict[str, Any]


def _word(name: str, about: str, **more: Any) -> _Own:
    """Describe a word without a flag; it is optional unless `nargs` is None."""
    return _Own((name,), {"help": about, "nargs": "?", **more})


def _switch(flag: str, about: str) -> _Own:
    return _Own((flag,), {"help": about, "action": "store_true"})


class MagicParser(argparse.ArgumentParser):
    """argparse for one magic: errors are one line, and `--help` prints instead of exiting."""

    def __init__(self, name: str, description: str, epilog: str = "", example: str = "") -> None:
        super().__init__(
            prog=name,
            description=description,
            epilog=epilog,
            add_help=False,
            allow_abbrev=False,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        #: Example line, with the command that lists the names; shown if a word is missing.
        self.example = example
        self._values: dict[str, tuple[str, ...]] = {}
        self.add_argument("--help", "-h", action="store_true", help="print this help")

    def take(self, *rows: o.Option | _Own) -> None:
        """Add rows of the option table, and this magic's own options."""
        for option in rows:
            if isinstance(option, _Own):
                self.add_argument(*option.names, **option.about)
                continue
            about: dict[str, Any] = {"dest": option.name, "default": option.default}
            about["help"] = option.text + (f" (default: {option.default})" if option.default else "")
            if option.type is bool:
                about["action"] = "store_true"
            else:
                about |= {
                    "metavar": option.metavar
                    or (f"{{{','.join(option.choices)}}}" if option.choices else None)
                }
                about["type"] = option.type
                about["action"] = "append" if option.many else "store"
            self.add_argument(option.long_flag, **about)
            self._values[option.long_flag] = option.choices

    @property
    def flags(self) -> list[str]:
        """Every long flag, for completion and near matches."""
        return [flag for action in self._actions for flag in action.option_strings if flag.startswith("--")]

    def flags_with_value(self) -> dict[str, list[str]]:
        """Return the flags that take a value, with their possible values (empty: any)."""
        return {
            flag: list(self._values.get(flag, ()))
            for action in self._actions
            for flag in action.option_strings
            if action.nargs != 0
        }

    def error(self, message: str) -> NoReturn:
        """Raise `UsageInvalid`; called by argparse for a line that it cannot parse."""
        first, _, names = message.partition(" required: ")
        if names and first.endswith("are"):
            about = {action.metavar or action.dest: action.help or "" for action in self._actions}
            raise UsageInvalid(
                f"{names.split(',')[0].upper()} is missing ({about[names.split(',')[0]].partition(';')[0]}).",
                hint=f"Write {self.example}.",
            )
        text = message
        for pattern, ours in _SAID_BY_ARGPARSE:
            text = re.sub(pattern, ours, text)
        raise UsageInvalid(f"{self.prog}: {text}.", hint=f"{self.prog} --help shows what it takes.")

    def read(self, words: list[str]) -> argparse.Namespace:
        """Parse the words; raise `HelpWanted` or `UsageInvalid`."""
        if {"--help", "-h"} & set(words):
            raise HelpWanted(self.format_help())
        for word in words:
            if word.startswith("--") and len(word) > 2 and word.partition("=")[0] not in self.flags:
                error = unknown(f"flag of {self.prog} called", word.partition("=")[0], self.flags)
                error.hint += f" {self.prog} --help shows what they do." if error.hint else ""
                raise error
        return self.parse_args([unquote(word) for word in words])


#: The magic's name → function that makes its parser on first use.
PARSERS: dict[str, Callable[[], MagicParser]] = {}


def _add(magic: str, about: str, twin: str, *rows: o.Option | _Own, example: str = "") -> None:
    """Describe a magic: its help above and below its options; example: its line with a required word."""

    @cache
    def made() -> MagicParser:
        parser = MagicParser(magic, about, twin, example)
        parser.take(*rows)
        return parser

    PARSERS[magic.lstrip("%")] = made


def _for(what: str, *rows: o.Option) -> list[o.Option]:
    """Add to the help of rows which subcommand they belong to."""
    return [row.replace(help=f"for {what}: {row.help}") for row in rows]


def _listed(commands: Iterable[tuple[str, str]]) -> str:
    return "\n".join(f"  {name:<8} {what}" for name, what in commands)


_TOOL = _word("tool", "only of this tool")

_add(
    "%%tool",
    "Save this cell's body in the vault as a tool; it is not run here.\nThe tool is added, or patched when the "
    "vault has it with other code.",
    "Python twin: hk.vault.add(name, code), hk.vault.patch(name, code, reason=…)",
    _word("name", "the tool's name; read off the code when left out"),
    *(o.PERSONA, o.DESCRIPTION, o.SQL, o.DRAFT, o.REASON, o.EXAMPLE),
    _Own(("--run", "--args"), {"metavar": "JSON", "help": "run it at once with these arguments"}),
    _switch("--take", "put the vault's code into this cell instead"),
    _switch("--replace", "save the cell's code, even if that undoes a fix"),
    *o.GRANTS,
)
_add(
    "%run_tool",
    "Run a tool in a restricted worker and return its value.\n"
    "Arguments are key=value, each value a Python expression of this notebook, or one JSON object.",
    "Examples: %run_tool fibonacci n=10\n          value = %run_tool fibonacci n=limit\n"
    "          report = %run_tool fibonacci --map rows\n"
    "Python twin: hk.execute_tool(name, persona, arguments), hk.map(name, inputs)",
    _word("name", "the tool's name; key=value arguments follow", nargs=None),
    o.Option(
        "map", "run it once for each of these inputs: a name of this notebook, or a file", metavar="INPUTS"
    ),
    o.Option("run_id", "with --map: go on with the map of this id", metavar="ID"),
    _switch("--panel", "with --map: in a panel with a Stop button, and the kernel stays free"),
    *(o.PERSONA, o.ARGS, o.TIMEOUT, o.RECORD, o.RETRY),
    example="%run_tool NAME key=value …; %vault lists the tools",
)
_add(
    "%trace_last_error",
    "Show the newest failure on record: message first, libraries' frames folded.",
    "Python twin: hk.last_error(name), .to_notebook(file), .to_markdown()",
    *(_TOOL, o.PERSONA_FILTER),
    o.Option("frames", "only the N innermost frames", int, metavar="N"),
    _switch("--locals", "with the local variables, while the run's worker is kept"),
    *(o.NOTEBOOK, o.MARKDOWN),
)
_add(
    "%post_mortem",
    "Look into the newest failure while its worker is kept: frames and locals.\n"
    'Its value can be asked on: pm = %post_mortem, then pm.eval("len(rows)"), pm.source(), pm.console().',
    "Python twin: hk.last_error(name).post_mortem()",
    *(_TOOL, o.PERSONA_FILTER),
)
_add(
    "%heal",
    "Look for a fix of the cell or the tool that failed last. Each is run in a worker. A tool's best patch is kept "
    "with your consent; of a cell, you see the new text.\nIts value is the report. With --panel, a tool is healed "
    "in a panel, and the kernel stays free.",
    "Python twin: hk.heal_cell(12), hk.heal(name, advisors=[…], auto=…, budget_s=…), hk.heal_panel(name)",
    _word("tool", "a tool, or the number of a cell's prompt, such as 12"),
    _switch("--apply", "put the fixed text into this cell, to be run next"),
    o.Option(
        "pick", "put another edit into this cell: the one with this number on the card", int, metavar="N"
    ),
    *(o.PERSONA, o.ADVISORS, o.BUDGET, o.AUTO, o.DRY_RUN, o.LOG_ID, o.LIVE, o.FILES),
    _switch("--later", "do not ask now; the patch waits as a request"),
    _switch("--panel", "open a panel instead; it begins when you press Start"),
    _switch("--dock", "with --panel: open it beside the notebook"),
)
_add(
    "%vault",
    "Look at the vault's tools and their revisions.\n\n"
    + _listed((name, what) for name, (_, _, what) in VAULT_COMMANDS.items()),
    "Python twin: hk.vault",
    _word("command", "one of the above (default: list)", default="list"),
    _word("words", "the tool, and revisions where they are taken", nargs="*", metavar="NAME"),
    o.PERSONA.replace(default=None),
    *_for("revert, rename, remove and restore", o.REASON),
    _switch("--removed", "for list: the removed tools instead"),
    _switch("--edit", "for show: put the code in a new cell to change it"),
    *_for("grant", *o.GRANTS, o.CLEAR),
)
_add(
    "%executions",
    "List executions, newest first; or their failures in groups, or each tool's sums.",
    "Python twin: hk.executions(status=…, tool=…), hk.log.groups(tool=…), hk.log.summary(tool=…)",
    *(*o.FILTERS, o.TRIALS, o.BEFORE, o.GROUP, o.SUMMARY, o.LIMIT),
    _switch("--dock", "open the live log beside the notebook instead"),
)
_add(
    "%summarize",
    "Summarise a text, a frame or an array of this notebook: counts, n-grams, entities; types, nulls, ranges.\n"
    "Its value is the summary. No model is asked.",
    'Examples: %summarize sales\n          %summarize "sales[sales.price > 2]" --top 3\n'
    "Python twin: hk.summarize(value, top=…)",
    _word("value", "a variable, or a Python expression, in double quotes where it has spaces", nargs=None),
    o.TOP,
    example="%summarize NAME, with a variable of this notebook",
)
_add(
    "%decide",
    "Answer a question about data by tools, chosen by metadata alone; returns the decision.\n"
    "Data are name=value, each value a frame of this notebook or the name of a view. The cell's body, if there is "
    "one, is the plan:\na list of choices, as Python or JSON.",
    'Example: %decide "Which region sells most?" sales=frame --tools by_region --chooser person\n'
    "Python twin: hk.decide(question, data={…}, tools=[…], chooser=…)",
    _word("question", "the question, in quotes; name=value data follow"),
    *(o.TOOLS, o.PLAN, o.CHOOSER, o.RESUME, o.SHARE, o.ALIAS, o.HEAL_TOOLS, o.ANALYSIS, o.PERSONA, o.TIMEOUT),
    _switch("--panel", "show it in a panel; with --chooser person, choose there"),
    example='%decide "Which region sells most?" sales=frame --chooser person',
)
_add(
    "%graph",
    "Show which tools go together: which calls which, which comes after which, whose result goes into which.\n"
    "Its value is that part of the graph, as Mermaid, SVG and text.",
    "Python twin: hk.graph, hk.graph.neighbours(tool), .path(a, b), .to_networkx(), .to_pandas()",
    _word("tool", "a tool; shows only the tools that it is used with"),
)
_add(
    "%suggest",
    "Suggest tools to call, for an intent or after other calls, and say why.\nIts value is the suggestions.",
    'Examples: %suggest "refund an order"\n          %suggest --after find_order\n'
    "Python twin: hk.suggest(intent, after=[…], k=5)",
    _word("intent", "what you want to do, in words and in quotes"),
    *(o.AFTER, o.SUGGESTED),
)
_add(
    "%views",
    "List the frames and arrays that tools were given or returned, newest first; or show one.",
    "Python twin: hk.views.list(), .load(name), .put(frame, name), .export(name, file), .remove(name)",
    _word("name", "a view's name: show its columns and first rows"),
    o.LIMIT,
)
_add(
    "%healkit",
    "Switch cards on or off, keep a cell as a tool, decide on patches, trust a database, or show the status.\n\n"
    + _listed(HEALKIT_COMMANDS.items()),
    "Python twin: hk.status(), hk.doctor(), hk.requests",
    _word("command", "one of the above (default: status)", default="status"),
    _word("name", "for keep: the tool's name; for requests: accept, decline or show; for trust: a database"),
    _word("number", "for requests: the request's number", metavar="ID"),
    o.Option("cell", "for keep: the cell with the prompt In [N]", int, metavar="N"),
    *_for("keep", o.PERSONA),
    *_for("keep and requests decline", o.REASON),
    _switch("--show", "for trust: say what the database would grant, and change nothing"),
    _switch("--remove", "for trust: trust it no longer"),
)
