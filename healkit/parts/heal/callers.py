"""Failure inside a called tool: who is to blame, its checks.

A tool that passes on the failure of another tool is not to blame, unless that tool refused its arguments: by its
schema, or by its own `raise`. So the called tool is healed. The examples of its callers are checks of it: the caller
runs beside each candidate, which answers the caller's calls of it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

from healkit.core.contracts.patches import Check
from healkit.core.contracts.vault import DEFAULT_PERSONA, VaultEntry
from healkit.core.crossing import values
from healkit.core.pysource.nodes import called_by
from healkit.core.pysource.shapes import parse, read_shape
from healkit.core.runtime.execution import execution_of
from healkit.core.store.log_reader import Log
from healkit.core.store.models import ExecutionLog
from healkit.core.store.vault import Vault
from healkit.errors import HealkitError, is_refused

#: Recorded failures of the tools that a row called; more are not looked at.
_CALLED_MAX = 200
#: Examples of tools that call the one that is healed.
_EXAMPLES_MAX = 8
#: Runs a caller's code beside the tool's; `mcp.vault` answers the calls of the tool itself, and passes on all others.
_BESIDE = """
class _Beside:
    def __init__(self, whole, name, part):
        self._whole, self._name, self._part = whole, name, part

    def __getattr__(self, name):
        return self._part if name == self._name else getattr(self._whole(), name)


def _caller(code, name, called, tool):
    own = _Beside(lambda: mcp, "vault", _Beside(lambda: mcp.vault, called, tool))
    names = {"mcp": own, "trace": trace, "Tool": Tool, "__name__": __name__}
    exec(compile(code, f"<{name}>", "exec", dont_inherit=True), names)
    return names

"""


@dataclasses.dataclass(frozen=True)
class Blamed:
    """Failure to heal: the row of the tool that failed, and those of its callers, the outermost first."""

    row: ExecutionLog
    callers: tuple[ExecutionLog, ...]

    @property
    def sentence(self) -> str:
        """Sentence that says which tool failed in which."""
        caller, row = self.callers[0], self.row
        return (
            f"{caller.tool_name} failed in {row.tool_name}, which it called (log row {row.id}), so {row.tool_name} is "
            "healed."
        )


def blamed(log: Log, row: ExecutionLog | None) -> Blamed | None:
    """Return the called tool's failure that a recorded failure passes on; None if its own code is to blame."""
    callers: list[ExecutionLog] = []
    while row is not None and (inner := _passed_on(log, row)) is not None:
        callers.append(row)
        row = inner
    return Blamed(row, tuple(callers)) if row is not None and callers else None


def _passed_on(log: Log, row: ExecutionLog) -> ExecutionLog | None:
    """Return the row of the called tool whose failure this one passes on, unless that tool refused its arguments."""
    if row.ename != "ToolCallError" or not (row.evalue or "").startswith("mcp.vault."):
        return None
    for called_row in log.query(trace=row.trace_id, status="FAILURE", limit=_CALLED_MAX).rows:
        suffix = f": {called_row.ename}: {called_row.evalue}"
        if called_row.parent_trace_id != row.trace_id or not str(row.evalue).endswith(suffix):
            continue
        failure = execution_of(called_row, []).uncleaned.failure
        frame = None if failure is None else failure.tool_frame
        is_deliberate = frame is not None and frame.line.split()[:1] == ["raise"]
        return None if is_deliberate or is_refused(called_row.error_code) else called_row
    return None


def caller_checks(vault: Vault, entry: VaultEntry, callers: Sequence[ExecutionLog]) -> list[Check]:
    """Return the callers' examples as checks of the tool that failed in them; the nearest caller's first.

    Only plain functions and plain JSON are used; everything else is not a check.
    """
    tool, called = _function(entry), entry.tool_name
    source, checks = _BESIDE, list[Check]()
    for number, row in enumerate(reversed(callers)):
        try:
            caller = vault.lookup(row.tool_name, row.persona)
        except HealkitError:
            break
        name = _function(caller)
        if tool is None or name is None:
            break
        wrapper = f"_caller_{number}"
        source += (
            f"{wrapper} = _caller({caller.code!r}, {caller.tool_name!r}, {called!r}, {tool})[{name!r}]\n"
        )
        tool, called = wrapper, caller.tool_name
        checks += _checks_of(caller, source, wrapper, row)
    return checks


def calling_checks(vault: Vault, entry: VaultEntry, only: str | None) -> list[Check]:
    """Return the examples of the tools that call it as its checks, which run like those of `caller_checks`.

    They count if they pass before any patch; if they fail, the caller may be to blame.

    only: The persona whose code counts besides the default one.
    """
    tool, checks = _function(entry), list[Check]()
    seen_by = {entry.persona, DEFAULT_PERSONA} if only is None else {only, DEFAULT_PERSONA}
    for caller in vault.list() if tool is not None else ():
        ours = caller.persona in seen_by and not caller.draft and caller.tool_name != entry.tool_name
        if not ours or not caller.examples or f"vault.{entry.tool_name}" not in called_by(caller.code):
            continue
        if (name := _function(caller)) is not None:
            expression = (
                f"_caller({caller.code!r}, {caller.tool_name!r}, {entry.tool_name!r}, {tool})[{name!r}]"
            )
            checks += _checks_of(caller, f"{_BESIDE}_caller_0 = {expression}\n", "_caller_0", None)
    return checks[:_EXAMPLES_MAX]


def _checks_of(caller: VaultEntry, source: str, made: str, row: ExecutionLog | None) -> Iterator[Check]:
    for example in caller.examples:
        arguments = example.get("arguments") if isinstance(example, dict) else None
        if not isinstance(arguments, dict) or "result" not in example or values.has_tags(arguments):
            continue
        arguments_text = ", ".join(f"{key}={value!r}" for key, value in arguments.items())
        yield Check(
            origin="declared",
            call=f"{source}{made}(**{arguments!r})",
            shown=f"{caller.tool_name}({arguments_text})",
            known=True,
            expected=example["result"],
            log_id=row.id if row is not None and row.arguments == arguments else None,
        )


def _function(entry: VaultEntry) -> str | None:
    """Return the name of a tool's function; None for another kind of tool, and for one that awaits or acts."""
    if entry.type != "python" or "await" in entry.code or entry.flags.get("side_effects"):
        return None
    try:
        shape = read_shape(parse(entry.code, entry.ref.filename), entry.tool_name)
    except HealkitError:
        return None
    return shape.entry if shape.kind == "function" and not shape.takes_dict else None
