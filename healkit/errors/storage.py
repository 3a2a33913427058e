"""Errors of storage: the database, the vault, log files."""

from __future__ import annotations

from healkit.errors.base import HealkitError


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
