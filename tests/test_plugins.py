"""The plug-in of docs/plugins.md, installed as a wheel."""

from __future__ import annotations

import dataclasses
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from site_pages import missing_from_shell
from test_readme import environment

from healkit import Healkit, hooks
from healkit.commands.agents import AgentAnswer, AgentCaller, AgentTool
from healkit.commands.table import Answer, Command
from healkit.config import Config
from healkit.core.secrets.cleaner import Verbatim, sanitizer_of
from healkit.errors import ConfigError, UsageInvalid
from healkit.faces.commands import rows
from healkit.faces.mcp_server.own_tools import own_tools
from healkit.faces.notebook.panels import panel_class
from healkit.faces.pages.operations import Operations
from healkit.faces.pages.page_data import PageData
from healkit.faces.pages.side_panel import SidePanelPages
from healkit.parts.heal.advisor import Case, Workbench

PAGE = (Path(__file__).parents[1] / "docs" / "plugins.md").read_text()
TOOL = "def area(side: int) -> int:\n    return side * side\n"


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.requirement("ARCH-2")
@pytest.mark.slow
def test_the_plug_in_of_the_page_explains_and_heals(tmp_path: Path) -> None:
    source, site = tmp_path / "source", tmp_path / "site"
    source.mkdir()
    (project,), (module,) = blocks("toml"), blocks("python")
    (source / "pyproject.toml").write_text(project)
    (source / "acme_healkit.py").write_text(module)
    assert len([line for line in module.splitlines() if line.strip()]) <= 30
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run(
        [*pip, "wheel", "--no-build-isolation", "--no-deps", "-w", tmp_path, source], check=True, timeout=100
    )
    (wheel,) = tmp_path.glob("*.whl")
    subprocess.run(
        [*pip, "install", "--no-deps", "--no-index", "--target", site, wheel], check=True, timeout=100
    )
    path = os.pathsep.join(filter(None, [str(site), os.environ.get("PYTHONPATH", "")]))
    env = {**environment(tmp_path), "PYTHONPATH": path}
    (shown,) = blocks("console")
    assert missing_from_shell(shown, tmp_path, env) == []
    for words, said in ((["units", "--help"], "List the units of acme."), (["--help"], "units")):
        command = [sys.executable, "-m", "healkit", *words]
        shown = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=100)
        assert (shown.returncode, said in shown.stdout) == (0, True), (words, shown)


def test_the_page_says_what_a_case_and_a_bench_offer() -> None:
    section = PAGE.partition("## Write an advisor")[2].partition("\n## ")[0]
    assert set(re.findall(r"`case\.(\w+)", section)) <= {
        *(field.name for field in dataclasses.fields(Case)), "failing"
    }  # fmt: skip
    assert set(re.findall(r"^\| `bench\.(\w+)", section, re.MULTILINE)) == {
        name for name in vars(Workbench) if not name.startswith("_")
    }  # fmt: skip


@pytest.mark.requirement("ARCH-2")
def test_the_page_has_every_hook() -> None:
    rows = re.findall(r"^\| (`.*?`) \|", PAGE, re.MULTILINE)
    told = re.findall(r"`(\w+)`", "".join(rows))
    assert sorted(told) == sorted(name for name in vars(hooks.Specs) if not name.startswith("_"))


@pytest.mark.requirement("ARCH-2")
def test_an_attribute_of_a_plug_in_is_made_once_and_ours_comes_first(tmp_path: Path) -> None:
    made: list[object] = []

    class Plugin:
        @staticmethod
        @hooks.hookimpl
        def attributes() -> dict[str, object]:
            return {"acme": lambda services: made.append(services) or len(made), "heal": lambda _: None}

    hooks.plugins().register(Plugin, name="acme")
    try:
        with Healkit(tmp_path / "healkit.db") as hk:
            assert (hk.acme, hk.acme) == (1, 1)
            assert made == [hk.services]
            assert hk.heal is not None
            assert "acme" in dir(hk)
    finally:
        hooks.plugins().unregister(name="acme")
    with Healkit(tmp_path / "healkit.db") as hk, pytest.raises(AttributeError, match="acme"):
        _ = hk.acme


