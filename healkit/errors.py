"""Errors of healkit, and the closed catalogue of codes.

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
├── ViewError                      VIEW_ERROR         (a data view that cannot be kept)
│   ├── ViewNotFound               VIEW_NOT_FOUND
│   ├── ViewGone                   VIEW_GONE          (evicted or removed)
│   └── ViewChanged                VIEW_CHANGED       (its file does not hold what was kept)
├── ArgumentsInvalid               ARGUMENTS_INVALID
├── InternalError                  INTERNAL_ERROR     (an error in healkit itself)
├── IsolationUnavailable           ISOLATION_UNAVAILABLE
├── WorkerError                    WORKER_ERROR
│   └── WorkerStartFailed          WORKER_START_FAILED
│       ├── WorkerNotRestricted    WORKER_NOT_RESTRICTED
│       └── WorkerUnusable         WORKER_UNUSABLE    (a package or a path that it is granted)
├── LogFileError                   LOG_FILE_ERROR     (an export, import or archive of the log)
│   └── ArchiveBusy                ARCHIVE_BUSY
├── AuditError                     AUDIT_ERROR
│   ├── AuditEntryInvalid          AUDIT_ENTRY_INVALID
│   └── AuditNotFound              AUDIT_NOT_FOUND
├── PlotUnavailable                PLOT_UNAVAILABLE   (matplotlib is not installed)
├── PostMortemError                POST_MORTEM_ERROR  (a question about a failed run that has no answer)
│   └── PostMortemGone             POST_MORTEM_GONE
├── RunFolderError                 RUN_FOLDER_ERROR   (a run's record that cannot be begun)
│   ├── RunExists                  RUN_EXISTS
│   ├── RunLocked                  RUN_LOCKED
│   ├── RunNotFound                RUN_NOT_FOUND
│   └── EvidenceChanged            EVIDENCE_CHANGED   (a file that is not as the run recorded it)
├── RunNotAllowed                  RUN_NOT_ALLOWED    (a tool that is not on the run's list)
├── PolicyHalted                   POLICY_HALT        (a run that its policy has ended)
├── HealError                      HEAL_ERROR         (a healing that cannot be begun)
│   └── BudgetSpent                BUDGET_SPENT       (its time is up, or it was stopped)
├── ModelError                     MODEL_ERROR        (a language model's server, or an answer that is none)
│   ├── ModelKeyRefused            MODEL_KEY_REFUSED
│   ├── ModelUnavailable           MODEL_UNAVAILABLE
│   ├── ModelInputTooLarge         MODEL_INPUT_TOO_LARGE
│   └── ModelRefused               MODEL_REFUSED
├── CallRefused                    CALL_REFUSED       (a worker's call that the host will not make)
├── CallTimedOut                   CALL_TIMEOUT
├── CallUnanswered                 CALL_UNANSWERED    (under way when its worker ended)
├── CallNotOnRecord                CALL_NOT_ON_RECORD (of code that is only tried, or replayed)
├── TraceInvalid                   TRACE_INVALID
│   └── BatchTooLarge              BATCH_TOO_LARGE
├── RequestRefused                 REQUEST_REFUSED    (by the collector's server; one of REQUEST_CODES)
├── McpError                       MCP_ERROR          (an MCP server's answer that is no value)
│   └── McpUnavailable             MCP_UNAVAILABLE
│       └── McpMissing             MCP_MISSING        (its program is not there, or may not be run)
├── AgentRefused                   AGENT_REFUSED      (what an agent asks of healkit's own MCP server)
│   ├── ApprovalNeeded             APPROVAL_NEEDED
│   └── AgentLimit                 AGENT_LIMIT
└── ToolExecutionError             the failure's own code, one of TOOL_CODES

Constructors only store. A message names the value, the place and the next step.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from functools import cache
from typing import Any

from healkit.plain_text import untick, visible


class HealkitError(Exception):
    """Base of all errors that healkit raises on purpose.

    `code` is stable and machine-readable; `hint` is the next step; `log_id` is the ExecutionLog row of the call, where
    there was one. Backticks around code come off: a traceback and a terminal show them as they are.
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
        """Return one line for a notebook; IPython calls it instead of printing our stack (the log holds the rest)."""
        return [f"{type(self).__name__}: {self}"]


class ConfigError(HealkitError):
    """A setting that healkit cannot work with."""

    code = "CONFIG_INVALID"


class RulesInvalid(ConfigError):
    """A custom rule of the sanitiser, or a pattern of its allow-list, that cannot be used."""

    code = "RULES_INVALID"


