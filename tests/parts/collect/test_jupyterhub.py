"""Collector as a service of a real JupyterHub."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil
import pytest
from processes import has_ended
from waiting import wait_until

from healkit import Config, Healkit

PAGE = Path(__file__).parents[3] / "docs" / "jupyterhub.md"
TOKEN = "a-token-of-the-tests-alone"
#: What stands for the hub's public proxy, which is a program of node: the hub tells it where things are.
BESIDE = """
from jupyterhub.proxy import Proxy

class NoProxy(Proxy):
    async def start(self): pass
    async def stop(self): pass
    async def add_route(self, routespec, target, data): self.routes[routespec] = {"target": target, "data": data}
    async def delete_route(self, routespec): self.routes.pop(routespec, None)
    async def get_all_routes(self): return {spec: {"routespec": spec, **route} for spec, route in self.routes.items()}

NoProxy.routes = {}
c.JupyterHub.proxy_class = NoProxy
c.JupyterHub.authenticator_class = "dummy"
c.Authenticator.allow_all = True
c.JupyterHub.hub_port = HUB
c.JupyterHub.bind_url = "http://127.0.0.1:PUBLIC"
"""


def free_ports(many: int) -> list[int]:
    with contextlib.ExitStack() as opened:
        sockets = [opened.enter_context(socket.socket()) for _ in range(many)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[str]:
    """Start a hub with the configuration of the page; yield the address below which its collector answers."""
    pytest.importorskip("jupyterhub", reason="the hub is not installed")
    hub_port, public, port = free_ports(3)
    (configuration,) = [
        block
        for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
        if "JupyterHub.services" in block
    ]
    for said, here in (
        ("8008", str(port)),
        ("/srv/healkit/traces.db", str(tmp_path / "traces.db")),
        ('"healkit", "collect"', f'"{sys.executable}", "-m", "healkit", "collect"'),
    ):
        assert said in configuration
        configuration = configuration.replace(said, here)
    beside = BESIDE.replace("HUB", str(hub_port)).replace("PUBLIC", str(public))
    (tmp_path / "jupyterhub_config.py").write_text(configuration + beside)
    with (tmp_path / "hub.log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "jupyterhub", "-f", "jupyterhub_config.py"],
            cwd=tmp_path,
            env={**os.environ, "HEALKIT_COLLECT_TOKEN": TOKEN},
            stdout=log,
            stderr=log,
        )
    try:
        yield f"http://127.0.0.1:{port}/services/healkit"
    finally:
        family = [process, *psutil.Process(process.pid).children(recursive=True)]
        process.send_signal(signal.SIGTERM)
        process.wait(30)
        for one in family[1:]:
            with contextlib.suppress(psutil.NoSuchProcess):
                one.kill()


def is_well(url: str) -> bool:
    try:
        return httpx.get(f"{url}/api/health", timeout=5).json() == {"status": "ok"}
    except (httpx.HTTPError, ValueError):
        return False


@pytest.mark.slow  # it starts a hub
@pytest.mark.timeout(180)
@pytest.mark.requirement("SCALE-6")
def test_a_trace_arrives_at_the_hubs_service_which_is_started_again(hub: str, tmp_path: Path) -> None:
    wait_until(lambda: is_well(hub), 60)
    client = httpx.Client(base_url=hub, headers={"Authorization": f"Bearer {TOKEN}"})
    config = Config(sync_url=hub, sync_token=TOKEN)
    with client, Healkit(tmp_path / "mine.db", config=config) as mine:
        mine.vault.add("double", "def double(x):\n    return 2 * x\n")
        first = mine.execute("double", arguments={"x": 21})
        mine.traces.sync()
        (arrived,) = client.get("/api/traces").json()["traces"]
        assert arrived["id"] == first.trace_id
        assert httpx.get(f"{hub}/api/traces").status_code == 401
        (collector,) = [
            one
            for one in psutil.process_iter(["cmdline"])
            if str(tmp_path / "traces.db") in (one.info["cmdline"] or ())
        ]
        collector.kill()
        wait_until(lambda: has_ended(collector))
        wait_until(lambda: is_well(hub), 60)
        second = mine.execute("double", arguments={"x": 4})
        mine.traces.sync()
        assert {one["id"] for one in client.get("/api/traces").json()["traces"]} == {
            first.trace_id,
            second.trace_id,
        }
