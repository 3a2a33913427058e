"""Workers share what their fork server has made, as it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from healkit import Config, Healkit

#: Changes what a tool can reach of the shell, and returns what it found of others before, and what must be its own.
CHANGES = """
import builtins, hashlib, os, random, sys, tempfile, uuid

def changes(n: int):
    from IPython import get_ipython
    shell = get_ipython()
    kernel = shell.kernel
    main = sys.modules["__main__"]
    found = [
        name for name, holder in {
            "user_ns": shell.user_ns, "builtins": vars(builtins), "magics": shell.magics_manager.magics["line"],
            "environ": os.environ, "handlers": kernel.shell_handlers, "main": vars(main),
            "modules": sys.modules,
        }.items() if "changed" in holder
    ]
    found += ["transformers"] if len(shell.input_transformers_post) else []
    found += ["formatters"] if int in shell.display_formatter.formatters["text/html"].type_printers else []
    found += ["events"] if any(f.__name__ == "changed" for f in shell.events.callbacks["post_execute"]) else []
    found += ["path"] if "changed" in sys.path else []

    def changed(*arguments):
        return arguments

    shell.user_ns["changed"] = vars(builtins)["changed"] = vars(main)["changed"] = changed
    shell.magics_manager.magics["line"]["changed"] = kernel.shell_handlers["changed"] = changed
    os.environ["changed"] = "1"
    sys.modules["changed"] = sys
    sys.path.append("changed")
    shell.input_transformers_post.append(changed)
    shell.display_formatter.formatters["text/html"].for_type(int, lambda n: str(n))
    shell.events.register("post_execute", changed)
    own = [kernel.ident, kernel.session.session, random.random(), str(uuid.uuid4()), tempfile.gettempdir()]
    return {"found": found, "own": [str(one) for one in own], "key": hashlib.sha256(kernel.session.key).hexdigest()}
"""


@pytest.mark.requirement("WORK-3", "SCALE-5")
@pytest.mark.parametrize("count", [20, pytest.param(200, marks=pytest.mark.slow)])
def test_no_worker_finds_what_another_changed_and_nothing_random_is_shared(
    tmp_path: Path, count: int
) -> None:
    with Healkit(tmp_path / "healkit.db", config=Config(start_timeout_s=30)) as healkit:
        healkit.vault.add("changes", CHANGES)
        given = [healkit.execute("changes", arguments={"n": n}) for n in range(count)]
    assert given[0].ok, given[0]
    told = [execution.value for execution in given]
    assert [one["found"] for one in told] == [[]] * count
    for place in range(5):
        assert len({one["own"][place] for one in told}) == count
    assert len({one["key"] for one in told}) == count


@pytest.mark.requirement("SCALE-5")
def test_a_worker_holds_no_debugger_and_finds_one_that_is_installed(healkit: Healkit) -> None:
    code = (
        "import importlib.util, sys\ndef f():\n    loaded = {n.partition('.')[0] for n in sys.modules}\n"
        "    return [sorted(loaded & {'debugpy', '_pydevd_bundle'}), importlib.util.find_spec('debugpy').name]\n"
    )
    healkit.vault.add("f", code)
    for _ in range(2):
        assert healkit.execute("f").value == [[], "debugpy"]
