"""A failed run's worker can be looked into: bounded in number, time, size, and as restricted as the run."""

from __future__ import annotations

import multiprocessing
import os
import pty
import re
import select
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from jupyter_client import BlockingKernelClient

from healkit import Config, Execution, Healkit
from healkit.errors import PostMortemError, PostMortemGone
from healkit.runtime import engine
from healkit.runtime.post_mortem import PostMortem

NESTED = """\
import pandas as pd

def mean(table, column, weights):
    total = int(table[column].sum())
    return total / sum(weights)

def report(n):
    table = pd.DataFrame({"price": range(n), "sold": range(n)})
    weights = [0] * n
    return {"mean": mean(table, "price", weights)}
"""


@pytest.fixture
def failed(healkit: Healkit) -> Callable[..., Execution]:
    """Saves a tool under its first `def`'s last name, runs it, and returns its failure."""

    def run(code: str, name: str = "tool", **arguments: Any) -> Execution:
        healkit.vault.add(name, code)
        execution = healkit.execute(name, arguments=arguments)
        assert execution.failure is not None
        return execution

    return run


@pytest.fixture(autouse=True, scope="module")
def all_gone_afterwards() -> Iterator[None]:
    yield
    engine.shutdown()


def until(true: Callable[[], Any], within_s: float = 10) -> None:
    end = time.monotonic() + within_s
    while not true():
        assert time.monotonic() < end, "waited in vain"
        threading.Event().wait(0.02)


def processes_of_healkit() -> list[str]:
    """The command lines of this process's descendants, all of which are nurseries or workers.

    But for one: Python's own `multiprocessing`, once it was used, keeps a process of its own until the very end.
    """
    descendants = psutil.Process().children(recursive=True)
    commands = [" ".join(process.cmdline()) for process in descendants]
    return [command for command in commands if "multiprocessing.resource_tracker" not in command]


@pytest.mark.requirement("WORK-5")
def test_frames_locals_and_source_of_nested_calls_are_told(failed: Callable[..., Execution]) -> None:
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


def test_frames_of_libraries_are_told_on_request(failed: Callable[..., Execution]) -> None:
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
            "the expression printed more than it may",
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


def test_an_expression_that_hangs_in_c_code_costs_the_worker_and_not_the_caller(
    failed: Callable[..., Execution],
) -> None:
    asked = failed("def tool():\n    return 1 / 0\n").post_mortem()
    began = time.monotonic()
    with pytest.raises(PostMortemGone, match=r"gave no answer within 3\.2 s"):
        asked.eval("sum(range(10**12))", timeout=0.2)
    assert time.monotonic() - began < 6
    with pytest.raises(PostMortemGone, match="gave no answer"):
        asked.locals()


HOSTILE = """\
class Raises:
    def __repr__(self):
        raise ValueError("no")
    shape = property(__repr__)

class Hangs:
    def __repr__(self):
        while True:
            pass

class Huge:
    def __repr__(self):
        return "x" * 10**8

class Meta(type):
    def __getattribute__(cls, name):
        while True:
            pass

class Odd(metaclass=Meta):
    pass

def tool():
    raises, hangs, huge, odd = Raises(), Hangs(), Huge(), Odd()
    text, raw, number = "é" * 10**7, bytes(10**8), 10**100_000
    cycle = []
    cycle.append(cycle)
    lots = dict.fromkeys(range(10**6))
    lone = "\\ud800"
    nested = [raises]
    return 1 / 0
"""


@pytest.mark.requirement("WORK-5")
def test_hostile_values_neither_hang_nor_flood(failed: Callable[..., Execution]) -> None:
    asked = failed(HOSTILE).post_mortem()
    began = time.monotonic()
    told = {one.name: one for one in asked.locals()}
    assert time.monotonic() - began < 4
    assert told["raises"].repr == "<Raises object, its repr raises ValueError>"
    assert told["hangs"].repr == "<Hangs object, its repr takes too long>"
    assert told["nested"].repr == "[<Raises object, its repr raises ValueError>]"
    assert "[100,000,000 long]" in told["raw"].repr
    assert told["number"].repr == "<int of 332,193 bits>"
    assert told["cycle"].repr == "[[[[[...]]]]]"
    assert told["lots"].repr.endswith("...}")
    assert told["lone"].repr == r"'\ud800'"
    assert told["odd"].type == "Odd"
    assert max(len(one.repr) for one in told.values()) < 300
    assert len(asked.eval("huge").repr) < 2200


