"""pytest plugin: its options.

pytest loads this module in every run where healkit is installed; what `--healkit` needs is loaded by `--healkit`.
"""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options; called by pytest."""
    group = parser.getgroup("healkit", "notebooks and doctests in restricted workers")
    runs = "run notebooks, and the doctests that pytest collects, restricted"
    heals = "look for a fix of each failing notebook, and show it (--healkit too)"
    group.addoption("--healkit", action="store_true", help=runs)
    group.addoption("--healkit-heal", action="store_true", help=heals)
    timeout = "limit on wall time of a notebook's cell or a doctest's example, in seconds"
    read = "files and folders that cells and examples may read, besides the folder of their file"
    parser.addini("healkit_timeout", timeout, default="600")
    parser.addini("healkit_read", read, type="paths", default=[])


def pytest_configure(config: pytest.Config) -> None:
    """Load the rest where it is asked for; called by pytest."""
    if config.option.healkit or config.option.healkit_heal:
        from healkit.faces.pytest_items import RestrictedRun

        config.pluginmanager.register(RestrictedRun(config), "healkit-restricted")
