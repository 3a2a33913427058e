"""Case of a failing tool: its record, its checks, a diagnosis.

A recorded run says what the tool did, an example says what is right; for the same input, the example counts. If the
tool returns a result that an example calls wrong, its other recorded values come from the same fault, so they are left
out. Otherwise they are kept: a patch has to return what the tool has always returned.

The diagnosis reads the record and the results of the checks; it runs nothing. The failure catalogue,
`healkit.parts.explain`, supplies its sentence and its kind.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from healkit.core.contracts.execution import SUMMARY_MAX_CHARS, Grants
from healkit.core.contracts.failure import Failure
from healkit.core.contracts.patches import Check, CheckResult
from healkit.core.contracts.tools import revision_label
from healkit.core.contracts.vault import DEFAULT_PERSONA, VaultEntry, checked_examples
from healkit.core.crossing import values
from healkit.core.pysource import shapes
from healkit.core.runtime.execution import arguments_of, execution_of, logged, result_of
from healkit.core.store.log_reader import Log
from healkit.core.store.models import ExecutionLog
from healkit.core.store.vault import Vault
from healkit.errors import (
    ArgumentsInvalid,
    CodeDoesNotParse,
    ExamplesInvalid,
    HealError,
    HealkitError,
    VaultError,
    is_refused,
)
from healkit.parts.explain.catalogue import Kind, failure_kind, no_fix, outside
from healkit.parts.explain.explanation import explain
from healkit.parts.heal.advisor import Case, Peer
from healkit.parts.heal.callers import Blamed, blamed, caller_checks, calling_checks
from healkit.parts.heal.inputs import sample
from healkit.parts.trials.order import order, recorded_of

#: Number of recorded runs that passed, and of inputs that failed in the same way, that become checks.
_PASSING_MAX, _FAILING_MAX = 30, 3
#: Number of those that are read, to choose from.
_PASSING_READ = 200
#: A recorded frame with more items does not become a check, as each candidate would be tried on it. But some rows of a
#: failing one do, up to the second limit.
_ITEMS_MAX, _SAMPLED_MAX = 100_000, 50_000_000
#: Number of peers, and of earlier revisions among them: a long history leaves room for others.
_PEERS_MAX, _REVISIONS_MAX, _REVISIONS_AT_ONCE = 12, 8, 50
#: Limit of the arguments of a recorded run that becomes a check.
_ARGUMENTS_MAX_BYTES = 4 * 1024 * 1024
#: Mark of a cut summary.
_CUT = "[TRUNCATED, "


def gather(
    vault: Vault,
    log: Log,
    tool: str,
    persona: str,
    log_id: int | None = None,
    *,
    may_work: bool = False,
    only: str | None = None,
) -> tuple[Case, int | None, Blamed | None]:
    """Gather the case of a tool and the log row of its failure; if another tool failed in it, that tool's case.

    log_id: The failure to heal; by default the tool's newest.
    may_work: The tool need not fail, and this tool is meant, wherever the failure came from.
    only: The persona whose rows count, and whose code and the default code are peers; by default the tool's own, and
        failures of all.

    Raises `HealError` if the tool has neither a failure nor an example, and as `vault.lookup` does.
    """
    entry = vault.lookup(tool, persona)
    row = _failure_row(log, entry, log_id, only)
    blame = None if may_work else blamed(log, row)
    if blame is not None:
        row = blame.row
        entry = vault.lookup(row.tool_name, row.persona)
    callers = () if blame is None else blame.callers
    failure: Failure | None = None if row is None else execution_of(row, []).uncleaned.failure
    failing = failing_inputs(log, row)
    examples = checks_of(entry)
    keys = {_key(check) for check in examples}
    doctests = [check for check in doctest_checks(vault, entry) if _key(check) not in keys]
    called = caller_checks(vault, entry, callers) if callers else calling_checks(vault, entry, only)
    declared = [*examples, *doctests, *called]
    checks = merged(declared, failing, passing_runs(log, entry, only))
    if row is None and not may_work and not any(check.binding for check in checks):
        raise HealError(
            f"There is no failure of {entry.label} on record, and it has no examples.",
            hint="Run it with the failing input, or add an example of the right result: "
            f"hk.vault.add_example({entry.tool_name!r}, {{…}}).",
        )
    trace_id, untried = "" if row is None else row.trace_id, row is not None and not failing
    above = {caller.tool_name for caller in callers}
    peers = tuple(peer for peer in peers_of(vault, entry, only) if peer.label.partition(" ")[0] not in above)
    case = Case(entry, failure, checks, (), peers, trace_id, untried)
    return case, None if row is None else row.id, blame


def checks_of(entry: VaultEntry) -> list[Check]:
    """Return the tool's declared examples as checks, in their order.

    An invalid example, which an older healkit accepted, is left out. An example with neither result nor exception only
    requires a return.
    """
    return [
        check
        for example in entry.examples
        if (check := _declared_check(example, entry.type == "sql")) is not None
    ]


def doctest_checks(vault: Vault, entry: VaultEntry) -> list[Check]:
    """Return the examples in the tool's docstring, if they are not already among its examples.

    Only a person's revision counts: another author's patch may not define its own expectations.
    """
    if entry.type != "python" or "examples" in entry.flags.get("derived", ()):
        return []
    newest_first = reversed(vault.history(entry.tool_name, entry.persona, limit=_REVISIONS_AT_ONCE))
    written = (revision for revision in newest_first if revision.author == "person")
    with contextlib.suppress(HealkitError):
        newest = next(written, None)
        code = "" if newest is None else vault.code(newest.code_hash)
        if ">>>" in code:
            tree = shapes.parse(code, entry.ref.filename)
            examples = shapes.examples_in(tree, shapes.read_shape(tree, entry.tool_name))
            return [check for example in examples if (check := _declared_check(example, False)) is not None]
    return []


def _declared_check(example: object, sql: bool) -> Check | None:
    try:
        (checked_example,) = checked_examples([example], sql=sql)
    except ExamplesInvalid:
        return None
    about: Mapping[str, Any] = {
        name: checked_example[name] for name in ("arguments", "call", "raises") if name in checked_example
    }
    is_known = "result" in checked_example or "raises" in checked_example
    return Check(origin="declared", known=is_known, expected=checked_example.get("result"), **about)


def merged(
    declared: Sequence[Check], failing: Iterable[Check], passing: Iterable[Check]
) -> tuple[Check, ...]:
    """Merge all checks, each input once: an example comes before a recorded run, whose calls then answer its own."""
    by_key = {_key(check): check for check in declared}
    for check in (*failing, *passing):
        existing = by_key.setdefault(_key(check), check)
        if existing.log_id is None and not existing.call:
            by_key[_key(check)] = msgspec.structs.replace(existing, log_id=check.log_id)
    return tuple(by_key.values())


def settled(
    checks: Sequence[Check], base: Sequence[CheckResult], again: Sequence[CheckResult | None]
) -> tuple[Check, ...]:
    """Return the checks that count, after the tool ran.

    base: Each check's result with the active code.
    again: The same with the code of the recorded run, None if that is unknown. If its own code does not return a
        recorded value again, the value is chance. If the tool contradicts an example without failing, all its recorded
        values are suspect. Some rows of a failing input count only if they fail.
    """
    returns_wrong = any(
        check.binding and result.outcome == "wrong" for check, result in zip(checks, base, strict=True)
    )
    remaining = []
    for check, was, result in zip(checks, base, again, strict=True):
        chance = result is not None and result.outcome != "passed"
        harmless = check.sampled and was.outcome == "passed"
        if was.outcome == "not_on_record" and check.origin in ("failing", "passing"):
            continue  # what it did then cannot be seen again
        if not harmless and (check.origin != "passing" or not (returns_wrong or chance)):
            remaining.append(check)
    return tuple(remaining)


def failing_inputs(log: Log, row: ExecutionLog | None) -> list[Check]:
    """Return the recorded input of that failure, and of similar ones, newest first."""
    if row is None:
        return []
    rows = [row]
    if row.fingerprint:
        page = log.query(tool=row.tool_name, persona=row.persona, fingerprint=row.fingerprint, limit=20)
        rows += [similar_row for similar_row in page.rows if similar_row.id != row.id]
    by_key: dict[str, Check] = {}
    for failed in rows:
        check = _failing_input(failed, _ITEMS_MAX)
        if check is None and failed is row:  # long frames of others like it are not loaded
            check = _failing_input(failed, _SAMPLED_MAX)
        if check is not None:
            by_key.setdefault(_key(check), check)
    return list(by_key.values())[:_FAILING_MAX]


def _failing_input(row: ExecutionLog, items_max: int) -> Check | None:
    """Return a failure's input, with some rows of a frame that is too long to try; None if it is not complete."""
    with contextlib.suppress(ArgumentsInvalid):
        arguments = arguments_of(row, items_max=items_max)
        chosen = {name: sample(value, _ITEMS_MAX) for name, value in arguments.items()}
        parts = [
            f"{len(chosen[name]):,} of {len(value):,} rows"
            for name, value in arguments.items()
            if chosen[name] is not value
        ]
        return Check(
            origin="failing",
            arguments=_kept(chosen),
            log_id=row.id,
            sampled=" and ".join(dict.fromkeys(parts)),
        )
    return None


