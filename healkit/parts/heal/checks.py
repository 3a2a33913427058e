"""Checks: run on code, their time limits, results in words.

Each check runs in its own fresh restricted process. Calls are answered from the record of earlier executions
(`runtime.cassette`), and granted folders can be read but not written: a check repeats no effect. A SQL statement, a
tool with granted packages, and an allowed call run in a worker, like a Try of the patch editor. In both cases, checks
keep their order and share nothing.
"""

from __future__ import annotations

import builtins
import contextlib
import re
import threading
import time
from collections.abc import Container, Iterable, Iterator, Sequence, Sized
from typing import TYPE_CHECKING

import msgspec

from healkit.config import Mode
from healkit.core.contracts.cassette import LACKS, Tape, not_read
from healkit.core.contracts.patches import Check, CheckResult
from healkit.core.contracts.vault import NO_GRANTS, VaultEntry
from healkit.core.crossing import values
from healkit.core.pysource.nodes import called_by
from healkit.core.runtime.background import Stop, no_output
from healkit.core.runtime.execution import Execution, arguments_of, nested_grants
from healkit.core.runtime.executor import ExecutionRequest
from healkit.core.runtime.outcomes import is_exact, is_typed
from healkit.core.wire.encoding import is_beyond_json, to_jsonable, type_outline
from healkit.errors import BudgetSpent, HealkitError
from healkit.parts.heal.advisor import Workbench
from healkit.parts.trials.cassette import LiveCalls, Replay
from healkit.parts.trials.trials import run_of
from healkit.plain_text import count

if TYPE_CHECKING:
    from healkit.services import Services

#: How a write to a folder fails that a check may only read, at each tier.
_CANNOT_WRITE = ("OSError: [Errno 30]", "PermissionError: [Errno 13]")
#: Interval at which Stop is checked.
_TICK_S = 0.05
#: Shortest time limit of a check in a worker; it may end this long after the budget.
_LEAST_S = 0.5