class UsageInvalid(HealkitError):
    """A line that cannot be read: an unknown flag or subcommand, a quote that never closes."""

    code = "USAGE_INVALID"

    def _render_traceback_(self) -> list[str]:
        """Return the sentence alone: the reader typed a line, and raised nothing."""
        return [str(self)]


# The store: database, vault, views, files of the log, audit.


class DatabaseError(HealkitError):
    """A database that did not do what was asked; every backend exception arrives as one of these."""

    code = "DB_ERROR"


class DatabaseMissing(DatabaseError):
    """There is no database at that place, and none may be made there."""

    code = "DB_MISSING"


class DatabaseLocked(DatabaseError):
    """Another connection holds the write lock for longer than healkit waits."""

    code = "DB_LOCKED"


class DatabaseReadOnly(DatabaseError):
    """A database that healkit may only read, because of its file, its folder or the server."""

    code = "DB_READONLY"


class DatabaseFull(DatabaseError):
    """A disk (or the database's own size limit) that is full."""

    code = "DB_FULL"


class DatabaseCorrupt(DatabaseError):
    """A file that is not a database, or is damaged."""

    code = "DB_CORRUPT"


class DatabaseNewer(DatabaseError):
    """A newer healkit wrote this database; this one leaves it untouched."""

    code = "DB_NEWER"


class DatabaseNotTrusted(DatabaseError):
    """A database whose user has not said that they trust it, asked for what only a trusted one may do."""

    code = "DB_NOT_TRUSTED"


class VaultError(HealkitError):
    """An operation that the vault cannot do."""

    code = "VAULT_ERROR"


class ToolNotFound(VaultError):
    """No tool of that name is in the vault."""

    code = "TOOL_NOT_FOUND"


class PersonaNotFound(VaultError):
    """A tool that exists, but neither for that persona nor for `default`."""

    code = "PERSONA_NOT_FOUND"


class ToolRemoved(ToolNotFound):
    """A tool that was removed from the vault; its revisions and its runs stay.

    `logged`: whether its arguments may be on record, as its owner had said.
    """

    code = "TOOL_REMOVED"

    def __init__(self, message: str, *, hint: str = "", logged: bool = True) -> None:
        super().__init__(message, hint=hint)
        self.logged = logged


class RevisionNotFound(VaultError):
    """A revision number that the tool does not have."""

    code = "REVISION_NOT_FOUND"


class ToolExists(VaultError):
    """A tool has that name already, or once had it."""

    code = "TOOL_EXISTS"


class RevisionConflict(VaultError):
    """Error for a patch whose parent was patched by another first; both sides are in the message, and both are kept."""

    code = "REVISION_CONFLICT"


class FixUndone(VaultError):
    """Refusal to save an older revision's code again, which would take back a fix that was kept since."""

    code = "FIX_UNDONE"


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


class ExamplesInvalid(VaultError):
    """An example that does not say what a call has to do; the message says which one and why."""

    code = "EXAMPLES_INVALID"


class PatchRequestNotFound(VaultError):
    """There is no patch request of that number."""

    code = "PATCH_REQUEST_NOT_FOUND"


class PatchRequestDecided(VaultError):
    """A patch request that has been decided otherwise already; a decision is not taken back."""

    code = "PATCH_REQUEST_DECIDED"


class VaultTampered(VaultError):
    """Stored code no longer has the hash it is stored under; nothing of it is run."""

    code = "VAULT_TAMPERED"


class ViewError(HealkitError):
    """Error for a data view that cannot be kept: its name is taken by other data, or there is no room for it."""

    code = "VIEW_ERROR"


class ViewNotFound(ViewError):
    """Error for a name that no data view has."""

    code = "VIEW_NOT_FOUND"


class ViewGone(ViewError):
    """Error for a data view whose data is not here any more: evicted, or removed."""

    code = "VIEW_GONE"


class ViewChanged(ViewError):
    """Error for a data view whose file does not hold what was kept: it was changed, replaced or damaged."""

    code = "VIEW_CHANGED"


class LogFileError(HealkitError):
    """A file of executions that cannot be written, or read as one."""

    code = "LOG_FILE_ERROR"


class ArchiveBusy(LogFileError):
    """Another process is archiving into that folder at this moment."""

    code = "ARCHIVE_BUSY"


class AuditError(HealkitError):
    """A question to the audit that has no answer."""

    code = "AUDIT_ERROR"


class AuditEntryInvalid(AuditError):
    """An entry that the audit does not take; the message says which field is wrong."""

    code = "AUDIT_ENTRY_INVALID"


class AuditNotFound(AuditError):
    """No entry is of that execution."""

    code = "AUDIT_NOT_FOUND"


# Executions: tools, workers, runs, healings.


