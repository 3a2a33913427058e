"""Stock python3 kernel that tests take turns with.

Each test finds it as if it had just been started.

A cold start costs half a second, and healkit's workers a second more at their first use. Where a test is about a
kernel that starts, restarts or dies, it starts one of its own.
"""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import Any

import nbformat
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import AsyncKernelManager
from jupyter_core.utils import run_sync
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, DeadKernelError
from waiting import wait_until

WITHIN_S = 180
_RENEWAL = Path(__file__).with_name("notebook_renewal.py")
#: Runs at the start, and leaves the module where `renew` finds it, and no name in the notebook.
_BOOT = (
    "import sys, types\nsys.modules['notebook_renewal'] = types.ModuleType('notebook_renewal')\n"
    f"exec(compile(open({str(_RENEWAL)!r}).read(), 'notebook_renewal', 'exec'), vars(sys.modules['notebook_renewal']))"
)
_RENEW = "__import__('notebook_renewal').renew(__import__('json').loads({0!r}), {1!r})"


class NotebookKernel:
    """Kernel that is started when it is first used, and again after a test that it did not survive."""

    def __init__(self, **environment: str) -> None:
        self._own = environment
        self._manager: Any = None
        self._client: BlockingKernelClient | None = None

    def run(
        self,
        book: nbformat.NotebookNode,
        folder: Path | None = None,
        *,
        allow_errors: bool = False,
        **options: Any,
    ) -> nbformat.NotebookNode:
        """Run a notebook from top to bottom in that folder; raises as nbclient does. Returns it."""
        self.renew(folder)
        options = {"timeout": WITHIN_S, "allow_errors": allow_errors, **options}
        # What one `print` writes may arrive in two messages where the machine is busy.
        client = NotebookClient(book, km=self._manager, coalesce_streams=True, **options)
        try:
            client.execute()
        except CellExecutionError:
            raise
        except BaseException as error:
            if isinstance(error, DeadKernelError):
                error.add_note(f"its exit status is {self._manager.provisioner.process.poll()}")
            self.close()
            raise
        finally:
            if client.kc is not None:
                client.kc.stop_channels()
        return book

    def client(self, folder: Path | None = None) -> BlockingKernelClient:
        """Another client of the kernel made new, as a page is one; the caller stops its channels."""
        self.renew(folder)
        return self._connected()

    def interrupt(self) -> None:
        """Interrupt the kernel, as the notebook's own button does."""
        run_sync(self._manager.interrupt_kernel)()

    def renew(self, folder: Path | None = None) -> None:
        """Make the kernel new, with the environment that this process has now; start one where there is none."""
        if self._client is None:
            self._start()
        code = _RENEW.format(json.dumps({**os.environ, **self._own}), str(folder or Path.cwd()))
        self._ask(code)

    def close(self) -> None:
        """End the kernel."""
        client, self._client = self._client, None
        manager, self._manager = self._manager, None
        if client is not None:
            client.stop_channels()
        if manager is not None and run_sync(manager.is_alive)():
            run_sync(manager.shutdown_kernel)()

    def _start(self) -> None:
        self._manager = AsyncKernelManager(kernel_name="python3")
        run_sync(self._manager.start_kernel)(env={**os.environ, **self._own})
        self._client = self._connected()
        self._ask(_BOOT)

    def _connected(self) -> BlockingKernelClient:
        client = BlockingKernelClient(parent=self._manager)  # which is asked whether the kernel lives
        client.load_connection_info(self._manager.get_connection_info())
        client.start_channels()
        client.wait_for_ready(timeout=WITHIN_S)
        return client

    def _ask(self, code: str) -> None:
        with contextlib.ExitStack() as failed:
            failed.callback(self.close)
            # A cell that failed a moment ago has the kernel turn away what comes right behind it.
            reply = wait_until(lambda: self._reply(code, but="aborted"), WITHIN_S)
            assert reply["status"] == "ok", "\n".join(reply.get("traceback", [str(reply)]))
            failed.pop_all()

    def _reply(self, code: str, but: str) -> Any:
        """Return what the kernel replies; None where the reply has the status `but`."""
        assert self._client is not None
        content = self._client.execute_interactive(
            code, silent=True, store_history=False, timeout=WITHIN_S, output_hook=lambda message: None
        )["content"]
        return None if content["status"] == but else content
