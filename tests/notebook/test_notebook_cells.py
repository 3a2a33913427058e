"""Failing cells of the user's own: the card, the explanation, and the way into the vault."""

from __future__ import annotations

import json
import time

import pytest
from nbclient.exceptions import CellExecutionError
from notebook_samples import BROKEN, error_of, text_of

SECRET = "ghp_0123456789abcdefghijABCDEFGHIJ012345"


@pytest.mark.requirement("FACE-3", "FACE-7", "FACE-4")
def test_a_failing_cell_keeps_its_error_and_gets_one_card_below(run, database):
    book = run(
        "%load_ext healkit",
        "rows = [{'units': 3}]\ndef total(rows):\n    return sum(row['unit'] for row in rows)",
        "total(rows)",
    )
    cell = book.cells[2]
    assert [output.output_type for output in cell.outputs] == ["error", "display_data"]
    assert error_of(cell).ename == "KeyError"
    card = cell.outputs[1].data["text/plain"]
    assert card.startswith("✗ cell[3] failed: KeyError: 'unit'")
    assert "at line 3 of cell[2], in <genexpr>" in card
    assert "There is one much like it: `units`." in card
    assert "ran in this notebook's own kernel, not in a worker" in card
    assert "%healkit keep NAME" in card
    assert "ipykernel" not in card
    assert not database.exists()  # a cell that failed is no reason to make a database


@pytest.mark.requirement("FACE-3")
def test_a_failing_cell_still_fails_for_those_who_run_notebooks(run):
    with pytest.raises(CellExecutionError, match="ZeroDivisionError"):
        run("%load_ext healkit", "1 / 0", allow_errors=False)


@pytest.mark.slow
@pytest.mark.requirement("FACE-7")
def test_it_is_traced_explained_and_made_a_tool_that_fails_alike_and_is_mended(run, healkit):
    book = run(
        "%load_ext healkit",
        "prices = {'apple': 3}\nwanted = 'pear'",
        "total = 2 * prices[wanted]\ntotal",
        "%trace_last_error",
        "%healkit keep price_of",
        "%run_tool price_of prices=prices wanted=wanted",
        "%%tool price_of --reason 'no such fruit costs nothing'\n"
        "def price_of(prices: dict, wanted: str):\n    return 2 * prices.get(wanted, 0)",
        "%run_tool price_of prices=prices wanted=wanted",
    )
    *_, failed, traced, kept, ran, _, mended = map(text_of, book.cells)
    assert "There is no key 'pear'." in failed
    assert "✗ cell[3] failed: KeyError: 'pear'" in traced
    assert (
        "def price_of(prices: dict, wanted: str):\n        total = 2 * prices[wanted]\n        return total"
        in kept
    )
    assert "%run_tool price_of prices=prices wanted=wanted" in kept
    assert "not in this kernel" in kept
    assert "KeyError: 'pear'" in ran
    assert mended.endswith("0")
    assert [e.status for e in healkit.executions()] == ["SUCCESS", "FAILURE"]


@pytest.mark.requirement("FACE-4", "TRACE-3")
def test_secrets_among_the_locals_reach_neither_the_page_nor_the_database(run, database):
    tool = f"def f():\n    token = '{SECRET[:20]}' + '{SECRET[20:]}'\n    password = 'kor' + 'rekthorse'\n    return 1 / 0"
    book = run(
        "%load_ext healkit",
        f"key = '{SECRET[:20]}' + '{SECRET[20:]}'\nlen(key) / 0",
        f"%%tool f\n{tool}",
        "%run_tool f",
    )
    saved = json.dumps([cell.outputs for cell in book.cells])
    assert SECRET not in saved
    assert "korrekthorse" not in saved
    assert "1 value hidden: it looked like a secret" in text_of(book.cells[1])
    assert "2 values hidden: they looked like secrets" in text_of(book.cells[3])
    for file in database.parent.glob("healkit.db*"):
        content = file.read_bytes() if file.is_file() else b""
        assert SECRET.encode() not in content
        assert b"korrekthorse" not in content


@pytest.mark.slow
@pytest.mark.requirement("FACE-4")
def test_values_that_are_slow_or_huge_to_print_delay_no_card(run):
    hostile = (
        "import time\nclass Slow:\n    def __repr__(self):\n        time.sleep(60)\n"
        "class Huge(list):\n    def __repr__(self):\n        return 'x' * 10**9\n"
    )
    tool = f"%%tool f\n{hostile}def f():\n    slow, huge, big = Slow(), Huge(), 10**100_000\n    return 1 / 0"
    cells = [
        "slow, huge, text = Slow(), Huge(), 'x' * 10**8",
        "print(1 / 0, slow, huge, text)",
        tool,
        "%run_tool f",
    ]
    began = time.monotonic()
    book = run("%load_ext healkit", hostile, *cells)
    assert time.monotonic() - began < 45
    assert "<Slow object>" in text_of(book.cells[3])
    assert "<int of" in text_of(book.cells[5])


