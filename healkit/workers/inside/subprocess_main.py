"""Worker without a kernel: one interpreter, one tool.

Started as `python -m healkit.workers.inside.subprocess_main` for the `subprocess` mode. Restrictions, bridge and
tracebacks are those of a kernel worker; displays are not.
"""

from __future__ import annotations

import faulthandler
import io
import os
import socket
import sys
from typing import TYPE_CHECKING

import msgspec

from healkit.contracts import rpc
from healkit.workers.inside import lockdown
from healkit.workers.inside.capture import OVER_LIMIT, Output, OutputLimit
from healkit.workers.inside.tool_runner import ToolRunner

if TYPE_CHECKING:
    from typing import NoReturn


class PlainStream(io.TextIOBase):
    """stdout and stderr in one: straight to the file that the host reads."""

    encoding = "utf-8"

    def write(self, text: str) -> int:
        """Write at once; called by print. Over the budget it raises `OutputLimit`."""
        if not Output.admit(text):
            raise OutputLimit(OVER_LIMIT)
        Output.remember(text, limit=len(text))
        return len(text)

    def writable(self) -> bool:
        """Yes; asked by io."""
        return True

    def fileno(self) -> int:
        """Return the descriptor behind it; for code that writes past Python."""
        return 1


def serve(restrictions: lockdown.Restrictions, layers: dict[str, str]) -> None:
    """Seal the process, tell the host, run the one tool that it sends."""
    crash_fd = os.dup(2)
    faulthandler.enable(file=crash_fd)
    bridge = socket.socket(fileno=restrictions.bridge_fd)
    os.set_inheritable(restrictions.bridge_fd, False)
    sys.stdout = sys.stderr = PlainStream()
    layers |= lockdown.seal(restrictions)
    runner = ToolRunner(bridge, crash_fd)
    runner.endpoint.send(rpc.Ready(os.getpid(), layers))
    runner.run()


def main() -> NoReturn:
    """Lock down, serve, and leave without the interpreter's own farewell: threads of a tool must not delay it."""
    restrictions = msgspec.json.decode(
        os.environ.pop(lockdown.RESTRICTIONS_VARIABLE), type=lockdown.Restrictions
    )
    try:
        serve(restrictions, lockdown.enter(restrictions))
    finally:
        if restrictions.tier == "process":
            lockdown.end_children()
    os._exit(0)


if __name__ == "__main__":
    main()
