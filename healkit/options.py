"""Options that the command line and the magics have in common.

Each is a row here: its name, type, help and default. `cli.command.typed` makes a typer option of it, and
`notebook.magic_parsers.MagicParser.take` an argparse one. So both faces read and explain it in the same way. Options
that only one face has are defined there.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from healkit.contracts.filters import STATUSES


@dataclasses.dataclass(frozen=True)
class Option:
    """Option of a command or a magic.

    name: what the value is called in code. help: without a capital and a full stop, which the faces add as they write.
    flag: where it is not `--name`. type: of one value; bool makes a switch. many: whether it may be given again.
    choices: the only values there are, in any case.
    """

    name: str
    help: str
    type: type = str
    default: Any = None
    metavar: str = ""
    flag: str = ""
    many: bool = False
    choices: tuple[str, ...] = ()

    @property
    def long_flag(self) -> str:
        """Flag, as it is typed."""
        return self.flag or f"--{self.name.replace('_', '-')}"

    @property
    def text(self) -> str:
        """Help text, with what goes for every option that may be given again."""
        return f"{self.help}; may be repeated" if self.many else self.help

    def replace(self, **changes: Any) -> Option:
        """Return the option with another help, default or so, for one command."""
        return dataclasses.replace(self, **changes)


# The tool and how it is run.
PERSONA = Option("persona", "whom the tool is for", default="default")
ARGS = Option("args", "the arguments, a JSON object", metavar="JSON")
TIMEOUT = Option("timeout", "wall time, instead of the tool's own", float, metavar="SECONDS")
RECORD = Option("record", "write a run folder of it", bool, default=False)

# Saving it.
DESCRIPTION = Option("description", "what it is for; by default its docstring", default="")
SQL = Option("sql", "the code is one SQL query with :name parameters", bool, default=False)
DRAFT = Option("draft", "keep it even if it does not parse; it cannot be run", bool, default=False)
REASON = Option("reason", "why; kept in the history", default="")
EXAMPLE = Option(
    "example",
    'what a call has to do: {"arguments": {…}, "result": …}, by default its doctest lines',
    metavar="JSON",
    many=True,
)

#: What a tool may do; `parsing.read_grants` reads them.
GRANTS = (
    Option("read", "a path it may read", metavar="PATH", many=True),
    Option("write", "a path it may read and write", metavar="PATH", many=True),
    Option("memory", "memory, instead of the configured", int, metavar="MB"),
    Option("cpu", "processor time; the same", int, metavar="S"),
    Option("timeout", "wall time; the same", float, metavar="S"),
    Option(
        "packages", "the installed packages it sees, or none, or all (the default)", metavar="A,B", many=True
    ),
    Option("calls", "what it may call through mcp, as server.tool, or none", metavar="X.*", many=True),
    Option("python", "another interpreter to run it in", metavar="PATH"),
)
CLEAR = Option("clear", "take back all that are not named", bool, default=False)

# The log.
TOOL_FILTER = Option("tool", "only of this tool")
PERSONA_FILTER = Option("persona", "only of this persona")
SINCE = Option("since", "2h, 3d, or a date or time in ISO 8601", metavar="TIME")
FINGERPRINT = Option("fingerprint", "only of this failure; --group lists them", metavar="F")
#: Which executions are meant; `parsing.read_filters` reads them.
FILTERS = (
    Option("status", "how they ended: SUCCESS, FAILURE or RUNNING", choices=STATUSES),
    TOOL_FILTER,
    PERSONA_FILTER,
    SINCE,
    Option("until", "the same; exclusive", metavar="TIME"),
    Option("text", 'only with these words, or "a phrase", in the traceback', metavar="WORDS"),
    FINGERPRINT,
    Option("run", "only of this run", metavar="RUN"),
)
TRIALS = Option("tried", "also a healing's trials and searches", bool, default=False, flag="--trials")
BEFORE = Option("before", "only older than that row", int, metavar="ROW")
GROUP = Option("group", "failures grouped by what went wrong", bool, default=False)
SUMMARY = Option("summary", "runs, failures and durations of each tool", bool, default=False)
LIMIT = Option("limit", "at most so many rows", int, default=20, metavar="N")
NOTEBOOK = Option("notebook", "write the newest one as a notebook that runs without healkit", metavar="FILE")
MARKDOWN = Option("markdown", "print the newest one as a bug report in Markdown", bool, default=False)

# Healing.
ADVISORS = Option(
    "advisors", "who is asked, in this order: peers,rules,search,model,person", metavar="WHO", flag="--with"
)
BUDGET = Option("budget", "seconds for all of it", float, metavar="SECONDS")
AUTO = Option("auto", "keep a cure without asking", bool, default=False)
DRY_RUN = Option("dry_run", "show the best patch, keep nothing", bool, default=False)
LOG_ID = Option("log_id", "the failure that is meant", int, metavar="ROW")
