"""Revisions: patched, compared, reverted, counted, blamed."""

from __future__ import annotations

import contextlib

import pytest
from side_by_side import Meet, at_once
from store_samples import asked_of, failed, recorded, started, succeeded
from vault_samples import BROKEN, FIXED, V4, V5

from healkit.core.contracts.execution import utc_now
from healkit.core.contracts.vault import Blame
from healkit.core.rendering.to_text import text_of
from healkit.core.store import vault_history
from healkit.core.store.database import Database
from healkit.core.store.log_reader import Log
from healkit.core.store.log_writer import LogWriter
from healkit.core.store.models import Revision
from healkit.core.store.vault import Vault
from healkit.errors import RevisionConflict, UsageInvalid
from healkit.faces.commands import cards
from healkit.parts.heal.case import peers_of


@V4
def test_a_patch_is_a_revision_with_its_origin(vault: Vault) -> None:
    vault.add("fibonacci", BROKEN)
    entry = vault.patch(
        "fibonacci", FIXED, reason="divided by zero", author="rule", parent=1, motivating_log_id=7
    )
    assert (entry.revision, entry.code) == (2, FIXED)
    assert vault.get("fibonacci", revision=1).code == BROKEN
    first, second = vault.history("fibonacci")
    assert (first.number, first.parent, first.active) == (1, None, False)
    assert (second.number, second.parent, second.active) == (2, 1, True)
    assert (second.author, second.reason, second.motivating_log_id) == ("rule", "divided by zero", 7)
    assert first.created_at <= second.created_at
    assert second.created_at.tzinfo is not None


@V4
def test_the_later_of_two_patches_conflicts_and_keeps_its_code(vault: Vault) -> None:
    vault.add("fibonacci", BROKEN)
    vault.patch("fibonacci", FIXED, parent=1)
    later = BROKEN.replace("n / 0", "n // 1")
    with pytest.raises(RevisionConflict) as caught:
        vault.patch("fibonacci", later, parent=1)
    message = str(caught.value)
    assert "fibonacci v2 is the active revision" in message
    assert "+    return n if n < 2" in message
    assert "+    return n // 1" in message
    digest = message.split("under the hash ")[1].split(".")[0]
    assert vault.code(digest) == later
    assert [info.number for info in vault.history("fibonacci")] == [1, 2]
    assert vault.patch("fibonacci", later, parent=2).revision == 3


def patch_again_and_again(meet: Meet, url: str, number: int) -> list[int]:
    """Patch ten times, each time on top of the revision that another may have been faster to patch; what it made."""
    made = []
    with contextlib.closing(Database(url, wait_s=20)) as database:
        vault = Vault(database)
        meet()
        for n in range(10):
            with contextlib.suppress(RevisionConflict):
                code = f"def fibonacci(n): return {number}{n}"
                made.append(vault.patch("fibonacci", code, parent=1 + n).revision)
    return made


@pytest.mark.slow
@V4
def test_concurrent_patches_never_overwrite_each_other(vault: Vault, database: Database) -> None:
    vault.add("fibonacci", BROKEN)
    won = at_once(patch_again_and_again, *[(database.url, n) for n in range(1, 4)])
    numbers = sorted(number for numbers in won for number in numbers)
    assert numbers == list(range(2, 2 + len(numbers)))
    history = vault.history("fibonacci")
    assert [info.number for info in history] == [1, *numbers]
    assert [info.parent for info in history] == [None, *range(1, len(numbers) + 1)]


@V5
def test_any_two_revisions_can_be_compared(vault: Vault) -> None:
    vault.add("fibonacci", BROKEN)
    assert vault.diff("fibonacci") == ""
    vault.patch("fibonacci", FIXED)
    vault.patch("fibonacci", FIXED + "# end")
    assert vault.diff("fibonacci").splitlines()[:2] == ["--- fibonacci v2", "+++ fibonacci v3"]
    backwards = vault.diff("fibonacci", 3, 1)
    assert "+    return n / 0\n" in backwards
    assert vault.diff("fibonacci", 1, 1) == ""


@V5
def test_a_revert_is_a_new_revision(vault: Vault) -> None:
    vault.add("fibonacci", BROKEN)
    vault.patch("fibonacci", FIXED)
    entry = vault.revert("fibonacci", 1, reason="the exam needs it", author="person")
    assert (entry.revision, entry.code) == (3, BROKEN)
    assert [(i.number, i.parent, i.active) for i in vault.history("fibonacci")] == [
        (1, None, False), (2, 1, False), (3, 2, True),
    ]  # fmt: skip
    assert vault.history("fibonacci")[-1].reason == "the exam needs it"