class Validator:
    """Runs codes on the checks of one tool.

    stop: Stops running checks when it is set.

    Calls are answered from `tape`. Unrecorded calls are made only if `calls` allows it, and for the unpatched code only
    if they change nothing. `answered` and `made` count the calls of all runs. Only an `accepted` code has the tool's
    grants; any other may read the files in `files`. A check with its own source does not count as accepted code.
    """

    def __init__(
        self,
        hk: Services,
        entry: VaultEntry,
        bench: Workbench,
        stop: threading.Event,
        tape: Tape,
        calls: LiveCalls,
        files: tuple[str, ...] = (),
        accepted: Container[str] = (),
    ) -> None:
        self._hk, self._entry, self._bench, self._stop = hk, entry, bench, stop
        self._tape, self._calls, self._files, self._accepted = tape, calls, files, accepted
        #: Checks that the tool as it is cannot do without its grants → what it lacks.
        self._lacking: dict[bytes, str] = {}
        self.answered = self.made = 0
        #: True if a light trial is enough for this tool.
        self.light = is_light(entry)
        #: Name of the mode in the trace.
        self.mode = "trial" if self.light else "worker"

    def use_workers(self) -> None:
        """Run all checks in workers from now on."""
        self.light, self.mode = False, "worker"

    def fits(self, check: Check) -> bool:
        """Return True if the check can be run: one with source to evaluate needs the light mode."""
        return self.light or not check.call

    def run(self, code: str, checks: Sequence[Check]) -> list[CheckResult]:
        """Run the checks; raise `BudgetSpent`, and `HealkitError` for code that cannot run as this tool."""
        if not checks:
            return []
        results = self._run(code, checks)
        if code not in self._accepted and self._lacking:
            results = [self._undecided(*both) for both in zip(checks, results, strict=True)]
        results = [self._of_a_server(result) for result in results]
        if self._entry.grants.write:
            results = [_without_writing(result) for result in results]
        self.answered += sum(result.answered for result in results)
        self.made += sum(result.live for result in results)
        return results

    def _run(self, code: str, checks: Sequence[Check], *, accepted: bool = True) -> list[CheckResult]:
        """Run the checks.

        accepted: False runs accepted code also without its grants.
        """
        if self.light:
            with_source = [bool(check.call) for check in checks]
            if accepted and code in self._accepted and len(set(with_source)) > 1:
                parts = [
                    iter(self._run(code, [c for c in checks if bool(c.call) is kind]))
                    for kind in (False, True)
                ]
                return [next(parts[kind]) for kind in with_source]
            results = self._bench.run([code], checks, accepted=accepted)[0]
            if self._bench.may_call:  # what is missing may be called, which a light trial cannot
                results = [
                    self.in_worker(code, check, accepted=accepted)
                    if self._may_be_made(code, check, was)
                    else was
                    for check, was in zip(checks, results, strict=True)
                ]
            return results
        return [self.in_worker(code, check, accepted=accepted) for check in checks]

    def find_lacking(self, checks: Sequence[Check], base: Sequence[CheckResult]) -> None:
        """Find the checks that the tool cannot pass under the conditions of other code: without its grants.

        base: Their results with its grants. Such a check says nothing about other code that fails it.
        """
        code = self._entry.code
        for check, was, bare in zip(checks, base, self._run(code, checks, accepted=False), strict=True):
            if (was.outcome, was.failure) != (bare.outcome, bare.failure):
                paths = (*self._entry.grants.read, *self._entry.grants.write)
                lacks = bare.failure if missing_grant(bare) else f"NotOnRecord: {not_read(paths[0])}"
                self._lacking[_key(check)] = lacks

    def bare(self, checks: Sequence[Check]) -> list[CheckResult]:
        """Return the known facts about checks that cannot judge other code: those that need the tool's grants."""
        reasons = (self._lacking.get(_key(check), "") for check in checks)
        return [
            CheckResult(outcome="not_on_record" if reason else "not_run", failure=reason)
            for reason in reasons
        ]

    def _undecided(self, check: Check, result: CheckResult) -> CheckResult:
        lacks = self._lacking.get(_key(check))
        if lacks is None or result.outcome == "passed":
            return result
        return msgspec.structs.replace(result, outcome="not_on_record", failure=lacks)

    def _of_a_server(self, result: CheckResult) -> CheckResult:
        """Return the result of a call that no permission can help: there is no such server."""
        server = missing_call(result).partition(".")[0]
        cassette = self._tape.cassette
        servers = {
            *self._hk.executor.providers,
            *cassette.listed,
            *(definition.server for definition in cassette.definitions),
        }
        if not server or server in servers:
            return result
        return msgspec.structs.replace(
            result, outcome="raised", failure=f"AttributeError: mcp has no server {server!r}"
        )

    def repeat(self, code: str, check: Check, times: int, *, fresh: bool = False) -> list[CheckResult]:
        """Run one check several times.

        fresh: Each in its own interpreter, in which a set has another order.
        """
        if fresh and not check.call:
            return [self.in_worker(code, check, mode="subprocess") for _ in range(times)]
        return self.run(code, [check] * times)

    def replay(self, check: Check, code: str = "") -> Replay:
        """Begin a replay for a check: its calls are answered as those of its execution."""
        only_looks = code == self._entry.code
        return Replay(
            self._tape.cassette, self._tape.play(run_of(check)), calls=self._calls, only_looks=only_looks
        )

    def count(self, replay: Replay) -> None:
        """Count the calls of a replay that ran elsewhere."""
        self.answered += replay.playback.answered
        self.made += replay.made

    def _may_be_made(self, code: str, check: Check, result: CheckResult) -> bool:
        """Return whether calls were missing, or had other recorded arguments, that may be made."""
        if check.call or (result.outcome != "not_on_record" and not result.displaced):
            return False
        missing = missing_call(result)
        return any(map(self.replay(check).may_make, [missing] if missing else filter(None, called_by(code))))

    def in_worker(
        self, code: str, check: Check, mode: Mode = "worker", *, accepted: bool = True
    ) -> CheckResult:
        """Run one check on the path of any execution; raise `BudgetSpent`."""
        if self._bench.left_s <= 0:
            raise BudgetSpent("The healing's time is up.", hint="Give it more time: budget_s=….")
        started = time.perf_counter()
        replay = self.replay(check, code)
        try:
            with _stopped_by(self._stop):
                files = None if accepted and code in self._accepted else self._files
                left_s = min(self._hk.config.timeout_s, max(self._bench.left_s, _LEAST_S))
                execution = execute_check(self._hk, self._entry, check, replay, code, mode, files, left_s)
        except HealkitError as error:
            return CheckResult(outcome="raised", failure=str(error.message), error_code=str(error.code))
        result = check_result(check, execution, time.perf_counter() - started)
        if result.outcome == "timeout" and self._bench.left_s <= 0:
            raise BudgetSpent("The healing's time is up.", hint="Give it more time: budget_s=….")
        played = replay.playback
        return msgspec.structs.replace(
            result, answered=played.answered, displaced=played.displaced, live=replay.made
        )


