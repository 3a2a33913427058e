"""Parsers of the magics' lines.

`words_of` splits a line into words, and the magic's own parser reads them. The parsers are data for three readers: the
magics themselves, `--help`, and completion.

IPython's `magic_arguments` prints a stack for a typing mistake, has no `--help`, and suggests no similar flag.
`MagicParser` is argparse with those three fixed.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping
from functools import cache
from typing import Any, NoReturn

from healkit import options as o
from healkit.errors import UsageInvalid
from healkit.parsing import split_words, unknown, unquote

_BRACES = re.compile(r"\{([A-Za-z_][\w.]*)\}")
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(?!=)(.*)", re.DOTALL)
#: JSON's words, for arguments that were copied from JSON.
_JSON_WORDS = {"true": True, "false": False, "null": None}
#: Subcommand → how many words it takes after it (least, most), and what it does.
VAULT_COMMANDS: dict[str, tuple[int, int, str]] = {
    "list": (0, 0, "all tools"),
    "show": (1, 1, "NAME[@REVISION]: code, arguments, grants"),
    "diff": (1, 3, "NAME [FROM [TO]]: by default the active revision against its parent"),
    "history": (1, 1, "NAME: every revision, with runs and failures"),
    "blame": (1, 1, "NAME: which revision brought the newest failure in, and which cured it"),
    "revert": (2, 2, "NAME REVISION: a new revision with that one's code"),
    "undo": (1, 1, "NAME: take back the active revision; a new one with the code that it was made from"),
    "grant": (1, 1, "NAME: change what it may do, with the flags --read to --clear; without any, show it"),
}
HEALKIT_COMMANDS: dict[str, str] = {
    "on": "show cards below cells in this notebook (the default)",
    "off": "show no cards; errors are raised as before",
    "keep": "NAME: save the cell that failed last (or --cell N) as a tool; the names it reads become arguments",
    "requests": "[accept|decline|show ID]: the patches that wait for your word, or a decision on one",
    "status": "which database, how many tools and executions, what is wrong if anything",
    "doctor": "what this machine can enforce, tried for real",
}
#: After `%healkit requests`.
REQUEST_COMMANDS = ("list", "show", "accept", "decline")


def expand(words: list[str], namespace: Mapping[str, Any]) -> list[str]:
    """Replace `{name}` in the words by that variable of the notebook, where there is one."""

    def value(match: re.Match[str]) -> str:
        return str(evaluate(match[1], namespace)) if match[1].split(".")[0] in namespace else match[0]

    return [_BRACES.sub(value, word) for word in words]


def take_assignments(words: list[str], namespace: Mapping[str, Any]) -> tuple[list[str], dict[str, Any]]:
    """Split off the `key=value` words as arguments, each value read as Python in the notebook."""
    rest, arguments = [], {}
    for word in words:
        match = None if word.startswith("-") else _ASSIGNMENT.fullmatch(word)
        if match is None:
            rest.append(word)
            continue
        name, expression = match[1], match[2]
        braced = _BRACES.fullmatch(expression)  # `n={n}`, as in other magics; a set of one is not JSON anyway
        try:
            arguments[name] = evaluate(braced[1] if braced else expression, namespace)
        except UsageInvalid as error:
            raise UsageInvalid(f"{name}: {error.message}", hint=error.hint) from None
    return rest, arguments


def evaluate(expression: str, namespace: Mapping[str, Any]) -> Any:
    """Return the value of a Python expression in the user's namespace; raise `UsageInvalid` where it has none."""
    try:
        code = compile(expression, "<argument>", "eval")
        return eval(code, {**_JSON_WORDS, **namespace})  # noqa: S307 - the user's own line, in the user's own kernel
    except NameError as error:
        raise UsageInvalid(f"{error}.", hint=f"For text, put it in quotes: '{expression}'") from None
    except SyntaxError:
        raise UsageInvalid(
            f"{expression!r} is not Python.", hint=f"For text, put it in quotes: {expression!r}"
        ) from None
    except Exception as error:  # noqa: BLE001 - whatever the user's expression raises, said on one line
        raise UsageInvalid(f"{expression} raised {type(error).__name__}: {error}.") from None


def words_of(line: str, namespace: Mapping[str, Any]) -> list[str]:
    """Split a magic's line into words; `key=value` ones stay as typed, in the others `{name}` is replaced."""
    words = split_words(line)
    return [
        w if _ASSIGNMENT.fullmatch(w) and not w.startswith("-") else expand([w], namespace)[0] for w in words
    ]


