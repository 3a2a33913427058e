"""Hook of the build: a wheel has the documentation site where `make docs` has built it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class SiteHook(BuildHookInterface):  # type: ignore[type-arg]  # the configuration is not read
    """Adds docs/_build/html to a wheel as healkit/_site."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the site; called by hatchling before it builds a wheel."""
        site = Path(self.root) / "docs" / "_build" / "html"
        if version != "editable" and (site / "index.html").is_file():
            build_data["force_include"][str(site)] = "healkit/_site"
