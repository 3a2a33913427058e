"""Errors of healkit, and the complete catalogue of codes.

HealkitError
├── ConfigError                    CONFIG_INVALID
│   └── RulesInvalid               RULES_INVALID      (a sanitiser rule of the user that is not valid)
├── UsageInvalid                   USAGE_INVALID
├── DatabaseError                  DB_ERROR
│   ├── DatabaseMissing            DB_MISSING
│   ├── DatabaseLocked             DB_LOCKED
│   ├── DatabaseReadOnly           DB_READONLY
│   ├── DatabaseFull               DB_FULL
│   ├── DatabaseCorrupt            DB_CORRUPT
│   ├── DatabaseNewer              DB_NEWER
│   └── DatabaseNotTrusted         DB_NOT_TRUSTED
├── VaultError                     VAULT_ERROR
│   ├── ToolNotFound               TOOL_NOT_FOUND
│   │   └── ToolRemoved            TOOL_REMOVED
│   ├── PersonaNotFound            PERSONA_NOT_FOUND
│   ├── RevisionNotFound           REVISION_NOT_FOUND
│   ├── ToolExists                 TOOL_EXISTS
│   ├── RevisionConflict           REVISION_CONFLICT
│   ├── FixUndone                  FIX_UNDONE
│   ├── CodeDoesNotParse           CODE_SYNTAX
│   ├── ToolShapeError             TOOL_SHAPE
│   ├── SqlNotAllowed              SQL_NOT_ALLOWED
│   ├── SchemaInvalid              SCHEMA_INVALID
│   ├── ExamplesInvalid            EXAMPLES_INVALID
│   ├── PatchRequestNotFound       PATCH_REQUEST_NOT_FOUND
│   ├── PatchRequestDecided        PATCH_REQUEST_DECIDED
│   └── VaultTampered              VAULT_TAMPERED
├── ViewError                      VIEW_ERROR         (a data view that cannot be stored)
│   ├── ViewNotFound               VIEW_NOT_FOUND
│   ├── ViewGone                   VIEW_GONE          (evicted or removed)
│   └── ViewChanged                VIEW_CHANGED       (its file no longer has the stored content)
├── ArgumentsInvalid               ARGUMENTS_INVALID
├── InternalError                  INTERNAL_ERROR     (an error in healkit itself)
├── IsolationUnavailable           ISOLATION_UNAVAILABLE
├── WorkerError                    WORKER_ERROR
│   └── WorkerStartFailed          WORKER_START_FAILED
│       ├── WorkerNotRestricted    WORKER_NOT_RESTRICTED
│       └── WorkerUnusable         WORKER_UNUSABLE    (a granted package or path is missing)
├── LogFileError                   LOG_FILE_ERROR     (an export, import or archive of the log)
│   └── ArchiveBusy                ARCHIVE_BUSY
├── AuditError                     AUDIT_ERROR
│   ├── AuditEntryInvalid          AUDIT_ENTRY_INVALID
│   └── AuditNotFound              AUDIT_NOT_FOUND
├── PlotUnavailable                PLOT_UNAVAILABLE   (matplotlib is not installed)
├── PostMortemError                POST_MORTEM_ERROR  (a question about a failed run that has no answer)
│   └── PostMortemGone             POST_MORTEM_GONE
├── RunFolderError                 RUN_FOLDER_ERROR   (a run folder that cannot be used)
│   ├── RunExists                  RUN_EXISTS
│   ├── RunLocked                  RUN_LOCKED
│   ├── RunNotFound                RUN_NOT_FOUND
│   └── EvidenceChanged            EVIDENCE_CHANGED   (a file that differs from the run's record)
├── RunNotAllowed                  RUN_NOT_ALLOWED    (a tool outside the run's list of tools)
├── PolicyHalted                   POLICY_HALT        (a run that its policy stopped)
├── HealError                      HEAL_ERROR         (a healing that cannot start)
│   └── BudgetSpent                BUDGET_SPENT       (out of time, or stopped)
├── ModelError                     MODEL_ERROR        (a language model's server, or an unusable answer)
│   ├── ModelKeyRefused            MODEL_KEY_REFUSED
│   ├── ModelUnavailable           MODEL_UNAVAILABLE
│   ├── ModelInputTooLarge         MODEL_INPUT_TOO_LARGE
│   └── ModelRefused               MODEL_REFUSED
├── CallRefused                    CALL_REFUSED       (a worker's call that the host refuses)
├── CallTimedOut                   CALL_TIMEOUT
├── CallUnanswered                 CALL_UNANSWERED    (in progress when its worker ended)
├── CallNotOnRecord                CALL_NOT_ON_RECORD (in a trial or a replay)
├── TraceInvalid                   TRACE_INVALID
│   └── BatchTooLarge              BATCH_TOO_LARGE
├── RequestRefused                 REQUEST_REFUSED    (by the collector's server; one of REQUEST_CODES)
├── McpError                       MCP_ERROR          (an error, or an invalid answer, of an MCP server)
│   └── McpUnavailable             MCP_UNAVAILABLE
│       └── McpMissing             MCP_MISSING        (its program is missing or not executable)
├── AgentRefused                   AGENT_REFUSED      (by healkit's own MCP server)
│   ├── ApprovalNeeded             APPROVAL_NEEDED
│   └── AgentLimit                 AGENT_LIMIT
└── ToolExecutionError             the failure's code, one of TOOL_CODES

Constructors only store their arguments. A message names the value, the place and the next step.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from functools import cache
from typing import Any

from healkit.plain_text import untick, visible


class HealkitError(Exception):
    """Base of all errors that healkit raises on purpose.

    code: Stable and machine-readable.
    hint: The next step.
    log_id: Row of the call in the ExecutionLog, if any.

    Backticks around code are removed, because tracebacks and terminals show them literally.
    """

    code: str = "HEALKIT_ERROR"

    def __init__(self, message: str, *, hint: str = "") -> None:
        self.message = untick(message)
        self.hint = untick(hint)
        super().__init__(self.message)
        self.log_id: int | None = None

    def __str__(self) -> str:
        return visible(f"{self.message} {self.hint}".rstrip())

    def _render_traceback_(self) -> list[str]:
        """Return one line for a notebook; IPython calls this instead of printing the stack, which the log holds."""
        return [f"{type(self).__name__}: {self}"]


class ConfigError(HealkitError):
    """A setting with a value that healkit cannot use."""

    code = "CONFIG_INVALID"


class RulesInvalid(ConfigError):
    """A custom rule of the sanitiser, or a pattern of its allow-list, is not valid."""

    code = "RULES_INVALID"


class UsageInvalid(HealkitError):
    """Invalid input: an unknown flag or subcommand, an unclosed quote, a wrong value."""

    code = "USAGE_INVALID"

    def _render_traceback_(self) -> list[str]:
        """Return the message alone, without the name of the exception: the user typed a line."""
        return [str(self)]


# The store: database, vault, views, files of the log, audit.


class DatabaseError(HealkitError):
    """A database operation failed; all exceptions of the backend are mapped to this class."""

    code = "DB_ERROR"


class DatabaseMissing(DatabaseError):
    """The database does not exist and may not be created."""

    code = "DB_MISSING"


class DatabaseLocked(DatabaseError):
    """Another connection held the write lock for too long."""

    code = "DB_LOCKED"


class DatabaseReadOnly(DatabaseError):
    """The database is read-only, because of its file, its folder or the server."""

    code = "DB_READONLY"


class DatabaseFull(DatabaseError):
    """The disk is full, or the database has reached its size limit."""

    code = "DB_FULL"


class DatabaseCorrupt(DatabaseError):
    """The file is not a database, or it is damaged."""

    code = "DB_CORRUPT"


class DatabaseNewer(DatabaseError):
    """A newer version of healkit wrote this database; it is not changed."""

    code = "DB_NEWER"


class DatabaseNotTrusted(DatabaseError):
    """The database is not trusted, and the operation needs a trusted one."""

    code = "DB_NOT_TRUSTED"


class VaultError(HealkitError):
    """An operation that the vault cannot do."""

    code = "VAULT_ERROR"


class ToolNotFound(VaultError):
    """The vault has no tool of that name."""

    code = "TOOL_NOT_FOUND"


class PersonaNotFound(VaultError):
    """The tool exists, but neither for that persona nor for `default`."""

    code = "PERSONA_NOT_FOUND"


class ToolRemoved(ToolNotFound):
    """The tool was removed from the vault; its revisions and executions are kept.

    logged: Whether its owner allowed its arguments in the log.
    """

    code = "TOOL_REMOVED"

    def __init__(self, message: str, *, hint: str = "", logged: bool = True) -> None:
        super().__init__(message, hint=hint)
        self.logged = logged


class RevisionNotFound(VaultError):
    """The tool has no revision with that number."""

    code = "REVISION_NOT_FOUND"


class ToolExists(VaultError):
    """Another tool has, or had, that name."""

    code = "TOOL_EXISTS"


class RevisionConflict(VaultError):
    """Another patch changed the same revision first; the message shows both, and both are kept."""

    code = "REVISION_CONFLICT"


class FixUndone(VaultError):
    """Saving this older code again would undo a fix that was saved since."""

    code = "FIX_UNDONE"


class CodeDoesNotParse(VaultError):
    """Code with a syntax error; `lineno` and `offset` count from 1."""

    code = "CODE_SYNTAX"

    def __init__(self, message: str, *, hint: str = "", lineno: int = 0, offset: int = 0) -> None:
        super().__init__(message, hint=hint)
        self.lineno = lineno
        self.offset = offset


class ToolShapeError(VaultError):
    """Code that parses but does not define a tool that healkit can run."""

    code = "TOOL_SHAPE"


class SqlNotAllowed(VaultError):
    """A SQL tool that is not exactly one read-only statement."""

    code = "SQL_NOT_ALLOWED"


class SchemaInvalid(VaultError):
    """An input schema that is not a JSON Schema of an object."""

    code = "SCHEMA_INVALID"


class ExamplesInvalid(VaultError):
    """An invalid example; the message says which one and why."""

    code = "EXAMPLES_INVALID"


class PatchRequestNotFound(VaultError):
    """No patch request has that number."""

    code = "PATCH_REQUEST_NOT_FOUND"


class PatchRequestDecided(VaultError):
    """The patch request was already decided; a decision is final."""

    code = "PATCH_REQUEST_DECIDED"


class VaultTampered(VaultError):
    """Stored code no longer matches its hash, so it is not run."""

    code = "VAULT_TAMPERED"


class ViewError(HealkitError):
    """A data view cannot be stored: its name is taken by other data, or there is no room."""

    code = "VIEW_ERROR"


class ViewNotFound(ViewError):
    """No data view has that name."""

    code = "VIEW_NOT_FOUND"


class ViewGone(ViewError):
    """The data of the view was evicted or removed."""

    code = "VIEW_GONE"


class ViewChanged(ViewError):
    """The file of a data view was changed, replaced or damaged."""

    code = "VIEW_CHANGED"


class LogFileError(HealkitError):
    """A file of executions cannot be written, or cannot be read."""

    code = "LOG_FILE_ERROR"


class ArchiveBusy(LogFileError):
    """Another process is archiving into that folder."""

    code = "ARCHIVE_BUSY"


class AuditError(HealkitError):
    """A question that the audit cannot answer."""

    code = "AUDIT_ERROR"


class AuditEntryInvalid(AuditError):
    """An invalid audit entry; the message says which field is wrong."""

    code = "AUDIT_ENTRY_INVALID"


class AuditNotFound(AuditError):
    """The audit has no entry for that execution."""

    code = "AUDIT_NOT_FOUND"


# Executions: tools, workers, runs, healings.


class ArgumentsInvalid(HealkitError):
    """Arguments that do not match the tool's input schema; no worker was started."""

    code = "ARGUMENTS_INVALID"


