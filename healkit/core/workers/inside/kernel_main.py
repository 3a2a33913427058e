"""Kernel of a worker, and of a restricted notebook.

Both are kernels of ipykernel, locked down. A notebook's kernel has no host behind a bridge: a frontend controls it over
the Jupyter protocol. So it serves any number of cells, its limits are in force from the start, and interrupts reach the
running cell.
"""

from __future__ import annotations

import asyncio
import faulthandler
import importlib
import os
import signal
import socket
import sys
import tempfile
import threading
import time
import uuid
import warnings
from typing import TYPE_CHECKING, Any

import msgspec
import zmq
from ipykernel.iostream import IOPubThread, OutStream
from ipykernel.ipkernel import IPythonKernel
from ipykernel.kernelapp import IPKernelApp
from IPython.core.profiledir import ProfileDir
from tornado import ioloop
from traitlets import Bool
from traitlets.config import Config
from zmq.eventloop.zmqstream import ZMQStream

from healkit.core.contracts import rpc
from healkit.core.workers.inside import capture, lockdown
from healkit.core.workers.inside.capture import OVER_LIMIT, Output, OutputLimit
from healkit.core.workers.inside.tool_runner import ToolRunner

if TYPE_CHECKING:
    from ipykernel.zmqshell import ZMQInteractiveShell


class KernelStream(OutStream):
    """ipykernel's output stream with a budget; above it, writing raises `OutputLimit`."""

    def write(self, string: str) -> Any:
        """Write; called by print and all other writers, and by ipykernel's thread that watches the pipe."""
        if not Output.admit(string):
            if threading.current_thread() is getattr(self, "watch_fd_thread", None):
                return 0
            raise OutputLimit(OVER_LIMIT)
        Output.remember(string)
        return super().write(string)


