"""Page on sanitising, executed and compared with the code."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from healkit.config import Config
from healkit.parts.sanitizer.sanitizer import as_markdown

PAGE = Path(__file__).parents[3] / "docs" / "sanitizing.md"
RULES_PAGE = PAGE.with_name("sanitizing_rules.md")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)


@pytest.mark.requirement("TRACE-2")
def test_the_page_does_what_it_says(tmp_path: Path) -> None:
    ((code,), (shown,), (rules,), (console,)) = (
        [text for kind, text in BLOCKS if kind == wanted] for wanted in ("python", "text", "toml", "console")
    )
    (tmp_path / "rules.toml").write_text(rules)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    commands = "".join(line[2:] + "\n" for line in console.splitlines() if line.startswith("$ "))
    answer = "".join(line + "\n" for line in console.splitlines() if not line.startswith("$ "))
    for words, expected in (
        ([sys.executable, "-W", "error", "-c", code], shown),
        (["bash", "-ec", commands], answer),
    ):
        environment = {**os.environ, "PATH": path}
        done = subprocess.run(
            words, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=100, check=False
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout == expected


@pytest.mark.requirement("TRACE-2")
def test_the_docs_hold_the_table_of_rules() -> None:
    page = RULES_PAGE.read_text()
    head, _, rest = page.partition("<!-- rules -->\n")
    shown, _, tail = rest.partition("<!-- /rules -->")
    if os.environ.get("HEALKIT_REGENERATE"):
        RULES_PAGE.write_text(f"{head}<!-- rules -->\n{as_markdown()}<!-- /rules -->{tail}")
        return
    assert shown == as_markdown(), "run with HEALKIT_REGENERATE=1 and review the diff"


def test_the_example_on_the_page_of_rules_holds() -> None:
    (code,) = re.findall(r"^```python\n(.*?)^```$", RULES_PAGE.read_text(), re.MULTILINE | re.DOTALL)
    exec(code, {})


def test_the_page_names_the_settings_with_their_defaults() -> None:
    page = PAGE.read_text()
    defaults = Config()
    assert f"| `payload_max_bytes` | {defaults.payload_max_bytes:,} |" in page
    assert f"| `phone_region` | `{defaults.phone_region}` |" in page
    assert (defaults.sanitizer_rules, defaults.sanitizer_allow) == ("", ())