@pytest.mark.requirement("ARCH-2")
def test_a_plug_in_adds_a_panel_and_a_question_of_the_page(tmp_path: Path) -> None:
    class Units:
        def __init__(self, healkit: Healkit, unit: str) -> None:
            self.shown = healkit.vault.get("area").tool_name, unit

    class UnitReading(Operations):
        PREFIX, NAMES = "acme_", ("unit", "page")

        def unit(self, tool: str) -> str:
            """Return the unit of a tool, and a secret beside it."""
            return f"{self._healkit.vault.get(tool).tool_name}: m, password=hunter2!x"

        def page(self) -> str:
            return "of acme"

    class Plugin:
        @staticmethod
        @hooks.hookimpl
        def panels() -> dict[str, object]:
            return {"Units": lambda: Units, "LogBrowser": lambda: Units}

        @staticmethod
        @hooks.hookimpl
        def pages(healkit: Healkit, recorded: PageData) -> list[Operations]:
            return [UnitReading(healkit, recorded)]

    hooks.plugins().register(Plugin, name="acme")
    try:
        with Healkit(tmp_path / "healkit.db") as hk:
            hk.vault.add("area", TOOL)
            assert hk.panels.open("Units", "metre").shown == ("area", "metre")
            assert panel_class("LogBrowser") is not Units, "healkit's own panel was replaced"
            with pytest.raises(UsageInvalid, match="There is no panel 'Nothing'") as refused:
                hk.panels.open("Nothing")
            assert "Units" in refused.value.hint
            pages = SidePanelPages(hk)
            assert pages.answer("acme_unit", {"tool": "area"})["value"].startswith(
                "area: m, password=[REDACTED"
            )
            assert pages.answer("news", {})["value"]["waiting"] == 0
    finally:
        hooks.plugins().unregister(name="acme")


@pytest.mark.requirement("ARCH-2")
def test_without_a_sanitiser_nothing_is_sent_and_no_clean_log_is_promised() -> None:
    name = "healkit.parts.sanitizer.plugin"
    plugin = hooks.plugins().unregister(name=name)
    try:
        assert isinstance(sanitizer_of(Config()), Verbatim)
        for config in (Config(sanitize_log=True), Config(sync_url="http://localhost:8008")):
            with pytest.raises(ConfigError, match="no plug-in hides secrets"):
                sanitizer_of(config)
    finally:
        hooks.plugins().register(plugin, name=name)
    assert sanitizer_of(Config()).rule_set_version is not None


@pytest.mark.requirement("ARCH-2")
def test_a_row_of_a_plug_in_that_cannot_be_loaded_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    def fail() -> object:
        raise ImportError("a fault of its own")

    class Plugin:
        @staticmethod
        @hooks.hookimpl
        def commands() -> dict[str, object]:
            own = Command(lambda services: Answer(said=str(services)))
            return {"acme": fail, "units": lambda: own, "log units": lambda: own, "status": fail}

        @staticmethod
        @hooks.hookimpl
        def mcp_tools() -> dict[str, object]:
            def convert(call: AgentCaller, metres: int) -> AgentAnswer:
                """Convert a length."""
                return AgentAnswer({"km": metres / 1000})

            return {"convert": lambda: AgentTool(convert, reads=True), "lost": fail, "heal": fail}

    hooks.plugins().register(Plugin, name="acme")
    try:
        assert rows.names()[-2:] == ["acme", "units"]
        assert rows.find("acme") is None
        assert "The command healkit acme is left out: ImportError: a fault of its own" in caplog.text
        assert isinstance(rows.find("units"), Command)
        assert isinstance(rows.find("status"), Command)
        assert list(rows.group("log").commands)[-1] == "units"
        *others, tool = own_tools()
        assert (tool.name, tool.description) == ("convert", "Convert a length.")
        assert tool.input_schema["properties"] == {"metres": {"type": "integer"}}
        assert "heal" in [other.name for other in others]
    finally:
        hooks.plugins().unregister(name="acme")
    assert "units" not in rows.names()


@pytest.mark.requirement("ARCH-2")
def test_a_plug_in_that_raises_costs_itself_only(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def fail(*_: object) -> None:
        raise ArithmeticError("a fault of its own")

    class Plugin:
        @staticmethod
        @hooks.hookimpl
        def opened(services: object) -> None:
            fail(services)

        @staticmethod
        @hooks.hookimpl
        def recorded(services: object) -> None:
            fail(services)

        @staticmethod
        @hooks.hookimpl
        def explain(failure: object) -> None:
            fail(failure)

        @staticmethod
        @hooks.hookimpl
        def closing(services: object) -> None:
            fail(services)

        @staticmethod
        @hooks.hookimpl
        def status(services: object) -> None:
            fail(services)

    hooks.plugins().register(Plugin, name="acme")
    try:
        with Healkit(tmp_path / "healkit.db") as hk:
            hk.vault.add("half", "def half(n):\n    return n['count'] / 2\n")
            failed = hk.execute("half", arguments={"n": {"cuont": 4}})
            assert "has no key" in str(failed.explain())
            assert hk.status().executions == 1
            assert [row.status for row in hk.log.query(limit=5).rows] == ["FAILURE"]
            assert hk.recorder.problem == ""
        assert hk.closed
    finally:
        hooks.plugins().unregister(name="acme")
    for hook in ("opened", "recorded", "explain", "status", "closing"):
        assert f"The plug-in acme failed in {hook}: ArithmeticError: a fault of its own" in caplog.text
