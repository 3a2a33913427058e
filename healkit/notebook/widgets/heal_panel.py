"""Heal panel: start a healing, follow it, answer it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from IPython.display import display

from healkit.app import Healkit
from healkit.contracts.vault import VaultEntry
from healkit.errors import UsageInvalid
from healkit.healing.advisor import Advisor
from healkit.healing.advisors import advisor_names, advisors_for
from healkit.healing.questions import Answer, answer_of
from healkit.healing.report import HealReport
from healkit.notebook.cell_output import CellOutput
from healkit.notebook.widgets import heal_page_data as views
from healkit.notebook.widgets.heal_session import HealSession, session_of
from healkit.notebook.widgets.heal_timeline import shown_story
from healkit.notebook.widgets.page_data import PageData
from healkit.notebook.widgets.panel import Operation, Panel
from healkit.notebook.widgets.patch_editor import Patching
from healkit.rendering import healing, plain
from healkit.rendering.document import Card, Line, Only, Span, Tone
from healkit.tracing.reader import read_run

#: What is sent to the page, unasked.
Send = Callable[[dict[str, Any]], object]
_ANSWER_MAX_CHARS = 20_000
#: How much of a tool's name is on the tab of a docked panel.
_TITLE_MAX_CHARS = 24

#: Text for a healing that goes on, which also reads well after its kernel has ended.
_GOES_ON = "It goes on. The report stands here once there is one; when the kernel ends, so does the healing."
_KEEPING = "The patch was accepted, and is run once more. The report stands here once there is one."


class Healings:
    """Healings as a page asks for them, of any tool that it shows; `send` gets their changes.

    advisors and budget_s: what is chosen when the panel opens; by default as the configuration says.
    """

    def __init__(
        self,
        healkit: Healkit,
        recorded: PageData,
        send: Send,
        advisors: Sequence[str | Advisor] | None = None,
        budget_s: float | None = None,
    ) -> None:
        self._healkit, self._recorded, self._send = healkit, recorded, send
        chosen = healkit.config.heal_advisors if advisors is None else advisors
        self._chosen = {one if isinstance(one, str) else one.name: one for one in chosen}
        self._named = advisors is not None
        self._budget_s = healkit.config.heal_budget_s if budget_s is None else budget_s
        self._lock = threading.Lock()
        self._joined: dict[tuple[str, str], tuple[HealSession, Callable[[], object]]] = {}

    @property
    def operations(self) -> dict[str, Operation]:
        """Operations that a page may ask for."""
        return {
            "heal_open": self.open,
            "heal_start": self.start,
            "heal_stop": self.stop,
            "heal_answer": self.answer,
            "heal_decide": self.decide,
            "heal_settle": self.settle,
            "heal_undo": self.undo,
            "heal_story": self.story,
        }

    def open(self, tool: str, persona: str = "default", log_id: int | None = None) -> dict[str, Any]:
        """Return all that the panel of a tool opens with, also while it is being healed."""
        entry = self._healkit.vault.get(tool, persona)
        failed = (
            self._healkit.last_error(entry.tool_name, persona)
            if log_id is None
            else self._healkit.execution(log_id)
        )
        failure = "" if failed is None or failed.failure is None else failed.failure.summary
        return {
            "label": entry.label,
            "type": entry.type,
            "failure": views.text_of(plain.one_line(failure, 300), self._recorded),
            "log_id": None if failed is None else failed.log_id,
            "examples": len(entry.examples),
            "advisors": self._advisors(),
            "budget_s": self._budget_s,
            "state": self.session(tool, persona).state(),
        }

    def start(
        self,
        tool: str,
        persona: str,
        advisors: list[str],
        budget_s: float | None = None,
        log_id: int | None = None,
    ) -> dict[str, Any]:
        """Begin, unless it goes on already; raise `UsageInvalid` for choices that cannot be."""
        if not advisors:
            raise UsageInvalid("No advisor is chosen.", hint="Choose at least one advisor.")
        if not isinstance(budget_s, int | float) or not 0 < budget_s <= 86_400:
            raise UsageInvalid("The budget is a number of seconds, greater than 0 and up to a day.")
        asked = [self._chosen.get(name, name) for name in advisors]
        return self.session(tool, persona).start(asked, float(budget_s), log_id)

    def stop(self, tool: str, persona: str) -> None:
        """End it, with what was found."""
        self.session(tool, persona).stop()

    def answer(
        self,
        tool: str,
        persona: str,
        number: int,
        choice: int | None = None,
        said: str | None = None,
    ) -> None:
        """Answer a question: one of the choices by its place, what was typed, or neither (not known).

        What was typed is a value as JSON or as a bare text, or `raises ValueError`.
        """
        session = self.session(tool, persona)
        question = session.question(number)
        answer = None
        if choice is not None:
            if not 0 <= choice < len(question.choices):
                raise UsageInvalid(f"This question has no choice {choice!r}.")
            answer = Answer(question.choices[choice].value, question.choices[choice].raises)
        elif said is not None:
            if not said.strip() or len(said) > _ANSWER_MAX_CHARS:
                raise UsageInvalid(
                    "Nothing was typed that could be an answer.",
                    hint='A value as JSON, such as 3 or "a text"; or press: I don\'t know.',
                )
            # A number is a value here and not a choice's: the choices are buttons.
            typed = said.strip()
            answer = answer_of(question, typed if typed.startswith(("raises ", "=")) else f"= {typed}")
        session.answer(number, answer)

    def decide(self, tool: str, persona: str, number: int, decision: str) -> None:
        """Decide on the patch: `keep`, `decline` or `later`."""
        self.session(tool, persona).decide(number, decision)

    def settle(self, tool: str, persona: str, decision: str) -> str:
        """Decide after all on the patch that waits: `keep` or `decline`; return the result."""
        return self.session(tool, persona).settle(decision)

    def undo(self, tool: str, persona: str) -> str:
        """Take the patch back that was kept; the label of what is active then."""
        return self.session(tool, persona).undo()

    def story(self, tool: str, persona: str) -> dict[str, Any]:
        """Return the healing's run, to be stepped through; raise `UsageInvalid` where there is none."""
        report = self.session(tool, persona).report
        if report is None:
            raise UsageInvalid("There is no healing to be shown yet.", hint="Start one first.")
        return {**shown_story(read_run(report.folder), self._recorded), "teach": False}

    def session(self, tool: str, persona: str) -> HealSession:
        """Return the healing of that tool; the page is told of its changes from now on."""
        session = session_of(self._healkit, tool, persona)
        left = None
        with self._lock:
            joined = self._joined.get((tool, persona))
            if joined is None or joined[0] is not session:

                def changed() -> None:
                    about = {"tool": tool, "persona": persona, "state": session.state()}
                    self._send({"event": "heal", **about})

                left, self._joined[tool, persona] = joined, (session, changed)
                session.join(changed)
        if left is not None:
            left[0].leave(left[1])
        return session

    def close(self) -> None:
        """Let go of all healings; those that no other page shows end."""
        with self._lock:
            joined, self._joined = list(self._joined.values()), {}
        for session, changed in joined:
            session.leave(changed)

    def _advisors(self) -> list[dict[str, Any]]:
        """List the advisors that can be asked, the chosen ones first, in their order."""
        names = [*self._chosen, *(name for name in advisor_names() if name not in self._chosen)]
        found = []
        for name in names:
            why_not = ""
            if name in advisor_names():
                _, notes = advisors_for([self._chosen.get(name, name)], self._healkit.config)
                why_not = " ".join(notes).removeprefix(f"{name}: ")
            chosen = name in self._chosen and (self._named or not why_not)
            found.append({"name": name, "chosen": chosen, "why_not": why_not})
        return found


