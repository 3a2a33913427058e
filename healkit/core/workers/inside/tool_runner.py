"""Run of one tool in the worker: receive, execute, report."""

from __future__ import annotations

import ast
import contextlib
import functools
import inspect
import os
import resource
import signal
import socket
import sys
import time
import traceback
import types
from collections.abc import Callable, Iterator, Sequence
from importlib.machinery import ModuleSpec
from types import CodeType
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from healkit.core.contracts import rpc
from healkit.core.contracts.cassette import (
    NAME_IT_HINT,
    NOT_ON_RECORD_HINT,
    Cassette,
    Tape,
    not_on_record,
    not_read,
)
from healkit.core.contracts.failure import Failure
from healkit.core.contracts.tools import Tool
from healkit.core.crossing import regions, values
from healkit.core.pysource.shapes import Shape, parse, read_shape
from healkit.core.wire import claims, framing
from healkit.core.wire.encoding import ValueTooLarge, to_jsonable, type_only, type_outline
from healkit.core.workers.inside import capture, lockdown
from healkit.core.workers.inside.capture import TOOL_MODULE, TimeIsUp, deadline
from healkit.core.workers.inside.observer import Observer
from healkit.core.workers.inside.proxies import (
    AnyEndpoint,
    Endpoint,
    FileWatch,
    RecordedEndpoint,
    Trace,
    build_servers,
)

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

#: Recursion limit of this process, before a tool sets another.
_RECURSION = sys.getrecursionlimit()
#: Longest wait for the threads of a tool that has returned, and time reserved for the rest, in seconds.
_THREADS_S, _TIME_LEFT_S = 1.0, 0.2