class InternalError(HealkitError):
    """An error in healkit itself; neither the call nor the tool is to blame."""

    code = "INTERNAL_ERROR"

    @classmethod
    def of(cls, error: BaseException) -> InternalError:
        """Make it from the raised error: its type and place, without its message, which may hold contents."""
        traceback = error.__traceback__
        while traceback is not None and traceback.tb_next is not None:
            traceback = traceback.tb_next
        place = ""
        if traceback is not None:
            file = "/".join(traceback.tb_frame.f_code.co_filename.split("/")[-3:])
            place = f" at line {traceback.tb_lineno} of {file}"
        hint = "Neither the tool nor the call is to blame; please report it with the traceback."
        return cls(f"healkit itself failed, with {type(error).__name__}{place}.", hint=hint)


class IsolationUnavailable(HealkitError):
    """This machine cannot enforce the requested isolation, so nothing is run."""

    code = "ISOLATION_UNAVAILABLE"


class WorkerError(HealkitError):
    """The worker failed; the tool itself is not to blame."""

    code = "WORKER_ERROR"


class WorkerStartFailed(WorkerError):
    """No worker was ready within the start time."""

    code = "WORKER_START_FAILED"


class WorkerNotRestricted(WorkerStartFailed):
    """A worker lacked a layer of its isolation tier; it was ended before it received any code."""

    code = "WORKER_NOT_RESTRICTED"