def _without_writing(result: CheckResult) -> CheckResult:
    """Return the result of a tool that may write: in a check it cannot, which is not a failure of its code."""
    if result.outcome != "raised" or not result.failure.startswith(_CANNOT_WRITE):
        return result
    message = "NotOnRecord: a check does not repeat what the tool writes to a granted folder"
    return msgspec.structs.replace(result, outcome="not_on_record", failure=message)


def missing_call(result: CheckResult) -> str:
    """Return the first call that was not on record, as `server.tool`; empty if none is named."""
    match = re.match(r"NotOnRecord: the call of mcp\.([\w.]+) ", result.failure)
    return match[1] if match and result.outcome == "not_on_record" else ""


def missing_grant(result: CheckResult) -> tuple[str, str] | None:
    """Return the missing grant, as an option and its value: `("files", "/data/rates.txt")`."""
    match = LACKS.search(result.failure) if result.outcome == "not_on_record" else None
    return None if match is None else (match["option"], match["name"][1:-1])


def is_light(entry: VaultEntry) -> bool:
    """Return True if trials in the light mode provide everything for the tool; their calls are always answered."""
    grants = msgspec.structs.replace(entry.grants, read=(), write=(), calls=None, own_grants=False)
    return entry.type == "python" and grants == NO_GRANTS


def execute_check(
    hk: Services,
    entry: VaultEntry,
    check: Check,
    replay: Replay,
    code: str | None = None,
    mode: Mode = "worker",
    files: tuple[str, ...] | None = None,
    timeout_s: float | None = None,
) -> Execution:
    """Run a tool on the execution path with a check's arguments; raise as `Healkit.execute` does.

    replay: Answers its calls.
    code: Other code, as a trial: its failures are not failures of the tool.
    files: As `ExecutionRequest` takes them.
    timeout_s: Less than the tool's own limit, if there is less time.

    The check of a recorded execution runs for its persona, because the new row has the same arguments. It runs with the
    grants of a nested execution, because its arguments were its caller's choice.
    """
    row = None if check.log_id is None else hk.log.get(check.log_id)
    persona = entry.persona if row is None else row.persona
    if hk.vault.get(entry.tool_name, persona).persona != entry.persona:
        persona = entry.persona  # it has a tool of its own by now
    arguments = values.remade(check.arguments)
    if row is not None and check.sampled and code is None:
        arguments = arguments_of(row)  # a revision that is kept is run on all rows, as the tool was
    return hk.runner.perform(
        ExecutionRequest(
            entry.tool_name,
            persona,
            arguments,
            timeout_s=timeout_s,
            mode=mode,
            origin="heal" if code is None else "trial",
            on_output=no_output,
            code=code,
            within=nested_grants(row),
            record=False,
            replay=replay,
            files=files,
        )
    )


@contextlib.contextmanager
def _stopped_by(stop: threading.Event) -> Iterator[None]:
    """Stop the executions of a block when `stop` is set."""
    halt, over = Stop(), threading.Event()

    def watch() -> None:
        while not over.is_set():
            if stop.wait(_TICK_S):
                halt.ask()
                return

    threading.Thread(target=watch, name="healkit-heal-stop", daemon=True).start()
    try:
        with halt.heard():
            yield
    finally:
        over.set()


def check_result(check: Check, execution: Execution, duration_s: float) -> CheckResult:
    """Convert an execution to a check's result."""
    failure = execution.uncleaned.failure  # compared with those of trials; a report shows it only cleaned
    if failure is None:
        outline = type_outline(execution.value)
        right = not check.known or (not check.raises and values.meets(check.expected, execution.value))
        right = right and not (is_typed(check) and is_beyond_json(outline))
        convert = values.kept if is_exact(check) else _as_json  # what the example or the record is written in
        return CheckResult(
            outcome="passed" if right else "wrong",
            value=convert(execution.value),
            outline=outline,
            duration_s=duration_s,
            trace_id=execution.trace_id,
        )
    ended = {
        "TOOL_TIMEOUT": "timeout", "TOOL_CRASHED": "died", "TOOL_EXITED": "died", "CALL_NOT_ON_RECORD": "not_on_record",
    }.get(failure.code, "raised")  # fmt: skip
    if check.raises and failure.ename == check.raises:
        ended = "passed"
    return CheckResult(
        outcome=ended,  # type: ignore[arg-type]  # the values above are outcomes
        failure=failure.summary,
        error_code=failure.code,
        duration_s=duration_s,
        trace_id=execution.trace_id,
    )


