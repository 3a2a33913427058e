"""Every requirement that is called done has a test that claims it, and every claim names a requirement.

`tests/requirements.toml` lists the requirements. `HEALKIT_REGENERATE=1 pytest tests/test_requirements.py` writes the
tests behind each of them anew; the diff is then reviewed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
LEDGER = HERE / "requirements.toml"


def claims(tmp_path: Path) -> dict[str, list[str]]:
    """Requirement → the tests marked with it, as pytest collects them (conftest.py writes the list)."""
    out = tmp_path / "claims.json"
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", f"--claims={out}", str(HERE)]
    # What the run around this one was told, to share its work out for example, is not meant for this one.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=HERE.parent, env=environment
    )
    assert done.returncode == 0, done.stdout[-3000:]
    found: dict[str, list[str]] = json.loads(out.read_text())
    return found


def test_every_done_requirement_has_its_tests_and_every_claim_its_requirement(
    tmp_path: Path, claimed: dict[str, list[str]] | None
) -> None:
    ledger = tomllib.loads(LEDGER.read_text())
    if claimed is None:  # only a part of the suite is run
        claimed = claims(tmp_path)
    assert set(claimed) <= set(ledger), f"unknown requirements: {sorted(set(claimed) - set(ledger))}"
    if os.environ.get("HEALKIT_REGENERATE"):
        LEDGER.write_text(rendered(ledger, claimed))
        ledger = tomllib.loads(LEDGER.read_text())
    unproven = [name for name, entry in ledger.items() if entry["done"] and not entry["tests"]]
    assert not unproven, f"called done, but no test claims them: {unproven}"
    for name, entry in ledger.items():
        assert entry["tests"] == claimed.get(name, []), (
            f"{name}: run with HEALKIT_REGENERATE=1 and review the diff"
        )


def rendered(ledger: dict[str, dict[str, Any]], claimed: dict[str, list[str]]) -> str:
    parts = [LEDGER.read_text().partition("\n[")[0].rstrip() + "\n"]
    for name, entry in ledger.items():
        tests = "".join(f'    "{test}",\n' for test in claimed.get(name, []))
        listed = f"[\n{tests}]" if tests else "[]"
        done = str(entry["done"]).lower()
        parts.append(f"\n[{name}]\ntext = '''{entry['text']}'''\ndone = {done}\ntests = {listed}\n")
    return "".join(parts)
