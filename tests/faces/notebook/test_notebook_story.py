"""Magics in a real notebook."""

from __future__ import annotations

import pytest
from nbclient.exceptions import CellExecutionError
from notebook_samples import BROKEN, FIXED, text_of

from healkit.faces.notebook.magic_parsers import PARSERS
from healkit.parts.runs.reader import validate_run
from healkit.parts.runs.run_folders import run_folders


@pytest.mark.requirement("FACE-2", "LOG-1", "RUN-1", "VAULT-4")
def test_a_tool_fails_is_traced_is_patched_and_works(run, healkit):
    book = run(
        "%load_ext healkit",
        BROKEN,
        "value = %run_tool fibonacci n=10 --record",
        "%trace_last_error fibonacci",
        FIXED,
        "limit = 9\nvalue = %run_tool fibonacci n=limit+1\nprint('value', value)",
        "%vault history fibonacci",
        "%executions",
        "'fibonacci' in globals()",
    )
    _, saved, failed, traced, patched, worked, history, executions, in_kernel = map(text_of, book.cells)
    assert "fibonacci v1 saved" in saved
    assert "ZeroDivisionError: division by zero" in failed
    (recorded,) = map(validate_run, run_folders(healkit.runs_dir))
    assert recorded.problems == []
    assert f"run {recorded.run_id}" in failed
    assert "return n / 0" in traced
    assert "fibonacci v2 saved (patched from v1)" in patched
    assert "value 55" in worked
    assert "no zero" in history
    assert "✗ FAILURE" in executions
    assert in_kernel == "False"
    assert [(e.status, e.origin, e.revision) for e in healkit.executions()] == [
        ("SUCCESS", "magic", 2),
        ("FAILURE", "magic", 1),
    ]
    assert healkit.vault.history("fibonacci")[1].motivating_log_id == 1


@pytest.mark.requirement("FACE-2", "WORK-5")
def test_locals_are_shown_and_asked_for_while_the_worker_is_kept(run):
    book = run(
        "%load_ext healkit",
        BROKEN,
        "%run_tool fibonacci n=10",
        "%trace_last_error fibonacci --locals",
        "pm = %post_mortem fibonacci\npm",
        "pm.close()\nprint(pm.frames()[0].lineno)",
        "%trace_last_error --locals",
    )
    *_, traced, looked_into, _, gone = map(text_of, book.cells)
    for shown in (traced, looked_into):
        assert "#0  fibonacci v1, line" in shown
        assert "n     int   10" in shown
    assert " open>" in book.cells[4].outputs[0].data["text/html"]
    assert (
        "Local variables cannot be shown. The worker of that execution cannot be inspected: it was released."
        in gone
    )
    assert "return n / 0" in gone


@pytest.mark.requirement("FACE-3", "LOG-8")
def test_a_failure_is_a_failure_to_those_who_run_notebooks(run):
    with pytest.raises(CellExecutionError, match="ZeroDivisionError: division by zero"):
        run("%load_ext healkit", BROKEN, "%run_tool fibonacci n=1", allow_errors=False)


@pytest.mark.requirement("WORK-1")
def test_what_a_tool_displays_is_seen_cleaned(run):
    code = (
        "%%tool shows --run '{}'\ndef shows():\n"
        "    from IPython.display import HTML, Javascript, display\n    print('printed')\n"
        "    display(HTML('<b>bold</b><script>alert(1)</script>'))\n    display(Javascript('alert(1)'))\n    return 7"
    )
    cell = run("%load_ext healkit", code).cells[1]
    pages = [o.data.get("text/html", "") for o in cell.outputs if o.output_type == "display_data"]
    assert "<b>bold</b>" in pages
    assert "script" not in "".join(pages)
    assert not any("application/javascript" in o.data for o in cell.outputs if "data" in o)
    assert "printed" in text_of(cell)
    assert cell.outputs[-1].data["text/plain"] == "7"


MISTAKES = (
    ("%run_tool fibonaci n=1", "No tool named 'fibonaci' in the vault. Did you mean 'fibonacci'?"),
    ("%run_tool fibonacci --persnoa x", "Did you mean '--persona'?"),
    ("%run_tool fibonacci n=nothing", "name 'nothing' is not defined. For text, put it in quotes"),
    ("%run_tool fibonacci n=order", "name 'order' is not defined. Did you mean 'orders'? For text"),
    ("%run_tool fibonacci n='x'", "'n' must be integer, got 'x'"),
    ("%run_tool fibonacci --args '[1]'", "--args must be a JSON object"),
    ("%run_tool fibonacci n=1 --args '{\"n\": 2}'", "'n' is given twice"),
    ("%run_tool fibonacci n=[1", "[ is opened and never closed"),
    ("%run_tool", "Write %run_tool NAME key=value"),
    ("%run_tool total", "'frame' is missing. It takes: frame. Write %run_tool total frame=…"),
    ("%vault shwo fibonacci", "Did you mean 'show'?"),
    ("%vault show", "%vault show takes NAME"),
    ("%vault show fibonacci@7", "has no revision 7"),
    ("%executions --status BROKEN", "Write SUCCESS, FAILURE, REFUSED, RUNNING"),
    ("%executions --since soon", "Not a valid time: 'soon'"),
    ("%healkit of", "Did you mean 'off'?"),
    ("%trace_last_error --frames 0", "--frames must be 1 or more"),
    ("%trace_last_error never_failed", "No errors found"),
    ("%%tool fibonacci\ndef fibonacci(n: int = 3):\n    return n\n", "fibonacci v1 unchanged"),
    ("%executions --dock --group", "--group cannot be combined with --dock."),
    ("%healkit keep", "The tool needs a name"),
    ("%healkit keep x", "No cell has failed yet"),
    ("%healkit keep x --cell 99", "There is no cell 99"),
    ("%healkit off now", "%healkit off takes no name"),
)


