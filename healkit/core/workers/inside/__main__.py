"""Entry point of a worker process.

`python -m healkit.core.workers.inside -f connection.json` is a kernel. With `--plain` instead, it is an interpreter for
one tool, the worker of the `subprocess` mode. It has the restrictions, the bridge and the tracebacks of a kernel, but
no displays.
"""

import faulthandler
import os
import socket
import sys

import msgspec

from healkit.core.workers.inside import lockdown


def main() -> None:
    """Lock down while there is only one thread, then import and start the server."""
    restrictions = msgspec.json.decode(
        os.environ.pop(lockdown.RESTRICTIONS_VARIABLE), type=lockdown.Restrictions
    )
    if sys.argv[1:] == ["--plain"]:
        _serve_plainly(restrictions)
    layers = lockdown.enter(restrictions)
    # After the lockdown, because these imports may start threads.
    if restrictions.bridge_fd < 0:
        from healkit.core.workers.inside.kernel_main import serve_notebook as serve
    else:
        from healkit.core.workers.inside.kernel_main import serve
    serve(restrictions, layers, sys.argv[1:])


def _serve_plainly(restrictions: lockdown.Restrictions) -> None:
    """Run the one tool that the host sends, and exit without waiting for threads that it left running."""
    from healkit.core.contracts import rpc
    from healkit.core.workers.inside.capture import PlainStream
    from healkit.core.workers.inside.cleanup import end_children
    from healkit.core.workers.inside.tool_runner import ToolRunner

    try:
        layers = lockdown.enter(restrictions)
        crash_fd = os.dup(2)
        faulthandler.enable(file=crash_fd)
        bridge = socket.socket(fileno=restrictions.bridge_fd)
        os.set_inheritable(restrictions.bridge_fd, False)
        sys.stdout = sys.stderr = PlainStream()
        layers |= lockdown.seal(restrictions)
        runner = ToolRunner(bridge, crash_fd)
        runner.endpoint.send(rpc.Ready(os.getpid(), layers))
        runner.run()
    finally:
        if restrictions.tier == "process":
            end_children()
    os._exit(0)


main()