class WorkerUnusable(WorkerStartFailed):
    """A worker cannot start: a granted package is missing, or a granted path leads elsewhere."""

    code = "WORKER_UNUSABLE"


class PlotUnavailable(HealkitError):
    """A plot needs an extra that is not installed."""

    code = "PLOT_UNAVAILABLE"


class PostMortemError(HealkitError):
    """A question about a failed run has no answer: no such frame, no console here."""

    code = "POST_MORTEM_ERROR"


class PostMortemGone(PostMortemError):
    """The worker of the failed run was not kept, or has ended since."""

    code = "POST_MORTEM_GONE"


class RunFolderError(HealkitError):
    """A run folder that cannot be created or used."""

    code = "RUN_FOLDER_ERROR"


class RunExists(RunFolderError):
    """A run with that id exists; a run is never overwritten."""

    code = "RUN_EXISTS"


class RunLocked(RunFolderError):
    """Another process is writing to that run."""

    code = "RUN_LOCKED"


class RunNotFound(RunFolderError):
    """No run folder has that name."""

    code = "RUN_NOT_FOUND"


class EvidenceChanged(RunFolderError):
    """A file in the run folder differs from what the run recorded."""

    code = "EVIDENCE_CHANGED"


class RunNotAllowed(HealkitError):
    """The tool is not on the run's list of tools; nothing was run."""

    code = "RUN_NOT_ALLOWED"


