"""Options of commands and magics, each a row.

A row holds an option's name, type, help and default. `cli.command.typed` turns it into a typer option,
`notebook.magic_parsers.MagicParser.take` into an argparse option. So both faces read and explain it in the same way.
Options that several commands share are defined here; all others are defined beside their command.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from healkit.core.contracts.execution import STATUSES


@dataclasses.dataclass(frozen=True)
class Option:
    """Option of a command or a magic.

    name: Name of the parameter in code.
    help: Text without a capital and a full stop; the faces add them.
    flag: Flag, if it is not `--name`.
    type: Type of one value; bool makes a switch.
    many: Whether the option may be repeated.
    choices: The only values that are allowed, in upper or lower case.
    positional: The value is typed without a flag.
    both: A switch that `--no-…` turns off.
    least, most: The smallest and the largest number.
    default_help: Description of a default that is determined when the command runs.
    read: Converts the typed value before the command runs.
    """

    name: str
    help: str
    type: type = str
    default: Any = None
    metavar: str = ""
    flag: str = ""
    many: bool = False
    choices: tuple[str, ...] = ()
    positional: bool = False
    both: bool = False
    least: float | None = None
    most: float | None = None
    default_help: str = ""
    read: Callable[[Any], Any] | None = None

    @property
    def long_flag(self) -> str:
        """Flag as the user types it."""
        return self.flag or f"--{self.name.replace('_', '-')}"

    @property
    def text(self) -> str:
        """Help text, with a note if the option may be repeated."""
        return f"{self.help}; may be repeated" if self.many else self.help

    def replace(self, **changes: Any) -> Option:
        """Return a copy of the option with other help, another default or the like, for one command."""
        return dataclasses.replace(self, **changes)


@dataclasses.dataclass(frozen=True)
class OptionGroup:
    """Options that are read together: `read` turns the typed values into one value for the command."""

    rows: tuple[Option, ...]
    read: Callable[[Mapping[str, Any]], Any]


def word(about: str, metavar: str = "", **more: Any) -> Option:
    """Return the row of a positional argument."""
    return Option("", about, metavar=metavar, positional=True, **more)


# The tool and how it runs.
PERSONA = Option("persona", "the persona that the tool is for", default="default")
ARGS = Option("args", "the arguments, a JSON object", metavar="JSON")
TIMEOUT = Option("timeout", "limit on wall time, instead of the tool's own", float, metavar="SECONDS")
RECORD = Option("record", "record this execution as a run folder", bool, default=False)
RETRY = Option(
    "retry", "try again, at most twice, where something outside did not answer", bool, default=False
)

# Saving the tool.
DESCRIPTION = Option("description", "description of the tool; by default its docstring", default="")
SQL = Option("sql", "the code is one SQL query with :name parameters", bool, default=False)
DRAFT = Option("draft", "save it even if it does not parse; a draft cannot be run", bool, default=False)
REASON = Option("reason", "the reason; kept in the history", default="")
EXAMPLE = Option(
    "example",
    'an example that each revision has to pass: {"arguments": {…}, "result": …}; by default its doctests',
    metavar="JSON",
    many=True,
)

#: Grants of a tool; `parsing.read_grants` reads them.
GRANTS = (
    Option("read", "a path it may read", metavar="PATH", many=True),
    Option("write", "a path it may read and write", metavar="PATH", many=True),
    Option("memory", "memory limit, instead of the configured one", int, metavar="MB"),
    Option("cpu", "limit on processor time, instead of the configured one", int, metavar="S"),
    Option("timeout", "limit on wall time, instead of the configured one", float, metavar="S"),
    Option(
        "packages", "installed packages that it sees, or none, or all (the default)", metavar="A,B", many=True
    ),
    Option("calls", "tools that it may call through mcp, as server.tool, or none", metavar="X.*", many=True),
    Option(
        "own_grants",
        "keep its grants when another tool calls it; by default it has those that its caller has too",
        metavar="yes|no",
    ),
)
CLEAR = Option("clear", "take back all grants that are not named", bool, default=False)

# The log.
TOOL_FILTER = Option("tool", "only this tool")
PERSONA_FILTER = Option("persona", "only this persona")
SINCE = Option("since", "from this time on: 2h, 3d, or a date or time in ISO 8601", metavar="TIME")
FINGERPRINT = Option("fingerprint", "only this failure; --group lists the fingerprints", metavar="F")
#: Filters of the log; `parsing.read_filters` reads them.
FILTERS = (
    Option("status", "only this status: SUCCESS, FAILURE, REFUSED or RUNNING", choices=STATUSES),
    TOOL_FILTER,
    PERSONA_FILTER,
    SINCE,
    Option("until", "before this time: 2h, 3d, or a date or time in ISO 8601", metavar="TIME"),
    Option("text", 'only tracebacks with these words, or "a phrase"', metavar="WORDS"),
    FINGERPRINT,
    Option("run", "only this run", metavar="RUN"),
    Option("origin", "only what was asked for so, such as mcp, magic or rerun", metavar="WHO"),
)
TRIALS = Option("tried", "include the trials and searches of healings", bool, default=False, flag="--trials")
BEFORE = Option("before", "only rows older than this one", int, metavar="ROW")
GROUP = Option("group", "group similar failures", bool, default=False)
SUMMARY = Option("summary", "runs, failures and durations of each tool", bool, default=False)
AFTER = Option("after", "a tool that was called before, the last one last", metavar="TOOL", many=True)
SUGGESTED = Option("limit", "number of suggestions at most", int, default=5, metavar="N")
LIMIT = Option("limit", "number of rows at most", int, default=20, metavar="N")
NOTEBOOK = Option("notebook", "write the newest one as a notebook that runs without healkit", metavar="FILE")
MARKDOWN = Option("markdown", "print the newest one as a bug report in Markdown", bool, default=False)

# Summaries.
TOP = Option("top", "number of entries in each list at most", int, default=10, metavar="N")

# Decisions.
TOOLS = Option(
    "tools",
    "tools that may be chosen; by default the group decide, or the built-in operations",
    metavar="A,B",
)
PLAN = Option("plan", "file with the choices, a JSON list", metavar="FILE")
RESUME = Option(
    "resume", "go on with a decision whose process was killed; of it, nothing else is needed", metavar="ID"
)
CHOOSER = Option("chooser", "who chooses where there is no plan: person or model", metavar="WHO")
SHARE = Option("share", "column whose distinct values the chooser sees", metavar="COLUMN", many=True)
ALIAS = Option("alias", "other names of an entity", metavar="NAME=A,B", many=True)
HEAL_TOOLS = Option(
    "heal", "heal a tool that fails, where a patch passes every check, and run it again", bool, default=False
)
ANALYSIS = Option("analysis", "let the configured model write an analysis of the result", bool, default=False)

# Healing.
ADVISORS = Option(
    "advisors",
    "advisors to ask, in this order: memory,peers,rules,search,model,person",
    metavar="WHO",
    flag="--with",
)
LIVE = Option(
    "live",
    "calls that may be made if they are not on record: host.price for one, fs.*:5 for five",
    metavar="CALLS",
)
FILES = Option(
    "files",
    "granted files that a patch may read in its checks: /data/rates.csv, or * for all; otherwise none",
    metavar="PATHS",
)
BUDGET = Option("budget", "time limit for the healing", float, metavar="SECONDS")
AUTO = Option("auto", "keep a fix with no regressions without asking", bool, default=False)
DRY_RUN = Option("dry_run", "show the best patch, save nothing", bool, default=False)
LOG_ID = Option("log_id", "log row of the failure to heal; by default the newest", int, metavar="ROW")