def _as_json(value: object) -> object:
    return to_jsonable(value)[0]


def why_not(
    checks: Sequence[Check], results: Sequence[CheckResult], *, discreet_about: str | None = None
) -> str:
    """Say which check a patch fails first; empty if it passes all.

    discreet_about: The patch's code, if no value may be shown (`told_apart`).
    """
    for check, result in zip(checks, results, strict=True):
        if result.outcome != "passed":
            reason = (
                _outcome_text(check, result)
                if discreet_about is None
                else told_apart(check, result, discreet_about)
            )
            return f"{check_text(check)}: {reason}"
    return ""


# What an agent or a model that wrote the code learns about a check: how it ended, and a value's type and size. The
# tool's grants may have read the value, or it may belong to another person.

#: Endings that say nothing of a value.
_ENDINGS = {
    "timeout": "does not end in time", "died": "kills its process", "not_run": "was not run",
}  # fmt: skip


def told_apart(check: Check, result: CheckResult, code: str) -> str:
    """Say how a check ended without any value: what is equal, or the difference in type and size.

    code: The code that ran. Of an exception, only a built-in name, or one in the code, is shown.
    """
    if result.outcome == "passed":
        return "equal"
    if result.outcome == "not_on_record":
        grant = missing_grant(result)
        if grant is not None:
            return f"is unknown: it needs a grant of the tool, which a person has to allow ({grant[0]}=…)"
        called = missing_call(result)
        named = f" of mcp.{called}" if called and called.rpartition(".")[2] in code else ""
        return f"is unknown: a call{named} is not on record (live=…)"
    if result.outcome in _ENDINGS:
        return _ENDINGS[result.outcome]
    gives = (
        f"raises {_exception_name(result.failure, code)}"
        if result.failure
        else f"gives {_size(result.value)}"
    )
    if check.raises:
        return f"{gives}, but {check.raises} is right"
    if not check.known:
        return gives
    if _is_number(check.expected) and not result.failure and _is_number(result.value):
        return "gives another number"
    wanted = _size(check.expected)
    return (
        f"gives another value, also {wanted}"
        if gives == f"gives {wanted}"
        else f"{gives}, but {wanted} is right"
    )


def _exception_name(failure: str, code: str) -> str:
    name = failure.partition(":")[0].rpartition(".")[2]
    kind = getattr(builtins, name, None)
    is_exception = isinstance(kind, type) and issubclass(kind, BaseException)
    return name if is_exception or re.search(rf"\b{re.escape(name)}\b", code) else "an exception"


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def article(name: str) -> str:
    """Return a type's name with its article: `an int`."""
    if name == "NoneType":
        return "None"
    return f"an {name}" if name[:1] in "aeiou" else f"a {name}"


def _size(plain: object) -> str:
    """Return type and size of a kept value: `a list of 3 items`, `a DataFrame of shape (3, 2)`, `an int`."""
    value = values.remade(plain)
    name = type(value).__name__
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple):
        return f"{article(name)} of shape {shape}"
    if isinstance(value, str | bytes):
        return f"{article(name)} of {count(len(value), 'character')}"
    return f"{article(name)} of {count(len(value), 'item')}" if isinstance(value, Sized) else article(name)


def check_text(check: Check) -> str:
    """Describe the check in a few words: its input and its origin."""
    arguments_text = check.told or ", ".join(
        f"{name}={_short(value)}" for name, value in check.arguments.items()
    )
    words = {
        "declared": "the example",
        "answered": "your answer for",
        "passing": "the recorded run",
        "failing": "the failing input",
    }
    some = f"{check.sampled} of " if check.sampled else ""
    return f"{some}{words[check.origin]} ({_short_text(arguments_text, 120)})"


