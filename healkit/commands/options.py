"""Options of commands and magics, each a row.

A row has an option's name, type, help and default. `cli.command.typed` makes a typer option of it, and
`notebook.magic_parsers.MagicParser.take` an argparse one. So both faces read and explain it in the same way. What
several commands take is defined here, and the rest beside the command that takes it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from healkit.core.contracts.execution import STATUSES


@dataclasses.dataclass(frozen=True)
class Option:
    """Option of a command or a magic.

    name: what the value is called in code. help: without a capital and a full stop, which the faces add as they write.
    flag: where it is not `--name`. type: of one value; bool makes a switch. many: whether it may be given again.
    choices: the only values there are, in any case. positional: it has no flag. both: a switch that `--no-…` turns off.
    least, most: the smallest and the largest number. default_help: what stands for a default that is found when the
    command runs. read: makes what a command gets of what was typed, before anything is done.
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
        """Flag, as it is typed."""
        return self.flag or f"--{self.name.replace('_', '-')}"

    @property
    def text(self) -> str:
        """Help text, with what goes for every option that may be given again."""
        return f"{self.help}; may be repeated" if self.many else self.help

    def replace(self, **changes: Any) -> Option:
        """Return the option with another help, default or so, for one command."""
        return dataclasses.replace(self, **changes)


@dataclasses.dataclass(frozen=True)
class OptionGroup:
    """Options that are read together; a command gets what `read` makes of them by name."""

    rows: tuple[Option, ...]
    read: Callable[[Mapping[str, Any]], Any]


def word(about: str, metavar: str = "", **more: Any) -> Option:
    """Return the row of a word that is typed without a flag."""
    return Option("", about, metavar=metavar, positional=True, **more)


# The tool and how it is run.
PERSONA = Option("persona", "the persona that the tool is for", default="default")
ARGS = Option("args", "the arguments, a JSON object", metavar="JSON")
TIMEOUT = Option("timeout", "limit on wall time, instead of the tool's own", float, metavar="SECONDS")
RECORD = Option("record", "record this execution as a run folder", bool, default=False)
RETRY = Option(
    "retry", "try again, at most twice, where something outside did not answer", bool, default=False
)

# Saving it.
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

#: What a tool may do; `parsing.read_grants` reads them.
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
#: Which executions are meant; `parsing.read_filters` reads them.
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
SHARE = Option("share", "column whose distinct values the chooser is told", metavar="COLUMN", many=True)
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
    "calls to make where they are not on record: host.price for one, fs.*:5 for five; others are never made",
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
