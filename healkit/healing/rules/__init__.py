"""The rules advisor: what a traceback and a table can mend."""

from __future__ import annotations

from healkit.healing.rules.advisor import FAMILIES, RulesAdvisor

__all__ = ["FAMILIES", "RulesAdvisor"]