class HelpWanted(Exception):
    """`--help` was on the line; carries the text to print."""


class MagicParser(argparse.ArgumentParser):
    """argparse for one magic: errors are one line, and `--help` prints instead of leaving."""

    def __init__(self, name: str, description: str, epilog: str = "") -> None:
        super().__init__(
            prog=name,
            description=description,
            epilog=epilog,
            add_help=False,
            allow_abbrev=False,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        self.add_argument("--help", "-h", action="store_true", help="print this help")

    def take(self, *rows: o.Option, for_what: str = "") -> None:
        """Add rows of the option table; for_what: the subcommand that they belong to, such as `for grant: `."""
        for option in rows:
            about: dict[str, Any] = {"dest": option.name, "default": option.default}
            about["help"] = (
                for_what + option.text + (f" (default: {option.default})" if option.default else "")
            )
            if option.type is bool:
                about["action"] = "store_true"
            else:
                about |= {"metavar": option.metavar or None, "choices": option.choices or None}
                about["type"] = str.upper if option.choices else option.type
                about["action"] = "append" if option.many else "store"
            self.add_argument(option.long_flag, **about)

    @property
    def flags(self) -> list[str]:
        """Every long flag, for completion and near matches."""
        return [flag for action in self._actions for flag in action.option_strings if flag.startswith("--")]

    def flags_with_value(self) -> dict[str, list[str]]:
        """Return the flags that take a value, with the values they may take (empty: any)."""
        return {
            flag: [str(choice) for choice in action.choices or ()]
            for action in self._actions
            for flag in action.option_strings
            if action.nargs != 0
        }

    def error(self, message: str) -> NoReturn:
        """Raise `UsageInvalid`; called by argparse for what it cannot read."""
        raise UsageInvalid(f"{self.prog}: {message}.", hint=f"See {self.prog} --help.")

    def read(self, words: list[str]) -> argparse.Namespace:
        """Read the words as a namespace; raise `HelpWanted` or `UsageInvalid`."""
        if {"--help", "-h"} & set(words):
            raise HelpWanted(self.format_help())
        for word in words:
            if word.startswith("--") and len(word) > 2 and word.partition("=")[0] not in self.flags:
                raise unknown(f"flag of {self.prog} called", word.partition("=")[0], self.flags)
        return self.parse_args([unquote(word) for word in words])


@cache
def tool_parser() -> MagicParser:
    """Return the parser of `%%tool`."""
    parser = MagicParser(
        "%%tool",
        "Save this cell's body in the vault as a tool; it is not run here.\nThe tool is added, or patched when the "
        "vault has it with other code.",
        "Python twin: hk.vault.add(name, code), hk.vault.patch(name, code, reason=…)",
    )
    parser.add_argument("name", nargs="?", help="the tool's name; read off the code when left out")
    parser.take(o.PERSONA, o.DESCRIPTION, o.SQL, o.DRAFT, o.REASON, o.EXAMPLE)
    parser.add_argument("--run", "--args", metavar="JSON", help="run it at once with these arguments")
    parser.take(*o.GRANTS)
    return parser


@cache
def run_parser() -> MagicParser:
    """Return the parser of `%run_tool`."""
    parser = MagicParser(
        "%run_tool",
        "Run a tool in a restricted worker and return its value.\n"
        "Arguments are key=value, each value a Python expression of this notebook, or one JSON object.",
        "Examples: %run_tool fibonacci n=10\n          value = %run_tool fibonacci n=limit\n"
        "Python twin: hk.execute_tool(name, persona, arguments)",
    )
    parser.add_argument("name", help="the tool's name; key=value arguments follow")
    parser.take(o.PERSONA, o.ARGS, o.TIMEOUT, o.RECORD)
    return parser


@cache
def trace_parser() -> MagicParser:
    """Return the parser of `%trace_last_error`."""
    parser = MagicParser(
        "%trace_last_error",
        "Show the newest failure on record: message first, libraries' frames folded.",
        "Python twin: hk.last_error(name), .to_notebook(file), .to_markdown()",
    )
    parser.add_argument("tool", nargs="?", help="only of this tool")
    parser.take(o.PERSONA_FILTER)
    parser.add_argument("--frames", type=int, metavar="N", help="only the N innermost frames")
    parser.add_argument(
        "--locals", action="store_true", help="with the local variables, while the run's worker is kept"
    )
    parser.take(o.NOTEBOOK, o.MARKDOWN)
    return parser


@cache
def post_mortem_parser() -> MagicParser:
    """Return the parser of `%post_mortem`."""
    parser = MagicParser(
        "%post_mortem",
        "Look into the newest failure while its worker is kept: frames and locals.\n"
        'Its value can be asked on: pm = %post_mortem, then pm.eval("len(rows)"), pm.source(), pm.console().',
        "Python twin: hk.last_error(name).post_mortem()",
    )
    parser.add_argument("tool", nargs="?", help="only of this tool")
    parser.take(o.PERSONA_FILTER)
    return parser


@cache
def heal_parser() -> MagicParser:
    """Return the parser of `%heal`."""
    parser = MagicParser(
        "%heal",
        "Look for a patch of a tool that failed, hold each against what is known of the tool, and keep the best with "
        "your consent.\nIts value is the report. With --panel all of it is done in a panel, and the kernel stays free.",
        "Python twin: hk.heal(name, advisors=[…], auto=…, budget_s=…), hk.heal_panel(name)",
    )
    parser.add_argument("tool", nargs="?", help="the tool (default: the one that failed last)")
    parser.take(o.PERSONA, o.ADVISORS, o.BUDGET, o.AUTO, o.DRY_RUN, o.LOG_ID)
    parser.add_argument("--later", action="store_true", help="do not ask now; the patch waits as a request")
    parser.add_argument(
        "--panel", action="store_true", help="open a panel instead; it begins when you press Start"
    )
    parser.add_argument("--dock", action="store_true", help="with --panel: open it beside the notebook")
    return parser


@cache
def vault_parser() -> MagicParser:
    """Return the parser of `%vault`."""
    listed = "\n".join(f"  {name:<8} {entry[2]}" for name, entry in VAULT_COMMANDS.items())
    parser = MagicParser(
        "%vault", f"Look at the vault's tools and their revisions.\n\n{listed}", "Python twin: hk.vault"
    )
    parser.add_argument("command", help="one of the above")
    parser.add_argument(
        "words", nargs="*", metavar="NAME", help="the tool, and revisions where they are taken"
    )
    parser.take(o.PERSONA.replace(default=None))
    parser.take(o.REASON, for_what="for revert: ")
    parser.add_argument(
        "--edit", action="store_true", help="for show: put the code in a new cell to change it"
    )
    parser.take(*o.GRANTS, o.CLEAR, for_what="for grant: ")
    return parser


@cache
def executions_parser() -> MagicParser:
    """Return the parser of `%executions`."""
    parser = MagicParser(
        "%executions",
        "List executions, newest first; or their failures in groups, or each tool's sums.",
        "Python twin: hk.executions(status=…, tool=…), hk.log.groups(tool=…), hk.log.summary(tool=…)",
    )
    parser.take(*o.FILTERS, o.TRIALS, o.BEFORE, o.GROUP, o.SUMMARY, o.LIMIT)
    parser.add_argument("--dock", action="store_true", help="open the live log beside the notebook instead")
    return parser


@cache
def healkit_parser() -> MagicParser:
    """Return the parser of `%healkit`."""
    listed = "\n".join(f"  {name:<8} {what}" for name, what in HEALKIT_COMMANDS.items())
    parser = MagicParser(
        "%healkit",
        "Switch healkit's cards on or off, keep a cell as a tool, decide on patches, or ask how it is.\n\n"
        + listed,
        "Python twin: hk.status(), hk.doctor(), hk.requests",
    )
    parser.add_argument("command", nargs="?", default="status", help="one of the above (default: status)")
    parser.add_argument(
        "name", nargs="?", help="for keep: the tool's name; for requests: accept, decline or show"
    )
    parser.add_argument("number", nargs="?", metavar="ID", help="for requests: the request's number")
    parser.add_argument("--cell", type=int, metavar="N", help="for keep: the cell with the prompt In [N]")
    parser.take(o.PERSONA, for_what="for keep: ")
    parser.take(o.REASON, for_what="for keep and requests decline: ")
    return parser


#: The magic's name → its parser.
PARSERS = {
    "tool": tool_parser,
    "run_tool": run_parser,
    "trace_last_error": trace_parser,
    "post_mortem": post_mortem_parser,
    "heal": heal_parser,
    "vault": vault_parser,
    "executions": executions_parser,
    "healkit": healkit_parser,
}
