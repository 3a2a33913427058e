"""Outcomes as failures and as results of checks.

Each way in which an execution can end has one code, one wording and one next step. A worker's own report is not
trusted: only some codes are accepted from a worker, and its texts are limited. A value that breaks a rule is a failure
too.
"""

from __future__ import annotations

import itertools
import signal
from typing import Any

import msgspec

from healkit.core.contracts import rpc
from healkit.core.contracts.execution import Finished, Started, utc_now
from healkit.core.contracts.failure import (
    FACT_MAX_CHARS,
    FACTS_MAX,
    KNOWN_MAX,
    LINKED_MAX,
    NEAR_MAX,
    SECRET_MAX_CHARS,
    SECRETS_MAX,
    Failure,
    Frame,
)
from healkit.core.contracts.patches import Check, CheckOutcome, CheckResult, same_value
from healkit.core.contracts.rpc import OUTLINE_MAX_CHARS, ExecutionComplete, Init
from healkit.core.crossing import values
from healkit.core.pysource.tracebacks import (
    fingerprint,
    format_frames,
    frames_from_faulthandler,
    read_traceback,
    traceback_text,
)
from healkit.core.wire import claims
from healkit.core.wire.encoding import is_beyond_json, type_outline
from healkit.core.wire.record_text import shortened, summarize_json
from healkit.core.workers.bridge import OWN_FAULT
from healkit.core.workers.process import off_loop
from healkit.core.workers.worker import Outcome
from healkit.errors import CallNotOnRecord, HealkitError, InternalError

#: Codes that a worker may report; the host decides all others.
_CLAIMABLE = {
    "TOOL_EXCEPTION", "TOOL_TIMEOUT", "TOOL_OUT_OF_MEMORY", "TOOL_OUTPUT_LIMIT", "TOOL_RESULT_TOO_LARGE",
    "TOOL_RESULT_UNSUPPORTED", "INTERNAL_ERROR",
}  # fmt: skip
#: Tier of an execution whose worker lacked a layer of isolation, and did not run anything.
NO_ISOLATION = "none"
_TEXT_MAX_CHARS = 200_000
_FRAMES_MAX = 400
#: A faulthandler dump (at most 100 frames) with this many frames of the tool is that of a deep recursion.
_DEEP_FRAMES = 50
_NAME_MAX_CHARS = 100
_LINE_MAX_CHARS, _LINENO_MAX = 2000, 2**31 - 1
_value = msgspec.json.Decoder().decode


async def conclude(outcome: Outcome, init: Init) -> tuple[Any, Failure | None]:
    """Return the value of an outcome, or its failure; the event loop does not wait for a large value.

    A value above the size limit, or one that cannot be read, is a failure.
    """
    if outcome.complete is None or (
        len(outcome.complete.value) <= claims.SMALL_BYTES and not outcome.contents
    ):
        return _conclude(outcome, init)
    concluded: tuple[Any, Failure | None] = await off_loop(_conclude, outcome, init)
    return concluded


def _conclude(outcome: Outcome, init: Init) -> tuple[Any, Failure | None]:
    failure = failure_of(outcome, init)
    if failure is not None or outcome.complete is None:
        return None, failure
    value = outcome.complete.value
    try:
        if len(value) > init.result_max_bytes:
            raise claims.BadClaim(f"{len(value):,} bytes; {init.result_max_bytes:,} are allowed")
        # It was already counted as part of its message.
        if init.exact:
            return values.decode(value, outcome.contents, limit_bytes=init.data_max_bytes), None
        return claims.decode_checked(value, _value), None
    except (claims.BadClaim, values.BadValue) as error:
        detail = f"its result breaks a limit or cannot be read: {error}"
        return None, failure_of(Outcome("protocol", detail=detail, crash_text=outcome.crash_text), init)


def outline_of(value: object, claim: ExecutionComplete | None, init: Init) -> str:
    """Return the types of a value that its JSON does not show; if it crossed exactly, they come from the value."""
    if claim is None or claim.failure is not None:
        return ""
    return type_outline(value)[:OUTLINE_MAX_CHARS] if init.exact else claim.outline


