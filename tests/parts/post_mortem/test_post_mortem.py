"""Questions to a failed run's worker, restricted as the run."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from post_mortem_samples import NESTED

from healkit import Execution, Healkit
from healkit.errors import PostMortemError


@pytest.mark.requirement("WORK-5")
def test_a_post_mortem_has_frames_locals_and_source_of_nested_calls(failed: Callable[..., Execution]) -> None:
    asked = failed(NESTED, "report", n=3).post_mortem()
    outer, inner = asked.frames()
    assert (outer.name, outer.filename, outer.lineno) == ("report", "<report@1>", 10)
    assert (inner.name, inner.line) == ("mean", "return total / sum(weights)")
    table, column, weights, total = asked.locals()
    assert (table.name, table.type, table.shape) == ("table", "pandas.DataFrame", [3, 2])
    assert (column.repr, weights.repr) == ("'price'", "[0, 0, 0]")
    assert (total.name, total.repr) == ("total", "3")
    assert [one.name for one in asked.locals(outer)] == ["n", "table", "weights"]
    source = asked.source()
    assert source.text == "".join(NESTED.splitlines(keepends=True)[2:5])
    assert (source.first_lineno, source.lineno) == (3, 5)
    assert "pandas.DataFrame (3, 2)" in asked.to_text()
    assert "pandas.DataFrame (3, 2)" in asked._repr_mimebundle_()["text/html"]


def test_frames_of_libraries_are_shown_on_request(failed: Callable[..., Execution]) -> None:
    asked = failed("import json\n\ndef tool():\n    return json.loads('{')\n").post_mortem()
    assert [frame.name for frame in asked.frames()] == ["tool"]
    named = [frame.name for frame in asked.frames(libraries=True)]
    assert named == ["tool", "loads", "decode", "raw_decode"]
    assert asked.eval("s", frame=1).repr == "'{'"
    assert asked.eval("json.__name__").repr == "'json'"


@pytest.mark.requirement("WORK-5")
def test_an_expression_is_evaluated_in_the_frame_that_is_named(failed: Callable[..., Execution]) -> None:
    asked = failed(NESTED, "report", n=3).post_mortem()
    value = asked.eval("[total + w for w in weights][1]")
    assert (value.ok, value.type, value.repr) == (True, "int", "3")
    assert asked.eval("n * 2", frame=0).repr == "6"
    assert asked.eval("n").ename == "NameError"
    assert asked.eval("table.head(2)", asked.frames()[0]).shape == [2, 2]
    assert asked.eval("print('so far') or len(weights)").output == "so far\n"
    with pytest.raises(PostMortemError, match="no frame 7"):
        asked.eval("1", frame=7)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("expression", "ename", "evalue"),
    [
        ("1 / 0", "ZeroDivisionError", "division by zero"),
        ("1 +", "SyntaxError", "invalid syntax"),
        ("x = 1", "SyntaxError", "invalid syntax"),
        ("__import__('sys').exit(3)", "SystemExit", "3"),
        ("[None for _ in iter(int, 1)]", "TimeoutError", "still running after 0.3 s"),
        (
            "[print('x' * 1000) for _ in iter(int, 1)]",
            "OutputLimit",
            "the expression printed more than is allowed",
        ),
        ("bytearray(10**12)", "MemoryError", ""),
    ],
)
def test_an_expression_that_fails_is_data(
    failed: Callable[..., Execution], expression: str, ename: str, evalue: str
) -> None:
    asked = failed("def tool():\n    mcp\n    return 1 / 0\n").post_mortem()
    done = asked.eval(expression, timeout=0.3)
    assert not done.ok
    assert done.ename.rpartition(".")[2] == ename
    assert done.evalue.startswith(evalue)
    assert len(done.output) <= 10_000
    assert asked.eval("1 + 1").repr == "2"


def test_a_bridged_call_is_not_answered_any_more(healkit: Healkit, failed: Callable[..., Execution]) -> None:
    called: list[int] = []
    healkit.provide(lambda n: called.append(n), "note")
    asked = failed("def tool():\n    mcp.host.note(n=1)\n    return 1 / 0\n").post_mortem()
    assert not asked.eval("mcp.host.note(n=2)").ok
    assert called == [1]


def test_an_expression_may_start_an_event_loop_of_its_own(failed: Callable[..., Execution]) -> None:
    code = "import asyncio\n\nasync def tool():\n    delay = 0.01\n    await asyncio.sleep(delay)\n    return 1 / 0\n"
    asked = failed(code).post_mortem()
    assert asked.eval("asyncio.run(asyncio.sleep(delay, 'slept'))").repr == "'slept'"