@pytest.mark.requirement("FACE-3")
def test_a_card_of_a_tool_that_was_called_from_python_is_shown_once(run):
    book = run(
        "%load_ext healkit",
        BROKEN,
        "from healkit import Healkit\nHealkit().execute_tool('fibonacci', arguments={'n': 1})",
        "%run_tool fibonacci n=1",
    )
    for cell in book.cells[2:]:
        cards = [o for o in cell.outputs if o.output_type == "display_data" and "text/html" in o.data]
        assert len(cards) == 1
        assert "fibonacci@1 failed" in cards[0].data["text/plain"]
    assert "2nd time since" in text_of(book.cells[3])


@pytest.mark.slow
@pytest.mark.requirement("FACE-4", "LOG-11")
def test_the_card_says_how_often_and_what_cured_it(run):
    bad, good = (
        "%%tool f\ndef f(n: int):\n    return 1 / n",
        "%%tool f\ndef f(n: int):\n    return n and 1 / n",
    )
    book = run(
        "%load_ext healkit",
        bad,
        "%run_tool f n=0",
        good,
        "%run_tool f n=0",
        bad,
        "%run_tool f n=0",
        "%run_tool f n=0",
    )
    assert "time since" not in text_of(book.cells[2])
    assert "2nd time since" in text_of(book.cells[6])
    assert "3rd time since" in text_of(book.cells[7])
    assert "last cured by revision 2" in text_of(book.cells[7])


@pytest.mark.requirement("FACE-1", "FACE-2")
def test_off_silences_the_cards_on_brings_them_back_and_unloading_ends_them(run):
    book = run(
        "%load_ext healkit", "1 / 0", "%healkit off", "1 / 0", "%healkit on", "1 / 0", "%unload_ext healkit", "1 / 0",
        "%load_ext healkit", "%reload_ext healkit", "1 / 0",
    )  # fmt: skip
    kinds = [[output.output_type for output in cell.outputs] for cell in book.cells]
    assert kinds[1] == kinds[5] == kinds[10] == ["error", "display_data"]
    assert kinds[3] == kinds[7] == ["error"]
    tips = ["Said once" in text_of(cell) for cell in book.cells]
    assert tips[1]
    assert not tips[5]


@pytest.mark.slow
def test_the_explanation_goes_as_far_as_the_teacher_lets_it(run, monkeypatch):
    book = run("%load_ext healkit", "%config HealkitMagics.explain = 'hint'", "1 / 0")
    assert "hint  " in text_of(book.cells[2])
    assert "mend  " not in text_of(book.cells[2])
    monkeypatch.setenv("HEALKIT_EXPLAIN", "what")
    book = run(
        "%load_ext healkit",
        "%config HealkitMagics.explain = 'fix'",
        "1 / 0",
        BROKEN,
        "%run_tool fibonacci n=1",
    )
    for cell in (book.cells[2], book.cells[4]):
        assert "what  " in text_of(cell)
        assert "hint  " not in text_of(cell)
        pages = "".join(o.data.get("text/html", "") for o in cell.outputs if "data" in o)
        assert pages
        assert "A way to mend it" not in pages


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("%healkit keep", "The tool needs a name"),
        ("%healkit keep x", "No cell has failed yet"),
        ("%healkit keep x --cell 99", "There is no cell 99"),
        ("%healkit off now", "%healkit off takes no name"),
    ],
)
def test_a_wrong_keep_is_one_line(shell, capsys, line, said):
    shell.run_line_magic("load_ext", "healkit")
    shell.run_cell(line)
    shown = capsys.readouterr().out.strip()
    assert said in shown
    assert len(shown.splitlines()) == 1


def test_an_interrupt_and_an_exit_are_no_failures(shell, capsys):
    shell.run_line_magic("load_ext", "healkit")
    shell.run_cell("raise KeyboardInterrupt")
    assert "cell[" not in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.requirement("FACE-1")
def test_after_a_failure_and_unloading_no_thread_and_no_process_is_left(run):
    left = (
        "import threading, time, psutil\n"
        "def ours():\n"
        "    threads = [t.name for t in threading.enumerate() if 'healkit' in t.name]\n"
        "    children = [p.pid for p in psutil.Process().children(recursive=True) if p.status() != 'zombie']\n"
        "    return threads + children\n"
        "end = time.monotonic() + 30\n"
        "while ours() and time.monotonic() < end:\n    time.sleep(0.05)\n"
        "print('left', ours())"
    )
    cells = ["%load_ext healkit", "1 / 0", BROKEN, "%run_tool fibonacci n=1", "%unload_ext healkit"]
    book = run(*cells, *cells, left)
    assert "left []" in text_of(book.cells[-1])


@pytest.mark.slow
@pytest.mark.requirement("FACE-3")
def test_a_failure_in_another_database_has_its_card_and_makes_no_default_one(run, database, tmp_path):
    other = (
        f"from healkit import Healkit\nhk = Healkit({str(tmp_path / 'other.db')!r})\n"
        "hk.vault.add('half', 'def half(n: int):\\n    return n / 0\\n')\nhk.execute_tool('half', arguments={'n': 1})"
    )
    cell = run("%load_ext healkit", other).cells[1]
    assert [output.output_type for output in cell.outputs] == ["error", "display_data", "display_data"]
    assert "half@1 failed: ZeroDivisionError" in cell.outputs[1].data["text/plain"]
    assert not database.exists()