class ArgumentsInvalid(HealkitError):
    """Arguments that miss the tool's input schema; no worker was touched."""

    code = "ARGUMENTS_INVALID"


class InternalError(HealkitError):
    """An error in healkit itself; neither the call nor the tool is to blame."""

    code = "INTERNAL_ERROR"

    @classmethod
    def of(cls, error: BaseException) -> InternalError:
        """Make it of the error that was raised: its type and place, without its message, which may hold contents."""
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
    """This machine cannot enforce the isolation that was asked for, so nothing is run."""

    code = "ISOLATION_UNAVAILABLE"


class WorkerError(HealkitError):
    """A worker could not do its part; the tool itself is not to blame."""

    code = "WORKER_ERROR"


class WorkerStartFailed(WorkerError):
    """No worker was ready within its start time."""

    code = "WORKER_START_FAILED"


class WorkerNotRestricted(WorkerStartFailed):
    """A worker that lacked a layer of its tier; it was ended before any code was sent to it."""

    code = "WORKER_NOT_RESTRICTED"


class WorkerUnusable(WorkerStartFailed):
    """A worker that cannot be started as asked: a granted package has gone, or a granted path leads away."""

    code = "WORKER_UNUSABLE"


class PlotUnavailable(HealkitError):
    """A plot that was asked for where the extra that draws is not installed."""

    code = "PLOT_UNAVAILABLE"


class PostMortemError(HealkitError):
    """A question about a failed run that cannot be answered: no such frame, no console here."""

    code = "POST_MORTEM_ERROR"


class PostMortemGone(PostMortemError):
    """A failed run whose worker is not there to be asked: it was never kept, or has gone since."""

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


class EvidenceChanged(RunFolderError):
    """Error for a file of a run's folder that does not have the content that the run recorded."""

    code = "EVIDENCE_CHANGED"


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
    """A healing whose time is up, or that was stopped; its results until then stand."""

    code = "BUDGET_SPENT"


class ToolExecutionError(HealkitError):
    """A tool that ran and failed; `log_id` is its row in the ExecutionLog.

    `failure` is its traceback as data, a `core.contracts.failure.Failure`.
    """

    def __init__(self, label: str, failure: Any, log_id: int | None, trace_id: str) -> None:
        super().__init__("", hint=failure.hint)
        self.message = f"{label} failed: {failure.summary}"  # the tool's own words, as they are
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


# What crosses a border: calls, traces, requests, MCP servers, language models.


class CallRefused(HealkitError):
    """A call through the bridge that is unknown, not allowed, or over its budget."""

    code = "CALL_REFUSED"


class CallTimedOut(HealkitError):
    """A call through the bridge that had no answer within its time."""

    code = "CALL_TIMEOUT"


class CallUnanswered(HealkitError):
    """A call through the bridge that was under way when its worker ended; it may have been performed."""

    code = "CALL_UNANSWERED"


class CallNotOnRecord(HealkitError):
    """A call that no recorded execution made, by code that was only tried or replayed: it was not made."""

    code = "CALL_NOT_ON_RECORD"


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
        """HTTP status to answer with."""
        return REQUEST_CODES.get(self.code, 400)


class McpError(HealkitError):
    """An MCP server answered with an error, or with what the protocol does not allow."""

    code = "MCP_ERROR"


class McpUnavailable(McpError):
    """An MCP server that cannot be started or reached, or that went away over a call."""

    code = "MCP_UNAVAILABLE"


class McpMissing(McpUnavailable):
    """An MCP server whose program is not there or may not be run, or the package that talks to it."""

    code = "MCP_MISSING"


class AgentRefused(HealkitError):
    """Request of an agent that healkit's MCP server does not grant, or not so."""

    code = "AGENT_REFUSED"


class ApprovalNeeded(AgentRefused):
    """A change that waits for a person's consent."""

    code = "APPROVAL_NEEDED"


class AgentLimit(AgentRefused):
    """A call beyond a client's rate, budget or number of calls at once."""

    code = "AGENT_LIMIT"


class ModelError(HealkitError):
    """A language model's server answered with an error, or with what its protocol does not allow."""

    code = "MODEL_ERROR"


class ModelKeyRefused(ModelError):
    """A key that the language model's server does not accept, or not for that model."""

    code = "MODEL_KEY_REFUSED"


class ModelUnavailable(ModelError):
    """A language model's server that cannot be reached, is busy, too slow, or broke off in the middle."""

    code = "MODEL_UNAVAILABLE"


class ModelInputTooLarge(ModelError):
    """Code that does not fit into a request to a language model; nothing was sent."""

    code = "MODEL_INPUT_TOO_LARGE"


