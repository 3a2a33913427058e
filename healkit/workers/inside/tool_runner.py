"""Run of one tool in the worker: receive, run, report."""

from __future__ import annotations

import contextlib
import os
import resource
import socket
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from healkit import values
from healkit.contracts import claims, rpc
from healkit.contracts.encoding import ValueTooLarge, to_jsonable, type_only, type_outline
from healkit.contracts.failure import Failure
from healkit.pysource.shapes import parse, read_shape
from healkit.values import regions
from healkit.workers.inside import capture, lockdown
from healkit.workers.inside.endpoint import Endpoint
from healkit.workers.inside.observer import Observer
from healkit.workers.inside.proxies import Trace, build_servers
from healkit.workers.inside.stack_inspector import StackInspector
from healkit.workers.inside.time_limits import TimeIsUp, deadline
from healkit.workers.inside.tool_entry import Call, call_entry, fresh_namespace, with_awaited_calls


class ToolRunner:
    """Receives the work, executes it, reports: `run()`, once.

    `dump` has faulthandler watch the deadline, in a thread of its own; whoever watches from outside need not.
    `finish` is called when the tool has ended, before the report: a kernel has displays to send then.
    `limited` is false for a rehearsal with code of our own, which must not cost its process what it may use.
    """

    def __init__(
        self,
        bridge: socket.socket,
        crash_fd: int,
        finish: Callable[[], None] = lambda: None,
        *,
        dump: bool = True,
        limited: bool = True,
    ) -> None:
        self.endpoint = Endpoint(bridge)
        self.crash_fd = crash_fd
        self.dump_fd = crash_fd if dump else None
        self.finish = finish
        self.limited = limited
        #: Set once there is a failure.
        self.inspector: StackInspector | None = None
        #: Set where the work asks for it.
        self.watch: Observer | None = None

    def run(self) -> None:
        """Run the one execution of this process: receive, execute, report."""
        self.endpoint.send(self.complete(self.endpoint.receive_init()))
        capture.Output.crash_fd = None  # the file is not read any more

    def complete(self, init: rpc.Init) -> rpc.ExecutionComplete:
        """Execute the work and say how it ended; never raises."""
        began = _now()
        try:
            complete = self._execute(init)
            took_s = _since(began)
        except BaseException as error:  # noqa: BLE001 - the report must go out, whatever happened
            took_s = _since(began)
            lockdown.lift_for_report()
            complete = rpc.ExecutionComplete(failure=capture.to_failure(error, init.entry, init.timeout_s))
            self.inspector = StackInspector(error, init.entry.filename)
        capture.Output.left_chars = None
        with contextlib.suppress(Exception):  # a failing display must not lose the report
            self.finish()
        watched = msgspec.Raw(b"null") if self.watch is None else rpc.raw(self.watch.seen())
        seen = {"shown": capture.Output.shown, "watched": watched, "took_s": took_s}
        return _as_the_host_counts(msgspec.structs.replace(complete, **seen))

    def _execute(self, init: rpc.Init) -> rpc.ExecutionComplete:
        capture.show_source(init.entry, init.code)
        capture.Output.left_chars = init.output_max_bytes
        capture.Output.shown = False
        capture.Output.crash_fd = self.crash_fd
        contents = self._contents(init)  # before the limit, which counts only what is mapped after it
        if self.limited:
            lockdown.limit_tool(init.memory_bytes, init.cpu_s)
        with deadline(init.timeout_s, self.dump_fd), no_running_loop():
            value = self._call(init, contents)
            if capture.Output.exceeded:
                raise capture.OutputLimit(capture.OVER_LIMIT)
            if init.exact:
                return self._exactly(value, init)
            try:
                jsonable, conversions = to_jsonable(value, capture.describe, max_chars=init.result_max_bytes)
                outline = type_outline(value)
            except TimeIsUp:
                jsonable, conversions = type_only(value), ["$: shown by its type, reading it took too long"]
                outline = ""
            except ValueTooLarge:
                return rpc.ExecutionComplete(failure=_too_large(f"more than {init.result_max_bytes:,}", init))
        lockdown.lift_for_report()
        encoded = msgspec.json.encode(jsonable)
        if len(encoded) > init.result_max_bytes:
            return rpc.ExecutionComplete(failure=_too_large(f"{len(encoded):,}", init))
        return rpc.ExecutionComplete(
            value=msgspec.Raw(encoded), conversions=conversions, outline=outline[: rpc.OUTLINE_MAX_CHARS]
        )

    def _exactly(self, value: Any, init: rpc.Init) -> rpc.ExecutionComplete:
        """Return a value as it is, or the failure that says which part of it cannot cross.

        Without a region for them, as in a trial, its contents are a part of the message.
        """
        contents: values.Buffers = []
        # Before it is encoded: an encoder that runs out of memory may end the process.
        if values.outweighs(value, init.result_max_bytes):
            return rpc.ExecutionComplete(failure=_too_large(f"more than {init.result_max_bytes:,}", init))
        try:
            encoded, notes = values.encode(
                value, contents if self.endpoint.regions else None, limit_bytes=init.data_max_bytes
            )
        except values.TooLarge as error:
            return rpc.ExecutionComplete(failure=_refused(f"the result has {error.why}, at {error.path}"))
        except values.CannotCross as error:
            return rpc.ExecutionComplete(failure=_unsupported(error))
        lockdown.lift_for_report()
        if len(encoded) > init.result_max_bytes:
            return rpc.ExecutionComplete(failure=_too_large(f"{len(encoded):,}", init))
        if not self.endpoint.regions:
            return rpc.ExecutionComplete(value=msgspec.Raw(encoded), conversions=notes)
        places = regions.places_of(contents)
        room = os.fstat(self.endpoint.regions[-1]).st_size
        if regions.size_of(places) > room:
            size = f"{regions.size_of(places):,}"
            return rpc.ExecutionComplete(
                failure=_refused(f"the result's frames and arrays have {size} bytes; {room:,} are allowed")
            )
        if contents:
            regions.write(self.endpoint.regions[-1], contents, places)
        return rpc.ExecutionComplete(value=msgspec.Raw(encoded), conversions=notes, contents=places)

    def _contents(self, init: rpc.Init) -> list[memoryview]:
        """Map the contents of frames and arrays in the arguments."""
        if not init.contents:
            return []
        found = regions.mapped(self.endpoint.regions[0], init.contents)
        os.close(self.endpoint.regions.pop(0))
        return found

    def _call(self, init: rpc.Init, contents: list[memoryview]) -> Any:
        arguments = (
            values.decode(init.arguments, contents) if init.exact else msgspec.json.decode(init.arguments)
        )
        tree = parse(init.code, init.entry.filename)
        if "await" in init.code and "mcp" in init.code:
            tree = with_awaited_calls(tree)
        call = Call(init.call) if init.call else None
        shape = read_shape(tree, init.entry.tool_name) if call is None else None
        namespace = fresh_namespace(
            {"mcp": build_servers(self.endpoint, init.definitions), "trace": Trace(self.endpoint)}
        )
        if shape is not None and shape.kind == "script":
            namespace["arguments"] = arguments
        code = compile(tree, init.entry.filename, "exec", dont_inherit=True)
        if init.watch:
            self.watch = Observer(code)
        with self.watch or contextlib.nullcontext():
            exec(code, namespace)  # noqa: S102 - what this process is for
            if call is not None:
                return call.evaluate(namespace)
            assert shape is not None
            return call_entry(namespace, shape, arguments)


