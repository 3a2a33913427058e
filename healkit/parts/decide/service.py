"""Decision service of a Healkit: `hk.decide`.

The other modules are loaded by the first decision, because a plain execution does not need them.
"""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from healkit.core.runtime.background import show_parameters
from healkit.parts.decide.asked import DecideOptions
from healkit.parts.runs.contract import PolicyDefaults

if TYPE_CHECKING:
    from healkit.parts.decide.asked import Analyst, Ask, HealConsent
    from healkit.parts.decide.choosers import Chooser
    from healkit.parts.decide.decision import Decision
    from healkit.services import Services


class DecideService:
    """Decides with the tools of one Healkit.

    Example:
    >>> scores = pd.DataFrame({"name": ["Ada", "Bo"], "points": [70, 40]})
    >>> plan = [{"type": "finalize", "finalViewName": "scores"}]
    >>> hk.decisions.decide("Which scores?", {"scores": scores}, chooser=plan).outcome
    'finalized'
    """

    def __init__(self, hk: Services) -> None:
        self._hk = hk

    def decide(
        self,
        question: str | None = None,
        data: Mapping[str, Any] | None = None,
        *,
        chooser: Chooser | Sequence[Mapping[str, Any]] | str | None = None,
        resume: str | None = None,
        tools: Sequence[str] | None = None,
        persona: str = "default",
        share: Sequence[str] = (),
        aliases: Mapping[str, Sequence[str]] | None = None,
        heal: HealConsent = False,
        ask: Ask | None = None,
        analyst: Analyst | str | None = None,
        policy: PolicyDefaults | None = None,
        timeout: float | None = None,
        stop: threading.Event | None = None,
    ) -> Decision:
        """Answer a question about data with tools, chosen by a chooser that sees only metadata.

        data: Frames, texts, lists of texts, or names of data views, by the names that choices use.
        tools: Names of vault tools, by default those of the group `decide`; the built-in operations if that has none.
        chooser: A list of choices, `person` for a prompt on the terminal, `model` for the configured language model, or
            an object with `name` and `choose(turn)`.
        share: Columns of the data, such as `region` or `sales.region`, whose distinct values the chooser gets. Also
            texts whose most frequent words it gets.
        aliases: Other names of entities, such as `{"Meta": ["Facebook", "FB"]}`.
        heal: Whether a failing tool may be healed: True keeps a patch that passes every check, a function is asked
            about each patch.
        ask: Gets an `EntityQuestion` if several values may be meant, and returns one; without it the decision ends as
            `asked`.
        analyst: `model`, or an object with `name` and `write(turn)`: it writes the analysis of the result from metadata
            only.
        policy: The caps of the run.
        timeout: Seconds of each execution.
        stop: Set it, from any thread, to end after the current step.
        resume: The id of a decision whose process was killed. It continues in a new run after its last finished step.
            Its views are loaded, and no finished step runs again. It keeps its question, data, tools, persona and
            shared columns. It also keeps its chooser, unless that was an object of the caller's.

        Raises `UsageInvalid` for an invalid call, and as `vault.lookup`, `views.put` and `runs` do. Errors of a tool or
        a choice are never raised; they are in the `Decision`.

        Example:
        >>> scores = pd.DataFrame({"name": ["Ada", "Bo"], "points": [70, 40]})
        >>> above = {"data": "scores", "column": "points", "operator": ">", "value": 50}
        >>> plan = [
        ...     {"type": "execute_data_op", "tool": "filter_rows", "params": above, "viewName": "passed"},
        ...     {"type": "finalize", "finalViewName": "passed"},
        ... ]
        >>> decision = hk.decide("Who has passed?", {"scores": scores}, chooser=plan)
        >>> hk.views.load(decision.raw_data_view_name)
          name  points
        0  Ada      70
        """
        from healkit.parts.decide.deciding import decide

        options = DecideOptions(
            question=question, data=data, chooser=chooser, resume=resume, tools=tools, persona=persona, share=share,
            aliases=aliases, heal=heal, ask=ask, analyst=analyst, policy=policy, timeout=timeout,
            stop=stop or threading.Event(),
        )  # fmt: skip
        return decide(self._hk, options)

    async def adecide(self, *args: Any, **kwargs: Any) -> Decision:
        """Do the same as `decide`, for async code, in its own thread.

        Cancelling it ends the decision after its current step. Raises as `decide`.

        Example:
        >>> data = {"scores": pd.DataFrame({"points": [70, 40]})}
        >>> plan = [{"type": "finalize", "finalViewName": "scores"}]
        >>> asyncio.run(hk.adecide("Which points?", data, chooser=plan)).outcome
        'finalized'
        """
        stop = kwargs.setdefault("stop", threading.Event())
        try:
            return await asyncio.to_thread(functools.partial(self.decide, *args, **kwargs))
        except asyncio.CancelledError:
            stop.set()
            raise


show_parameters(DecideService.adecide, DecideService.decide)