def passing_runs(log: Log, entry: VaultEntry, persona: str | None = None) -> list[Check]:
    """Return the completely recorded runs that passed, each input once, newest first.

    If there are more than can be tried on each patch, the most telling ones are used.
    """
    persona = entry.persona if persona is None else persona
    rows = log.query(tool=entry.tool_name, persona=persona, status="SUCCESS", limit=_PASSING_READ).rows
    whole = [row for row in rows if row.revision is not None and _is_whole(row.result_summary)]
    by_key: dict[str, tuple[int, Check]] = {}
    few = len(whole) <= _PASSING_MAX
    for at in range(len(whole)) if few else order([recorded_of(row) for row in whole], entry.code):
        try:
            arguments, expected = (
                _kept(arguments_of(whole[at], items_max=_ITEMS_MAX)),
                values.kept(result_of(whole[at], items_max=_ITEMS_MAX)),
            )
        except (ArgumentsInvalid, ValueError):
            continue
        check = Check(
            origin="passing", arguments=arguments, known=True, expected=expected, log_id=whole[at].id
        )
        by_key.setdefault(_key(check), (at, check))
        if len(by_key) == _PASSING_MAX:
            break
    return [check for _, check in sorted(by_key.values(), key=lambda one: one[0])]


def _is_whole(summary: str | None) -> bool:
    return summary is not None and (len(summary) < SUMMARY_MAX_CHARS - 1 or _CUT not in summary)