class HealPanel(Panel):
    """Healing of one tool: Start, progress and Stop, questions, consent, the report, and Undo.

    advisors and budget_s: what is chosen when it opens. log_id: the failure that is meant. Raises as `vault.get`.
    """

    KIND = "HealPanel"

    def __init__(
        self,
        healkit: Healkit,
        tool: str,
        persona: str = "default",
        *,
        advisors: Sequence[str | Advisor] | None = None,
        budget_s: float | None = None,
        log_id: int | None = None,
    ) -> None:
        self._entry = healkit.vault.get(tool, persona)
        super().__init__(healkit, {"tool": tool, "persona": persona, "log_id": log_id})
        self.title = f"Healing of {plain.one_line(self._entry.tool_name, _TITLE_MAX_CHARS)}"
        healings = Healings(healkit, self.recorded, self._send_news, advisors, budget_s)
        self.operations |= Patching(healkit, self.recorded).operations
        self.operations |= healings.operations
        self.operations |= {"card": self._card_data}
        self.endings = (healings.close,)
        self._card: Any = None
        self._carded: str | None = None
        healings.session(tool, persona)

    @property
    def _session(self) -> HealSession:
        return session_of(self.healkit, self._entry.tool_name, self._entry.persona)

    def static_card(self) -> CellOutput | None:
        """Draw its state: the report, once there is one; what waits for a person; before, what the panel is for."""
        session = self._session
        if self.is_docked and session.phase == "idle":
            return super().static_card()
        return heal_card(session.state(), session.report, self._entry)

    def show(self, *, card: bool = True) -> None:
        """Display the card, which becomes the report in its place, and the panel below it."""
        if card and (shown := self.static_card()) is not None:
            self._carded = shown.html
            self._card = display(shown, metadata=self._mark, display_id=True)
        super().show(card=False)

    @property
    def _mark(self) -> dict[str, Any]:
        """Metadata by which a page finds the card among the outputs: a reloaded page gets no display updates."""
        return {"healkit": {"panel": self.model_id}}

    def _card_data(self) -> dict[str, str] | None:
        """Return the card for a page to put in its place; None where there is none to be replaced."""
        shown = None if self._card is None else self.static_card()
        return None if shown is None else shown._repr_mimebundle_()

    def _send_news(self, content: dict[str, Any]) -> None:
        """Send the page the news and redraw the card; called whenever the healing has news."""
        self._reply(content)
        if self._card is None:
            return
        shown = self.static_card()
        if shown is not None and shown.html != self._carded:
            self._carded = shown.html
            self._card.update(shown, metadata=self._mark)


