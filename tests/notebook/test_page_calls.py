"""Settings of JupyterLab's editor in a kernel."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

from healkit.config import Config
from healkit.notebook import page_settings


@pytest.mark.requirement("FACE-9")
def test_settings_are_applied_and_what_is_not_set_stays(shell: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HEALKIT_PANELS", "HEALKIT_HEAL_ADVISORS"):
        monkeypatch.setenv(name, "1" if name == "HEALKIT_PANELS" else "rules")
    names = set(shell.user_ns)
    page_settings.load("{}")
    magics = shell.magics_manager.registry["HealkitMagics"]
    assert (magics.explain, magics.cards) == ("fix", True)
    assert os.environ["HEALKIT_HEAL_ADVISORS"] == "rules"
    given = {"explain": "hint", "cards": False, "panels": False, "advisors": ["rules", "search"]}
    page_settings.load(json.dumps(given))
    assert (magics.explain, magics.cards) == ("hint", False)
    config = Config.from_environment()
    assert (config.panels, config.heal_advisors) == (False, ("rules", "search"))
    assert set(shell.user_ns) == names