def failure_of(outcome: Outcome, init: Init) -> Failure | None:
    """Return the failure of an outcome, or None if it has a value."""
    if outcome.complete is not None:
        claimed = outcome.complete.failure
        return None if claimed is None else with_own_secrets(_claimed(claimed, init), outcome)
    match outcome.ending:
        case "timeout":
            message = f"still running after {init.timeout_s:g} s, and not to be interrupted"
            hint = f"Give it more than {init.timeout_s:g} s (timeout=…), or look at the line where it was."
            return _observed("TOOL_TIMEOUT", "TimeoutError", message, hint, outcome, init)
        case "stopped":
            return _observed("TOOL_KILLED", "Stopped", "the run was stopped by the user", "", outcome, init)
        case "output_limit":
            message = outcome.detail or f"it displayed more than {init.output_max_bytes:,} bytes"
            hint = "Let it show less; HEALKIT_RESULT_MAX_BYTES is the limit."
            return _observed("TOOL_OUTPUT_LIMIT", "OutputLimit", message, hint, outcome, init)
        case "disk_limit":
            message = "it filled its scratch folder beyond what it may"
            hint = "Let it write less, or grant it one of your folders (write=…); HEALKIT_SCRATCH_MB is the limit."
            return _observed("TOOL_DISK_LIMIT", "DiskLimit", message, hint, outcome, init)
        case "lost":
            hint = "The tool may not be to blame: run it again."
            return _observed("WORKER_LOST", "WorkerLost", outcome.detail, hint, outcome, init)
        case "protocol" if outcome.detail.startswith(OWN_FAULT):
            hint = "Neither the tool nor the call is to blame; run it again."
            return _observed("INTERNAL_ERROR", "InternalError", outcome.detail, hint, outcome, init)
        case "protocol":
            hint = "The tool wrote to a descriptor that is not its own; nothing of what it sent was used."
            return _observed("TOOL_PROTOCOL", "ProtocolError", outcome.detail, hint, outcome, init)
    return _of_death(outcome, init)


def end_of(
    started: Started, failure: Failure | None, result: msgspec.Raw, duration_ms: float, last_output: str
) -> Finished:
    """Return the record of an execution's end; `result` is its value as readable JSON."""
    return Finished(
        trace_id=started.trace_id,
        finished_at=utc_now(),
        duration_ms=duration_ms,
        result_summary=shortened(failure.summary) if failure else summarize_json(result),
        failure=failure,
        fingerprint=fingerprint(failure) if failure else None,
        last_output=last_output,
    )


def refusal_of(started: Started, error: HealkitError, duration_ms: float) -> Finished:
    """Return the record of a call that never reached a tool."""
    kind = type(error).__name__
    failure = Failure(error.code, kind, error.message, f"{kind}: {error}", hint=error.hint)
    return Finished(started.trace_id, utc_now(), duration_ms, None, failure, fingerprint(failure))


def fault_of(started: Started, error: BaseException, duration_ms: float, *, quoted: bool = True) -> Finished:
    """Return the record of an execution that an internal error of healkit ended.

    quoted: Include the error's message, which may contain a part of the tool's input.
    """
    internal = InternalError.of(error)
    trace = read_traceback(error)
    text = traceback_text(trace, "") if quoted else "".join(trace.stack.format())
    last = f"{InternalError.__name__}: {internal.message}"
    failure = Failure(
        internal.code,
        InternalError.__name__,
        internal.message,
        f"{text.rstrip()}\n{last}",
        hint=internal.hint,
    )
    return Finished(started.trace_id, utc_now(), duration_ms, None, failure, fingerprint(failure))


def interruption_of(started: Started, error: BaseException, duration_ms: float) -> Finished:
    """Return the record of an execution that healkit gave up."""
    kind = type(error).__name__
    failure = Failure("TOOL_KILLED", kind, str(error), f"{kind}: {error}")
    return Finished(started.trace_id, utc_now(), duration_ms, None, failure, fingerprint(failure))


def _of_death(outcome: Outcome, init: Init) -> Failure:
    """Return the failure for a process that ended on its own, from its signal or its status."""
    status = outcome.status if outcome.status is not None else 0
    number = -status
    if number <= 0:
        message = f"its process ended with status {status} before the tool had returned"
        hint = "os._exit ends a process on the spot; let the tool return, or raise."
        return _observed("TOOL_EXITED", "ProcessExited", message, hint, outcome, init)
    name = _signal_name(number)
    if number == signal.SIGXCPU:
        hint = "Give it more processor time (grant cpu_s=…), or look at the line where it was."
        message = f"it used more than {init.cpu_s} s of processor time"
        return _observed("TOOL_CPU_LIMIT", "CpuLimit", message, hint, outcome, init)
    if number == signal.SIGKILL:
        hint = "The process was killed from outside, perhaps because the machine ran out of memory; run it again."
    else:
        hint = "That is an error in C code, often a library given what it does not expect."
    frames = frames_from_faulthandler(outcome.crash_text, init.entry.filename, init.code)
    if (
        number == signal.SIGSEGV
        and len(frames) >= _DEEP_FRAMES
        and len({frame.name for frame in frames}) <= 3
    ):
        message = f"its process died of {name}, in a recursion that is too deep for the stack"
        hint = "Give the recursion an end, and leave sys.setrecursionlimit as it is."
        return _observed("TOOL_CRASHED", "RecursionError", message, hint, outcome, init)
    return _observed("TOOL_CRASHED", name, f"its process died of {name}", hint, outcome, init)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # real-time signals have no names
        return f"signal {number}"


def _observed(code: str, ename: str, message: str, hint: str, outcome: Outcome, init: Init) -> Failure:
    """Return a failure in the host's words, with the stack from `faulthandler`, if there is one."""
    frames = frames_from_faulthandler(outcome.crash_text, init.entry.filename, init.code)[-_FRAMES_MAX:]
    last_line = f"{ename}: {message}"
    return Failure(code, ename, message, format_frames(frames, last_line), frames, hint)


