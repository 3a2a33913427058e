"""Page on language models, executed, compared with the code."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from model_server import SECRET_KEY, model_server, says

from healkit import errors
from healkit.config import Config, settings
from healkit.parts.models.model_endpoint import find_endpoint

PAGE = Path(__file__).parents[3] / "docs" / "models.md"
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
ANSWER = """The parameter is called `values`, not `value`.

```python
def mean(values, mailto='[REDACTED:email-1]'):
    return sum(values) / len(values)
```
"""


@pytest.mark.slow
@pytest.mark.requirement("HEAL-2")
def test_the_page_does_what_it_says(tmp_path: Path) -> None:
    codes, shown = ([text for kind, text in BLOCKS if kind == wanted] for wanted in ("python", "text"))
    with model_server() as server:
        server.plan.append(says(ANSWER))
        settings = {
            "HEALKIT_HEAL_MODEL": "teacher-1",
            "HEALKIT_HEAL_MODEL_URL": f"{server.url}/v1",
            "HEALKIT_MODEL_KEY": SECRET_KEY,
        }
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", "\n".join(codes)],
            cwd=tmp_path,
            env={**os.environ, **settings},
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        sent = server.requests[0].text
    said = re.sub(r"(?<=data-)[0-9a-f]{8}", "1f6c09ab", done.stdout)
    if os.environ.get("HEALKIT_REGENERATE"):
        preview, asked, rest = said.partition("Answer with the sentence and the whole new code.\n")
        page = PAGE.read_text().replace(shown[0], preview + asked)
        PAGE.write_text(page.replace(f"```text\n{shown[1]}", f"```text\n{rest}"))
        return
    assert said == "".join(shown)
    assert "jane@example.com" not in sent
    assert SECRET_KEY not in done.stdout


def test_each_row_of_servers_has_working_settings() -> None:
    rows = re.findall(r"^\| [\w. ]+ \| `(HEALKIT_HEAL_MODEL=.*)` \|$", PAGE.read_text(), re.MULTILINE)
    assert len(rows) == 6
    for row in rows:
        environ = dict(part.split("=", 1) for part in row.replace("…", "a-key").split())
        access, available = find_endpoint(Config.from_environment(environ), environ)
        assert available, available.why
        assert access is not None
        assert access.host in {"api.openai.com", "api.anthropic.com"} or access.host.startswith("localhost:")


def test_the_page_names_every_setting_with_its_default_and_every_code() -> None:
    page = PAGE.read_text()
    defaults = Config()
    for name in (setting.name for setting in settings() if setting.name.startswith("heal_model")):
        assert f"`{name}`" in page
        value = getattr(defaults, name)
        if value and not isinstance(value, str | bool | tuple):
            assert f"| `{name}` | {value:,.0f} |" in page
    codes = {
        kind.code
        for kind in vars(errors).values()
        if isinstance(kind, type) and kind.__name__.startswith("Model")
    }
    assert codes == set(re.findall(r"^\| `(MODEL_\w+)` \|", page, re.MULTILINE))