def peers_of(vault: Vault, entry: VaultEntry, only: str | None = None) -> Iterable[Peer]:
    """Yield earlier revisions and other personas' versions of the tool, then other tools with the same arguments."""
    codes = {entry.code}

    def peer(label: str, code: str, *, same_tool: bool) -> Iterable[Peer]:
        if code not in codes and len(codes) <= _PEERS_MAX:
            codes.add(code)
            yield Peer(label, code, same_tool)

    for number, code in _earlier(vault, entry):
        yield from peer(revision_label(entry.tool_name, entry.persona, number), code, same_tool=True)
        if len(codes) > _REVISIONS_MAX:
            break
    seen_by = None if only is None else {only, DEFAULT_PERSONA}
    candidates = [
        listed
        for listed in vault.list()
        if listed.type == entry.type and not listed.draft and (seen_by is None or listed.persona in seen_by)
    ]
    for candidate in candidates:
        if candidate.tool_name == entry.tool_name and candidate.persona != entry.persona:
            yield from peer(candidate.label, candidate.code, same_tool=True)
    takes = _takes(entry)
    for candidate in candidates:
        if takes and candidate.tool_name != entry.tool_name and _takes(candidate) == takes:
            yield from peer(candidate.label, candidate.code, same_tool=False)


def _earlier(vault: Vault, entry: VaultEntry) -> Iterator[tuple[int, str]]:
    """Yield number and code of the revisions, newest first, each code once; they are read when they are drawn."""
    hashes: set[str] = set()
    before: int | None = None
    while page := vault.history(entry.tool_name, entry.persona, limit=_REVISIONS_AT_ONCE, before=before):
        for info in reversed(page):
            if info.draft or info.code_hash in hashes:
                continue
            hashes.add(info.code_hash)
            try:
                yield info.number, vault.code(info.code_hash)
            except VaultError:
                continue  # tampered: reported where it is run, and not used here
        if len(page) < _REVISIONS_AT_ONCE:
            return
        before = page[0].number