def _claimed(failure: Failure, init: Init) -> Failure:
    """Return the worker's report of a failure, with its code checked and its size limited."""
    played = failure.code == CallNotOnRecord.code and is_played(init)
    code = failure.code if failure.code in _CLAIMABLE or played else "TOOL_EXCEPTION"
    return msgspec.structs.replace(capped(failure), code=code)


def is_played(init: Init) -> bool:
    """Return whether this worker may report that a call is not on record, or a file withheld."""
    return init.cassette != rpc.NO_CASSETTE or bool(init.withheld.paths)


def with_own_secrets(failure: Failure, outcome: Outcome | None = None) -> Failure:
    """Return the failure with only those secrets of its frames that occur in its texts or the output."""
    if not failure.secrets:
        return failure
    texts = failure.texts
    if outcome is not None:
        texts = "\n".join([texts, outcome.last_output, msgspec.json.encode(outcome.outputs).decode()])
    secrets = [secret for secret in failure.secrets if secret[1] in texts]
    return msgspec.structs.replace(failure, secrets=secrets)


def capped(failure: Failure) -> Failure:
    """Return a failure from outside, with its texts and lists cut to size."""
    return msgspec.structs.replace(
        failure,
        ename=failure.ename[:500],
        evalue=failure.evalue[:_TEXT_MAX_CHARS],
        traceback=failure.traceback[:_TEXT_MAX_CHARS],
        frames=[_capped(frame) for frame in failure.frames[:_FRAMES_MAX]],
        hint=failure.hint[:2000],
        near=[name[:_NAME_MAX_CHARS] for name in failure.near[:NEAR_MAX]],
        known=[name[:_NAME_MAX_CHARS] for name in failure.known[:KNOWN_MAX]],
        facts={
            name[:_NAME_MAX_CHARS]: fact[:FACT_MAX_CHARS]
            for name, fact in itertools.islice(failure.facts.items(), FACTS_MAX)
        },
        linked=[]
        if failure.link
        else [
            capped(linked_failure)
            for linked_failure in failure.linked[:LINKED_MAX]
            if linked_failure.link not in (None, "call")
        ],
        log_id=None,
        secrets=[
            (name[:_NAME_MAX_CHARS], value[:SECRET_MAX_CHARS])
            for name, value in failure.secrets[:SECRETS_MAX]
        ],
    )


def _capped(frame: Frame) -> Frame:
    return Frame(
        frame.filename[:_LINE_MAX_CHARS],
        min(max(frame.lineno, 0), _LINENO_MAX),
        frame.name[:_LINE_MAX_CHARS],
        frame.line[:_LINE_MAX_CHARS],
        frame.in_tool,
    )


_TIME = {"TOOL_TIMEOUT", "TOOL_CPU_LIMIT"}
_DEATH = {
    "TOOL_CRASHED", "TOOL_EXITED", "TOOL_KILLED", "TOOL_PROTOCOL", "TOOL_DISK_LIMIT", "WORKER_LOST",
}  # fmt: skip


def is_exact(check: Check) -> bool:
    """Return whether a check needs more than plain JSON, so that its values must cross exactly."""
    return values.has_tags(check.arguments) or values.has_tags(check.expected)


def is_typed(check: Check) -> bool:
    """Return whether a value must have the same types as a check's plain JSON; a recorded list may have been a set.

    A tuple may match a list.
    """
    return check.binding and not check.raises and not values.has_tags(check.expected)


def judged(
    check: Check,
    value: object,
    failure: Failure | None,
    duration_s: float = 0.0,
    trace_id: str = "",
    outline: str = "",
) -> CheckResult:
    """Return the check's result for the value that was returned, or for the failure."""
    outcome: CheckOutcome
    if failure is None:
        exact = is_exact(check)
        met = values.meets if exact else same_value
        wrong = check.raises or (check.known and not met(check.expected, value))
        wrong = wrong or (is_typed(check) and is_beyond_json(outline))
        outcome = "wrong" if wrong else "passed"
        result = values.kept(value) if exact else value
        return CheckResult(
            outcome=outcome, value=result, outline=outline, duration_s=duration_s, trace_id=trace_id
        )
    if failure.code in _TIME:
        outcome = "timeout"
    elif failure.code in _DEATH:
        outcome = "died"
    elif failure.code == CallNotOnRecord.code:
        outcome = "not_on_record"
    elif check.raises and check.raises in {failure.ename, failure.ename.rpartition(".")[2]}:
        outcome = "passed"
    else:
        outcome = "raised"
    return CheckResult(
        outcome=outcome,
        failure=f"{failure.ename}: {failure.evalue}" if failure.evalue else failure.ename,
        error_code=failure.code,
        duration_s=duration_s,
        trace_id=trace_id,
    )
