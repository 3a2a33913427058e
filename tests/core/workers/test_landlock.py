"""Landlock by itself, without the filter that comes after it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from programs import python

from healkit.core.workers.tiers import probe

#: Tries TCP before and after the process enters its domain; no filter is loaded.
_TCP = """
import errno, json, socket, sys
from healkit.core.workers.inside import lockdown

def attempt(action):
    try:
        action()
    except OSError as error:
        return errno.errorcode[error.errno]
    return "done"

def both():
    return [attempt(lambda: socket.socket().bind(("127.0.0.1", 0))),
            attempt(lambda: socket.socket().connect(("127.0.0.1", port)))]

folder, server = sys.argv[1], socket.create_server(("127.0.0.1", 0))
port = server.getsockname()[1]
before = both()
restrictions = lockdown.Restrictions("landlock", -1, folder, folder, [], [], 1 << 20, 100, 64)
layers = lockdown.enter(restrictions)
print(json.dumps([before, both(), layers["landlock"]]))
"""


@pytest.mark.requirement("WORK-2")
def test_landlock_refuses_tcp_by_itself_and_says_so(tmp_path: Path) -> None:
    """S10: a library's default refused TCP; our code had not asked for it, and no report named it."""
    done = python(_TCP, tmp_path)
    before, after, report = json.loads(done.stdout or done.stderr)
    assert before == ["done", "done"]
    assert after == ["EACCES", "EACCES"]
    assert "no TCP" in report
    assert all("no TCP" in probe(tier).layers["landlock"] for tier in ("namespaces", "landlock"))
