"""Codes that belong to no error class, with their meanings."""

from __future__ import annotations

#: Endings of an execution without a value: code → meaning. The log's triggers and an index name them too: another code
#: needs a migration like 0014.
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
