"""Failing cells of the user's own."""

from __future__ import annotations

import hashlib
import json
import linecache
import warnings

import processes
import pytest
from notebook_samples import BROKEN, error_of, text_of

from healkit import Healkit
from healkit.faces.notebook.cell_output import FAILURE_TYPE, fixes_offered
from healkit.faces.pages.page_data import PageData

#: Only letters: the readers of live objects take it for a name.
LETTERS = "ghp_kfYWzqLmXbTrNvHsPdJcQgEwAoUiBnRtMyKx"


@pytest.mark.requirement("FACE-3", "FACE-7", "FACE-4")
def test_a_failing_cell_keeps_its_error_and_gets_one_card_below(run, database):
    book = run(
        "%load_ext healkit",
        "rows = [{'units': 3}]\ndef total(rows):\n    return sum(row['unit'] for row in rows)",
        "total(rows)",
    )
    cell = book.cells[2]
    assert [output.output_type for output in cell.outputs] == ["error", "display_data", "display_data"]
    assert error_of(cell).ename == "KeyError"
    card = cell.outputs[1].data["text/plain"]
    assert card.startswith("✗ In [3] failed: KeyError: 'unit'")
    assert "at line 3 of In [2], in <genexpr>" in card
    assert "'row' has no key 'unit'. The most similar one is 'units'." in card
    assert "an ordinary cell: not recorded" in card
    assert "%healkit keep NAME" in card
    assert "ipykernel" not in card
    assert not database.exists()  # a failed cell does not create a database


def test_the_place_is_the_last_own_line_whatever_compiled_code_lies_below_it(shell):
    """P3: "at line 92 of pyarrow/error.pxi"."""
    from healkit.parts.cells.own_cells import FailedCells

    result = shell.run_cell("import pyarrow as pa\npa.array(['a', 1])", store_history=True)
    for name in [one for one in linecache.cache if one.startswith("pyarrow")]:
        del linecache.cache[name]  # nothing has looked for these files before
    failed = FailedCells(shell).add(result.error_in_exec, "", 1)
    frame = failed.execution.failure.tool_frame
    assert (frame.lineno, frame.line.strip()) == (2, "pa.array(['a', 1])")


@pytest.mark.parametrize(
    ("text", "kind", "quoted"),
    [
        ("The attribute `mean` was removed in 2.0. Use `average` instead.", "FutureWarning", True),
        ("`median` was removed in 2.0.", "FutureWarning", False),
        ("The attribute `mean` was removed in 2.0.", "UserWarning", False),
        ("`mean` of 3 values", "DeprecationWarning", False),
    ],
)
def test_a_warning_of_a_cell_above_that_names_what_fails_is_quoted(shell, text, kind, quoted):
    from healkit.parts.cells.own_cells import FailedCells
    from healkit.parts.explain.explanation import explain

    cells = FailedCells(shell)
    with warnings.catch_warnings(record=True):
        warnings.simplefilter("default")
        for code in (
            f"import warnings\nclass Result:\n    average = 3\ndef load():\n    warnings.warn({text!r}, {kind}, stacklevel=2)\n"
            "    return Result()",
            "result = load()",
            "1 + 1",
        ):
            cells.runs.note(shell.run_cell(code, store_history=True))
        result = shell.run_cell("result.mean", store_history=True)
    said = explain(cells.add(result.error_in_exec, "result.mean", 4).execution.failure)
    assert (said.why == f"A warning above says: {text}") is quoted
    assert (said.what == "There is no `mean` in `result`.") is quoted


@pytest.mark.slow
@pytest.mark.requirement("FACE-7")
def test_a_failed_cell_is_traced_explained_kept_as_a_tool_and_fixed(run, healkit):
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
    *_, failed, traced, kept, ran, _, fixed = map(text_of, book.cells)
    assert "'prices' has no key 'pear'" in failed
    assert "✗ In [3] failed: KeyError: 'pear'" in traced
    assert (
        "def price_of(prices: dict, wanted: str):\n        total = 2 * prices[wanted]\n        return total"
        in kept
    )
    assert "%run_tool price_of prices=prices wanted=wanted" in kept
    assert "not in this kernel" in kept
    assert "KeyError: 'pear'" in ran
    assert fixed.endswith("0")
    assert [e.status for e in healkit.executions()] == ["SUCCESS", "FAILURE"]


