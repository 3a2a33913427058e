"""Errors of executions: tools, workers, runs, healings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from healkit.errors.base import HealkitError
from healkit.plain_text import visible

if TYPE_CHECKING:
    from healkit.contracts.failure import Failure


class ArgumentsInvalid(HealkitError):
    """Arguments that miss the tool's input schema; no worker was touched."""

    code = "ARGUMENTS_INVALID"


class InternalError(HealkitError):
    """An error in healkit itself; neither the call nor the tool is to blame."""

    code = "INTERNAL_ERROR"

    @classmethod
    def of(cls, error: BaseException) -> InternalError:
        """Make it of the error that was raised: its type and place, without its message, which may hold contents."""
        told = error.__traceback__
        while told is not None and told.tb_next is not None:
            told = told.tb_next
        place = ""
        if told is not None:
            file = "/".join(told.tb_frame.f_code.co_filename.split("/")[-3:])
            place = f" at line {told.tb_lineno} of {file}"
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


class PlotUnavailable(HealkitError):
    """A plot that was asked for where the extra that draws is not installed."""

    code = "PLOT_UNAVAILABLE"


class DockUnavailable(HealkitError):
    """A panel for the side of the window, where the extra that puts it there is not installed, or no window is."""

    code = "DOCK_UNAVAILABLE"


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
    """A tool that ran and failed: `failure` is its traceback as data, `log_id` its row in the ExecutionLog."""

    def __init__(self, label: str, failure: Failure, log_id: int | None, trace_id: str) -> None:
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
        return self.failure.ename

    @property
    def evalue(self) -> str:
        """Message of the tool's exception."""
        return self.failure.evalue

    @property
    def frames(self) -> list[Any]:
        """Frames of the traceback, outermost first."""
        return list(self.failure.frames)

    def _render_traceback_(self) -> list[str]:
        where = f"log row {self.log_id}" if self.log_id is not None else f"trace {self.trace_id}"
        lines = [self.failure.traceback, f"{self.label} failed [{self.code}], {where}.", self.hint]
        return visible("\n".join(lines).rstrip()).split("\n")
