"""Revisions: patched, compared, reverted, counted, blamed."""

from __future__ import annotations

import contextlib

import pytest
from side_by_side import Meet, at_once
from store_samples import failed, started, succeeded
from vault_samples import BROKEN, FIXED, V4, V5

from healkit.contracts.vault import Blame
from healkit.errors import RevisionConflict
from healkit.store.database import Database
from healkit.store.log_reader import Log
from healkit.store.log_writer import LogWriter
from healkit.store.vault import Vault


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


def test_a_patch_with_the_active_code_adds_nothing(vault: Vault) -> None:
    first = vault.add("fibonacci", BROKEN)
    assert vault.patch("fibonacci", BROKEN) == first
    assert vault.history("fibonacci")[-1].number == 1


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
        (1, None, False),
        (2, 1, False),
        (3, 2, True),
    ]
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
        begun = started(revision=1)
        writer.insert_finished(begun, succeeded(begun))
        breaking = started(revision=2)
        log_id = writer.insert_finished(breaking, failed(breaking))
        begun = started(revision=3)
        writer.insert_finished(begun, failed(begun))
        uncured = vault.blame("fibonacci")
        begun = started(revision=4)
        writer.insert_finished(begun, succeeded(begun))
        other = started(revision=4)
        writer.insert_finished(other, failed(other, "return other", "KeyError"))
    assert (uncured.first_failed, uncured.last_good, uncured.last_cured_by, uncured.count) == (2, 1, None, 2)
    row = Log(database).get(log_id)
    assert row is not None
    cured = vault.blame("fibonacci", row.fingerprint)
    assert (cured.first_failed, cured.last_good, cured.last_cured_by, cured.count) == (2, 1, 4, 2)
    assert (cured.first_failed_log_id, cured.first_failed_at) == (log_id, breaking.timestamp)
    assert vault.blame("fibonacci").first_failed == 4