@pytest.mark.requirement("FACE-2")
def test_a_typing_mistake_is_one_line_with_the_way_out(loaded, capsys):
    capsys.readouterr()
    for line, said in MISTAKES:
        loaded.run_cell(line)
        shown = capsys.readouterr().out.strip()
        assert said in shown, line
        assert len(shown.splitlines()) == 1, line


@pytest.fixture(scope="module")
def module_database(tmp_path_factory):
    """Return the path of one database for the tests that only read."""
    return tmp_path_factory.mktemp("magics") / "healkit.db"


@pytest.fixture
def loaded(shell, module_database, monkeypatch):
    """Make a shell with the extension and one tool."""
    monkeypatch.setenv("HEALKIT_DB", str(module_database))
    shell.run_line_magic("load_ext", "healkit")
    shell.run_cell_magic("tool", "fibonacci", "def fibonacci(n: int = 3):\n    return n\n")
    shell.run_cell_magic("tool", "total", "def total(frame: 'pandas.DataFrame'):\n    return len(frame)\n")
    shell.user_ns["orders"] = 7
    return shell


def test_a_tool_is_named_after_its_code_when_no_name_is_given(loaded, capsys):
    loaded.run_cell_magic("tool", "--draft", "def named_by_code(a):\n    return a\n")
    loaded.run_cell_magic(
        "tool", "", "class CleanTextTool(Tool):\n    def run(self, arguments):\n        return 1\n"
    )
    loaded.run_cell_magic("tool", "one --sql --run '{}'", "SELECT 1 AS x")
    shown = capsys.readouterr().out
    assert "✓ one v1 · log row" in shown
    assert "named_by_code v1 saved as a draft" in shown
    assert "clean_text v1 saved" in shown


def test_every_look_at_the_vault_shows_something(loaded, capsys):
    for line in (
        "list",
        "show fibonacci",
        "show fibonacci@1",
        "diff fibonacci",
        "history fibonacci",
        "blame fibonacci",
    ):
        loaded.run_line_magic("vault", line)
        assert "fibonacci" in capsys.readouterr().out, line
    loaded.run_line_magic("vault", "show fibonacci --edit")
    assert loaded.rl_next_input.startswith("%%tool fibonacci\ndef fibonacci")


@pytest.mark.slow
def test_names_in_braces_are_the_notebooks_variables(loaded, capsys):
    loaded.user_ns["which"], loaded.user_ns["k"] = "fibonacci", 4
    assert loaded.run_line_magic("run_tool", "{which} n={k}") == 4
    assert loaded.run_line_magic("run_tool", 'fibonacci --args {"n": 5}') == 5


@pytest.mark.requirement("FACE-3")
def test_a_failure_that_the_cell_catches_still_has_its_card(run):
    cell = run(
        "%load_ext healkit",
        BROKEN,
        "try:\n    %run_tool fibonacci n=1\nexcept Exception as e:\n    print(e.log_id)",
    ).cells[2]
    assert [output.output_type for output in cell.outputs] == ["stream", "display_data", "display_data"]
    assert cell.outputs[0].text.endswith("1\n")


def test_a_tool_cell_takes_examples_from_its_flags_and_from_its_docstring(loaded, capsys):
    documented = 'def double(n):\n    """Double it.\n\n    >>> double(2)\n    4\n    """\n    return n * 2'
    loaded.run_cell_magic("tool", "double", documented)
    flag = """double --example '{"arguments": {"n": 1}, "result": 2}'"""
    loaded.run_cell_magic("tool", flag, "def double(n):\n    return n + n")
    loaded.run_cell("%vault show double")
    shown = capsys.readouterr().out
    assert 'example      {"arguments": {"n": 2}, "result": 4}' in shown
    assert 'example      {"arguments": {"n": 1}, "result": 2}' in shown


@pytest.mark.requirement("FACE-2")
def test_every_magic_prints_its_help(loaded, capsys):
    for magic in PARSERS:
        loaded.run_cell(f"%%{magic} --help\nx" if magic == "tool" else f"%{magic} --help")
        assert f"%{magic}" in capsys.readouterr().out


@pytest.mark.requirement("HEAL-2", "FACE-7")
def test_heal_after_a_failing_cell_advises_and_changes_nothing(loaded, capsys):
    """U7: the answer was "No cell of this notebook is known to give what the last failing cell lacks."."""
    for cell in ("1 / 0", "if False:\n    rate = 2", "rate * 3"):
        loaded.run_cell(cell, store_history=True)
        capsys.readouterr()
        loaded.run_cell("%heal")
        said = capsys.readouterr().out
        if cell == "1 / 0":
            assert "No safe fix found. Edits tried: 1." in said
    assert "rate" in said
    assert "rate" not in loaded.user_ns