class WorkerApp(IPKernelApp):
    """An IPython kernel that drops all rights between binding its sockets and its first message."""

    name = "healkit-worker"
    #: Whether outputs wait until they are read. True for a tool, whose host reads everything. A notebook may
    #: have several clients, and one that does not read would stop the kernel.
    awaits_reader = Bool(default_value=False)
    #: Whether a fork server made this object and its kernel, before its child got anything of its own.
    prepared = Bool(default_value=False)

    def init_iopub(self, context: zmq.Context[Any]) -> None:
        """Bind the socket for outputs. Called by ipykernel.

        By default, ZeroMQ drops new messages while 1,000 are waiting. A tool that displays faster than the host reads
        would silently lose outputs from the middle. Fewer messages may wait here, because they use this process's
        memory. In addition, ipykernel would open a pipe for the output of child processes, over TCP, which a worker
        does not have.
        """
        if not self.awaits_reader:
            super().init_iopub(context)
            return
        context.setsockopt(zmq.XPUB_NODROP, 1)
        context.setsockopt(zmq.SNDHWM, rpc.MESSAGES_WAITING)
        context.setsockopt(zmq.RCVHWM, rpc.MESSAGES_WAITING)
        self.iopub_thread = IOPubThread(self._bound(zmq.XPUB, "iopub_port"), session=self.session)
        self.iopub_thread.start()
        self.iopub_socket = self.iopub_thread.background_socket

    def init_control(self, context: zmq.Context[Any]) -> None:
        """Bind the socket for control messages. Called by ipykernel."""
        if self.awaits_reader:
            self.control_socket = self._bound(zmq.ROUTER, "control_port")
        else:
            super().init_control(context)

    def initialize(self, argv: list[str] | None = None) -> None:
        """Set everything up; a prepared worker only sets up what it cannot share: folders, sockets, threads."""
        if not self.prepared:
            super().initialize(argv)
            return
        _, self.connection_file, addresses = argv or []
        self.profile_dir = Profile(location=_profile_folder())
        # Its own id, because a host checks messages by it; its key is in the connection file.
        self.session.session, self.session.pid = str(uuid.uuid4()), os.getpid()
        self.load_connection_info(
            msgspec.json.decode(addresses)
        )  # its own: addresses in its own folder, and the key
        for step in (
            self.init_sockets,  # its own: two processes cannot bind one address, and no thread survives a fork
            self.init_heartbeat,  # its own, like all sockets
            self.init_io,  # its own: streams to its socket
            self.init_signal,  # its own: the fork server must still get signals about its children
            self.init_kernel,  # its own: the connection of the kernel with these sockets and streams
            self.init_path,  # its own: the folder where it was started
            self.init_gui_pylab,  # its own: its environment contains the choice
        ):
            step()

    def leave_reader(self) -> None:
        """Drop unread outputs again, once everything displayed before has been sent."""
        thread = self.iopub_thread
        thread.schedule(lambda: thread.socket.setsockopt(zmq.XPUB_NODROP, 0))

    def init_heartbeat(self) -> None:
        """Answer heartbeats. Called by ipykernel.

        A worker answers between its cells, in its only thread, because heartbeats come from a console on a failure,
        long after the run. In a notebook, a thread answers, and it makes its socket when it first runs. On a busy
        machine, that was after the process had been sealed, and libzmq aborts if a socket is refused. So this method
        waits until the thread listens.
        """
        if self.awaits_reader:
            echo = self._bound(zmq.REP, "hb_port")
            stream = ZMQStream(echo)
            stream.on_recv(stream.send_multipart)
            return
        super().init_heartbeat()
        if self.transport == "ipc":
            _wait_until_listening(f"{self.ip}-{self.hb_port}")

    def init_kernel(self) -> None:
        """Make the kernel. Called by ipykernel.

        ipykernel would add two threads, one for control messages and one that distributes requests among subshells, and
        two sockets for a debugger. A worker does not have them.
        """
        if not self.awaits_reader:
            super().init_kernel()
            return
        self.kernel = kernel = self.kernel_class.instance(
            parent=self,
            session=self.session,
            control_stream=ZMQStream(self.control_socket),
            shell_stream=ZMQStream(self.shell_socket),
            iopub_thread=self.iopub_thread,
            iopub_socket=self.iopub_socket,
            stdin_socket=self.stdin_socket,
            log=self.log,
            profile_dir=self.profile_dir,
        )
        kernel.record_ports({f"{name}_port": port for name, port in self._ports.items()})
        self.displayhook.get_execution_count = lambda: kernel.execution_count

    def _bound(self, kind: int, port: str) -> zmq.Socket[Any]:
        """Bind a socket to the address with this name in the connection file."""
        bound_socket: zmq.Socket[Any] = self.context.socket(kind)
        bound_socket.linger = 1000
        setattr(self, port, self._bind_socket(bound_socket, getattr(self, port)))
        return bound_socket

    def init_signal(self) -> None:
        """Install no signal handlers: interrupts arrive as messages, time limits as alarms. Called by ipykernel."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)


class Profile(ProfileDir):
    """Profile of a worker: only its location, without the five folders of a user's profile, which it does not need."""

    def _mkdir(self, path: str, mode: int | None = None) -> bool:
        """Do not make a folder; called by IPython for each."""
        return False


def serve(restrictions: lockdown.Restrictions, layers: dict[str, str], argv: list[str]) -> None:
    """Start the kernel, seal the process, inform the host, serve; returns when the kernel ends."""
    # A copy from before ipykernel redirects the descriptor; what is written to it survives a crash.
    crash_fd = os.dup(2)
    faulthandler.enable(file=crash_fd)
    bridge = socket.socket(fileno=restrictions.bridge_fd)
    os.set_inheritable(restrictions.bridge_fd, False)
    app = sealed_app(restrictions, layers, argv, awaits_reader=True)
    runner = ToolRunner(bridge, crash_fd, finish=lambda: _finish_cell(app))
    _warm_up(app.shell)
    if capture.inspector:  # imported before a tool can use up memory or open files
        importlib.import_module(capture.inspector).answer_questions(app.kernel, app.shell, runner)
    ioloop.IOLoop.current().add_callback(_run_when_asked, app, runner, bridge)
    runner.endpoint.send(rpc.Ready(os.getpid(), layers))
    app.start()