@V5
def test_the_history_counts_how_each_revision_fared(vault: Vault, database: Database) -> None:
    vault.add("fibonacci", BROKEN)
    vault.patch("fibonacci", FIXED)
    vault.add("fibonacci", BROKEN, persona="teacher")
    with contextlib.closing(LogWriter(database)) as writer:
        for begun, end in (
            (started(revision=1), failed),
            (started(revision=1), failed),
            (started(revision=2), succeeded),
            (started(revision=2, persona="student"), succeeded),  # served by the default entry
            (started(revision=1, persona="teacher"), failed),  # has an entry of its own
        ):
            writer.insert_finished(begun, end(begun))
        writer.begin(started(revision=2))  # has not ended: counts for nothing
    assert [(i.runs, i.failures) for i in vault.history("fibonacci")] == [(2, 2), (2, 0)]
    assert [(i.runs, i.failures) for i in vault.history("fibonacci", "teacher")] == [(1, 1)]


@V5
@pytest.mark.requirement("LOG-11")
def test_blame_names_the_breaking_good_and_curing_revisions(vault: Vault, database: Database) -> None:
    for n in range(4):
        code = f"def fibonacci(n): return {n}"
        vault.patch("fibonacci", code) if n else vault.add("fibonacci", code)
    assert vault.blame("fibonacci") == Blame()
    with contextlib.closing(LogWriter(database)) as writer:
        recorded(writer, succeeded, revision=1)
        breaking = started(revision=2)
        log_id = writer.insert_finished(breaking, failed(breaking))
        recorded(writer, failed, revision=3)
        uncured = vault.blame("fibonacci")
        recorded(writer, succeeded, revision=4)
        other = started(revision=4)
        writer.insert_finished(other, failed(other, "return other", "KeyError"))
    assert (uncured.first_failed, uncured.last_good, uncured.last_cured_by, uncured.count) == (2, 1, None, 2)
    row = Log(database).get(log_id)
    cured = vault.blame("fibonacci", row.fingerprint)
    assert (cured.first_failed, cured.last_good, cured.last_cured_by, cured.count) == (2, 1, 4, 2)
    assert (cured.first_failed_log_id, cured.first_failed_at) == (log_id, breaking.timestamp)
    assert vault.blame("fibonacci").first_failed == 4


@pytest.fixture
def three(database: Database) -> Vault:
    """Make a vault with `fibonacci` in three revisions."""
    three = Vault(database)
    three.add("fibonacci", "def fibonacci(n): return 1 / n")
    three.patch("fibonacci", "def fibonacci(n): return 2 / n")
    three.patch("fibonacci", "def fibonacci(n): return 3 / n")
    return three


def run(writer: LogWriter, revision: int, n: int, *, fails: bool = False) -> None:
    recorded(writer, failed if fails else succeeded, revision=revision, arguments=f'{{"n":{n}}}')


@pytest.mark.requirement("LOG-11")
def test_a_revision_that_never_met_the_failure_did_not_resolve_it(
    three: Vault, database: Database, writer: LogWriter
) -> None:
    """U5: revision 2 ran with other arguments, and was named as the cure."""
    run(writer, 1, 0, fails=True)
    run(writer, 2, 5)
    log = Log(database)
    (group,) = log.groups()
    assert (three.blame("fibonacci").last_cured_by, group.cured_by) == (None, None)
    assert log.passing_revisions("fibonacci", "default", group.fingerprint) == []
    run(writer, 3, 0)
    (group,) = log.groups()
    assert (three.blame("fibonacci").last_cured_by, group.cured_by) == (3, 3)
    assert log.passing_revisions("fibonacci", "default", group.fingerprint) == [3]


@pytest.mark.requirement("SCALE-3")
def test_a_cure_stays_one_however_much_runs_later(
    three: Vault, database: Database, writer: LogWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vault_history, "_RUNS_COMPARED_MAX", 3)
    run(writer, 1, 0, fails=True)
    run(writer, 2, 0)
    for n in range(1, 9):
        run(writer, 2, n)
    (group,) = Log(database).groups()
    assert (three.blame("fibonacci").last_cured_by, group.cured_by) == (2, 2)
    run(writer, 3, 0, fails=True)
    run(writer, 3, 9)
    assert three.blame("fibonacci").last_cured_by is None
    assert Log(database).passing_revisions("fibonacci", "default", group.fingerprint) == [2]


