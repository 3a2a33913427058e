"""News for pages, heard from a server."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from postgres_samples import Cluster, Server, cluster
from sqlalchemy import event
from waiting import wait_until

from healkit import Healkit
from healkit.core.store import changes, trust
from healkit.faces.pages.side_panel import SidePanelPages
from healkit.plain_text import shown_url

pytestmark = pytest.mark.requirement("SCALE-1")


@pytest.fixture(autouse=True)
def _own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(changes, "PAUSE_S", 0.05)


@pytest.fixture
def url(postgresql_server: Server) -> Iterator[str]:
    """Make a new database on the server; its URL."""
    with postgresql_server.database() as made:
        yield made


class Page:
    """A page that is open: what it asks, and how many statements that takes of the server."""

    def __init__(self, hk: Healkit) -> None:
        self._pages = SidePanelPages(hk)
        self.statements = 0
        event.listen(hk.database.engine, "before_cursor_execute", self._count)

    def _count(self, *_: object) -> None:
        self.statements += 1

    def asks(self) -> tuple[dict[str, str], int]:
        """Return the marks, and the statements that they took."""
        before = self.statements
        value = self._pages.answer("news", {})["value"]
        return value["marks"], self.statements - before

    def is_quiet(self) -> bool:
        """Ask once more; True when the server was not asked."""
        return self.asks()[1] == 0


def test_a_page_that_is_left_open_asks_the_server_nothing_until_something_changes(url: str) -> None:
    with Healkit(url) as shows, Healkit(url) as works:
        page = Page(shows)
        works.vault.add("double", "def double(n): return 2 * n")
        wait_until(page.is_quiet)
        for change, name in (
            (lambda: works.execute("double", arguments={"n": 1}), "executions"),
            (lambda: works.vault.patch("double", "def double(n): return n + n"), "tools"),
            (lambda: works.execute("double", arguments={"n": None}), "failures"),
            (lambda: works.execute("double", arguments={"n": 1}, record=True), "runs"),
        ):
            before, _ = page.asks()
            change()
            wait_until(lambda: page.asks()[0][name] != before[name], 5.0)  # noqa: B023 - called at once
            wait_until(page.is_quiet, 5.0)
        assert all(page.is_quiet() for _ in range(20))


def test_changes_in_the_pause_of_a_writer_are_shown_too(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of many executions within the pause only the first is said; the page counts all of them."""
    monkeypatch.setattr(changes, "PAUSE_S", 1.0)
    with Healkit(url) as shows, Healkit(url) as works:
        works.vault.add("double", "def double(n): return 2 * n")
        page = Page(shows)
        for _ in range(3):
            for n in range(4):
                works.execute("double", arguments={"n": n})
                page.asks()
            until = time.monotonic() + 2.5
            while time.monotonic() < until:
                marks, _ = page.asks()
                time.sleep(0.05)
            assert marks["executions"].startswith(f"[{works.log.count()}, 0, ")


def test_a_server_that_restarts_is_asked_until_it_can_be_heard_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))

    def restart(server: Cluster) -> None:
        server.stop()
        server.start()

    with cluster() as server:
        trust.trust(shown_url(server.url), "")
        with Healkit(server.url) as shows, Healkit(server.url) as works:
            page = Page(shows)
            wait_until(page.is_quiet)
            before, _ = page.asks()
            restart(server)
            works.vault.add("double", "def double(n): return 2 * n")
            wait_until(lambda: page.asks()[0]["tools"] != before["tools"], 10.0)
            wait_until(page.is_quiet, 10.0)
