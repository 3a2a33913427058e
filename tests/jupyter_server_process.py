"""Process of a Jupyter server."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import uuid
from pathlib import Path

import httpx
from waiting import WITHIN_S as WAIT_S
from waiting import wait_until


class Jupyter:
    """Process of a `jupyter server`, below a base URL, with folders of its own for all that it keeps."""

    def __init__(self, folder: Path, *options: str, port: int = 0, token: str = "", **environ: str) -> None:
        self.token = token or uuid.uuid4().hex
        self.folder = folder
        names = ("CONFIG_DIR", "RUNTIME_DIR", "DATA_DIR")
        env = {**os.environ, **{f"JUPYTER_{name}": str(folder / name.lower()) for name in names}}
        env |= {"JUPYTER_PLATFORM_DIRS": "1", "HEALKIT_DB": str(folder / "healkit.db"), **environ}
        settings = {"root_dir": folder, "port": port, "open_browser": False, "allow_root": True}
        words = [f"--ServerApp.{name}={value}" for name, value in settings.items()]
        words += [f"--IdentityProvider.token={self.token}", "--ServerApp.base_url=/user/ada/", *options]
        self._log = (folder / "server.log").open("wb")
        command = [sys.executable, "-m", "jupyter_server", *words]
        self.process = subprocess.Popen(command, stdout=self._log, stderr=self._log, cwd=folder, env=env)
        self.url = ""
        wait_until(self._look)
        self.client = httpx.Client(
            base_url=self.url, headers={"Authorization": f"token {self.token}"}, timeout=WAIT_S
        )

    def _look(self) -> bool:
        assert self.process.poll() is None, self.log()
        for file in self.folder.glob(f"runtime_dir/jpserver-{self.process.pid}.json"):
            with contextlib.suppress(ValueError):
                self.url = json.loads(file.read_text())["url"].rstrip("/")
        try:  # the address is named before anybody listens there
            return bool(self.url) and httpx.get(f"{self.url}/api", timeout=WAIT_S).status_code == 200
        except httpx.TransportError:
            return False

    def log(self) -> str:
        """Return the server's output."""
        return (self.folder / "server.log").read_text()

    def stop(self) -> None:
        """Stop it, if it has not been yet."""
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(WAIT_S)
        self._log.close()
        if self.url:
            self.client.close()