def _as_the_host_counts(complete: rpc.ExecutionComplete) -> rpc.ExecutionComplete:
    """Return a report, or the failure that stands for one with so many elements that the host would refuse it."""
    if len(complete.value) <= claims.MAX_DEPTH:  # fewer bytes break no limit
        return complete
    try:
        claims.check(msgspec.json.encode(complete))
    except claims.BadClaim as error:
        failure = _refused(f"the result has {error}")
        return rpc.ExecutionComplete(failure=failure, shown=complete.shown, took_s=complete.took_s)
    return complete


def _unsupported(error: values.CannotCross) -> Failure:
    message = f"the result holds {error.why} at {error.path}, which cannot leave the worker as it is"
    hint = (
        "Return its parts: numbers, text, lists, dicts, arrays, frames (docs/values.md lists what can cross)."
    )
    text = f"ResultUnsupported: {message}"
    return Failure("TOOL_RESULT_UNSUPPORTED", "ResultUnsupported", message, text, hint=hint)


def _too_large(size: str, init: rpc.Init) -> Failure:
    return _refused(f"the result has {size} bytes; {init.result_max_bytes:,} are allowed")


def _refused(message: str) -> Failure:
    hint = (
        "Return less: a summary, a page, or the path of a file the tool may write (HEALKIT_RESULT_MAX_BYTES)."
    )
    return Failure(
        "TOOL_RESULT_TOO_LARGE", "ResultTooLarge", message, f"ResultTooLarge: {message}", hint=hint
    )


@contextlib.contextmanager
def no_running_loop() -> Iterator[None]:
    """Hide the kernel's event loop from the tool: `asyncio.run` is what generated async code calls.

    The loop does not run meanwhile anyway, because the tool holds its thread; `_set_running_loop` is the hook that
    asyncio documents for those who implement loops.
    """
    asyncio = sys.modules.get("asyncio")
    if asyncio is None:  # no kernel here, so no loop
        yield
        return
    loop = asyncio._get_running_loop()
    asyncio._set_running_loop(None)
    try:
        yield
    finally:
        asyncio._set_running_loop(loop)


def _now() -> tuple[float, float, int]:
    """Return the clock, the processor's time, and how often this process has waited for something."""
    return time.perf_counter(), time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw


def _since(began: tuple[float, float, int]) -> float:
    """Return the time since then, as `ExecutionComplete.took_s` counts it."""
    clock_s, computed_s = time.perf_counter() - began[0], time.process_time() - began[1]
    waited = resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw > began[2]
    return clock_s if waited else computed_s