class PolicyHalted(HealkitError):
    """The policy of the run stopped it at this step; nothing was run."""

    code = "POLICY_HALT"


class HealError(HealkitError):
    """A healing cannot start or continue: nothing failed, or the tool may not be searched on."""

    code = "HEAL_ERROR"


class BudgetSpent(HealError):
    """A healing ran out of time or was stopped; its results so far are kept."""

    code = "BUDGET_SPENT"


class ToolExecutionError(HealkitError):
    """A tool ran and failed; `log_id` is its row in the ExecutionLog.

    `failure` is the traceback as data, a `core.contracts.failure.Failure`.

    Example:
    >>> try:
    ...     hk.execute_tool("ratio", arguments={"hits": 3, "games": 0})
    ... except healkit.ToolExecutionError as error:
    ...     print(error.code, error.ename, error.frames[-1].line)
    TOOL_EXCEPTION ZeroDivisionError return hits / games
    """

    def __init__(self, label: str, failure: Any, log_id: int | None, trace_id: str) -> None:
        super().__init__("", hint=failure.hint)
        self.message = f"{label} failed: {failure.summary}"  # the tool's message, unchanged
        self.args = (self.message,)
        self.code = failure.code  # how the execution ended
        self.label = label
        self.failure = failure
        self.log_id = log_id
        self.trace_id = trace_id

    @property
    def ename(self) -> str:
        """Type name of the tool's exception."""
        return str(self.failure.ename)

    @property
    def evalue(self) -> str:
        """Message of the tool's exception."""
        return str(self.failure.evalue)

    @property
    def frames(self) -> list[Any]:
        """Frames of the traceback, outermost first."""
        return list(self.failure.frames)

    def _render_traceback_(self) -> list[str]:
        where = f"log row {self.log_id}" if self.log_id is not None else f"trace {self.trace_id}"
        lines = [self.failure.traceback, f"{self.label} failed [{self.code}], {where}.", self.hint]
        return visible("\n".join(lines).rstrip()).split("\n")


# Calls, traces, requests, MCP servers, language models.


class CallRefused(HealkitError):
    """A bridged call that is unknown, not allowed, or over its budget."""

    code = "CALL_REFUSED"


class CallTimedOut(HealkitError):
    """A bridged call that was not answered in time."""

    code = "CALL_TIMEOUT"


class CallUnanswered(HealkitError):
    """A bridged call was in progress when its worker ended; it may have been performed."""

    code = "CALL_UNANSWERED"


