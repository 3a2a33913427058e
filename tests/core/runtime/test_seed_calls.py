"""Calls as tools of the seed document make them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from healkit import Healkit

PROBES = """
def probes():
    import contextlib, copy, inspect, pickle
    from IPython.core.completer import IPCompleter
    from IPython.core.interactiveshell import InteractiveShell
    from IPython.lib.pretty import pretty

    assert not hasattr(mcp, "nowhere") and not hasattr(mcp.host, "nothing")
    assert getattr(mcp, "nowhere", None) is getattr(mcp.host, "nothing", None) is None
    assert "host" in dir(mcp) and "double" in dir(mcp.host)
    for part in (mcp, mcp.host, mcp.host.double):
        assert copy.copy(part) is part and copy.deepcopy([part])[0] is part
        with contextlib.suppress(TypeError):
            pickle.dumps(part)
        inspect.getdoc(part), inspect.isgenerator(part), pretty(part), repr(part)
    keep = []
    for ask in (lambda: mcp.nowhere, lambda: mcp.host.nothing, lambda: keep.append(mcp.host.nothing)):
        with contextlib.suppress(AttributeError):
            ask()
    completer = IPCompleter(InteractiveShell.instance(), namespace={"mcp": mcp})
    completer.use_jedi, completer.evaluation = False, "unsafe"
    said = [text for line in ("mcp.", "mcp.host.", "mcp.nowhere.") for text in completer.complete(line)[1]]
    assert any("double" in text for text in said), said
    return mcp.host.double(n=2)
"""


def asked(healkit: Healkit, trace_id: str) -> list[tuple[str, str, bool | None]]:
    return [(call.server, call.tool, call.success) for call in healkit.log.calls(trace_id)]


@pytest.mark.requirement("WORK-7", "VAULT-6")
def test_a_tool_of_the_seed_document_runs(healkit: Healkit, tmp_path: Path) -> None:
    """C7: `read_file({"path": …})` was a TypeError that named neither the tool nor the reason."""
    (tmp_path / "sales.csv").write_text("region,amount\nnorth,3\nsouth,4\n")

    def read_file(path: str, encoding: str = "utf-8") -> str:
        return (tmp_path / path).read_text(encoding)

    healkit.provide(read_file)
    script = """
content = mcp.host.read_file({"path": arguments["name"]})
again = mcp.host.read_file({"path": arguments["name"], "encoding": "latin-1"})
rows = [line.split(",") for line in content.splitlines()[1:]]
result = {"total": sum(int(amount) for _, amount in rows), "same": content == again}
"""
    healkit.vault.add("total", script)
    execution = healkit.execute("total", arguments={"name": "sales.csv"})
    assert execution.value == {"total": 7, "same": True}
    assert [call.arguments for call in execution.calls] == [
        '{"path":"sales.csv"}',
        '{"path":"sales.csv","encoding":"latin-1"}',
    ]


@pytest.mark.requirement("WORK-7")
def test_a_dict_is_the_arguments_or_the_first_of_them_as_its_keys_say(healkit: Healkit) -> None:
    def untyped(a, b=0):  # type: ignore[no-untyped-def]  # as a tool of the seed is written
        return [a, b]

    def options(values: dict[str, Any], top: int = 9) -> list[Any]:
        return [values, top]

    def text(name: str) -> str:
        return name

    def anything(**more: int) -> dict[str, int]:
        return more

    for function in (untyped, options, text, anything):
        healkit.provide(function)
    healkit.vault.add(
        "calls",
        """
def calls():
    host = mcp.host
    found = [
        host.untyped({"a": 1, "b": 2}), host.untyped({"c": 1}), host.untyped({"a": 1}, 5), host.untyped({}),
        host.options({"values": {"x": 1}}), host.options({"x": 1}), host.options({}), host.options(values={"values": 1}),
        host.options({"values": {}, "top": 3}), host.options({1: 2}),
        host.anything({"x": 1}),
    ]
    for wrong in (lambda: host.text({"nam": "x"}), lambda: host.text("a", "b"), lambda: host.text()):
        try:
            found.append(wrong())
        except Exception as error:
            found.append(f"{type(error).__name__}: {error}")
    return found
""",
    )
    execution = healkit.execute("calls")
    assert execution.value[:-3] == [
        [1, 2], [{"c": 1}, 0], [{"a": 1}, 5], [{}, 0],
        [{"x": 1}, 9], [{"x": 1}, 9], [{}, 9], [{"values": 1}, 9],
        [{}, 3], [{1: 2}, 9],
        {"x": 1},
    ]  # fmt: skip
    misspelt, too_many, missing = execution.value[-3:]
    assert "nam" in misspelt
    assert too_many.startswith("TypeError: mcp.host.text(name: str")
    assert "name" in missing


@pytest.mark.requirement("WORK-7", "LOG-1")
def test_a_question_what_there_is_leaves_no_failed_call(healkit: Healkit) -> None:
    """C7: `hasattr(mcp, "x")` alone was a refused call on record."""
    healkit.provide(lambda n: 2 * n, "double")
    healkit.vault.add("probes", PROBES)
    execution = healkit.execute("probes")
    assert execution.failure is None, execution.failure
    assert execution.value == 4
    assert asked(healkit, execution.trace_id) == [("host", "double", True)]


@pytest.mark.requirement("WORK-10", "SAFE-1")
@pytest.mark.parametrize(
    ("call", "recorded"),
    [
        ("mcp.host.nothing(1)", ("host", "nothing")),
        ("mcp.host.nothing(n=1)", ("host", "nothing")),
        ("mcp.host.nothing(*[1], **{})", ("host", "nothing")),
        ("await mcp.host.nothing.acall(n=1)", ("host", "nothing")),
        ("mcp.nowhere.thing(n=1)", ("nowhere", "thing")),
        ("mcp.nowhere.thing(**{})", ("nowhere", "thing")),
        ("mcp.nowhere()", ("nowhere", "*")),
        ("(mcp\n        .nowhere\n        .thing(n=1))", ("nowhere", "thing")),
    ],
)
def test_a_call_of_what_is_not_there_is_a_failed_call(
    healkit: Healkit, call: str, recorded: tuple[str, str]
) -> None:
    healkit.provide(lambda n: n, "double")
    code = f"async def run():\n    try:\n        {call}\n    except AttributeError as error:\n        return str(error)\n"
    healkit.vault.add("run", code)
    execution = healkit.execute("run")
    assert "that this tool may call" in execution.value
    assert asked(healkit, execution.trace_id) == [(*recorded, False)]