def own_code(vault: Vault, log: Log, entry: VaultEntry, check: Check) -> str | None:
    """Return the code of a recorded run; None if it is the active code, or no longer exists."""
    row = None if check.log_id is None else log.get(check.log_id)
    if row is None or row.code_hash in (None, entry.code_hash):
        return None
    try:
        return vault.code(str(row.code_hash))
    except VaultError:
        return None


def _failure_row(log: Log, entry: VaultEntry, log_id: int | None, persona: str | None) -> ExecutionLog | None:
    row = log.last_error(entry.tool_name, persona) if log_id is None else logged(log, log_id)
    if row is not None and log_id is None and is_refused(row.error_code):
        # Calls that were wrong say nothing of the code: the newest failure before them is meant, if there is one.
        criteria = {"tool": row.tool_name, "persona": persona}
        earlier = log.query(status="FAILURE", refused=False, tried=False, limit=1, **criteria).rows
        row = next(iter(earlier), None)  # without one, the examples decide
    if row is None:
        return None
    if row.tool_name != entry.tool_name or row.status != "FAILURE":
        raise HealError(
            f"Log row {row.id} of {row.tool_name!r} has the status {row.status}. "
            f"It is not a failure of {entry.tool_name!r}.",
            hint="`hk.executions(status='FAILURE')` lists the failures.",
        )
    if is_refused(row.error_code):
        raise HealError(
            f"The code did not cause the failure in log row {row.id}: {row.error_code}.",
            hint="Call it with arguments that it takes.",
        )
    return row