def test_of_very_many_locals_the_rest_is_counted(failed: Callable[..., Execution]) -> None:
    asked = failed("for i in range(1000):\n    globals()[f'name_{i}'] = i\nresult = 1 / 0\n").post_mortem()
    told = asked.locals()
    assert len(told) == 201
    assert told[-1].repr == "802 more are not shown"
    assert not {"mcp", "Tool"} & {one.name for one in told}


def test_a_deep_recursion_keeps_both_ends_under_their_numbers(failed: Callable[..., Execution]) -> None:
    asked = failed("def tool(depth=0):\n    return tool(depth + 1)\n").post_mortem()
    frames = asked.frames()
    assert len(frames) == 200
    assert asked.eval("depth", frame=frames[-1]).repr == str(frames[-1].number)
    assert asked.eval("depth", frame=0).repr == "0"


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (
            "def tool():\n    held = []\n    while True:\n        held.append(bytearray(10**8))\n",
            "MemoryError",
        ),
        ("import time\n\ndef tool():\n    waited = 1\n    time.sleep(60)\n", "TimeoutError"),
    ],
)
def test_a_run_that_met_its_limit_can_be_asked_too(healkit: Healkit, code: str, expected: str) -> None:
    healkit.vault.add("tool", code)
    execution = healkit.execute("tool", timeout=3)
    assert execution.failure is not None
    assert execution.failure.ename == expected
    asked = execution.post_mortem()
    assert len(asked.locals()) == 1
    done = asked.eval("bytearray(2 * 10**9)")
    assert done.ename == "MemoryError"
    assert asked.eval("[None for _ in range(10**6)][0]").repr == "None"


@pytest.mark.requirement("WORK-5", "WORK-3")
def test_the_restrictions_of_the_run_hold_for_questions(failed: Callable[..., Execution]) -> None:
    asked = failed("def tool():\n    return 1 / 0\n").post_mortem()
    for expression in (
        "open('/etc/passwd').read()",
        "__import__('socket').socket()",
        "__import__('os').fork()",
        "__import__('os').kill(__import__('os').getppid(), 9)",
        "open('/tmp/outside', 'w')",
    ):
        assert asked.eval(expression).ename in {
            "FileNotFoundError",
            "PermissionError",
            "OSError",  # a file system that is mounted read-only
        }, expression


@pytest.mark.requirement("WORK-5")
def test_a_bounded_number_is_kept_and_the_oldest_goes(tmp_path: Path) -> None:
    config = Config.from_environment({**os.environ, "HEALKIT_POST_MORTEM_KEPT": "2"})
    with Healkit(tmp_path / "healkit.db", config=config) as healkit:
        healkit.vault.add("tool", "def tool(n):\n    return 1 / 0\n")
        first, second, third = (healkit.execute("tool", arguments={"n": n}) for n in range(3))
        assert second.post_mortem().eval("n").repr == "1"
        assert third.post_mortem().eval("n").repr == "2"
        with pytest.raises(PostMortemGone, match="newer failures took its place"):
            first.post_mortem()


@pytest.mark.requirement("WORK-5")
def test_each_is_kept_for_a_bounded_time_that_a_question_renews(tmp_path: Path) -> None:
    config = Config.from_environment({**os.environ, "HEALKIT_POST_MORTEM_S": "1.0"})
    with Healkit(tmp_path / "healkit.db", config=config) as healkit:
        healkit.vault.add("tool", "import os\n\ndef tool():\n    return 1 / 0\n")
        execution = healkit.execute("tool")
        asked = execution.post_mortem()
        for _ in range(3):
            assert asked.eval("__import__('time').sleep(0.5)").repr == "None"

        def gone() -> bool:
            return engine.loop.submit(kept()).result() == []

        async def kept() -> list[Any]:
            return [
                one for pool in engine._pools.values() for one in pool.kept._kept if one == execution.trace_id
            ]

        assert not gone()
        until(gone)
        with pytest.raises(PostMortemGone, match=r"nobody asked it anything for 1 s"):
            asked.frames(), asked.locals()


