"""Options of a healing, and a cell's case."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from healkit.config import Config
    from healkit.parts.heal.advisor import Advisor, Case
    from healkit.parts.heal.questions import Answer, Question
    from healkit.parts.heal.records import Attempt, Patch
    from healkit.parts.runs.contract import PolicyDefaults
    from healkit.parts.trials.trials import Fixture


@dataclasses.dataclass(frozen=True)
class CellCase:
    """Case of a notebook's cell: it has no tool and no record, and comes with its surroundings and its limits."""

    case: Case
    fixture: Fixture
    config: Config


@dataclasses.dataclass(frozen=True, kw_only=True)
class HealOptions:
    """Options of one healing: what `HealService.heal` was given, with the settings where it was given nothing.

    advisors_named: the caller named the advisors; a default advisor that is not set up is not worth a note. cell: the
    case of a cell, which is not gathered from the record. improves: a tool that works may be patched too.
    client: the name of the MCP client that asks. live, files: calls that checks may make, and granted files that they
    may read with code that nobody has accepted.
    """

    tool_name: str
    persona: str = "default"
    advisors: Sequence[str | Advisor]
    advisors_named: bool = False
    auto: bool = False
    budget_s: float
    log_id: int | None = None
    ask: Callable[[Question], Answer | None] | None = None
    confirm: Callable[[Attempt], bool | None] | None = None
    before_patch: Callable[[Case, Patch], None] | None = None
    progress: Callable[[str], None] | None = None
    on_tried: Callable[[str, int], object] | None = None
    stop: threading.Event
    policy: PolicyDefaults | None = None
    dry_run: bool = False
    executor: concurrent.futures.Executor | None = None
    live: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    cell: CellCase | None = None
    improves: bool = False
    client: str = ""