def _kept(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments in their kept form; raise `ArgumentsInvalid` for more than can be tried thousands of times."""
    contents: values.Buffers = []
    encoded, _ = values.encode(arguments, contents)
    if len(encoded) + sum(memoryview(buffer).nbytes for buffer in contents) > _ARGUMENTS_MAX_BYTES:
        raise ArgumentsInvalid(
            f"Arguments of more than {_ARGUMENTS_MAX_BYTES:,} bytes cannot be used as a check."
        )
    return {name: values.kept(value) for name, value in arguments.items()}


def _takes(entry: VaultEntry) -> Any:
    """Return names and types of a tool's arguments, for comparison."""
    properties = entry.input_schema.get("properties", {})
    return {name: schema.get("type") for name, schema in properties.items()}


def _key(check: Check) -> str:
    return check.call or json.dumps(check.arguments, sort_keys=True, default=str)


#: Files that are named with their hash, the size of those together, and files that are looked at.
_FILES_MAX, _FILES_MAX_BYTES, _FILES_LOOKED_AT = 5, 64 * 1024 * 1024, 1000


def granted_files(grants: Grants, since: datetime | None) -> list[str]:
    """Say which granted files the checks read, with their current hashes, and which have changed since then."""
    paths = [Path(path) for path in (*grants.read, *grants.write)]
    within = (file for path in paths for file in ([path] if path.is_file() else path.rglob("*")))
    files = sorted(file for file in itertools.islice(within, _FILES_LOOKED_AT) if file.is_file())
    if not files:
        return []
    size = 0
    descriptions: list[str] = []
    changed: list[str] = []
    for file in files:
        with contextlib.suppress(OSError):  # it has gone meanwhile, or is not this user's to read
            state = file.stat()
            if since is not None and state.st_mtime > since.timestamp():
                changed.append(file.name)
            size += state.st_size
            if len(descriptions) < _FILES_MAX and size <= _FILES_MAX_BYTES:
                descriptions.append(
                    f"{file.name} (SHA-256 {hashlib.sha256(file.read_bytes()).hexdigest()[:12]}…)"
                )
    more = len(files) - len(descriptions)
    names = ", ".join([*descriptions, *([f"{more} more"] if more else [])])
    later = f" Changed since the failure: {', '.join(changed[:_FILES_MAX])}." if changed else ""
    return [f"The checks use the granted files as they are now: {names}.{later}"]


# Diagnosis: the kind of the mistake, its line, and whether a change of the code helps.


@dataclasses.dataclass(frozen=True)
class Diagnosis:
    """A failure, as far as it is known before anything is tried.

    line: The line of the innermost frame in the tool's own code (from 1), None if unknown.
    function: The function of the line.
    sentence: The failure in one plain sentence.
    fixable: False if no change of the code helps; then `why_not` says why in one sentence.
    outside: What has to change outside the code, if no rule knows better; empty if the code is to blame.
    """

    kind: Kind
    sentence: str
    line: int | None = None
    function: str = ""
    fixable: bool = True
    why_not: str = ""
    outside: str = ""


def diagnose(entry: VaultEntry, failure: Failure | None, checks: Sequence[Check] = ()) -> Diagnosis:
    """Diagnose an entry's newest failure or, without one, its wrong values; never raises."""
    if entry.type == "python" and (broken := _unreadable(entry)) is not None:
        return broken
    if failure is None:
        return _wrong_value(checks)
    frame = failure.tool_frame
    why_not = no_fix(failure)
    return Diagnosis(
        failure_kind(failure),
        _sentence(explain(failure).what),
        frame.lineno if frame else None,
        frame.name.strip("<>") if frame else "",
        fixable=not why_not,
        why_not=why_not,
        outside=outside(failure),
    )


def diagnosed_by_examples(case: Case, diagnosis: Diagnosis, log: Log) -> tuple[Case, Diagnosis]:
    """Take the first failure of an example as the case's, and diagnose it; without one, a value is wrong."""
    if not case.base:
        return case, dataclasses.replace(diagnosis, sentence="The results of its examples are not known.")
    for result in case.base:
        if result.failure and result.outcome not in ("passed", "wrong"):
            failure = _failure_of(case, result, log)
            return dataclasses.replace(case, failure=failure), diagnose(case.entry, failure, case.checks)
    if all(result.outcome == "passed" for result in case.base):
        return case, dataclasses.replace(diagnosis, sentence="Every check passes with the code as it is.")
    return case, diagnosis


def _failure_of(case: Case, result: CheckResult, log: Log) -> Failure:
    """Return the recorded failure of a check; for a tool that is kept off the record, its one line."""
    row = log.by_trace(result.trace_id) if result.trace_id and case.entry.logged else None
    if row is not None and (failure := execution_of(row, []).uncleaned.failure) is not None:
        return failure
    ename, _, evalue = result.failure.partition(": ")
    return Failure(result.error_code or "TOOL_EXCEPTION", ename, evalue, result.failure)


def _unreadable(entry: VaultEntry) -> Diagnosis | None:
    """Diagnose code that Python cannot read, whatever the record says."""
    try:
        shapes.parse(entry.code, entry.ref.filename)
    except CodeDoesNotParse as error:
        where = f"line {error.lineno}" if error.lineno else "the code"
        message = error.message.partition("\n")[0].partition(": ")[2]
        return Diagnosis("syntax", f"Python cannot read {where}: {message.rstrip('.')}.", error.lineno)
    return None


def _wrong_value(checks: Sequence[Check]) -> Diagnosis:
    if any(check.known for check in checks):
        return Diagnosis("wrong_value", "No exception, but the result is wrong.")
    why = "The record shows no failure and no example of a right result, so nothing is known to be wrong."
    return Diagnosis("other", "There is no failure on record.", fixable=False, why_not=why)


def _sentence(text: str) -> str:
    """Put a sentence on one line and end it."""
    flat = " ".join(text.split())
    return flat if flat.endswith((".", "!", "?")) else f"{flat}."