def sealed_app(
    restrictions: lockdown.Restrictions, layers: dict[str, str], argv: list[str], **traits: object
) -> WorkerApp:
    """Return a kernel with bound sockets that cannot make more; add the layers that are in force to `layers`."""
    # Above this size, pyzmq makes another socket to send without copying; libzmq aborts if that is refused.
    zmq.COPY_THRESHOLD = 2**31 - 1
    if not WorkerApp.initialized():
        WorkerApp.instance(config=kernel_config(), **traits)
    app: WorkerApp = WorkerApp.instance()
    app.initialize(argv)
    layers |= lockdown.seal(restrictions)
    return app


def _run_when_asked(app: WorkerApp, runner: ToolRunner, bridge: socket.socket) -> None:
    """Run the tool, as a cell, when its work arrives on the bridge; called by the kernel's event loop.

    An execute request would do the same, but take four times as long. It needs two more threads, a cell to transform
    and compile, and a reply that is not read.
    """
    loop = asyncio.get_running_loop()
    kernel = app.kernel

    def run() -> None:
        loop.remove_reader(bridge)
        parent = kernel.session.msg("execute_request")
        parent["header"]["msg_id"] = rpc.RUN_ID
        kernel.set_parent([], parent)
        app.shell.events.trigger("pre_execute")
        try:
            runner.run()
        finally:
            content = {"execution_state": "idle"}
            kernel.session.send(kernel.iopub_socket, "status", content, parent=parent, ident=b"status")
            app.leave_reader()  # later, several clients may ask about its failure

    loop.add_reader(bridge, run)


def _finish_cell(app: WorkerApp) -> None:
    """End the cell as ipykernel does: show the remaining figures, and flush the streams."""
    app.shell.events.trigger("post_execute")
    sys.stdout.flush()
    sys.stderr.flush()


def _warm_up(shell: ZMQInteractiveShell) -> None:
    """Run an empty cell before the work, so that the tool does not wait for what a first cell imports."""

    def note(message: dict[str, Any]) -> dict[str, Any]:
        Output.shown = True
        return message

    shell.display_pub.register_hook(note)
    if not WorkerApp.instance().prepared:
        shell.run_cell("None", store_history=False, silent=True)


def _wait_until_listening(path: str) -> None:
    """Wait until the socket has a listener; give up silently, since the host's own limit is shorter."""
    give_up = time.monotonic() + 30.0
    while time.monotonic() < give_up:
        with socket.socket(socket.AF_UNIX) as probe:
            try:
                probe.connect(path)
            except PermissionError:  # Landlock refuses: the socket is bound, about to listen
                time.sleep(0.05)
                return
            except OSError:
                time.sleep(0.001)
            else:
                return


class WorkerKernel(IPythonKernel):
    """Kernel of a worker, which its fork server may have made; parts that are the same for all are not made again."""

    @classmethod
    def instance(cls, *args: Any, **kwargs: Any) -> Any:
        """Return the kernel of this process. Called by ipykernel with everything that belongs to this process alone."""
        if not cls.initialized():
            return super().instance(*args, **kwargs)
        cls._instance._adopt(**kwargs)
        return cls._instance

    def _adopt(self, **own: Any) -> None:
        """Take streams, threads and the session, which must not be shared with another process."""
        for name, value in own.items():
            if name != "user_ns":
                setattr(self, name, value)
        self.ident = str(uuid.uuid4())
        self._stdout, self._stderr = sys.stdout, sys.stderr
        shell = self.shell
        shell.init_environment()
        shell.init_sys_modules()
        shell.profile_dir = own["profile_dir"]
        for publisher in (shell.displayhook, shell.display_pub):
            publisher.session, publisher.pub_socket = self.session, self.iopub_socket
        shell.displayhook.topic = self._topic("execute_result")