def test_none_is_kept_where_none_is_wanted(tmp_path: Path) -> None:
    config = Config.from_environment({**os.environ, "HEALKIT_POST_MORTEM_KEPT": "0"})
    with Healkit(tmp_path / "healkit.db", config=config) as healkit:
        healkit.vault.add("tool", "def tool():\n    return 1 / 0\n")
        with pytest.raises(PostMortemGone, match="HEALKIT_POST_MORTEM_KEPT=0"):
            healkit.execute("tool").post_mortem()


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("def tool():\n    import os\n    os._exit(3)\n", "its process died"),
        ("def tool():\n    sum(range(10**12))\n", "did not react to its timeout and was killed"),
        ("def tool():\n    return 'x' * 11 * 2**20\n", "the tool had returned, and its frames were gone"),
    ],
)
def test_a_run_that_was_killed_or_had_returned_says_why_it_cannot_be_asked(
    healkit: Healkit, code: str, reason: str
) -> None:
    healkit.vault.add("tool", code)
    with pytest.raises(PostMortemGone, match=reason) as raised:
        healkit.execute("tool", timeout=2).post_mortem()
    assert raised.value.code == "POST_MORTEM_GONE"


def test_a_run_in_a_plain_subprocess_and_a_success_say_so(healkit: Healkit) -> None:
    healkit.vault.add("tool", "def tool(n):\n    return 1 / n\n")
    with pytest.raises(PostMortemGone, match="plain subprocess"):
        healkit.execute("tool", arguments={"n": 0}, mode="subprocess").post_mortem()
    with pytest.raises(PostMortemError, match="did not fail"):
        healkit.execute("tool", arguments={"n": 1}).post_mortem()


@pytest.mark.requirement("WORK-5")
def test_a_kept_worker_that_is_killed_is_gone_with_a_clear_error(failed: Callable[..., Execution]) -> None:
    asked = failed("def tool():\n    return 1 / 0\n").post_mortem()
    with pytest.raises(PostMortemGone, match="ended"):
        asked.eval("__import__('os')._exit(1)")
    with pytest.raises(PostMortemGone, match="its process has ended"):
        asked.locals()


def test_it_can_be_let_go_before_its_time(failed: Callable[..., Execution]) -> None:
    asked = failed("def tool():\n    return 1 / 0\n").post_mortem()
    asked.close()
    asked.close()
    with pytest.raises(PostMortemGone, match="it was let go"):
        asked.locals()


def test_an_execution_read_back_from_the_log_can_be_asked_in_this_process_only(
    healkit: Healkit, failed: Callable[..., Execution]
) -> None:
    failed("def tool(n):\n    return 1 / n\n", n=0)
    found = healkit.last_error("tool")
    assert found is not None
    assert found.post_mortem().eval("n").repr == "0"
    other = f"""
from healkit import Healkit
from healkit.errors import PostMortemGone
try:
    Healkit({str(healkit.path)!r}).last_error("tool").post_mortem()
except PostMortemGone as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", other], capture_output=True, text=True, check=True)
    assert "the run was another process's" in done.stdout


def test_what_is_no_answer_is_refused(failed: Callable[..., Execution]) -> None:
    """A tool can make its kernel answer anything; in size, in type and in signature it is checked."""
    code = """
def tool():
    import gc
    from ipykernel.kernelbase import Kernel
    kernel = Kernel.instance()
    for kind in list(kernel.shell_handlers):
        if "post_mortem" in kind:
            def handle(stream, idents, message):
                content = {"answer": '{"type": "frames", "frames": [{"number": "one"}]}'}
                kernel.session.send(stream, "any", content, parent=message, ident=idents)
            kernel.shell_handlers[kind] = handle
    return 1 / 0
