"""Loading, unloading, completion, and magics that list."""

from __future__ import annotations

import contextlib

import pytest
from IPython.core.completer import provisionalcompleter, rectify_completions

from healkit.errors import ToolExecutionError, UsageInvalid
from healkit.faces.defaults import default_healkit


def state(shell):
    """Everything of a shell that an extension could leave something in."""
    return (
        {kind: dict(magics) for kind, magics in shell.magics_manager.magics.items()},
        set(shell.magics_manager.registry),
        list(shell.Completer.custom_matchers),
        {event: list(hooks) for event, hooks in shell.events.callbacks.items()},
        list(shell.configurables),
        dict(shell.custom_exceptions and {"custom": shell.custom_exceptions}),
        set(vars(shell)) - {"last_execution_result"},
        set(shell.user_ns),
    )


@pytest.mark.requirement("FACE-1")
def test_loading_opens_no_database_and_unloading_leaves_nothing_behind(shell, database):
    before = state(shell)
    for _ in range(2):
        shell.extension_manager.load_extension("healkit")
        shell.extension_manager.reload_extension("healkit")
        assert "run_tool" in shell.magics_manager.magics["line"]
        assert len(shell.Completer.custom_matchers) == len(before[2]) + 1
        assert not database.exists()
        shell.extension_manager.unload_extension("healkit")
        assert state(shell) == before


@pytest.mark.requirement("FACE-1")
def test_a_magic_of_that_name_comes_back_when_healkit_leaves(shell):
    shell.register_magic_function(lambda line: "mine", magic_name="vault")
    shell.run_line_magic("load_ext", "healkit")
    shell.run_line_magic("unload_ext", "healkit")
    assert shell.run_line_magic("vault", "") == "mine"
    del shell.magics_manager.magics["line"]["vault"]


@pytest.fixture
def complete(shell):
    """Return a function that asks what Tab offers at the end of a line."""
    shell.run_line_magic("load_ext", "healkit")
    shell.run_cell_magic(
        "tool", "fibonacci --persona default", "def fibonacci(n: int, start: int = 0):\n    return n\n"
    )

    def ask(line: str) -> list[str]:
        with provisionalcompleter():
            found = list(rectify_completions(line, shell.Completer.completions(line, len(line))))
        return [item.text for item in found]

    return ask


OFFERED = (
    ("%run_tool fib", ["fibonacci"]),
    ("result = %run_tool fib", ["fibonacci"]),
    ("%run_tool fibonacci ", ["n=", "start="]),
    ("%run_tool fibonacci n=1 ", ["start="]),
    ("%run_tool fibonacci --ti", ["--timeout"]),
    ("%run_tool fibonacci --persona ", ["default"]),
    ("%%tool fibonacci --dr", ["--draft"]),
    ("%vault hi", ["history"]),
    ("%vault show f", ["fibonacci"]),
    ("%executions --status F", ["FAILURE"]),
    ("%executions --tool f", ["fibonacci"]),
    (
        "%trace_last_error --",
        ["--frames", "--help", "--locals", "--markdown", "--notebook", "--persona"],
    ),
    ("%healkit k", ["keep"]),
    ("%healkit d", ["doctor"]),
    ("%heal fib", ["fibonacci"]),
    ("%heal fibonacci --b", ["--budget"]),
    ("%heal fibonacci --with ru", ["rules"]),
    ("%vault un", ["undo"]),
    ("%vault undo fib", ["fibonacci"]),
    ("%healkit requests de", ["decline"]),
)


@pytest.mark.requirement("FACE-2")
def test_tab_offers_flags_tools_and_arguments(complete):
    assert {line: sorted(complete(line)) for line, _ in OFFERED} == dict(OFFERED)


def test_a_database_that_cannot_be_opened_offers_nothing(complete, monkeypatch, tmp_path, capsys):
    (tmp_path / "broken.db").write_text("not a database, and longer than its header would be" * 40)
    monkeypatch.setenv("HEALKIT_DB", str(tmp_path / "broken.db"))
    assert "fibonacci" not in complete("%run_tool fib")
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.requirement("DATA-3", "FACE-2")
def test_a_frame_that_was_passed_is_listed_shown_and_run_on_again(shell, healkit, capsys):
    shell.run_line_magic("load_ext", "healkit")
    healkit.vault.add("total", "def total(df):\n    return int(df['a'].sum())\n")
    shell.run_cell(
        "import pandas as pd\nfrom healkit.faces.defaults import default_healkit as hk\ndf = pd.DataFrame({'a': range(300)})"
    )
    shell.run_cell("%run_tool total df={df}")
    shell.run_cell("%views")
    listed = capsys.readouterr().out
    assert "300 rows × 1 column" in listed
    (view,) = healkit.views.list()
    shell.run_cell(f"%views {view.name}")
    assert "int64" in capsys.readouterr().out
    shell.run_cell("%views nothing")
    assert "%views lists them all." in capsys.readouterr().out
    assert healkit.rerun(healkit.executions(limit=1)[0].log_id).value == 44850


@pytest.mark.slow
@pytest.mark.requirement("LOG-10", "LOG-11")
def test_executions_are_searched_grouped_and_summed_up(shell, capsys):
    shell.run_line_magic("load_ext", "healkit")
    shell.run_cell_magic("tool", "half", "def half(n): return 10 / n")
    for words in ("half n=0", "half n=0", "half n=5"):
        with contextlib.suppress(ToolExecutionError):
            shell.run_line_magic("run_tool", words)
    capsys.readouterr()

    def shown(line: str) -> list[str]:
        shell.run_line_magic("executions", line)
        return capsys.readouterr().out.splitlines()

    assert len(shown("--text ZeroDivisionError")) == 3
    assert len(shown("--before 2")) == 2
    default_healkit().trials([("def half(n): return 1 / n", {"n": 0})] * 2)
    assert [line.split()[0] for line in shown("")[:-1]] == ["row", "3", "2", "1"]
    assert shown("")[-1].endswith("are hidden; %executions --trials lists them too.")
    assert [line.split()[0] for line in shown("--trials --limit 3")] == ["row", "5", "4", "3"]
    shell.user_ns["hk"] = default_healkit()
    shell.run_cell("hk.executions(limit=2)")
    assert "hk.executions(tried=True) lists them too.\n" in capsys.readouterr().out
    (line,) = shown("--group --tool half")[1:]
    assert line.startswith("2 ")
    assert "ZeroDivisionError: division by zero" in line
    (line,) = shown("--summary --since 1h")[1:]
    assert line.split()[:4] == ["half", "3", "2", "66.7%"]
    for wrong in ("--group --trials", "--group --summary", "--summary --text x", "--group --before 3"):
        with pytest.raises(UsageInvalid, match="cannot be combined"):
            shell.run_line_magic("executions", wrong)
