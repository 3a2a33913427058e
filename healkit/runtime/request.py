"""Request for one execution."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, Literal, get_args

from healkit.contracts.encoding import ValueTooLarge, to_jsonable
from healkit.contracts.rpc import MAX_FRAME_BYTES
from healkit.errors import ArgumentsInvalid, ConfigError
from healkit.runtime.steps import UNRECORDED, StepListener

#: `worker` is a Jupyter kernel, `subprocess` a plain interpreter; the restrictions are the same.
Mode = Literal["worker", "subprocess"]
#: Gets each output, an nbformat dict, as it comes.
OnOutput = Callable[[dict[str, Any]], None]
_ARGUMENTS_MAX_CHARS = MAX_FRAME_BYTES // 4


@dataclasses.dataclass(frozen=True)
class ExecutionRequest:
    """Call, as a face makes it. `on_output` gets nbformat output dicts as they come; `stop` ends the run.

    `code` is run in the place of the stored one, as a candidate that nobody has saved; `step` is told what happens.
    """

    tool_name: str
    persona: str = "default"
    arguments: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    timeout_s: float | None = None
    mode: Mode = "worker"
    origin: str = "python"
    parent_trace_id: str | None = None
    depth: int = 0
    on_output: OnOutput | None = None
    stop: asyncio.Event | None = None
    code: str | None = None
    step: StepListener = UNRECORDED


def request_for(
    tool_name: str,
    persona: str,
    arguments: Mapping[str, Any] | None,
    timeout_s: float | None,
    origin: str,
    mode: Mode,
) -> ExecutionRequest:
    """Return a face's words as a request; raises `ConfigError` for a mode or a time that cannot be."""
    if mode not in get_args(Mode):
        raise ConfigError(f"mode={mode!r} is none of {', '.join(get_args(Mode))}.")
    if timeout_s is not None and not timeout_s > 0:
        raise ConfigError(f"timeout={timeout_s!r} must be greater than 0 seconds.")
    return ExecutionRequest(
        tool_name,
        persona,
        {} if arguments is None else arguments,
        timeout_s=timeout_s,
        mode=mode,
        origin=origin,
    )


def checked_arguments(request: ExecutionRequest) -> tuple[dict[str, Any], list[str]]:
    """Return the arguments as JSON holds them; raises `ArgumentsInvalid` for what is no object, or too much."""
    if not isinstance(request.arguments, Mapping):
        kind = type(request.arguments).__name__
        raise ArgumentsInvalid(
            f"The arguments of {request.tool_name!r} must be a dict of names and values, not a {kind}."
        )
    try:
        arguments, conversions = to_jsonable(request.arguments, max_chars=_ARGUMENTS_MAX_CHARS)
    except ValueTooLarge:
        raise ArgumentsInvalid(
            f"The arguments of {request.tool_name!r} hold more than {_ARGUMENTS_MAX_CHARS:,} characters.",
            hint="Grant the tool a file (read=…), or let it fetch what it needs through hk.provide.",
        ) from None
    return arguments, conversions
