"""Pages of a tool's history, and the cost of a long one."""

from __future__ import annotations

import contextlib
import tracemalloc
from collections.abc import Callable

import pytest
from store_samples import failed, started, succeeded

from healkit.contracts.execution import utc_now
from healkit.errors import UsageInvalid
from healkit.healing.case import peers_of
from healkit.store.database import Database
from healkit.store.log_writer import LogWriter
from healkit.store.models import Revision
from healkit.store.vault import Vault

CODE = "def f(n):\n    return n\n"


@pytest.fixture
def vault(database: Database) -> Vault:
    """Make a vault with `f` in five revisions."""
    vault = Vault(database)
    vault.add("f", CODE)
    for number in range(2, 6):
        vault.patch("f", f"{CODE}# {number}\n", reason=f"reason {number}")
    return vault


def ran(writer: LogWriter, revision: int, *, fails: bool = False) -> None:
    begun = started("f", revision=revision)
    writer.insert_finished(begun, failed(begun) if fails else succeeded(begun))


@pytest.mark.requirement("VAULT-5")
def test_the_history_is_paged(vault: Vault) -> None:
    whole = vault.history("f")
    assert [info.number for info in whole] == [1, 2, 3, 4, 5]
    assert vault.history("f", limit=2) == whole[-2:]
    assert vault.history("f", limit=2, before=4) == whole[1:3]
    assert vault.history("f", before=3) == whole[:2]
    assert vault.history("f", limit=9, before=3) == whole[:2]
    assert vault.history("f", limit=9, before=1) == []


def test_a_page_of_no_revisions_is_refused(vault: Vault) -> None:
    with pytest.raises(UsageInvalid, match="limit=0"):
        vault.history("f", limit=0)


@pytest.mark.requirement("VAULT-5")
def test_a_page_counts_the_runs_of_its_own_revisions(vault: Vault, database: Database) -> None:
    with contextlib.closing(LogWriter(database)) as writer:
        for revision, fails in ((1, True), (4, True), (4, False), (5, False)):
            ran(writer, revision, fails=fails)
    assert [(i.number, i.runs, i.failures) for i in vault.history("f", limit=2)] == [(4, 2, 1), (5, 1, 0)]
    assert [(i.number, i.runs, i.failures) for i in vault.history("f", before=3)] == [(1, 1, 1), (2, 0, 0)]


def long(database: Database, count: int) -> None:
    """Make the history of `f` so many revisions long; the codes are those that it has."""
    with database.write() as session:
        (known, *_) = session.query(Revision.code_hash).filter(Revision.number == 1).one()
        session.add_all(
            Revision(tool_name="f", target_persona="default", number=number, code_hash=known, parent=1,
                     author="person", reason="r" * 100, created_at=utc_now())
            for number in range(6, count + 1)
        )  # fmt: skip


def peak_bytes(work: Callable[[], object]) -> int:
    work()  # what is read once only is no part of it
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.slow
def test_blame_and_a_page_take_no_more_memory_for_a_long_history(vault: Vault, database: Database) -> None:
    def page() -> object:
        return vault.history("f", limit=5)

    def blame() -> object:
        return vault.blame("f")

    with contextlib.closing(LogWriter(database)) as writer:
        ran(writer, 3, fails=True)
    short = {work: peak_bytes(work) for work in (page, blame)}
    long(database, 3000)
    with contextlib.closing(LogWriter(database)) as writer:
        for revision in range(2000, 2100):
            ran(writer, revision, fails=True)
    for work, before in short.items():
        assert peak_bytes(work) < 2 * before + 50_000, work.__name__


def test_earlier_code_is_found_once_in_a_long_history(vault: Vault, database: Database) -> None:
    long(database, 300)
    found = [(peer.label, peer.code) for peer in peers_of(vault, vault.get("f"))]
    assert found[0] == ("f v300", CODE)
    assert found[1:] == [(f"f v{number}", f"{CODE}# {number}\n") for number in (4, 3, 2)]


def test_many_revisions_leave_room_for_other_personas(vault: Vault) -> None:
    for number in range(20):
        vault.patch("g", f"{CODE}# {number}\n") if number else vault.add("g", CODE)
    vault.add("g", f"{CODE}# another's\n", persona="reviewer")
    peers = list(peers_of(vault, vault.get("g")))
    assert sum(peer.label.startswith("g ") and "(" not in peer.label for peer in peers) == 8
    assert f"{CODE}# another's\n" in [peer.code for peer in peers]