@pytest.mark.slow
@pytest.mark.requirement("FACE-7")
def test_a_cell_that_reads_a_frame_is_kept_as_a_tool_and_healed(shell, healkit, capsys):
    for cell in (
        "%load_ext healkit",
        "import pandas as pd\norders = pd.DataFrame({'region': ['a', 'b'], 'revenue': [3, 4]})",
        "totals = orders.groupby('region')['revnue'].sum()\ntotals",
        "%healkit keep region_totals",
        "%run_tool region_totals orders=orders",
        "report = %heal region_totals --with rules --auto --later",
    ):
        shell.run_cell(cell, store_history=True)
    assert "%run_tool region_totals orders=orders" in capsys.readouterr().out
    kept = healkit.vault.get("region_totals", revision=1)
    assert kept.input_schema["properties"]["orders"]["format"] == "dataframe"
    assert "['revenue'].sum()" in shell.user_ns["report"].best.patch.code


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
    book = run("%load_ext healkit", hostile, *cells)
    assert "<Slow object>" in text_of(book.cells[3])
    assert "<int of" in text_of(book.cells[5])


@pytest.mark.slow
@pytest.mark.requirement("FACE-1", "FACE-2")
def test_off_silences_the_cards_on_brings_them_back_and_unloading_ends_them(run):
    book = run(
        "%load_ext healkit", "1 / 0", "%healkit off", "1 / 0", "%healkit on", "1 / 0", "%unload_ext healkit", "1 / 0",
        "%load_ext healkit", "%reload_ext healkit", "1 / 0",
    )  # fmt: skip
    kinds = [[output.output_type for output in cell.outputs] for cell in book.cells]
    assert kinds[1] == kinds[5] == kinds[10] == ["error", "display_data", "display_data"]
    assert kinds[3] == kinds[7] == ["error"]
    tips = ["Said once" in text_of(cell) for cell in book.cells]
    assert tips[1]
    assert not tips[5]


@pytest.mark.slow
def test_the_explanation_goes_as_far_as_the_teacher_lets_it(run, monkeypatch):
    book = run("%load_ext healkit", "%config HealkitMagics.explain = 'hint'", "1 / 0")
    assert "hint  " in text_of(book.cells[2])
    assert "fix   " not in text_of(book.cells[2])
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
        assert "Suggested fix" not in pages


@pytest.mark.slow
def test_an_interrupted_magic_is_one_line_without_healkits_own_frames(notebook_kernel, database):
    """U7: interrupting `%run_tool` printed 61 lines of healkit's own frames."""
    client = notebook_kernel.client()
    try:
        tool = (
            "%%tool waits\ndef waits():\n    import time\n    print('begun', flush=True)\n    time.sleep(60)"
        )
        client.execute_interactive(f"%load_ext healkit\nget_ipython().run_cell({tool!r})", timeout=60)
        asked = client.execute("%run_tool waits")
        while "begun" not in client.get_iopub_msg(timeout=60)["content"].get("text", ""):
            pass
        notebook_kernel.interrupt()
        while (message := client.get_iopub_msg(timeout=60))["msg_type"] != "error":
            pass
        assert message["parent_header"]["msg_id"] == asked
        assert message["content"]["ename"] == "KeyboardInterrupt"
        assert message["content"]["traceback"] == [
            "KeyboardInterrupt: %run_tool was interrupted. What it ran has ended; %executions lists it."
        ]
    finally:
        client.stop_channels()


@pytest.mark.slow
@pytest.mark.parametrize(("by", "level"), [("the environment", "hint"), ("the notebook", "what")])
def test_a_class_that_gets_hints_is_offered_no_healing(shell, capsys, monkeypatch, healkit, level, by):
    """U7: with explain="hint" and "what", the panel and `%heal` still offered a fix."""
    if by == "the environment":
        monkeypatch.setenv("HEALKIT_EXPLAIN", level)
    shell.run_line_magic("load_ext", "healkit")
    shell.run_cell(BROKEN)
    shell.run_cell("%run_tool fibonacci n=1")
    failed = healkit.last_error()
    if by == "the notebook":
        assert PageData(healkit, fixes_offered).execution(failed)["may_heal"]
        shell.run_line_magic("config", f"HealkitMagics.explain = {level!r}")
    with Healkit() as limited:
        assert not PageData(limited, fixes_offered).execution(failed)["may_heal"]
    capsys.readouterr()
    for line in ("%heal", "%heal fibonacci", "%heal fibonacci --panel"):
        shell.run_cell(line)
        assert f"No fix is suggested here: failures are explained up to '{level}'." in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.requirement("FACE-3")
