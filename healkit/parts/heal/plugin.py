"""What healing adds to a `Healkit`.

`hk.heal`, requests, and its steps in the audit.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import healkit.parts.cells
import healkit.parts.runs.plugin  # noqa: F401 - as above
from healkit.hooks import hookimpl, rows_of
from healkit.parts.heal.service import HealService

if TYPE_CHECKING:
    from healkit.config import Config
    from healkit.core.rendering.document import Card
    from healkit.parts.heal.advisor import Advisor
    from healkit.parts.heal.requests import Requests
    from healkit.parts.runs.contract import Run, RunManifest
    from healkit.parts.runs.run_audit import Tell
    from healkit.services import Services


@hookimpl
def commands() -> Mapping[str, Callable[[], Any]]:
    """`healkit heal`, `check` and `requests`."""
    return rows_of("healkit.parts.heal.commands", "heal", "check", "requests")


@hookimpl
def mcp_tools() -> Mapping[str, Callable[[], Any]]:
    """`propose_patch`, `heal`, `check_notebook`."""
    return rows_of("healkit.parts.heal.agent_tools", "propose_patch", "heal", "check_notebook", table="TOOLS")


@hookimpl
def attributes() -> Mapping[str, Callable[[Services], Any]]:
    """`healing` with its methods, and `requests`."""
    return {
        "healing": HealService,
        "heal": lambda services: services.healing.heal,
        "aheal": lambda services: services.healing.aheal,
        "heal_cell": lambda services: services.healing.heal_cell,
        "check_notebook": lambda services: services.healing.check_notebook,
        "requests": _requests,
    }


@hookimpl
def advisors() -> Mapping[str, Callable[[Config], Advisor]]:
    """Healkit's own advisors, cheapest first; the code of each is loaded when it is used."""
    return {"peers": _peers, "rules": _rules, "search": _search, "model": _model}


@hookimpl
def status(services: Services) -> Mapping[str, Any]:
    """Count the patches that are waiting for consent."""
    return {"requests": services.requests.waiting()}


@hookimpl
def story(run: Run) -> tuple[Callable[[], Card], dict[str, Any]]:
    """Describe a run of any kind."""
    from healkit.parts.heal import timeline

    run_story = timeline.story_of(run)
    return lambda: timeline.timeline_card(run_story), run_story


@hookimpl
def audit_steps(manifest: RunManifest) -> Tell | None:
    """Return a function that describes a healing's events for the audit."""
    profile = manifest.execution_profile
    if profile.name != "heal":
        return None
    from healkit.parts.heal.record import heal_steps

    tool_name = re.sub(r"\[(.)\]", r"\1", manifest.allowlist[0])  # a pattern, by `glob.escape`
    return heal_steps(tool_name, contents=profile.parameters.get("logged") is True)


def _peers(_config: Config) -> Advisor:
    from healkit.parts.heal.advisors.simple import PeersAdvisor

    return PeersAdvisor()


def _rules(_config: Config) -> Advisor:
    from healkit.parts.heal.advisors.simple import RulesAdvisor

    return RulesAdvisor()


def _search(_config: Config) -> Advisor:
    from healkit.parts.heal.advisors.search.strategy import SearchAdvisor

    return SearchAdvisor()


def _model(config: Config) -> Advisor:
    from healkit.parts.heal.advisors.model import ModelAdvisor

    return ModelAdvisor(config)


def _requests(services: Services) -> Requests:
    from healkit.parts.heal.requests import Requests

    return Requests(services.database, services.audit)
