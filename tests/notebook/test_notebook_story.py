"""Magics in a real notebook.

Real kernel, real worker, real database.
"""

from __future__ import annotations

import pytest
from nbclient.exceptions import CellExecutionError
from notebook_samples import BROKEN, FIXED, error_of, text_of


@pytest.mark.requirement("FACE-2", "LOG-1", "VAULT-4")
def test_a_tool_fails_is_traced_is_patched_and_works(run, healkit):
    book = run(
        "%load_ext healkit",
        BROKEN,
        "value = %run_tool fibonacci n=10",
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
        "Local variables cannot be shown. The worker of that run is not there to be asked: it was let go."
        in gone
    )
    assert "return n / 0" in gone


@pytest.mark.requirement("FACE-3", "LOG-8")
def test_a_failure_is_a_failure_to_those_who_run_notebooks(run):
    with pytest.raises(CellExecutionError, match="ZeroDivisionError: division by zero"):
        run("%load_ext healkit", BROKEN, "%run_tool fibonacci n=1", allow_errors=False)


@pytest.mark.requirement("FACE-3")
def test_the_card_comes_below_an_ordinary_error_output(run):
    cell = run("%load_ext healkit", BROKEN, "%run_tool fibonacci n=1").cells[2]
    assert [output.output_type for output in cell.outputs] == [
        "stream",
        "error",
        "display_data",
        "display_data",
    ]
    assert "<div" in cell.outputs[2].data["text/html"]
    assert error_of(cell).ename == "ToolExecutionError"


@pytest.mark.requirement("FACE-3")
def test_a_cell_of_the_users_own_keeps_its_error_as_it_was(run):
    outputs = run("%load_ext healkit", "1 / 0").cells[1].outputs
    assert [output.output_type for output in outputs] == ["error", "display_data"]
    assert "Traceback (most recent call last)" in "".join(outputs[0].traceback)
    assert outputs[0].ename == "ZeroDivisionError"


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


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("%run_tool fibonaci n=1", "No tool named 'fibonaci' in the vault. Did you mean 'fibonacci'?"),
        ("%run_tool fibonacci --persnoa x", "Did you mean '--persona'?"),
        ("%run_tool fibonacci n=nothing", "name 'nothing' is not defined. For text, put it in quotes"),
        ("%run_tool fibonacci n=order", "name 'order' is not defined. Did you mean 'orders'? For text"),
        ("%run_tool fibonacci n='x'", "'n' must be integer, got 'x'"),
        ("%run_tool fibonacci --args '[1]'", "--args must be a JSON object"),
        ("%run_tool fibonacci n=1 --args '{\"n\": 2}'", "'n' is given twice"),
        ("%run_tool fibonacci n=[1", "[ is opened and never closed"),
        ("%run_tool", "Write %run_tool NAME key=value"),
        ("%vault shwo fibonacci", "Did you mean 'show'?"),
        ("%vault show", "%vault show takes NAME"),
        ("%vault show fibonacci@7", "has no revision 7"),
        ("%executions --status BROKEN", "Write SUCCESS, FAILURE, REFUSED, RUNNING"),
        ("%executions --since soon", "Not a valid time: 'soon'"),
        ("%healkit of", "Did you mean 'off'?"),
        ("%trace_last_error --frames 0", "--frames must be 1 or more"),
    ],
)
@pytest.mark.requirement("FACE-2")
def test_a_typing_mistake_is_one_line_with_the_way_out(loaded, line, said, capsys):
    loaded.run_cell(line)
    shown = capsys.readouterr().out.strip()
    assert said in shown
    assert len(shown.splitlines()) == 1


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
    shell.user_ns["orders"] = 7
    return shell


@pytest.mark.parametrize(
    "magic", ["run_tool", "trace_last_error", "post_mortem", "vault", "executions", "healkit"]
)
@pytest.mark.requirement("FACE-2")
def test_every_magic_prints_its_help(loaded, magic, capsys):
    loaded.run_line_magic(magic, "--help")
    assert f"usage: %{magic}" in capsys.readouterr().out
    assert "usage:" in loaded.find_line_magic(magic).__doc__


def test_json_that_is_wrong_has_a_caret_under_the_place(loaded, capsys):
    loaded.run_cell("%run_tool fibonacci --args '{\"n\": }'")
    lines = capsys.readouterr().out.splitlines()
    assert lines[2].index("^") == lines[1].index("}")


def test_saving_the_same_code_again_changes_nothing(loaded, capsys):
    loaded.run_cell_magic("tool", "fibonacci", "def fibonacci(n: int = 3):\n    return n\n")
    assert "fibonacci v1 unchanged" in capsys.readouterr().out


def test_a_tool_is_named_after_its_code_when_no_name_is_given(loaded, capsys):
    loaded.run_cell_magic("tool", "--draft", "def named_by_code(a):\n    return a\n")
    loaded.run_cell_magic(
        "tool", "", "class CleanTextTool(Tool):\n    def run(self, arguments):\n        return 1\n"
    )
    shown = capsys.readouterr().out
    assert "named_by_code v1 saved as a draft" in shown
    assert "clean_text v1 saved" in shown


@pytest.mark.requirement("VAULT-8")
def test_code_that_does_not_parse_is_refused_with_its_place(loaded, capsys):
    loaded.run_cell("%%tool broken\ndef broken(:\n    pass")
    shown = capsys.readouterr().out
    assert "line 1, column 12" in shown
    assert "--draft" in shown
    loaded.run_cell("%%tool broken --draft\ndef broken(:\n    pass")
    assert "broken v1 saved as a draft" in capsys.readouterr().out


def test_a_sql_tool_is_saved_and_run(loaded, capsys):
    loaded.run_cell_magic("tool", "one --sql --run '{}'", "SELECT 1 AS x")
    shown = capsys.readouterr().out
    assert "one v1 saved" in shown
    assert "✓ one v1 · log row" in shown


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


def test_no_error_is_said_in_words(loaded, capsys):
    loaded.run_line_magic("trace_last_error", "never_failed")
    assert "No errors found" in capsys.readouterr().out


def test_cards_can_be_switched_off(loaded, capsys):
    loaded.run_line_magic("healkit", "off")
    capsys.readouterr()
    loaded.run_cell_magic("tool", "quiet", "def quiet():\n    return 1\n")
    assert capsys.readouterr().out == ""
    loaded.run_line_magic("healkit", "on")
    loaded.run_line_magic("healkit", "status")
    assert "database" in capsys.readouterr().out


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


def test_the_vault_alone_lists_the_tools_and_a_frame_is_called_one(loaded, capsys):
    loaded.run_cell("%vault")
    assert capsys.readouterr().out.startswith("tool ")
    loaded.run_cell_magic(
        "tool", "rows", "import pandas as pd\ndef rows(df: pd.DataFrame):\n    return len(df)\n"
    )
    loaded.run_cell("%vault show rows")
    assert "df: DataFrame" in capsys.readouterr().out
