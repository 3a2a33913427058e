"""`hk.replay` and `hk.export_cassette`.

A recorded execution again, without making a call.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from healkit.core.contracts.cassette import Tape
from healkit.core.contracts.vault import VaultEntry
from healkit.core.crossing import values
from healkit.core.runtime.execution import Execution, nested_grants
from healkit.core.runtime.executor import ExecutionRequest
from healkit.core.store.entries import NO_REVISION, check_names, code_hash
from healkit.core.workers.worker import OnOutput
from healkit.errors import check_whole
from healkit.parts.trials.cassette import Replay, read_reproduction, reproduction_of, write_reproduction
from healkit.services import Services


class Replays:
    """Replays of the executions of one database."""

    def __init__(self, services: Services) -> None:
        self._services = services

    def replay(
        self,
        what: int | str | Path,
        *,
        active: bool = False,
        live: Sequence[str] = (),
        timeout: float | None = None,
        on_output: OnOutput | None = None,
    ) -> Execution:
        """Run a recorded execution again without making a call: each call is answered from the record.

        what: The execution's row in the log, or a file that `export_cassette` has written. It runs with its old code,
            and so ends as before, unless chance or time decides. So it can be shown without the servers that it called.
            It can only read a folder that it could write. The code of a file comes from its writer. It has no grants,
            whatever the vault has under that name, and the vault does not change.
        active: Run the tool's active revision instead, to see whether it is fixed.
        live: Patterns of calls that may be made if they are not on record (`["host.price"]`).

        Like a trial, it counts neither as a run of the tool nor as its failure. A call that is not on record ends it
        with `CALL_NOT_ON_RECORD`.

        Raises `UsageInvalid` if there is no such row, `LogFileError` for an invalid file, `ArgumentsInvalid` if the log
        does not contain the complete arguments, and as `execute` does.

        Example:
        >>> _ = hk.provide(lambda: 20, "degrees")
        >>> code = "def fahrenheit(): return mcp.host.degrees() * 9 / 5 + 32"
        >>> _ = hk.vault.add("fahrenheit", code, grants={"calls": ["host.degrees"]})
        >>> done = hk.execute("fahrenheit")
        >>> hk.withdraw("degrees")
        >>> hk.replay(done.log_id).value
        68.0
        """
        services = self._services
        vault, providers = services.vault, services.executor.providers
        if not isinstance(what, str | Path):
            check_whole("what", what)
        row = services.log.get(what) if isinstance(what, int) else None
        if isinstance(what, int):
            reproduction = reproduction_of(services.log, vault, what, providers)
        else:
            reproduction = read_reproduction(what)
        foreign = None
        if row is None and not active:
            check_names(reproduction.tool_name, reproduction.persona)
            named = (
                reproduction.tool_name,
                reproduction.persona,
                NO_REVISION,
                reproduction.code,
                code_hash(reproduction.code),
                reproduction.type,
            )
            foreign = VaultEntry(*named, flags={"derived": ["input_schema"]})
        entry = foreign or vault.lookup(reproduction.tool_name, reproduction.persona)
        # What a revision did was a person's to accept; what was only tried was not.
        tried = row is not None and row.revision is None and entry.code != reproduction.code
        # A replay makes no call but those that `live` allows here: neither a file nor a provider's word adds any.
        cassette = msgspec.structs.replace(reproduction.cassette, live=[])
        return services.runner.perform(
            ExecutionRequest(
                reproduction.tool_name,
                reproduction.persona,
                values.remade(reproduction.arguments),
                timeout_s=timeout,
                origin="trial",
                on_output=on_output,
                code=None
                if active or (entry.code == reproduction.code and foreign is None)
                else reproduction.code,
                within=None if row is None else nested_grants(row),
                kind="rerun",
                replay=Replay.of(Tape(cassette), reproduction.run, live),
                files=() if tried and not active else None,
                foreign=foreign,
            )
        )

    def export_cassette(self, log_id: int, path: str | Path, *, overwrite: bool = False) -> tuple[Path, int]:
        """Write an execution as a file that runs again anywhere, without the tools that it called: `replay(path)`.

        Returns the file, and the number of hidden secrets; with hidden secrets, it may end differently. Raises
        `UsageInvalid` if there is no such row, `ArgumentsInvalid` if the log does not contain the complete arguments,
        and `LogFileError` if the file is not writable.

        Example:
        >>> file, hidden = hk.export_cassette(failed.log_id, "ratio_failure.json")
        >>> with Healkit("colleague.db") as colleague:
        ...     colleague.replay(file).failure.summary
        'ZeroDivisionError: division by zero'
        """
        services = self._services
        reproduction = reproduction_of(services.log, services.vault, log_id, services.executor.providers)
        return write_reproduction(reproduction, path, services.cleaner.sanitizer, overwrite=overwrite)