class ModelRefused(ModelError):
    """A language model that declined, or gave no answer with whole new code."""

    code = "MODEL_REFUSED"


# Codes that belong to no error class, with their meanings.


#: Endings of an execution without a value: code → meaning. The log's triggers and an index name them too: another code
#: needs a migration that makes them anew.
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
    """Tell if a failure's code is that of a call that was refused: it was wrong, or could not be started."""
    return code is not None and code not in TOOL_CODES


#: Reasons why a patch that can be run is rejected: code → meaning.
PATCH_CODES: dict[str, str] = {
    "PATCH_NOT_CURED": "the patch does not pass every check",
    "PATCH_UNDECIDED": "a check of the patch needs a call that is not on record",
    "PATCH_DECLINED": "the patch was declined, now or earlier",
    "PATCH_DENIED": "the policy forbids patches of this tool",
}

#: Reasons why a step of a decision has no result: code → meaning.
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


# The closed catalogue: one list for everything that carries a code: the log's `error_code`, a failure's `code`,
# the error objects of trace.jsonl. It is read from the classes above, so that a new error cannot be forgotten.
#
# `retryable` is a promise to a loop: the same action with nothing changed may end differently, and a first attempt has
# done no harm that a second one would double. A tool's own failure is not retryable in that sense: repeating the same
# failure wastes time, and what a killed host's tool had done by then is unknown. The exception is one that says that
# something outside did not answer (`TRANSIENT`), if the tool's own line raised it: a worker has no network, so that one
# from a library is the same again. Whether the tool may be run twice is for the caller to know.


#: Codes of faults that may go away by themselves: a lock, a lost worker, a server that did not answer.
RETRYABLE = frozenset(
    {
        "CALL_TIMEOUT", "DB_LOCKED", "MCP_UNAVAILABLE", "MODEL_UNAVAILABLE", "RUN_LOCKED", "WORKER_ERROR",
        "WORKER_LOST", "WORKER_START_FAILED",
    }
)  # fmt: skip
#: Exceptions by which something outside the tool says that it does not answer now.
TRANSIENT = frozenset(
    {
        "BrokenPipeError", "ConnectionAbortedError", "ConnectionError", "ConnectionRefusedError",
        "ConnectionResetError", "TimeoutError",
    }
)  # fmt: skip
#: Codes of failures that are what their exception is.
_BY_EXCEPTION = frozenset({"CALL_FAILED", "TOOL_EXCEPTION"})


@cache
def catalogue() -> dict[str, str]:
    """Return every code with its meaning, sorted; there are no other codes."""
    classes = [
        kind
        for kind in globals().values()
        if isinstance(kind, type) and issubclass(kind, HealkitError) and "code" in vars(kind)
    ]
    meanings = {str(kind.code): (kind.__doc__ or "").partition("\n")[0].rstrip(".") for kind in classes}
    return dict(sorted({**meanings, **TOOL_CODES, **PATCH_CODES, **DECISION_CODES}.items()))


def is_retryable(code: str, ename: str = "") -> bool:
    """Return True if the same action may be tried again with nothing changed; ename: the exception's type, if known."""
    return code in RETRYABLE or (code in _BY_EXCEPTION and ename in TRANSIENT)


# Parts of messages.


def named(value: object) -> str:
    """Write what was given as a name: `'sales'`, `None`, `a DataFrame`."""
    return (
        repr(value) if value is None or isinstance(value, str | int | float) else f"a {type(value).__name__}"
    )


def check_text(what: str, value: object) -> None:
    """Raise `UsageInvalid` for a value that is no text. what: the argument's name."""
    if not isinstance(value, str):
        raise UsageInvalid(f"{what} must be text, not {named(value)}.")


def check_whole(what: str, value: object) -> None:
    """Raise `UsageInvalid` for a value that is no whole number. what: the argument's name."""
    if not isinstance(value, int):
        raise UsageInvalid(f"{what} must be a whole number, not {named(value)}.")


def near_misses(name: object, known: Iterable[str], limit: int = 3) -> list[str]:
    """Return up to `limit` of the known names that look like `name`, best first; none for what is no text."""
    if not isinstance(name, str):
        return []
    by_folded = {candidate.casefold(): candidate for candidate in known}
    matches = difflib.get_close_matches(name.casefold(), by_folded, n=limit, cutoff=0.6)
    return [by_folded[match] for match in matches]


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """Return ` Did you mean 'fibonacci'?`, or an empty text when nothing is near."""
    suggestions = near_misses(name, known)
    return f" Did you mean {' or '.join(map(repr, suggestions))}?" if suggestions else ""