class ToolRunner:
    """Receives the work, executes it, reports: call `run()` once.

    `dump` lets faulthandler watch the deadline in its own thread, unless an outside process watches. `finish` is called
    when the tool has ended, before the report: a kernel then sends displays. `limited` is false for a rehearsal with
    our own code, which must not limit its process.
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
        #: Set if the work requests it.
        self.watch: Observer | None = None
        #: Exception that the code raised, if any.
        self.ended_by: BaseException | None = None
        #: Name of the code's file in tracebacks.
        self.filename = ""
        #: Functions by which the code has tried to start a program.
        self.programs: list[str] = []
        #: The compiled work, if the process that forked this one has compiled it.
        self.compiled: Compiled | None = None
        #: Set if the calls are answered from a cassette.
        self.recorded: RecordedEndpoint | None = None
        #: Set if files are withheld.
        self.files: FileWatch | None = None

    def run(self) -> None:
        """Run the one execution of this process: receive, execute, report."""
        complete = self.complete(self.endpoint.receive_init())
        try:
            self.endpoint.send(complete)
        except (ValueError, TypeError) as error:  # a text that cannot be encoded
            self.endpoint.send(rpc.ExecutionComplete(failure=_fault(error), shown=complete.shown))
        capture.Output.crash_fd = None  # the file is no longer read

    def complete(self, init: rpc.Init) -> rpc.ExecutionComplete:
        """Execute the work and report how it ended; never raises."""
        began = _now()
        self.filename = init.entry.filename
        try:
            complete = self._execute(init)
            took_s = _since(began)
        except BaseException as error:  # noqa: BLE001 - the report must be sent in any case
            took_s = _since(began)
            lockdown.lift_for_report()
            _settle_interpreter()
            failure = capture.to_failure(error, init.entry, init.timeout_s)
            self.ended_by = error
            complete = rpc.ExecutionComplete(failure=failure)
        capture.Output.left_chars = None
        with contextlib.suppress(Exception):  # a failing display must not lose the report
            self.finish()
        watched = msgspec.Raw(b"null") if self.watch is None else framing.raw(self.watch.seen())
        fields: dict[str, Any] = {"shown": capture.Output.shown, "watched": watched, "took_s": took_s}
        fields["programs"] = list(self.programs)
        if self.recorded is not None:
            played = self.recorded.playback
            fields |= {"answered": played.answered, "displaced": played.displaced}
            if played.missing and not isinstance(self.ended_by, capture.NotOnRecord):
                fields["failure"] = _not_on_record(not_on_record(played.missing), NOT_ON_RECORD_HINT)
        if self.files is not None and self.files.missing:  # even if the code caught the error
            fields["failure"] = _not_on_record(not_read(self.files.missing), NAME_IT_HINT)
        return _as_the_host_counts(msgspec.structs.replace(complete, **fields))

    def _execute(self, init: rpc.Init) -> rpc.ExecutionComplete:
        capture.show_source(init.entry, init.code)
        capture.Output.left_chars = init.output_max_bytes
        capture.Output.shown = False
        capture.Output.crash_fd = self.crash_fd
        try:
            contents = self._contents(init)  # before the limit, which only counts later mappings
            arguments = (
                values.decode(init.arguments, contents) if init.exact else msgspec.json.decode(init.arguments)
            )
        except ValueError as error:
            return rpc.ExecutionComplete(failure=_fault(error))
        if self.limited:
            lockdown.limit_tool(init.memory_bytes, init.cpu_s)
        with deadline(init.timeout_s, self.dump_fd), no_running_loop():
            before = _threads()
            if self.limited:  # permanent, so only once; a rehearsal would pass it on to every child
                sys.addaudithook(self._hear)
            value = self._call(init, arguments)
            running = _wait_for(_threads() - before)
            if capture.Output.exceeded:
                raise capture.OutputLimit(capture.OVER_LIMIT)
            _settle_interpreter()
            try:
                return msgspec.structs.replace(self._result(value, init), threads=running)
            except Exception as error:
                if isinstance(error, MemoryError):
                    raise
                return rpc.ExecutionComplete(failure=_fault(error))

    def _hear(self, event: str, _arguments: object) -> None:
        """Note an attempt to start a program, for which `os.system` only returns a number; called by Python."""
        if event in rpc.STARTS_PROGRAMS and event not in self.programs:
            self.programs.append(event)

    def _result(self, value: object, init: rpc.Init) -> rpc.ExecutionComplete:
        """Return the value in the form to send, or a failure that says why it cannot be sent."""
        if init.exact:
            return self._exactly(value, init)
        refused = None if init.call else why_refused(_shown(value)[0], init.result_max_bytes)
        if refused is not None:
            return rpc.ExecutionComplete(failure=_unsupported(refused))
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

    def _exactly(self, value: object, init: rpc.Init) -> rpc.ExecutionComplete:
        """Return the exact value, or a failure that says which part of it cannot cross.

        If there is no region, as in a trial, the contents are a part of the message.
        """
        contents: values.Buffers = []
        value, display_notes = _shown(value)
        # Before encoding: an encoder that runs out of memory may end the process.
        if values.outweighs(value, init.result_max_bytes):
            return rpc.ExecutionComplete(failure=_too_large(f"more than {init.result_max_bytes:,}", init))
        try:
            encoded, notes = values.encode(
                value, contents if self.endpoint.regions else None, limit_bytes=init.data_max_bytes
            )
        except values.TooLarge as error:
            return rpc.ExecutionComplete(failure=_refused(f"the result has {error.why}, at {error.path}"))
        except values.CannotCross as error:
            if not init.setup:
                return rpc.ExecutionComplete(failure=_unsupported(error))
            encoded, notes = values.encode(
                capture.describe(value), None
            )  # as a notebook shows a cell's value
            notes = [f"$: {type(value).__qualname__} shown as text"]
        notes = [*display_notes, *notes]
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
        contents = regions.mapped(self.endpoint.regions[0], init.contents)
        os.close(self.endpoint.regions.pop(0))
        return contents

    def _call(self, init: rpc.Init, arguments: dict[str, Any]) -> Any:
        work = self.compiled or Compiled.of(init)
        shape, call = work.shape, work.call
        endpoint: AnyEndpoint = self.endpoint
        if init.cassette != rpc.NO_CASSETTE:
            tape = Tape(msgspec.json.decode(init.cassette, type=Cassette))
            endpoint = self.recorded = RecordedEndpoint(tape)
            self.recorded.rewind(init.run)
            definitions = tape.cassette.definitions
        else:
            definitions = init.definitions
        namespace = fresh_namespace({"mcp": build_servers(endpoint, definitions), "trace": Trace(endpoint)})
        if shape is not None and shape.kind == "script":
            namespace["arguments"] = arguments
        if work.setup is not None:
            exec(work.setup, namespace)  # noqa: S102 - code from the host, run here
        if init.watch:
            self.watch = Observer(work.code)
        if init.withheld.paths:
            self.files = FileWatch(init.withheld)
        with self.watch or contextlib.nullcontext():
            awaited(eval(work.code, namespace))  # noqa: S307 - what this process is for
            let_nest()
            if call is not None:
                return call.evaluate(namespace)
            assert shape is not None
            return call_entry(namespace, shape, arguments)


def _as_the_host_counts(complete: rpc.ExecutionComplete) -> rpc.ExecutionComplete:
    """Return a report, or a failure in its place if the host would refuse it for its number of elements."""
    if len(complete.value) <= claims.MAX_DEPTH:  # fewer bytes cannot exceed a limit
        return complete
    try:
        claims.check_claim(msgspec.json.encode(complete))
    except claims.BadClaim as error:
        failure = _refused(f"the result has {error}")
        return rpc.ExecutionComplete(failure=failure, shown=complete.shown, took_s=complete.took_s)
    return complete


def _threads() -> set[Any]:
    """Return the threads that would keep a script from ending."""
    threading = sys.modules.get("threading")
    if threading is None:
        return set()
    return {thread for thread in threading.enumerate() if not thread.daemon} - {threading.current_thread()}


def _wait_for(threads: set[Any]) -> list[str]:
    """Wait briefly, within the tool's time, for threads that it left running; return those still running."""
    left_s = signal.getitimer(signal.ITIMER_REAL)[0] - _TIME_LEFT_S if threads else 0.0
    give_up = time.monotonic() + min(_THREADS_S, left_s)
    for thread in threads:
        thread.join(max(0.0, give_up - time.monotonic()))
    names = sorted(str(thread.name) for thread in threads if thread.is_alive())
    return [capture.safe(name, rpc.NAME_MAX_CHARS // 2) for name in names[: rpc.THREADS_MAX]]


def why_refused(value: object, limit_bytes: int) -> values.CannotCross | None:
    """Return why no execution may return that value, such as a generator; None if it may, or if it is too large."""
    if values.outweighs(value, limit_bytes):  # an encoder that runs out of memory may end the process
        return None
    try:
        values.encode(value)
    except values.TooLarge:
        return None
    except values.CannotCross as error:
        return error
    return None


def _shown(value: Any) -> tuple[Any, list[str]]:
    """Show a matplotlib figure, and return a text in its place with a note; any other value unchanged."""
    kind, interactive = type(value), sys.modules.get("IPython")
    if (kind.__module__, kind.__name__) != ("matplotlib.figure", "Figure") or interactive is None:
        return value, []
    if interactive.get_ipython() is None:  # a worker without displays
        return value, []
    pyplot, number = sys.modules.get("matplotlib.pyplot"), getattr(value, "number", None)
    if (
        pyplot is None or number is None or not pyplot.fignum_exists(number)
    ):  # all others are shown at the end
        interactive.display.display(value)
    width, height = (float(size) for size in value.get_size_inches())
    return f"<Figure {width:g} × {height:g} inches, shown>", ["$: the figure was shown; a text stands for it"]


def _settle_interpreter() -> None:
    """Undo settings of a tool that would make our own code fail after it."""
    sys.settrace(None)
    sys.setprofile(None)
    if sys.getrecursionlimit() != _RECURSION:
        sys.setrecursionlimit(_RECURSION)


def _fault(error: BaseException) -> Failure:
    """Return the failure for an internal error of healkit: the tool has returned, or was not started."""
    text = capture.safe("".join(traceback.format_exception(error)), 20_000)
    message = f"healkit itself failed, with {type(error).__name__}, on the way to or from the tool"
    hint = "Neither the tool nor the call is to blame; please report it with this traceback."
    return Failure("INTERNAL_ERROR", "InternalError", message, f"{text}\nInternalError: {message}", hint=hint)


#: Types whose items are computed, or looked up, on access.
_ITERATORS = {
    "generator", "map", "filter", "zip", "enumerate", "reversed", "dict_keys", "dict_values", "dict_items", "chain",
    "islice", "list_iterator", "tuple_iterator", "dict_keyiterator", "set_iterator", "str_iterator",
}  # fmt: skip


def _unsupported(error: values.CannotCross) -> Failure:
    kind = error.why.removeprefix("a value of type ")
    article = "an" if kind[:1].lower() in "aeiou" else "a"
    what = error.why if kind == error.why else f"{article} {kind}"
    whole = error.path == "$" and kind != error.why
    where = f"the result is {what}" if whole else f"the result holds {what} at {error.path}"
    message = f"{where}, which cannot leave the worker as it is"
    hint = (
        "Return its parts: numbers, text, lists, dicts, arrays, frames (docs/values.md lists what can cross)."
    )
    if kind.rpartition(".")[2] in _ITERATORS:
        hint = "Make a list of it: write `return list(…)`."
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


def _not_on_record(message: str, hint: str) -> Failure:
    text = f"NotOnRecord: {message}"
    return Failure("CALL_NOT_ON_RECORD", "NotOnRecord", message, text, hint=hint)


@contextlib.contextmanager
def no_running_loop() -> Iterator[None]:
    """Hide the kernel's event loop from the tool, which finds none, as in a script.

    The loop does not run at that time anyway, because the tool uses its thread. asyncio documents `_set_running_loop`
    for implementers of loops.
    """
    asyncio = sys.modules.get("asyncio")
    if asyncio is None:  # not a kernel, so no loop
        yield
        return
    loop, before = asyncio._get_running_loop(), asyncio.get_event_loop_policy()
    asyncio._set_running_loop(None)
    asyncio.set_event_loop_policy(policy())
    try:
        yield
    finally:
        asyncio.set_event_loop_policy(before)
        asyncio._set_running_loop(loop)


def _now() -> tuple[float, float, int]:
    """Return wall time, processor time, and how often this process has waited."""
    return time.perf_counter(), time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw


def _since(began: tuple[float, float, int]) -> float:
    """Return the time since then, measured as `ExecutionComplete.took_s` describes."""
    clock_s, computed_s = time.perf_counter() - began[0], time.process_time() - began[1]
    waited = resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw > began[2]
    return clock_s if waited else computed_s


# Ways to run a tool's code: its entry, or a call beside it.


#: Filenames in tracebacks for a call's source, and for the code before a cell.
CALL_FILENAME, SETUP_FILENAME = "<call>", "<setup>"
#: Flags for compiling a cell: it may await.
CELL_FLAGS = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT


def as_cell(tree: ast.Module) -> ast.Module:
    """Make a cell's code assign its value to `_`: that of its last expression, or what its last statement assigns.

    No position changes: an error has the same line and column as in the notebook.
    """
    value: ast.expr = ast.Constant(None)
    match tree.body:
        case [*before, ast.Expr(value=last)]:
            tree.body, value = before, last
        case [*_, ast.Assign(targets=[ast.Name(id=name)]) | ast.AugAssign(target=ast.Name(id=name))]:
            value = ast.Name(name, ast.Load())
    tree.body.append(ast.Assign([ast.Name(rpc.CELL_VALUE, ast.Store())], value))
    return _located(tree)


def _located(tree: ast.Module) -> ast.Module:
    """Give positions to the added nodes."""
    last = tree.body[-1]
    assert isinstance(last, ast.Assign)
    if hasattr(last.value, "lineno"):
        ast.copy_location(last, last.value)
    elif len(tree.body) > 1:
        ast.copy_location(last, tree.body[-2])
    return ast.fix_missing_locations(tree)


class Compiled(NamedTuple):
    """Compiled work: its code, the code before it, and the call beside it or else the shape of the code."""

    code: CodeType
    setup: CodeType | None
    call: Call | None
    shape: Shape | None

    @classmethod
    def of(cls, init: rpc.Init) -> Compiled:
        """Compile the work without running it; raises Python's errors for it."""
        filename = init.entry.filename
        tree = parse(init.code, filename)
        if init.setup:
            tree = as_cell(tree)
        if "await" in init.code and "mcp" in init.code:
            tree = with_awaited_calls(tree)
        call = Call(init.call) if init.call else None
        shape = read_shape(tree, init.entry.tool_name) if call is None else None
        code = compile(tree, filename, "exec", CELL_FLAGS if init.setup else 0, dont_inherit=True)
        setup = compile(init.setup, SETUP_FILENAME, "exec", dont_inherit=True) if init.setup else None
        return cls(code, setup, call, shape)


class Call:
    """Compiled Python source whose last expression counts; raises `SyntaxError` if it does not parse."""

    def __init__(self, source: str) -> None:
        body = ast.parse(source, filename=CALL_FILENAME).body
        last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
        self._statements = _compile(ast.Module(body, []), "exec") if body else None
        self._value = None
        if isinstance(last, ast.Expr):
            self._value = _compile(ast.Expression(last.value), "eval")

    def evaluate(self, namespace: dict[str, Any]) -> Any:
        """Run the statements in that namespace and return the last expression's value; None if there is none."""
        if self._statements is not None:
            exec(self._statements, namespace)  # noqa: S102 - what a worker is for
        if self._value is None:
            return None
        return awaited(eval(self._value, namespace))  # noqa: S307 - what the caller was asked to evaluate, in the restricted worker


def _compile(tree: ast.Module | ast.Expression, mode: str) -> CodeType:
    return compile(tree, CALL_FILENAME, mode, dont_inherit=True)


def with_awaited_calls(tree: ast.Module) -> ast.Module:
    """Turn `await mcp.server.tool(…)` into a call that does not block the event loop: `await mcp.server.tool.acall(…)`.

    A proxy returns a plain value, such as a text or a number, which cannot be awaited. So the spelling decides. Code
    that gives the name `mcp` another meaning is not changed.
    """
    is_rebound = any(
        (isinstance(node, ast.Name) and node.id == "mcp" and not isinstance(node.ctx, ast.Load))
        or (isinstance(node, ast.arg) and node.arg == "mcp")
        or (isinstance(node, ast.alias) and "mcp" in (node.name, node.asname))
        for node in ast.walk(tree)
    )
    return tree if is_rebound else ast.fix_missing_locations(_AwaitedCalls().visit(tree))


class _AwaitedCalls(ast.NodeTransformer):
    """Rewriter of `await mcp.server.tool(…)`."""

    def visit_Await(self, node: ast.Await) -> ast.AST:
        """Call `acall` of the proxy; called by `visit`."""
        self.generic_visit(node)
        match node.value:
            case ast.Call(func=ast.Attribute(value=ast.Attribute(value=ast.Name(id="mcp"))) as tool) as call:
                call.func = ast.copy_location(ast.Attribute(tool, "acall", ast.Load()), tool)
        return node


def fresh_namespace(names: dict[str, Any]) -> dict[str, Any]:
    """Return a new module's namespace, with `names` and `Tool` in it; registered, because dataclasses look it up."""
    module = types.ModuleType(TOOL_MODULE)
    sys.modules[TOOL_MODULE] = module
    namespace = module.__dict__
    namespace.update(names)
    namespace["Tool"] = Tool
    if not any(isinstance(finder, BaseModule) for finder in sys.meta_path):
        sys.meta_path.append(BaseModule())
    return namespace


class BaseModule:
    """Module `base` with the class `ChameleonTool`, which tools for other hosts import: another name of `Tool`.

    This finder comes last, so that a user's own module `base` has priority. It does not derive from a class of
    `importlib.abc`, because that would import modules that a fork resets.
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find `base`; called by the import system if no other finder has found it."""
        # It has the required methods; the class that mypy expects would import too much.
        return ModuleSpec(fullname, self) if fullname == "base" else None  # type: ignore[arg-type]  # see above

    def create_module(self, spec: ModuleSpec) -> None:
        """Let the import system make the module; called by it."""

    def exec_module(self, module: types.ModuleType) -> None:
        """Fill the module; called by the import system."""
        module.__doc__ = "Base class of tools, given by healkit."
        module.__dict__["ChameleonTool"] = module.__dict__["Tool"] = Tool


def call_entry(namespace: dict[str, Any], shape: Shape, arguments: dict[str, Any]) -> Any:
    """Call the function or class that the code has defined; for a script, read its result."""
    if shape.kind == "script":
        return namespace.get("result")
    target = namespace[shape.entry]
    if shape.kind == "class":
        target = target().run
    return awaited(target(arguments) if shape.takes_dict else target(**arguments))


def awaited(value: object) -> object:
    """Return the value, or the result of a coroutine."""
    if not inspect.iscoroutine(value):
        return value
    import asyncio  # late: most code has no coroutine, and a trial server forks faster without it

    let_nest()
    return asyncio.run(value)


# Event loops of a tool, as in a script and nested.
#
# Generated code gets a loop in every way that ever worked: `asyncio.run`, `get_event_loop().run_until_complete`, and
# either of them inside a coroutine. All of them work here. A loop inside a running one is another loop on the same
# thread; the outer one does not run meanwhile.


def policy() -> Any:
    """Return a policy whose `get_event_loop` makes a loop if there is none; asyncio must be imported."""
    import asyncio

    class Loops(asyncio.DefaultEventLoopPolicy):
        """Loops of one tool."""

        def get_event_loop(self) -> asyncio.AbstractEventLoop:
            """Return this thread's loop; called by asyncio."""
            try:
                loop: asyncio.AbstractEventLoop | None = super().get_event_loop()
            except RuntimeError:
                loop = None
            if loop is None or loop.is_closed():
                loop = self.new_event_loop()
                self.set_event_loop(loop)
            return loop

    return Loops()


def let_nest() -> None:
    """Let `asyncio.run` and `run_until_complete` work inside a running loop, once; no effect without asyncio.

    Only calls that would raise are changed.
    """
    asyncio: Any = sys.modules.get("asyncio")
    if asyncio is None or hasattr(asyncio.run, "__wrapped__"):
        return
    if type(asyncio.get_event_loop_policy()).__module__ != __name__:  # no kernel has hidden its loop here
        asyncio.set_event_loop_policy(policy())
    run, until_complete = asyncio.run, asyncio.BaseEventLoop.run_until_complete

    @functools.wraps(run)
    def nested_run(*args: object, **kwargs: object) -> Any:
        outer = asyncio._get_running_loop()
        asyncio._set_running_loop(None)
        try:
            return run(*args, **kwargs)
        finally:
            asyncio._set_running_loop(outer)

    @functools.wraps(until_complete)
    def nested_until_complete(self: AbstractEventLoop, future: object) -> Any:
        outer = asyncio._get_running_loop()
        if outer is None:
            return until_complete(self, future)
        asyncio._set_running_loop(None)
        inner = asyncio.new_event_loop() if self.is_running() else self
        try:
            return until_complete(inner, future)
        finally:
            if inner is not self:
                inner.close()
            asyncio._set_running_loop(outer)

    asyncio.run = nested_run
    asyncio.runners.run = nested_run
    asyncio.BaseEventLoop.run_until_complete = nested_until_complete
