"""Patch requests and undo in a notebook."""

from __future__ import annotations

import pytest
from IPython.core.completer import provisionalcompleter
from notebook_samples import BROKEN, FIXED, text_of

CODE = BROKEN.partition("\n")[2]
BETTER = FIXED.partition("\n")[2]


@pytest.mark.slow
@pytest.mark.requirement("HEAL-4", "FACE-2")
def test_requests_are_listed_shown_and_decided_and_undone(run, healkit):
    healkit.vault.add("fibonacci", CODE)
    one = healkit.requests.add("fibonacci", BETTER, author="search", verdict="cured", reason="no <zero>")
    two = healkit.requests.add("fibonacci", BETTER + "\nopen\n", author="agent")
    book = run(
        "%load_ext healkit",
        "%healkit status",
        "%healkit requests",
        f"%healkit requests show {one.id}",
        f"%healkit requests show {two.id}",
        f"%healkit requests accept {one.id}",
        f"%healkit requests decline {two.id} --reason 'not needed'",
        "%vault undo fibonacci",
        f"%healkit requests accept {two.id}",
        "%healkit requests acept 1",
        "%healkit requests accept",
        "%healkit requests --help",
        "%healkit requests",
    )
    texts = [text_of(cell) for cell in book.cells]
    status, listed, shown, further, accepted, declined, undone, turned, typo, bare, helped, last = texts[1:]
    assert "2 waiting for your approval" in status
    for text in (
        further,
        book.cells[4].outputs[0].data["text/html"],
        book.cells[2].outputs[0].data["text/html"],
    ):
        assert "! Reaches further than the code it replaces: uses open" in text
    assert "fixed, no regressions" in listed
    assert "+    return n if n < 2 else n * 11 // 2" in shown
    assert f"accept     %healkit requests accept {one.id}" in shown
    assert f"✓ Patch request {one.id} for fibonacci v1: accepted, now v2" in accepted
    assert "note       not needed" in declined
    assert "fibonacci v3 saved (fibonacci v2 is undone)" in undone
    assert "was already declined" in turned
    assert "Did you mean 'accept'?" in typo
    assert "takes a request's number" in bare
    assert "[accept|decline|show ID]" in helped
    assert "? pending" not in last
    assert healkit.vault.get("fibonacci").code == CODE
    page = book.cells[3].outputs[0].data["text/html"]
    assert "<ins" in page
    assert "no &lt;zero&gt;" in page
    assert "<details" in book.cells[2].outputs[0].data["text/html"]


def test_subcommands_and_the_numbers_that_wait_are_completed(shell, healkit):
    shell.run_line_magic("load_ext", "healkit")
    healkit.vault.add("fibonacci", CODE)
    one = healkit.requests.add("fibonacci", BETTER)
    two = healkit.requests.add("fibonacci", BETTER + "# other\n")
    healkit.requests.decline(two.id)

    def completed(line: str) -> set[str]:
        with provisionalcompleter():
            return {found.text for found in shell.Completer.completions(line, len(line))}

    assert {"list", "show", "accept", "decline"} <= completed("%healkit requests ")
    assert str(one.id) in completed("%healkit requests accept ")
    assert str(two.id) not in completed("%healkit requests accept ")
    assert {str(one.id), str(two.id)} <= completed("%healkit requests show ")
    assert "undo" in completed("%vault un")
    assert "fibonacci" in completed("%vault undo fib")
