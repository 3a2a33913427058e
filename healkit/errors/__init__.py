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
│   └── DatabaseNewer              DB_NEWER
├── VaultError                     VAULT_ERROR
│   ├── ToolNotFound               TOOL_NOT_FOUND
│   │   └── ToolRemoved            TOOL_REMOVED
│   ├── PersonaNotFound            PERSONA_NOT_FOUND
│   ├── RevisionNotFound           REVISION_NOT_FOUND
│   ├── ToolExists                 TOOL_EXISTS
│   ├── RevisionConflict           REVISION_CONFLICT
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
│       └── WorkerNotRestricted    WORKER_NOT_RESTRICTED
├── LogFileError                   LOG_FILE_ERROR     (an export, import or archive of the log)
│   └── ArchiveBusy                ARCHIVE_BUSY
├── AuditError                     AUDIT_ERROR
│   ├── AuditEntryInvalid          AUDIT_ENTRY_INVALID
│   └── AuditNotFound              AUDIT_NOT_FOUND
├── PlotUnavailable                PLOT_UNAVAILABLE   (matplotlib is not installed)
├── DockUnavailable                DOCK_UNAVAILABLE   (ipylab is not installed, or there is no page with a dock)
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
├── TraceInvalid                   TRACE_INVALID
│   └── BatchTooLarge              BATCH_TOO_LARGE
├── RequestRefused                 REQUEST_REFUSED    (by the collector's server; one of REQUEST_CODES)
├── McpError                       MCP_ERROR          (an MCP server's answer that is no value)
│   └── McpUnavailable             MCP_UNAVAILABLE
└── ToolExecutionError             the failure's own code, one of TOOL_CODES

Constructors only store. A message names the value, the place and the next step.

The modules go by subject; import every error from `healkit.errors`, which is also the name in a traceback.
"""

from __future__ import annotations

from healkit.errors.base import (
    ConfigError,
    HealkitError,
    RulesInvalid,
    UsageInvalid,
    check_text,
    check_whole,
    did_you_mean,
    named,
    near_misses,
)
from healkit.errors.codes import (
    DECISION_CODES,
    PATCH_CODES,
    REQUEST_CODES,
    TOOL_CODES,
    is_refused,
)
from healkit.errors.crossing import (
    BatchTooLarge,
    CallRefused,
    CallTimedOut,
    CallUnanswered,
    McpError,
    McpUnavailable,
    ModelError,
    ModelInputTooLarge,
    ModelKeyRefused,
    ModelRefused,
    ModelUnavailable,
    RequestRefused,
    TraceInvalid,
)
from healkit.errors.running import (
    ArgumentsInvalid,
    BudgetSpent,
    DockUnavailable,
    EvidenceChanged,
    HealError,
    InternalError,
    IsolationUnavailable,
    PlotUnavailable,
    PolicyHalted,
    PostMortemError,
    PostMortemGone,
    RunExists,
    RunFolderError,
    RunLocked,
    RunNotAllowed,
    RunNotFound,
    ToolExecutionError,
    WorkerError,
    WorkerNotRestricted,
    WorkerStartFailed,
)
from healkit.errors.storage import (
    ArchiveBusy,
    AuditEntryInvalid,
    AuditError,
    AuditNotFound,
    CodeDoesNotParse,
    DatabaseCorrupt,
    DatabaseError,
    DatabaseFull,
    DatabaseLocked,
    DatabaseMissing,
    DatabaseNewer,
    DatabaseReadOnly,
    ExamplesInvalid,
    LogFileError,
    PatchRequestDecided,
    PatchRequestNotFound,
    PersonaNotFound,
    RevisionConflict,
    RevisionNotFound,
    SchemaInvalid,
    SqlNotAllowed,
    ToolExists,
    ToolNotFound,
    ToolRemoved,
    ToolShapeError,
    VaultError,
    VaultTampered,
    ViewChanged,
    ViewError,
    ViewGone,
    ViewNotFound,
)

__all__ = [
    "DECISION_CODES",
    "PATCH_CODES",
    "REQUEST_CODES",
    "TOOL_CODES",
    "ArchiveBusy",
    "ArgumentsInvalid",
    "AuditEntryInvalid",
    "AuditError",
    "AuditNotFound",
    "BatchTooLarge",
    "BudgetSpent",
    "CallRefused",
    "CallTimedOut",
    "CallUnanswered",
    "CodeDoesNotParse",
    "ConfigError",
    "DatabaseCorrupt",
    "DatabaseError",
    "DatabaseFull",
    "DatabaseLocked",
    "DatabaseMissing",
    "DatabaseNewer",
    "DatabaseReadOnly",
    "DockUnavailable",
    "EvidenceChanged",
    "ExamplesInvalid",
    "HealError",
    "HealkitError",
    "InternalError",
    "IsolationUnavailable",
    "LogFileError",
    "McpError",
    "McpUnavailable",
    "ModelError",
    "ModelInputTooLarge",
    "ModelKeyRefused",
    "ModelRefused",
    "ModelUnavailable",
    "PatchRequestDecided",
    "PatchRequestNotFound",
    "PersonaNotFound",
    "PlotUnavailable",
    "PolicyHalted",
    "PostMortemError",
    "PostMortemGone",
    "RequestRefused",
    "RevisionConflict",
    "RevisionNotFound",
    "RulesInvalid",
    "RunExists",
    "RunFolderError",
    "RunLocked",
    "RunNotAllowed",
    "RunNotFound",
    "SchemaInvalid",
    "SqlNotAllowed",
    "ToolExecutionError",
    "ToolExists",
    "ToolNotFound",
    "ToolRemoved",
    "ToolShapeError",
    "TraceInvalid",
    "UsageInvalid",
    "VaultError",
    "VaultTampered",
    "ViewChanged",
    "ViewError",
    "ViewGone",
    "ViewNotFound",
    "WorkerError",
    "WorkerNotRestricted",
    "WorkerStartFailed",
    "check_text",
    "check_whole",
    "did_you_mean",
    "is_refused",
    "named",
    "near_misses",
]

for _name in __all__:
    if isinstance(_error := globals()[_name], type):
        _error.__module__ = __name__
