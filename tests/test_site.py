"""Documentation site: tutorials run, reference is complete."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from site_pages import missing_lines, run_page
from test_readme import environment

from healkit import errors
from healkit.config import settings
from healkit.faces.commands import rows
from healkit.faces.mcp_server.own_tools import own_tools
from healkit.faces.notebook.magic_parsers import PARSERS

DOCS = Path(__file__).parents[1] / "docs"
sys.path.insert(0, str(DOCS))
import reference_pages  # noqa: E402 - found in the folder of the pages


@pytest.mark.slow
@pytest.mark.pages
@pytest.mark.parametrize(
    "name",
    [
        "tutorial_cell",
        "tutorial_run",
        "tutorial_teach",
        "tutorial_agent",
        "record_guarantees",
        "learning",
    ],
)
def test_a_page_shows_what_its_blocks_print(name: str, tmp_path: Path) -> None:
    assert run_page(DOCS / f"{name}.md", tmp_path, environment(tmp_path)) == []


@pytest.mark.slow
@pytest.mark.pages
def test_the_page_about_cells_begins_with_an_example_that_runs(tmp_path: Path) -> None:
    first = tmp_path / "first.md"
    first.write_text((DOCS / "cells.md").read_text().partition("\n## ")[0])
    assert run_page(first, tmp_path, environment(tmp_path)) == []


def test_each_how_to_page_is_listed_under_its_task() -> None:
    text = (DOCS / "how_to.md").read_text()
    pages = dict(re.findall(r"^([^:`\n]+) <(\w+)>$", text, re.MULTILINE))
    assert len(pages) > 30
    assert [task for task, page in pages.items() if f"[{task}]({page}.md)" not in text] == []


@pytest.mark.parametrize(
    ("shown", "problems"),
    [
        ("found\n  3 of 4 (1 s)\nend", 0),
        ("found\n…\nend", 0),
        ("found\n  3 …\nend", 0),
        ("found\nend", 1),
        ("found\n  3 of 4 (1 s)", 1),
        ("found\n  3\nend", 2),
        ("end\nfound\n…", 2),
    ],
)
def test_a_page_marks_what_it_leaves_out_of_an_output(shown: str, problems: int) -> None:
    assert len(missing_lines(shown, "found\n\n   3 of 4 (207 ms)\nend\n")) == problems


def page(name: str) -> str:
    return "\n".join(reference_pages.PAGES[name]())


def test_each_setting_code_command_magic_and_tool_has_an_entry() -> None:
    assert [one.variable for one in settings() if f"| `{one.variable}` |" not in page("settings")] == []
    assert [code for code in errors.catalogue() if f"\n## {code}\n" not in page("errors")] == []
    assert [name for name in rows.names() if f"\n## healkit {name}\n" not in page("commands")] == []
    assert [name for name in PARSERS if not re.search(rf"\n## %+{name}\n", page("magics"))] == []
    assert [tool.name for tool in own_tools() if f"\n## {tool.name}\n" not in page("mcp_tools")] == []


def test_examples_of_the_api_are_code_and_async_calls_show_their_arguments() -> None:
    text = page("api")
    prose, blocks = re.subn(r"^```\w+\n.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    assert blocks > len(re.findall(r"^```pycon$", text, re.MULTILINE)) > 150
    assert ">>>" not in prose
    assert "```" not in prose
    assert "<BLANKLINE>" not in text
    assert "(*args" not in text
    assert "\nawait hk.aheal(tool_name, persona='default', *, " in text


def test_each_error_code_has_its_cause_and_its_cure() -> None:
    for code in errors.catalogue():
        assert all(reference_pages.error_help(code)), code
    assert set(reference_pages.error_codes()) <= set(errors.catalogue())


def test_commands_that_the_cures_name_are_there() -> None:
    cures = "\n".join(cure for code in errors.catalogue() for cure in [reference_pages.error_help(code)[1]])
    named = re.findall(r"`healkit ([a-z]+)(?: ([a-z-]+))?", cures)
    assert named
    for name, below in named:
        row = rows.find(name)
        assert row is not None, name
        assert not below or below in getattr(row, "commands", {below: None}), (name, below)


def test_each_page_is_in_a_table_of_contents() -> None:
    listed = {
        line.strip().removesuffix(">").rpartition("<")[2]
        for path in DOCS.glob("*.md")
        for tree in re.findall(r"^```\{toctree\}\n(.*?)^```$", path.read_text(), re.MULTILINE | re.DOTALL)
        for line in tree.splitlines()
    }
    assert {path.stem for path in DOCS.glob("*.md")} - listed - {"index"} == set()


def test_the_glossary_is_short() -> None:
    glossary = (DOCS / "glossary.md").read_text().partition("```{glossary}\n")[2].partition("```")[0]
    assert 20 <= len(re.findall(r"^\w", glossary, re.MULTILINE)) <= 30
