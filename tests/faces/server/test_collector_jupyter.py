"""Collector in a real Jupyter server."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from collector_samples import read_all, trace
from jupyter_server_process import Jupyter

TRACE_4 = pytest.mark.requirement("TRACE-4")

AUTHORIZER = """
import os
from jupyter_server.auth import Authorizer

class Readers(Authorizer):
    def is_authorized(self, handler, user, action, resource):
        with open("asked", "a") as asked:
            print(action, resource, file=asked)
        return action != "write" or resource != "healkit_traces"
"""

#: Another extension, which answers at one of the short addresses; loaded first, by its name.
NEIGHBOUR = """
from tornado.web import RequestHandler

class Theirs(RequestHandler):
    def get(self, *_):
        self.finish("theirs")

def _jupyter_server_extension_points():
    return [{"module": "a_neighbour"}]

def _load_jupyter_server_extension(app):
    app.web_app.add_handlers(".*$", [(app.base_url + "api/health", Theirs)])
"""


@pytest.fixture(scope="module")
def jupyter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jupyter]:
    """Start a Jupyter server with only its token and base URL configured."""
    server = Jupyter(tmp_path_factory.mktemp("jupyter"), HEALKIT_COLLECT_RATE_PER_S="1000")
    yield server
    server.stop()


@pytest.mark.slow
def test_the_wheel_switches_the_extension_on(jupyter: Jupyter) -> None:
    file = Path(sys.prefix) / "etc" / "jupyter" / "jupyter_server_config.d" / "healkit.json"
    assert json.loads(file.read_text())["ServerApp"]["jpserver_extensions"] == {"healkit.faces.server": True}
    assert "healkit.faces.server | extension was successfully loaded" in jupyter.log()


def test_nothing_is_opened_before_a_known_client_asks(jupyter: Jupyter) -> None:
    with httpx.Client(base_url=jupyter.url) as nobody:
        assert nobody.get("/healkit/api/health").json() == {"status": "ok"}
        assert nobody.get("/healkit/api/traces").status_code == 401
    assert not (jupyter.folder / "healkit.db").exists()
    assert jupyter.client.get("/healkit/api/traces").json() == {"traces": [], "next": None}
    assert (jupyter.folder / "healkit.db").exists()


def test_an_unused_extension_does_not_load_the_database() -> None:
    program = (
        "import sys, healkit.faces.server;"
        "print([name for name in ('sqlalchemy', 'pandas', 'pydantic', 'alembic') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == "[]\n"


@TRACE_4
@pytest.mark.parametrize("prefix", ["/healkit", ""])
def test_traces_are_accepted_below_the_base_url(jupyter: Jupyter, prefix: str) -> None:
    assert jupyter.url.endswith("/user/ada")
    one = trace()
    answer = jupyter.client.post(f"{prefix}/api/traces", json=[one])
    assert (answer.status_code, answer.json()) == (200, {"received": 1, "stored": 1, "errors": []})
    assert jupyter.client.get(f"{prefix}/api/traces/{one['id']}").json()["id"] == one["id"]
    assert one["id"] in read_all(jupyter.client, f"{prefix}/api/traces")
    with httpx.Client(base_url=jupyter.url, headers={"Authorization": f"Bearer {jupyter.token}"}) as client:
        assert client.post(f"{prefix}/api/traces", json=[one]).json()["stored"] == 1
        assert "healkit_collect_traces_total" in client.get(f"{prefix}/api/metrics").text


@TRACE_4
@pytest.mark.parametrize("prefix", ["/healkit", ""])
def test_unknown_users_are_refused(jupyter: Jupyter, prefix: str) -> None:
    one = trace()
    for headers, status, code in (
        ({}, 401, "TOKEN_MISSING"),
        ({"Authorization": "Bearer wrong"}, 403, "TOKEN_WRONG"),
    ):
        with httpx.Client(base_url=jupyter.url, headers=headers) as client:
            for answer in (
                client.post(f"{prefix}/api/traces", json=[one]),
                client.post(f"{prefix}/api/traces", content=b"x" * 6_000_000),
                client.get(f"{prefix}/api/traces"),
                client.get(f"{prefix}/api/traces/{one['id']}"),
                client.get(f"{prefix}/api/metrics"),
            ):
                assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
    assert jupyter.client.get(f"/api/traces/{one['id']}").status_code == 404


def test_pages_of_other_origins_read_nothing(jupyter: Jupyter) -> None:
    answer = jupyter.client.get("/api/traces", headers={"Origin": "http://elsewhere.example"})
    assert "Access-Control-Allow-Origin" not in answer.headers
    # A browser that is logged in sends its cookie along; without the XSRF token that is not enough.
    with httpx.Client(base_url=jupyter.url) as browser:
        browser.get("/api/status", params={"token": jupyter.token})
        assert browser.get("/api/status").status_code == 200
        answer = browser.post("/api/traces", json=[trace()], headers={"Origin": "http://elsewhere.example"})
        assert answer.status_code in {403, 404}


def test_jupyters_own_addresses_are_untouched(jupyter: Jupyter) -> None:
    assert "started" in jupyter.client.get("/api/status").json()
    assert "version" in jupyter.client.get("/api").json()
    assert jupyter.client.get("/api/nothing").status_code == 404
    jupyter.client.get("/api/traces", params={"token": jupyter.token})
    own = [line for line in jupyter.log().splitlines() if "/api/" in line]
    assert own
    assert not [line for line in own if jupyter.token in line]


@pytest.mark.slow
@TRACE_4
def test_the_authorizer_decides_who_reads_and_who_writes(tmp_path: Path) -> None:
    (tmp_path / "readers.py").write_text(AUTHORIZER)
    (tmp_path / "a_neighbour.py").write_text(NEIGHBOUR)
    server = Jupyter(
        tmp_path,
        "--ServerApp.authorizer_class=readers.Readers",
        "--ServerApp.jpserver_extensions={'a_neighbour': True}",
        "--ServerApp.allow_unauthenticated_access=False",
        PYTHONPATH=str(tmp_path),
    )
    try:
        assert server.client.get("/healkit/api/traces").status_code == 200
        answer = server.client.post("/healkit/api/traces", json=[trace()])
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "FORBIDDEN")
        assert server.client.get("/healkit/api/traces").json()["traces"] == []
        asked = (tmp_path / "asked").read_text().splitlines()
        assert asked == ["read healkit_traces", "write healkit_traces", "read healkit_traces"]
        # Another extension already had one short address, so the collector takes no short address.
        assert server.client.get("/api/health").text == "theirs"
        assert server.client.get("/api/traces").status_code == 404
        with httpx.Client(base_url=server.url) as nobody:
            assert nobody.post("/healkit/api/traces", json=[]).json()["error"]["code"] == "TOKEN_MISSING"
            assert nobody.get("/healkit/api/health").status_code == 200
    finally:
        server.stop()


@pytest.mark.slow
def test_the_extension_can_be_switched_off(tmp_path: Path) -> None:
    option = "--ServerApp.jpserver_extensions={'healkit.faces.server': False}"
    page = (Path(__file__).parents[3] / "docs" / "collector.md").read_text()
    assert option.replace("=", '="') + '"' in page
    server = Jupyter(tmp_path, option)
    try:
        assert server.client.get("/healkit/api/health").status_code == 404
        assert "started" in server.client.get("/api/status").json()
    finally:
        server.stop()