def test_a_failure_in_another_database_has_its_card_and_makes_no_default_one(run, database, tmp_path):
    other = (
        f"from healkit import Healkit\nhk = Healkit({str(tmp_path / 'other.db')!r})\n"
        "hk.vault.add('half', 'def half(n: int):\\n    return n / 0\\n')\nhk.execute_tool('half', arguments={'n': 1})"
    )
    cell = run("%load_ext healkit", other).cells[1]
    assert [output.output_type for output in cell.outputs] == ["error", "display_data", "display_data"]
    assert "half v1 failed: ZeroDivisionError" in cell.outputs[1].data["text/plain"]
    assert not database.exists()


def test_an_interrupt_and_a_wrong_line_of_any_magic_get_no_card(shell, capsys):
    """U7: a magic's usage error got the card of a failing cell."""
    shell.run_line_magic("load_ext", "healkit")
    for line in ("raise KeyboardInterrupt", "%no_such_magic", "%timeit -z 1"):
        shell.run_cell(line)
    assert "%healkit keep" not in "".join(capsys.readouterr())


@pytest.mark.slow
@pytest.mark.requirement("FACE-1")
def test_after_a_failure_and_unloading_no_panel_no_thread_and_no_process_is_left(run):
    left = f"""
import runpy, threading, time, psutil
running = runpy.run_path({processes.__file__!r})["running"]
def ours():
    threads = [t.name for t in threading.enumerate() if "healkit" in t.name]
    return threads + running(psutil.Process().children(recursive=True))
end = time.monotonic() + 30
while ours() and time.monotonic() < end:
    time.sleep(0.05)
print("left", panel.comm, ours())"""
    panel = "from healkit.faces.defaults import default_healkit\npanel = default_healkit().browse()"
    cells = ["%load_ext healkit", "1 / 0", BROKEN, "%run_tool fibonacci n=1", panel, "%unload_ext healkit"]
    assert "left None []" in text_of(run(*cells, *cells, left).cells[-1])


@pytest.mark.slow
@pytest.mark.requirement("FACE-4", "TRACE-3")
def test_secrets_among_locals_keys_and_columns_reach_neither_the_page_nor_the_database(run, database):
    """Keys and columns that exist are named by the explanation: a live value that no traceback shows."""
    key = f"'{LETTERS[:20]}' + '{LETTERS[20:]}'"
    codes = (
        f"def price():\n    prices = {{{key}: 3, 'plain': 4}}\n    return prices['pliann']",
        f"def price():\n    prices = {{{key}: 3}}\n    return prices[next(iter(prices))[:-1]]",
        f"import pandas\ndef price():\n    frame = pandas.DataFrame({{{key}: [3]}})\n    return frame['total']",
    )
    local = "def f():\n    password = 'kor' + 'rekthorse'\n    return 1 / 0"
    cells = [text for code in codes for text in (f"{code}\nprice()", f"%%tool price --run '{{}}'\n{code}")]
    book = run(
        "%load_ext healkit", f"token = {key}\nlen(token) / 0", f"%%tool f --run '{{}}'\n{local}", *cells
    )
    saved = json.dumps([cell.outputs for cell in book.cells])
    assert saved.count("price") > 6
    for cell in book.cells[1:3]:
        assert "1 value hidden: it looked like a secret" in text_of(cell)
    for cell in book.cells[3:]:
        assert "[REDACTED:github-token]" in text_of(cell)
    for secret in (LETTERS, "korrekthorse"):
        assert secret not in saved
        for file in database.parent.glob("healkit.db*"):
            assert secret.encode() not in (file.read_bytes() if file.is_file() else b"")


@pytest.mark.slow
@pytest.mark.requirement("FACE-9")
def test_a_failures_card_is_also_data_with_the_hash_of_the_cells_text(run):
    tool = "%%tool broken\ndef broken(values: list):\n    return sum(values) / 0"
    cells = ["%load_ext healkit", "1 / 0  # é", tool, "%run_tool broken values=[1]", "%healkit status"]
    book = run(*cells, "%config HealkitMagics.explain = 'hint'", "1 / 0")
    for number, fixable in ((1, True), (3, True), (6, False)):
        cell = book.cells[number]
        (data,) = [o.data[FAILURE_TYPE] for o in cell.outputs if FAILURE_TYPE in o.get("data", {})]
        assert data["version"] == 1
        assert data["source"] == hashlib.sha256(cell.source.encode()).hexdigest()[:16]
        assert data["fixable"] is fixable
        assert "ZeroDivisionError" in data["cards"][0]["card"]
    assert not any(FAILURE_TYPE in output.get("data", {}) for output in book.cells[4].outputs)