def heal_card(state: dict[str, Any], report: HealReport | None, entry: VaultEntry) -> CellOutput:
    """Draw the report where there is one, else what goes on, what is asked, or what the panel is for.

    state: as `HealSession.state` has it, without secrets. report: the same, cleaned.
    """
    if report is not None:
        return _reported(state, report)
    if (problem := state["problem"]) is not None:
        said = f"{entry.label} could not be healed: {problem['message']}"
        return CellOutput.of(Card(said, "✗", "bad", parts=(problem["hint"],)))
    said, phase, asked = f"Healing of {entry.label}", state["phase"], state["asked"]
    if phase == "question":
        lines = (
            "It has a question. What is right for",
            asked["call"],
            "? The panel takes the answer; without one the healing goes by what it knows.",
        )
        return _going_on(said, lines, "warn")
    if phase == "consent":
        words = f"A patch is waiting for your approval: {asked['words']}. The panel shows it; when the kernel ends,"
        lines = (f"{words} it waits as a request:", "%healkit requests", "")
        return _going_on(said, lines, "warn")
    if phase in ("working", "keeping"):
        words = _KEEPING if phase == "keeping" else _GOES_ON
        return _going_on(said, (words, "", ""), "info")
    flag = "" if entry.persona == "default" else f" --persona {entry.persona}"
    command = f"%heal {entry.tool_name}{flag}"
    lines = ("The report stands here once there is one.", command, "does the same in a cell.")
    return _going_on(said, lines, "info")


def _reported(state: dict[str, Any], report: HealReport) -> CellOutput:
    since = state["settled"]
    if state["undone"]:
        since = f"Undone: {state['undone']} is active, with the code from before."
    card = healing.card(report)
    return CellOutput.of((card, Card(tone="warn", parts=(since,))) if since else card)


def _going_on(said: str, lines: tuple[str, str, str], tone: Tone) -> CellOutput:
    """Draw a card of one sentence, with the code in the middle of it, if there is any."""
    before, code, after = lines
    sentence = (f"{before} ", Span(code, "code", tone), f" {after}") if code else before
    text = " ".join(part for part in (f"{said}.", before, code, after) if part)
    return CellOutput.of(Card(said, tone=tone, parts=(Only("html", Line(sentence)),), line=text))