class CallNotOnRecord(HealkitError):
    """A trial or a replay made a call that was not recorded, so the call was not performed."""

    code = "CALL_NOT_ON_RECORD"


class TraceInvalid(HealkitError):
    """An imported trace that is not in the wire format."""

    code = "TRACE_INVALID"


class BatchTooLarge(TraceInvalid):
    """More traces in one request than the limit."""

    code = "BATCH_TOO_LARGE"


class RequestRefused(HealkitError):
    """The collector refused a request; `retry_after_s` is when to try again."""

    code = "REQUEST_REFUSED"

    def __init__(
        self, code: str, message: str, *, hint: str = "", retry_after_s: float | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.code = code  # one of REQUEST_CODES
        self.retry_after_s = retry_after_s

    @property
    def status(self) -> int:
        """HTTP status to answer with."""
        return REQUEST_CODES.get(self.code, 400)


class McpError(HealkitError):
    """An MCP server answered with an error, or broke the protocol."""

    code = "MCP_ERROR"


class McpUnavailable(McpError):
    """An MCP server cannot be started or reached, or ended during a call."""

    code = "MCP_UNAVAILABLE"


class McpMissing(McpUnavailable):
    """The program of an MCP server, or the package for MCP, is missing or not executable."""

    code = "MCP_MISSING"


class AgentRefused(HealkitError):
    """healkit's MCP server refused a request of an agent."""

    code = "AGENT_REFUSED"


class ApprovalNeeded(AgentRefused):
    """A change is waiting for a person's approval."""

    code = "APPROVAL_NEEDED"


class AgentLimit(AgentRefused):
    """A client exceeded its rate, its budget or its number of concurrent calls."""

    code = "AGENT_LIMIT"


class ModelError(HealkitError):
    """A language model's server answered with an error, or broke its protocol."""

    code = "MODEL_ERROR"


class ModelKeyRefused(ModelError):
    """A language model's server did not accept the key, or not for that model."""

    code = "MODEL_KEY_REFUSED"


class ModelUnavailable(ModelError):
    """A language model's server is unreachable, busy or too slow, or the connection broke."""

    code = "MODEL_UNAVAILABLE"


class ModelInputTooLarge(ModelError):
    """The code does not fit into a request to a language model; nothing was sent."""

    code = "MODEL_INPUT_TOO_LARGE"


class ModelRefused(ModelError):
    """The language model declined, or its answer had no complete new code."""

    code = "MODEL_REFUSED"


# Codes that belong to no error class, with their meanings.


#: How an execution can end without a value: code → meaning. The log's triggers and an index contain these
#: codes, so a new code needs a migration that creates them again.
TOOL_CODES: dict[str, str] = {
    "TOOL_EXCEPTION": "the tool raised an exception",
    "TOOL_TIMEOUT": "the tool was still running when its time was up",
    "TOOL_CPU_LIMIT": "the tool used up its processor time",
    "TOOL_OUT_OF_MEMORY": "the tool asked for more memory than it may have",
    "TOOL_OUTPUT_LIMIT": "the tool printed or displayed more than it may",
    "TOOL_DISK_LIMIT": "the tool filled its scratch folder beyond what it may",
    "TOOL_RESULT_TOO_LARGE": "the tool returned more than it may",
    "TOOL_RESULT_UNSUPPORTED": "the tool returned what cannot leave its worker as it is",
    "TOOL_CRASHED": "the tool's process died of a signal",
    "TOOL_EXITED": "the tool's process ended without finishing",
    "TOOL_KILLED": "the run was stopped by the user",
    "TOOL_PROTOCOL": "the tool's process sent something that is not part of the protocol",
    "WORKER_LOST": "the tool's process was lost through no fault of its own",
    "HOST_DIED": "the process that had started the run died",
    "INTERNAL_ERROR": "an error in healkit itself; the tool is not to blame",
    "SQL_ERROR": "the database rejected the statement",
}


def is_refused(code: str | None) -> bool:
    """Tell if this is the code of a refused call: the call was wrong, or could not be started."""
    return code is not None and code not in TOOL_CODES


#: Why a runnable patch is rejected: code → meaning.
PATCH_CODES: dict[str, str] = {
    "PATCH_NOT_CURED": "the patch does not pass every check",
    "PATCH_UNDECIDED": "a check of the patch needs a call that is not on record",
    "PATCH_DECLINED": "the patch was declined, now or earlier",
    "PATCH_DENIED": "the policy forbids patches of this tool",
}

#: Why a step of a decision has no result: code → meaning.
DECISION_CODES: dict[str, str] = {
    "CHOICE_INVALID": "a choice that cannot be taken",
    "CHOICE_REPEATED": "the same choice was made too often",
    "CORRECTION_FAILED": "a correction did not reach the intended state",
    "RESULT_NO_FRAME": "a data operation returned no frame",
    "RESULT_NO_FILE": "an output returned neither text nor bytes",
    "OUTPUT_NOT_WRITTEN": "the file of an output could not be written, for example on a full disk",
}

#: Refusals of the collector's server: code → HTTP status (RFC 9110, RFC 6585).
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


# The complete catalogue: every code in the log's `error_code`, in a failure's `code` and in the error objects of
# trace.jsonl. It is read from the classes above, so no error can be forgotten.
#
# `retryable` is a promise to a loop: the unchanged action may end differently, and repeating it does no further harm.
# A tool's own failure is not retryable: the same failure would repeat, and a tool whose host was killed may have done
# anything by then. The exception is an error of something outside the tool that did not answer (`TRANSIENT`), raised
# by the tool's own line. From a library, it would repeat, because a worker has no network. Whether the tool itself may
# run twice is for the caller to decide.


#: Codes of faults that may disappear on their own: a lock, a lost worker, a server that did not answer.
RETRYABLE = frozenset(
    {
        "CALL_TIMEOUT", "DB_LOCKED", "MCP_UNAVAILABLE", "MODEL_UNAVAILABLE", "RUN_LOCKED", "WORKER_ERROR",
        "WORKER_LOST", "WORKER_START_FAILED",
    }
)  # fmt: skip
#: Exceptions that mean: something outside the tool does not answer at the moment.
TRANSIENT = frozenset(
    {
        "BrokenPipeError", "ConnectionAbortedError", "ConnectionError", "ConnectionRefusedError",
        "ConnectionResetError", "TimeoutError",
    }
)  # fmt: skip
#: Codes of failures that are classified by their exception.
_BY_EXCEPTION = frozenset({"CALL_FAILED", "TOOL_EXCEPTION"})


@cache
def catalogue() -> dict[str, str]:
    """Return all codes with their meanings, sorted."""
    classes = [
        kind
        for kind in globals().values()
        if isinstance(kind, type) and issubclass(kind, HealkitError) and "code" in vars(kind)
    ]
    meanings = {str(kind.code): (kind.__doc__ or "").partition("\n")[0].rstrip(".") for kind in classes}
    return dict(sorted({**meanings, **TOOL_CODES, **PATCH_CODES, **DECISION_CODES}.items()))


def is_retryable(code: str, ename: str = "") -> bool:
    """Return True if the unchanged action may be tried again; ename: the exception's type, if known."""
    return code in RETRYABLE or (code in _BY_EXCEPTION and ename in TRANSIENT)


# Parts of error messages.


def named(value: object) -> str:
    """Write a value as a name in a message: `'sales'`, `None`, `a DataFrame`."""
    return (
        repr(value) if value is None or isinstance(value, str | int | float) else f"a {type(value).__name__}"
    )


def check_text(what: str, value: object) -> None:
    """Raise `UsageInvalid` if the value is not a text. what: The argument's name."""
    if not isinstance(value, str):
        raise UsageInvalid(f"{what} must be text, not {named(value)}.")


def check_whole(what: str, value: object) -> None:
    """Raise `UsageInvalid` if the value is not a whole number. what: The argument's name."""
    if not isinstance(value, int):
        raise UsageInvalid(f"{what} must be a whole number, not {named(value)}.")


def near_misses(name: object, known: Iterable[str], limit: int = 3) -> list[str]:
    """Return up to `limit` of the known names that resemble `name`, best first; empty if `name` is not a text."""
    if not isinstance(name, str):
        return []
    by_folded = {candidate.casefold(): candidate for candidate in known}
    matches = difflib.get_close_matches(name.casefold(), by_folded, n=limit, cutoff=0.6)
    return [by_folded[match] for match in matches]


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """Return ` Did you mean 'fibonacci'?`, or an empty text if no known name is similar."""
    suggestions = near_misses(name, known)
    return f" Did you mean {' or '.join(map(repr, suggestions))}?" if suggestions else ""
