"""Everything healkit raises, and the closed catalogue of codes.

HealkitError
├── ConfigError                    CONFIG_INVALID
│   └── RulesInvalid               RULES_INVALID      (a sanitiser rule of the user's own that cannot be used)
├── UsageInvalid                   USAGE_INVALID
├── DatabaseError                  DB_ERROR
│   ├── DatabaseMissing            DB_MISSING
│   ├── DatabaseLocked             DB_LOCKED
│   ├── DatabaseReadOnly           DB_READONLY
│   ├── DatabaseFull               DB_FULL
│   ├── DatabaseCorrupt            DB_CORRUPT
│   └── DatabaseNewer              DB_NEWER
├── VaultError                     VAULT_ERROR
│   ├── ToolNotFound               TOOL_NOT_FOUND
│   ├── PersonaNotFound            PERSONA_NOT_FOUND
│   ├── RevisionNotFound           REVISION_NOT_FOUND
│   ├── ToolExists                 TOOL_EXISTS
│   ├── RevisionConflict           REVISION_CONFLICT
│   ├── CodeDoesNotParse           CODE_SYNTAX
│   ├── ToolShapeError             TOOL_SHAPE
│   ├── SqlNotAllowed              SQL_NOT_ALLOWED
│   ├── SchemaInvalid              SCHEMA_INVALID
│   └── VaultTampered              VAULT_TAMPERED
├── ArgumentsInvalid               ARGUMENTS_INVALID
├── IsolationUnavailable           ISOLATION_UNAVAILABLE
├── WorkerError                    WORKER_ERROR
│   └── WorkerStartFailed          WORKER_START_FAILED
├── LogFileError                   LOG_FILE_ERROR     (an export, import or archive of the log)
│   └── ArchiveBusy                ARCHIVE_BUSY
├── PlotUnavailable                PLOT_UNAVAILABLE   (matplotlib is not installed)
├── PostMortemError                POST_MORTEM_ERROR  (a question about a failed run that has no answer)
│   └── PostMortemGone             POST_MORTEM_GONE
├── RunFolderError                 RUN_FOLDER_ERROR   (a run's record that cannot be begun)
│   ├── RunExists                  RUN_EXISTS
│   ├── RunLocked                  RUN_LOCKED
│   └── RunNotFound                RUN_NOT_FOUND
├── RunNotAllowed                  RUN_NOT_ALLOWED    (a tool that is not on the run's list)
├── PolicyHalted                   POLICY_HALT        (a run that its policy has ended)
├── HealError                      HEAL_ERROR         (a healing that cannot be begun)
│   └── BudgetSpent                BUDGET_SPENT       (its time is up, or it was stopped)
├── CallRefused                    CALL_REFUSED       (a worker's call that the host will not make)
├── CallTimedOut                   CALL_TIMEOUT
├── TraceInvalid                   TRACE_INVALID
│   └── BatchTooLarge              BATCH_TOO_LARGE
├── RequestRefused                 REQUEST_REFUSED    (by the collector's server; one of REQUEST_CODES)
├── McpError                       MCP_ERROR          (an MCP server's answer that is no value)
│   └── McpUnavailable             MCP_UNAVAILABLE
└── ToolExecutionError             the failure's own code, one of TOOL_CODES

Constructors only store. A message names the value, the place and the next step.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from healkit.contracts.failure import Failure

#: How an execution that started can end without a value: code → what it means.
TOOL_CODES: dict[str, str] = {
    "TOOL_EXCEPTION": "the tool raised an exception",
    "TOOL_TIMEOUT": "the tool was still running when its time was up",
    "TOOL_CPU_LIMIT": "the tool used up its processor time",
    "TOOL_OUT_OF_MEMORY": "the tool asked for more memory than it may have",
    "TOOL_OUTPUT_LIMIT": "the tool printed or displayed more than it may",
    "TOOL_DISK_LIMIT": "the tool filled its scratch folder beyond what it may",
    "TOOL_RESULT_TOO_LARGE": "the tool returned more than it may",
    "TOOL_CRASHED": "the tool's process died of a signal",
    "TOOL_EXITED": "the tool's process ended without finishing",
    "TOOL_KILLED": "the run was stopped by the user",
    "TOOL_PROTOCOL": "the tool's process sent something that is not part of the protocol",
    "WORKER_LOST": "the tool's process was lost through no fault of its own",
    "HOST_DIED": "the process that had started the run died",
    "SQL_ERROR": "the database refused the statement",
}

#: Why the collector's server turns a request away: code → HTTP status (RFC 9110, RFC 6585).
REQUEST_CODES: dict[str, int] = {
    "BODY_INVALID": 400,
    "CONTENT_TYPE": 400,
    "QUERY_INVALID": 400,
    "TOKEN_MISSING": 401,
    "TOKEN_WRONG": 403,
    "FORBIDDEN": 403,
    "NOT_FOUND": 404,
    "METHOD_NOT_ALLOWED": 405,
    "BODY_TOO_LARGE": 413,
    "BATCH_TOO_LARGE": 413,
    "CONTENT_ENCODING": 415,
    "RATE_LIMITED": 429,
    "INTERNAL": 500,
    "OVERLOADED": 503,
    "STORE_UNAVAILABLE": 503,
}


def near_misses(name: str, known: Iterable[str], limit: int = 3) -> list[str]:
    """Up to `limit` of the known names that look like `name`, best first."""
    by_folded = {candidate.casefold(): candidate for candidate in known}
    found = difflib.get_close_matches(name.casefold(), by_folded, n=limit, cutoff=0.6)
    return [by_folded[match] for match in found]


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """` Did you mean 'fibonacci'?`, or an empty text when nothing is near."""
    found = near_misses(name, known)
    return f" Did you mean {' or '.join(map(repr, found))}?" if found else ""


class HealkitError(Exception):
    """Base of all errors that healkit raises on purpose.

    `code` is stable and machine-readable; `hint` is the next step; `log_id` is the ExecutionLog row that
    holds the call, where there was one.
    """

    code: str = "HEALKIT_ERROR"

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.log_id: int | None = None

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".rstrip()

    def _render_traceback_(self) -> list[str]:
        """One line for a notebook; called by IPython instead of printing our stack (the log holds the rest)."""
        return [f"{type(self).__name__} [{self.code}]: {self}"]


class ConfigError(HealkitError):
    """A setting that healkit cannot work with."""

    code = "CONFIG_INVALID"


class RulesInvalid(ConfigError):
    """A custom rule of the sanitiser, or a pattern of its allow-list, that cannot be used."""

    code = "RULES_INVALID"


class UsageInvalid(HealkitError):
    """A line that cannot be read: an unknown flag or subcommand, a quote that never closes."""

    code = "USAGE_INVALID"


class DatabaseError(HealkitError):
    """The database did not do what was asked; every backend exception arrives as one of these."""

    code = "DB_ERROR"


class DatabaseMissing(DatabaseError):
    """There is no database at that place, and none may be made there."""

    code = "DB_MISSING"


class DatabaseLocked(DatabaseError):
    """Another connection holds the write lock for longer than healkit waits."""

    code = "DB_LOCKED"


class DatabaseReadOnly(DatabaseError):
    """The file, its folder or the server lets healkit read only."""

    code = "DB_READONLY"


class DatabaseFull(DatabaseError):
    """The disk (or the database's own size limit) is full."""

    code = "DB_FULL"


class DatabaseCorrupt(DatabaseError):
    """The file is not a database, or is damaged."""

    code = "DB_CORRUPT"


class DatabaseNewer(DatabaseError):
    """A newer healkit wrote this database; this one leaves it untouched."""

    code = "DB_NEWER"


class VaultError(HealkitError):
    """The vault cannot do what was asked."""

    code = "VAULT_ERROR"


class ToolNotFound(VaultError):
    """No tool of that name is in the vault."""

    code = "TOOL_NOT_FOUND"


class PersonaNotFound(VaultError):
    """The tool exists, but neither for that persona nor for `default`."""

    code = "PERSONA_NOT_FOUND"


class RevisionNotFound(VaultError):
    """The tool has no revision of that number."""

    code = "REVISION_NOT_FOUND"


class ToolExists(VaultError):
    """A tool of that name and persona is there already, with other code or other grants."""

    code = "TOOL_EXISTS"


class RevisionConflict(VaultError):
    """Somebody else patched the same parent first; both sides are in the message, and both are kept."""

    code = "REVISION_CONFLICT"


class CodeDoesNotParse(VaultError):
    """Code that Python's parser refuses; `lineno` and `offset` count from 1."""

    code = "CODE_SYNTAX"

    def __init__(self, message: str, *, hint: str = "", lineno: int = 0, offset: int = 0) -> None:
        super().__init__(message, hint=hint)
        self.lineno = lineno
        self.offset = offset


class ToolShapeError(VaultError):
    """Code that parses but is none of the kinds of tool that healkit runs."""

    code = "TOOL_SHAPE"


class SqlNotAllowed(VaultError):
    """A SQL tool that is not exactly one statement that only reads."""

    code = "SQL_NOT_ALLOWED"


class SchemaInvalid(VaultError):
    """An input schema that is not a JSON Schema of an object."""

    code = "SCHEMA_INVALID"


class VaultTampered(VaultError):
    """Stored code no longer has the hash it is stored under; nothing of it is run."""

    code = "VAULT_TAMPERED"


class ArgumentsInvalid(HealkitError):
    """Arguments that miss the tool's input schema; no worker was touched."""

    code = "ARGUMENTS_INVALID"


class IsolationUnavailable(HealkitError):
    """This machine cannot enforce the isolation that was asked for, so nothing is run."""

    code = "ISOLATION_UNAVAILABLE"


class WorkerError(HealkitError):
    """A worker could not do its part; the tool itself is not to blame."""

    code = "WORKER_ERROR"


class WorkerStartFailed(WorkerError):
    """No worker was ready within its start time."""

    code = "WORKER_START_FAILED"


class LogFileError(HealkitError):
    """A file of executions that cannot be written, or read as one."""

    code = "LOG_FILE_ERROR"


class ArchiveBusy(LogFileError):
    """Another process is archiving into that folder at this moment."""

    code = "ARCHIVE_BUSY"


class PlotUnavailable(HealkitError):
    """A plot that was asked for where the extra that draws is not installed."""

    code = "PLOT_UNAVAILABLE"


class PostMortemError(HealkitError):
    """A question about a failed run that cannot be answered: no such frame, no console here."""

    code = "POST_MORTEM_ERROR"


class PostMortemGone(PostMortemError):
    """The failed run's worker is not there to be asked: it was never kept, or has gone since."""

    code = "POST_MORTEM_GONE"


class RunFolderError(HealkitError):
    """A run folder that cannot be made or used as asked."""

    code = "RUN_FOLDER_ERROR"


class RunExists(RunFolderError):
    """A run of that id has been written already; a run is never written twice."""

    code = "RUN_EXISTS"


class RunLocked(RunFolderError):
    """Another writer is at that run at this moment."""

    code = "RUN_LOCKED"


class RunNotFound(RunFolderError):
    """There is no run folder of that name."""

    code = "RUN_NOT_FOUND"


class RunNotAllowed(HealkitError):
    """A tool that is not on the run's list of tools; nothing was run."""

    code = "RUN_NOT_ALLOWED"


class PolicyHalted(HealkitError):
    """A step of a run that its policy has ended; nothing was run."""

    code = "POLICY_HALT"


class HealError(HealkitError):
    """A healing that cannot be begun or go on: nothing failed, or the tool may not be searched on."""

    code = "HEAL_ERROR"


class BudgetSpent(HealError):
    """The healing's time is up, or it was stopped; what was found until then stands."""

    code = "BUDGET_SPENT"


class CallRefused(HealkitError):
    """A call through the bridge that is unknown, not allowed, or over its budget."""

    code = "CALL_REFUSED"


class CallTimedOut(HealkitError):
    """A call through the bridge that had no answer within its time."""

    code = "CALL_TIMEOUT"


class TraceInvalid(HealkitError):
    """A trace from elsewhere that is not in the wire form."""

    code = "TRACE_INVALID"


class BatchTooLarge(TraceInvalid):
    """More traces in one request than are taken at once."""

    code = "BATCH_TOO_LARGE"


class RequestRefused(HealkitError):
    """A request that the collector's server turns away; `retry_after_s` is when another try may do better."""

    code = "REQUEST_REFUSED"

    def __init__(
        self, code: str, message: str, *, hint: str = "", retry_after_s: float | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.code = code  # one of REQUEST_CODES
        self.retry_after_s = retry_after_s

    @property
    def status(self) -> int:
        """The HTTP status to answer with."""
        return REQUEST_CODES.get(self.code, 400)


class McpError(HealkitError):
    """An MCP server answered with an error, or with what the protocol does not allow."""

    code = "MCP_ERROR"


class McpUnavailable(McpError):
    """An MCP server that cannot be started or reached, or that went away over a call."""

    code = "MCP_UNAVAILABLE"


class ToolExecutionError(HealkitError):
    """The tool ran and failed: `failure` is its traceback as data, `log_id` its row in the ExecutionLog."""

    def __init__(self, label: str, failure: Failure, log_id: int | None, trace_id: str) -> None:
        super().__init__(f"{label} failed: {failure.summary}", hint=failure.hint)
        self.code = failure.code  # how the execution ended
        self.label = label
        self.failure = failure
        self.log_id = log_id
        self.trace_id = trace_id

    @property
    def ename(self) -> str:
        """The type name of the tool's exception."""
        return self.failure.ename

    @property
    def evalue(self) -> str:
        """The message of the tool's exception."""
        return self.failure.evalue

    @property
    def frames(self) -> list[Any]:
        """The traceback's frames, outermost first."""
        return list(self.failure.frames)

    def _render_traceback_(self) -> list[str]:
        where = f"log row {self.log_id}" if self.log_id is not None else f"trace {self.trace_id}"
        lines = [*self.failure.traceback.splitlines(), f"{self.label} failed [{self.code}], {where}."]
        return [*lines, self.hint] if self.hint else lines