"""
    execution = failed(code)
    with pytest.raises(PostMortemError, match="what is no answer"):
        execution.post_mortem()


def test_an_answer_of_megabytes_is_never_read(failed: Callable[..., Execution]) -> None:
    code = """
def tool():
    from ipykernel.kernelbase import Kernel
    kernel = Kernel.instance()
    for kind in list(kernel.shell_handlers):
        if "post_mortem" in kind:
            def handle(stream, idents, message):
                kernel.session.send(stream, "any", {"answer": "x" * 2**23}, parent=message, ident=idents)
            kernel.shell_handlers[kind] = handle
    return 1 / 0
"""
    execution = failed(code)
    with pytest.raises(PostMortemGone, match="gave no answer"):
        execution.post_mortem()


def test_threads_that_a_tool_left_running_do_not_run_while_nobody_asks(
    failed: Callable[..., Execution],
) -> None:
    code = """
import threading

def burn():
    while True:
        count[0] += 1
        print("still here")

def tool():
    global count
    count = [0]
    for _ in range(4):
        threading.Thread(target=burn, daemon=True).start()
    return 1 / 0
"""
    failed("def tool():\n    return 1 / 0\n", "first")  # by now there is a nursery, or there never will be
    until(lambda: engine.loop.submit(_hatched()).result())
    asked = failed(code).post_mortem()
    pid = int(asked.eval("__import__('os').getpid()").repr)
    stopped = [p for p in psutil.Process().children(recursive=True) if p.status() == psutil.STATUS_STOPPED]
    assert stopped
    assert pid > 0
    before = sum(sum(p.cpu_times()[:2]) for p in stopped)
    threading.Event().wait(0.3)
    assert sum(sum(p.cpu_times()[:2]) for p in stopped) == before
    assert asked.eval("count[0] > 0").repr == "True"


async def _hatched() -> bool:
    return all(one.done() for pool in engine._pools.values() for one in pool._nurseries.values())


@pytest.mark.requirement("WORK-5")
def test_any_jupyter_client_can_attach_and_debug_enters_the_failed_stack(
    failed: Callable[..., Execution],
) -> None:
    asked = failed(NESTED, "report", n=3).post_mortem()
    client = BlockingKernelClient(connection_file=str(asked.attach()))
    client.load_connection_file()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=20)
        printed: list[str] = []
        typed = iter(["p weights", "up", "p n", "q"])

        def hear(message: dict[str, Any]) -> None:
            if message["msg_type"] == "stream":
                printed.append(message["content"]["text"])

        def run(code: str) -> str:
            printed.clear()
            client.execute_interactive(
                code,
                timeout=20,
                allow_stdin=True,
                output_hook=hear,
                stdin_hook=lambda _: client.input(next(typed)),
            )
            return "".join(printed)

        assert run("print(table.shape, weights)") == "(3, 2) [0, 0, 0]\n"
        debugged = run("%debug")
        assert "[0, 0, 0]" in debugged
        assert debugged.rstrip().endswith("3")
        assert run("try:\n    open('/etc/passwd')\nexcept OSError as e:\n    print('denied')") == "denied\n"
        assert asked.eval("len(weights)").repr == "3"  # both at once
    finally:
        client.stop_channels()


@pytest.mark.requirement("WORK-5")
def test_the_console_opens_in_a_terminal_and_leaves_the_worker_to_be_asked(tmp_path: Path) -> None:
    script = f"""