def prepare() -> None:
    """Make a kernel in the fork server, except for what each worker needs on its own: sockets, threads, random data.

    The shell with its namespaces, magics, formatters, transformers and compiled patterns takes most of a kernel's
    start.
    """
    import ipykernel.debugger

    ipykernel.debugger._is_debugpy_available = False  # no frontend debugs a worker
    main = sys.modules["__main__"]
    app = WorkerApp.instance(config=kernel_config(), awaits_reader=True, kernel_class=WorkerKernel)
    app.log.setLevel("CRITICAL")  # else traitlets makes a record of every step
    app.profile_dir = Profile(location=_profile_folder())
    app.kernel = WorkerKernel.instance(parent=app, profile_dir=app.profile_dir, log=app.log)
    app.init_shell()
    app.init_extensions()
    app.init_code()
    app.shell.run_cell("None", store_history=False, silent=True)
    app.session  # noqa: B018 - made here, except for its id and key
    app.prepared = True
    sys.modules["__main__"] = main  # the shell puts the user's module there; a child does it again
    tempfile.tempdir = None  # as before the cell above; a child has its own folder


def kernel_config() -> Any:
    """Return the traits of a kernel that lives for one cell: no history file, no start-up files."""
    config = Config()
    config.HistoryManager.enabled = False
    config.IPKernelApp.outstream_class = "healkit.core.workers.inside.kernel_main.KernelStream"
    config.IPKernelApp.log_level = "CRITICAL"
    config.ProfileDir.location = _profile_folder()
    return config


def _profile_folder() -> str:
    folder = os.path.join(os.environ["HOME"], ".ipython")
    os.makedirs(folder, exist_ok=True)
    return folder


# The kernel of a whole notebook.


OPTIONS_VARIABLE = "HEALKIT_STANDALONE"

#: Effectively no limit: about thirty years of processor time.
_FOREVER_S = 10**9


class Options(msgspec.Struct, frozen=True):
    """Settings of a notebook's kernel besides its restrictions.

    `ready_fd` is a pipe for the one message that it is locked down, with the layers. `cpu_s` None sets no limit.
    `folder` is where the cells run; empty for the scratch folder.
    """

    ready_fd: int
    memory_bytes: int
    cpu_s: int | None
    folder: str


class InterruptibleKernel(IPythonKernel):
    """IPython kernel that only interrupts itself."""

    def _send_interrupt_children(self) -> None:
        """Raise KeyboardInterrupt in the running cell; called by ipykernel for an interrupt request.

        ipykernel would signal its process group, which a worker may not do. This signals the main thread directly, so
        that it is the thread that wakes up from a system call.
        """
        main = threading.main_thread().ident
        assert main is not None
        signal.pthread_kill(main, signal.SIGINT)
        # ipykernel's handler only cancels an awaiting cell when something else wakes up the loop.
        self.io_loop.add_callback(lambda: None)


def serve_notebook(restrictions: lockdown.Restrictions, layers: dict[str, str], argv: list[str]) -> None:
    """Start the kernel, seal the process, report it, serve; returns when the kernel is shut down."""
    options = msgspec.json.decode(os.environ.pop(OPTIONS_VARIABLE), type=Options)
    os.set_inheritable(options.ready_fd, False)
    import ipykernel.debugger  # late, because a worker has none

    # The debugger needs a TCP port; report it as absent, so that frontends do not offer it.
    ipykernel.debugger._is_debugpy_available = False
    # The pipe for subprocess output needs TCP, which is not available.
    warnings.filterwarnings("ignore", message="Couldn't bind IOPub Pipe")
    app = sealed_app(restrictions, layers, argv, kernel_class=InterruptibleKernel)
    lockdown.limit_tool(options.memory_bytes, options.cpu_s or _FOREVER_S)
    if options.folder:
        os.chdir(options.folder)
    sys.path.insert(0, "")  # as in any kernel, cells can import files beside the notebook
    os.write(options.ready_fd, msgspec.json.encode(layers))
    os.close(options.ready_fd)
    app.start()
