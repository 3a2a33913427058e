"""Requirements and the tests that claim them.

Every requirement that is called done has a test that claims it, and every claim names a requirement.

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

import pytest
from tiers import Claims

HERE = Path(__file__).parent
LEDGER = HERE / "requirements.toml"


@pytest.fixture(scope="module")
def claims(tmp_path_factory: pytest.TempPathFactory, claimed: Claims | None) -> Claims:
    """Return who claims which requirement, in the whole suite; asks a pytest of its own where this run is a part."""
    if claimed is not None:
        return claimed
    out = tmp_path_factory.mktemp("claims") / "claims.json"
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", f"--claims={out}", str(HERE)]
    # Settings of the surrounding run, such as how it shares its work, do not apply to this one.
    outer = ("PYTEST_", "HEALKIT_TEST_RUN")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(outer)}
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=HERE.parent, env=environment
    )
    assert done.returncode == 0, done.stdout[-3000:]
    found: Claims = json.loads(out.read_text())
    return found


def test_every_done_requirement_has_its_tests_and_every_claim_its_requirement(claims: Claims) -> None:
    ledger = tomllib.loads(LEDGER.read_text())
    assert set(claims) <= set(ledger), f"unknown requirements: {sorted(set(claims) - set(ledger))}"
    if os.environ.get("HEALKIT_REGENERATE"):
        LEDGER.write_text(rendered(ledger, claims))
        ledger = tomllib.loads(LEDGER.read_text())
    unproven = [name for name, entry in ledger.items() if entry["done"] and not entry["tests"]]
    assert not unproven, f"called done, but no test claims them: {unproven}"
    for name, entry in ledger.items():
        assert entry["tests"] == list(claims.get(name, {})), (
            f"{name}: run with HEALKIT_REGENERATE=1 and review the diff"
        )


def test_the_quick_tier_alone_proves_five_requirements_of_six(claims: Claims) -> None:
    done = [name for name, entry in tomllib.loads(LEDGER.read_text()).items() if entry["done"]]
    unproven = [name for name in done if not any(claims.get(name, {}).values())]
    assert len(unproven) * 6 <= len(done), f"only slow tests prove {unproven}"


def rendered(ledger: dict[str, dict[str, Any]], claims: Claims) -> str:
    """Write the ledger's text anew: its head, then each requirement with the tests that claim it."""
    parts = [LEDGER.read_text().partition("\n[")[0].rstrip() + "\n"]
    for name, entry in ledger.items():
        tests = "".join(f'    "{test}",\n' for test in claims.get(name, {}))
        listed = f"[\n{tests}]" if tests else "[]"
        done = str(entry["done"]).lower()
        parts.append(f"\n[{name}]\ntext = '''{entry['text']}'''\ndone = {done}\ntests = {listed}\n")
    return "".join(parts)
