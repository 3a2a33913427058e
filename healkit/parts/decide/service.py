"""Decision service of a Healkit: `hk.decide`.

What decides is loaded by the first decision: a plain execution has no use for it.
"""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from healkit.parts.decide.asked import DecideOptions
from healkit.parts.runs.contract import PolicyDefaults

if TYPE_CHECKING:
    from healkit.parts.decide.asked import Analyst, Ask, HealConsent
    from healkit.parts.decide.choosers import Chooser
    from healkit.parts.decide.decision import Decision
    from healkit.services import Services


class DecideService:
    """Decides with the tools of one Healkit."""

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
        """Answer a question about data with tools, chosen by a chooser that sees metadata only.

        data: Frames, texts, lists of texts, or names of data views, by the names that choices use.
        tools: Names of vault tools, by default those of the group `decide`, and the built-in operations where there are
            none.
        chooser: A list of choices, `person` for a prompt on the terminal, `model` for the configured language model, or
            an object with `name` and `choose(turn)`.

        share: Columns of the data, as `region` or `sales.region`, whose distinct values the chooser is told, and texts
            whose most frequent words it is told.
        aliases: Other names of entities, such as `{"Meta": ["Facebook", "FB"]}`.
        heal: Whether a failing tool may be healed: True keeps what passes every check, a function is asked about each
            patch.
        ask: Gets an `EntityQuestion` where several values may be meant, and returns one; without it the decision ends
            as `asked`.

        analyst: `model`, or an object with `name` and `write(turn)`: it writes the analysis of the result, told
            metadata only.
        policy: The caps of the run.
        timeout: Seconds of each execution.
        stop: Set it, from any thread, to end after the step that is going on.

        resume: The id of a decision whose process was killed. It goes on in a run of its own behind its last finished
            step: the views that it made are loaded, and no finished step is taken again. It has its question, data,
            tools, persona and shared columns; its chooser too, unless that was an object of the caller's.

        Raises `UsageInvalid` for a call that cannot be answered, and as `vault.lookup`, `views.put` and `runs` do. What
        a tool or a choice does is never raised; it is in the `Decision`.
        """
        from healkit.parts.decide.deciding import decide

        options = DecideOptions(
            question=question, data=data, chooser=chooser, resume=resume, tools=tools, persona=persona, share=share,
            aliases=aliases, heal=heal, ask=ask, analyst=analyst, policy=policy, timeout=timeout,
            stop=stop or threading.Event(),
        )  # fmt: skip
        return decide(self._hk, options)

    async def adecide(self, *args: Any, **kwargs: Any) -> Decision:
        """Do as `decide`, for async code, in a thread of its own; cancelling it ends the decision after its step."""
        stop = kwargs.setdefault("stop", threading.Event())
        try:
            return await asyncio.to_thread(functools.partial(self.decide, *args, **kwargs))
        except asyncio.CancelledError:
            stop.set()
            raise