def _outcome_text(check: Check, result: CheckResult) -> str:
    if result.outcome == "wrong":
        if differs := "" if check.raises else values.why_different(check.expected, result.value):
            return f"gives another result: {differs}"
        wanted = check.raises or _short(check.expected)
        if is_typed(check) and is_beyond_json(result.outline):
            return f"gives {_short(result.value)}, a {result.outline}, but {wanted} is right"
        return f"gives {result.failure or _short(result.value)}, but {wanted} is right"
    if result.outcome == "not_on_record":
        return f"is unknown: {_short_text(result.failure.removeprefix('NotOnRecord: '), 200)}"
    if result.error_code == "TOOL_OUT_OF_MEMORY":
        return "needs more memory than its limit allows"
    return _ENDINGS.get(result.outcome) or f"raises {_short_text(result.failure, 200)}"


def _short(value: object) -> str:
    return _short_text(values.value_text(value), 60)


def _short_text(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


# Time limits. Most variants of a code fail at once, and those that hang cost their whole limit. So a limit is short,
# and a variant that needs more gets more later (the slow lane). A candidate always gets as much time as it once needed.

#: Limit of a check by its own time on the code as it is: so many times that, and at least so many seconds.
LIMIT_TIMES, LIMIT_LEAST_S = 6.0, 0.005
#: Limit of a long check: twice its time and half a second.
LONG_TIMES, LONG_S = 2.0, 0.5
#: Least limit where a check's time is unknown. Each of many hanging candidates costs this time.
UNKNOWN_LEAST_S = 0.005
#: Limit of the slow lane, and of another try in a process of its own, by the ordinary limit.
SLOW_TIMES = 10.0
#: Least such limit: few candidates are tried so, and right code may take longer than code that failed at once.
_RUN_LEAST_S = 2.0


class CheckLimits:
    """Limits of checks in seconds of computing; all benches of one healing share one."""

    def __init__(self) -> None:
        self._limits: dict[bytes, float] = {}
        self._hanging: set[bytes] = set()
        self._granted: dict[bytes, float] = {}

    def __contains__(self, check: Check) -> bool:
        return _key(check) in self._limits

    def __getitem__(self, check: Check) -> float:
        return self._limits[_key(check)]

    def hangs(self, check: Check) -> bool:
        """Return True for a check on which the unpatched code is known not to end."""
        return _key(check) in self._hanging

    def expect_hanging(self, checks: Iterable[Check]) -> None:
        """Mark checks as known not to end."""
        self._hanging.update(map(_key, checks))

    def learn(self, checks: Sequence[Check], results: Sequence[CheckResult]) -> None:
        """Set the limits of checks from their results with the unpatched code."""
        ended = [result.duration_s for result in results if result.outcome != "timeout"]
        passed = [result.duration_s for result in results if result.outcome == "passed"]
        unknown_s = max(UNKNOWN_LEAST_S, _limit_s(max(passed or ended, default=0.0)))
        for check, result in zip(checks, results, strict=True):
            own_s = max(LIMIT_LEAST_S, _limit_s(result.duration_s))
            if result.outcome == "passed":
                self._limits[_key(check)] = own_s
            elif result.outcome == "timeout":
                self._limits[_key(check)] = unknown_s
                self._hanging.add(_key(check))
            else:  # right code may take longer than wrong code, and hardly less time
                self._limits[_key(check)] = max(own_s, unknown_s)

    def grant(self, checks: Iterable[Check], limit_s: float) -> None:
        """Record that a candidate passed with that limit, so that it gets the same time for validation."""
        if limit_s <= _RUN_LEAST_S:
            return  # every rare run has that long
        for key in map(_key, checks):
            self._granted[key] = max(limit_s, self._granted.get(key, 0.0))

    def lengthened(self, checks: Sequence[Check], limits_s: Sequence[float]) -> list[float]:
        """Return the limits for rare runs: at least their minimum, and at least the granted time."""
        granted_s = [self._granted.get(_key(check), 0.0) for check in checks]
        return [max(*both, _RUN_LEAST_S) for both in zip(limits_s, granted_s, strict=True)]


def _key(check: Check) -> bytes:
    return msgspec.json.encode(check)


def _limit_s(own_s: float) -> float:
    """Return the limit for a duration: a multiple of it, smaller for a long one, which costs it in full."""
    return min(LIMIT_TIMES * own_s, LONG_S + LONG_TIMES * own_s)