@pytest.mark.requirement("SCALE-3")
def test_history_and_blame_of_a_renamed_tool_do_not_read_its_runs(
    three: Vault, database: Database, writer: LogWriter
) -> None:
    run(writer, 1, 3)
    run(writer, 2, 0, fails=True)
    run(writer, 2, 1, fails=True)
    three.patch("fibonacci", "def run(n): return n")
    three.rename("fibonacci", "fib")
    recorded(writer, succeeded, tool="fib", revision=4, arguments='{"n":0}')
    recorded(writer, failed, tool="fib", revision=1, persona="teacher")
    assert [(info.runs, info.failures) for info in three.history("fib")] == [(2, 1), (2, 2), (0, 0), (1, 0)]
    blame = three.blame("fib")
    assert (blame.first_failed, blame.last_good, blame.last_cured_by, blame.count) == (2, None, 4, 3)
    if database.path is None:
        return  # the plans are SQLite's
    plans = asked_of(database, lambda: (three.history("fib"), three.blame("fib")))
    read = [line for sql, _, plan in plans if "LIMIT" not in sql for line in plan if "executionlog" in line]
    assert [line for line in read if "INTEGER PRIMARY KEY" not in line] == []


@pytest.mark.requirement("LOG-11")
def test_a_revision_that_passed_in_other_runs_is_named_as_good(three: Vault, writer: LogWriter) -> None:
    """U5: the only revision had succeeded, and `blame` said that none was good."""
    run(writer, 1, 0, fails=True)
    assert three.blame("fibonacci").last_good is None
    run(writer, 1, 5)
    found = three.blame("fibonacci")
    assert (found.first_failed, found.last_good) == (1, 1)
    assert "v1, in other runs" in text_of(cards.blame_card("fibonacci", found))


CODE = "def f(n):\n    return n\n"


@pytest.fixture
def five(database: Database) -> Vault:
    """Make a vault with `f` in five revisions."""
    five = Vault(database)
    five.add("f", CODE)
    for number in range(2, 6):
        five.patch("f", f"{CODE}# {number}\n", reason=f"reason {number}")
    return five


def ran(writer: LogWriter, revision: int, *, fails: bool = False) -> None:
    recorded(writer, failed if fails else succeeded, "f", revision=revision)


@pytest.mark.requirement("VAULT-5")
def test_the_history_is_paged(five: Vault) -> None:
    whole = five.history("f")
    assert [info.number for info in whole] == [1, 2, 3, 4, 5]
    assert five.history("f", limit=2) == whole[-2:]
    assert five.history("f", limit=2, before=4) == whole[1:3]
    assert five.history("f", before=3) == whole[:2]
    assert five.history("f", limit=9, before=3) == whole[:2]
    assert five.history("f", limit=9, before=1) == []
    with pytest.raises(UsageInvalid, match="limit=0"):
        five.history("f", limit=0)


@pytest.mark.requirement("VAULT-5")
def test_a_page_counts_the_runs_of_its_own_revisions(five: Vault, database: Database) -> None:
    with contextlib.closing(LogWriter(database)) as writer:
        for revision, fails in ((1, True), (4, True), (4, False), (5, False)):
            ran(writer, revision, fails=fails)
    assert [(i.number, i.runs, i.failures) for i in five.history("f", limit=2)] == [(4, 2, 1), (5, 1, 0)]
    assert [(i.number, i.runs, i.failures) for i in five.history("f", before=3)] == [(1, 1, 1), (2, 0, 0)]


def long(database: Database, count: int) -> None:
    """Make the history of `f` so many revisions long; the codes are those that it has."""
    with database.write() as session:
        (known, *_) = session.query(Revision.code_hash).filter(Revision.number == 1).one()
        session.add_all(
            Revision(tool_name="f", target_persona="default", number=number, code_hash=known, parent=1,
                     author="person", reason="r" * 100, created_at=utc_now())
            for number in range(6, count + 1)
        )  # fmt: skip


def test_earlier_code_is_found_once_in_a_long_history(five: Vault, database: Database) -> None:
    long(database, 300)
    found = [(peer.label, peer.code) for peer in peers_of(five, five.get("f"))]
    assert found[0] == ("f v300", CODE)
    assert found[1:] == [(f"f v{number}", f"{CODE}# {number}\n") for number in (4, 3, 2)]


def test_many_revisions_leave_room_for_other_personas(five: Vault) -> None:
    for number in range(20):
        five.patch("g", f"{CODE}# {number}\n") if number else five.add("g", CODE)
    five.add("g", f"{CODE}# another's\n", persona="reviewer")
    peers = list(peers_of(five, five.get("g")))
    assert sum(peer.label.startswith("g ") and "(" not in peer.label for peer in peers) == 8
    assert f"{CODE}# another's\n" in [peer.code for peer in peers]