from healkit import Healkit
hk = Healkit({str(tmp_path / "healkit.db")!r})
hk.vault.add("tool", "def tool(n):\\n    return 1 / n\\n")
asked = hk.execute("tool", arguments={{"n": 0}}).post_mortem()
asked.console()
print("back:", asked.eval("n + 41").repr)
"""
    leader, follower = pty.openpty()
    environment = {**os.environ, "HOME": str(tmp_path), "TERM": "dumb", "JUPYTER_PLATFORM_DIRS": "1"}
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdin=follower, stdout=follower, stderr=follower, env=environment,
        start_new_session=True,
    )  # fmt: skip
    os.close(follower)
    heard = ""

    def hear_until(text: str, within_s: float = 60) -> None:
        nonlocal heard
        end = time.monotonic() + within_s
        while text not in heard:
            assert time.monotonic() < end, heard
            if select.select([leader], [], [], 0.2)[0]:
                try:
                    heard += os.read(leader, 65536).decode(errors="replace")
                except OSError:  # the other side has closed
                    break
        assert text in heard, heard

    try:
        hear_until("In [1]:")
        os.write(leader, b"print('seen', n + 100)\r")
        hear_until("seen 100")
        os.write(leader, b"quit(keep_kernel=True)\r")
        hear_until("back:")
        hear_until("41")
        process.wait(timeout=30)
    finally:
        process.kill()
        process.wait()
        os.close(leader)


def test_without_a_terminal_the_console_says_what_to_type(failed: Callable[..., Execution]) -> None:
    asked = failed("def tool():\n    return 1 / 0\n").post_mortem()
    with pytest.raises(PostMortemError, match=r"jupyter console --existing \S+connection\.json"):
        asked.console()


def test_without_the_package_the_console_names_the_extra(
    failed: Callable[..., Execution], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = failed("def tool():\n    return 1 / 0\n").post_mortem()
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(PostMortemError, match=r"pip install 'healkit\[console\]'.*--existing"):
        asked.console()


@pytest.mark.requirement("WORK-5")
def test_nothing_is_left_after_a_shutdown(healkit: Healkit, failed: Callable[..., Execution]) -> None:
    asked = failed("def tool():\n    return 1 / 0\n").post_mortem()
    attached = healkit.execute("tool").post_mortem()
    file = attached.attach()
    assert file.exists()
    assert processes_of_healkit()
    lock = multiprocessing.get_context(
        "spawn"
    ).Lock()  # as a pool of processes, in any test before this one, makes
    engine.shutdown()
    assert not file.exists()
    assert processes_of_healkit() == []
    del lock
    for one in (asked, attached):
        with pytest.raises(PostMortemGone, match="shut down"):
            one.locals()


def test_an_interpreter_that_ends_with_workers_kept_ends_quietly(tmp_path: Path) -> None:
    script = f"""
from healkit import Healkit
hk = Healkit({str(tmp_path / "healkit.db")!r})
hk.vault.add("tool", "def tool():\\n    return 1 / 0\\n")
print(hk.execute("tool").post_mortem().eval("__import__('os').getcwd()").repr)
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    scratch = Path(done.stdout.strip().strip("'"))
    assert scratch.name == "scratch"
    assert not scratch.parent.exists()


@pytest.mark.requirement("WORK-5")
def test_the_page_does_what_it_says(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "post_mortem.md").read_text()
    blocks = re.findall(r"^```(\w+)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    example = "".join(block for kind, block in blocks if kind == "python")
    shown = [block for kind, block in blocks if kind == "text"]
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", example],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "[0, 0, 0] 3\n".join(shown)


def test_questions_from_several_threads_take_turns(failed: Callable[..., Execution]) -> None:
    asked: PostMortem = failed("def tool():\n    return 1 / 0\n").post_mortem()
    answers: list[str] = []
    threads = [
        threading.Thread(target=lambda n=n: answers.append(asked.eval(f"{n} * 2").repr)) for n in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=20)
    assert sorted(map(int, answers)) == [0, 2, 4, 6, 8, 10, 12, 14]


@pytest.mark.requirement("FACE-4", "TRACE-3")
def test_what_looks_like_a_secret_is_not_told(healkit):
    code = "def f():\n    password, n = 'kor' + 'rekthorse', 3\n    token = 'ghp_' + '0123456789abcdefghijABCDEFGHIJ012345'\n    1 / 0\n"
    healkit.vault.add("f", code)
    asked = healkit.execute("f").post_mortem()
    told = {one.name: one.repr for one in asked.locals()}
    assert told["n"] == "3"
    assert "rekthorse" not in told["password"]
    assert "0123456789" not in told["token"]
    assert "0123456789" not in asked.eval("token").repr
    assert "0123456789" not in asked.to_text()
    asked.close()
