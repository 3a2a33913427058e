"""Healing in a notebook's page: the panel, and the timeline.

A healing runs in a separate thread. For a question or for consent, it waits on a condition, which the panel's
operations or Stop fulfil. So it never blocks the user's kernel, and no thread outlives the last panel that shows it. A
process has one session for each tool: a cell that runs again shows the healing in progress, and a second Start has no
effect. When the healing ends, an open question counts as unanswered, and an undecided patch waits as a request.

Unlike the other panels, the timeline stores its content as its widget's state. So stepping needs no kernel; only a
student's own edit does. A run folder was sanitised when it was written; a run that was stored raw is sanitised here.
"""

from __future__ import annotations

import atexit
import contextlib
import dataclasses
import itertools
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Literal

import msgspec
import traitlets

from healkit.app import Healkit
from healkit.config import HEAL_BUDGET_S
from healkit.core.contracts.vault import VaultEntry
from healkit.core.crossing import values
from healkit.core.rendering import plain
from healkit.core.rendering.document import Card, Line, Only, Span, Tone
from healkit.core.rendering.plain import visible
from healkit.core.runtime.background import Stop, no_output
from healkit.core.runtime.execution import arguments_of
from healkit.errors import UsageInvalid
from healkit.faces.notebook.cell_output import CellOutput
from healkit.faces.notebook.widgets.panel import CardedPanel, Panel, begin
from healkit.faces.notebook.widgets.patch_editor import Patching
from healkit.faces.pages.operations import Operations, described
from healkit.faces.pages.page_data import PageData
from healkit.faces.pages.run_reading import shown_story
from healkit.parts.heal import render as healing
from healkit.parts.heal import timeline
from healkit.parts.heal.advisor import Advisor, advisor_names, advisors_for
from healkit.parts.heal.questions import Answer, Question, answer_of
from healkit.parts.heal.reach import told_reach
from healkit.parts.heal.records import VERDICTS, Answered, Attempt
from healkit.parts.heal.report import HealReport
from healkit.parts.runs.contract import Run
from healkit.parts.runs.reader import read_run
from healkit.plain_text import untick

#: Sends a message to the page.
Send = Callable[[dict[str, Any]], object]
_ANSWER_MAX_CHARS = 20_000
#: Maximum length of a tool's name on the tab of a docked panel, in characters.
_TITLE_MAX_CHARS = 24

#: Text for a healing in progress; it must also be right after its kernel has ended.
_GOES_ON = "It goes on. The report stands here once there is one; when the kernel ends, so does the healing."
_KEEPING = "The patch was accepted, and is run once more. The report stands here once there is one."


#: What checks may call and read, by name, as in `heal`: `live` and `files`.
Allowed = dict[str, Any]


class Healings(Operations):
    """Healings for a page, of any tool that it shows; `send` gets their changes.

    advisors, budget_s: Preselected values; by default from the configuration.
    allowed: `live` and `files` for each of them; the page cannot name any.
    """

    PREFIX = "heal_"
    NAMES = ("open", "start", "stop", "answer", "decide", "settle", "undo", "story")

    def __init__(
        self,
        healkit: Healkit,
        recorded: PageData,
        send: Send,
        advisors: Sequence[str | Advisor] | None = None,
        budget_s: float | None = None,
        allowed: Allowed | None = None,
    ) -> None:
        super().__init__(healkit, recorded)
        self._send, self._allowed = send, allowed or {}
        chosen = healkit.config.heal_advisors if advisors is None else advisors
        self._chosen = {advisor if isinstance(advisor, str) else advisor.name: advisor for advisor in chosen}
        self._named = advisors is not None
        self._budget_s = HEAL_BUDGET_S if budget_s is None else budget_s
        self._lock = threading.Lock()
        self._joined: dict[tuple[str, str], tuple[HealSession, Callable[[], object]]] = {}

    def open(self, tool: str, persona: str = "default", log_id: int | None = None) -> dict[str, Any]:
        """Return the initial content of a tool's panel, also while the tool is being healed."""
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
            "failure": safe_text(plain.one_line(failure, 300), self._recorded),
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
        """Start, unless it is already running; raise `UsageInvalid` for invalid choices."""
        if not advisors:
            raise UsageInvalid("No advisor is chosen.", hint="Choose at least one advisor.")
        if not isinstance(budget_s, int | float) or not 0 < budget_s <= 86_400:
            raise UsageInvalid("The budget is a number of seconds, greater than 0 and up to a day.")
        selected = [self._chosen.get(name, name) for name in advisors]
        return self.session(tool, persona).start(selected, float(budget_s), log_id, self._allowed)

    def stop(self, tool: str, persona: str) -> None:
        """Stop it, with the results so far."""
        self.session(tool, persona).stop()

    def answer(
        self,
        tool: str,
        persona: str,
        number: int,
        choice: int | None = None,
        said: str | None = None,
    ) -> None:
        """Answer a question: by the index of a choice, with typed text, or with neither (not known).

        Typed text is a value as JSON or plain text, or `raises ValueError`.
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
            # A number is a value here, not the number of a choice, because the choices are buttons.
            typed = said.strip()
            answer = answer_of(question, typed if typed.startswith(("raises ", "=")) else f"= {typed}")
        session.answer(number, answer)

    def decide(self, tool: str, persona: str, number: int, decision: str) -> None:
        """Decide on the patch: `keep`, `decline` or `later`."""
        self.session(tool, persona).decide(number, decision)

    def settle(self, tool: str, persona: str, decision: str) -> str:
        """Decide later on the waiting patch: `keep` or `decline`; return the result."""
        return self.session(tool, persona).settle(decision)

    def undo(self, tool: str, persona: str) -> str:
        """Undo the patch that was kept; return the label of the revision that is then active."""
        return self.session(tool, persona).undo()

    def story(self, tool: str, persona: str) -> dict[str, Any]:
        """Return the healing's run, to step through; raise `UsageInvalid` if there is none."""
        report = self.session(tool, persona).report
        if report is None:
            raise UsageInvalid("There is no healing to be shown yet.", hint="Start one first.")
        return {**shown_story(read_run(report.folder), self._recorded), "teach": False}

    def session(self, tool: str, persona: str) -> HealSession:
        """Return the healing of that tool; from now on, the page gets its changes."""
        session = session_of(self._healkit, tool, persona)
        previous = None
        with self._lock:
            joined = self._joined.get((tool, persona))
            if joined is None or joined[0] is not session:

                def changed() -> None:
                    about = {"tool": tool, "persona": persona, "state": session.state()}
                    self._send({"event": "heal", **about})

                previous, self._joined[tool, persona] = joined, (session, changed)
                session.join(changed)
        if previous is not None:
            previous[0].leave(previous[1])
        return session

    def close(self) -> None:
        """Release all healings; those that no other page shows end."""
        with self._lock:
            joined, self._joined = list(self._joined.values()), {}
        for session, changed in joined:
            session.leave(changed)

    def _advisors(self) -> list[dict[str, Any]]:
        """List the available advisors, the chosen ones first, in their order."""
        names = [*self._chosen, *(name for name in advisor_names() if name not in self._chosen)]
        advisors = []
        for name in names:
            why_not = ""
            if name in advisor_names():
                _, notes = advisors_for([self._chosen.get(name, name)], self._healkit.config)
                why_not = " ".join(notes).removeprefix(f"{name}: ")
            chosen = name in self._chosen and (self._named or not why_not)
            advisors.append({"name": name, "chosen": chosen, "why_not": why_not})
        return advisors


class HealPanel(CardedPanel):
    """Healing of one tool: Start, progress and Stop, questions, consent, the report, and Undo.

    advisors, budget_s: Preselected values.
    log_id: The failure to heal.
    live, files: As in `heal`.

    Raises the errors of `vault.get`.
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
        live: Sequence[str] = (),
        files: Sequence[str] = (),
    ) -> None:
        self._entry = healkit.vault.get(tool, persona)
        super().__init__(healkit, {"tool": tool, "persona": persona, "log_id": log_id})
        self.title = f"Healing of {plain.one_line(self._entry.tool_name, _TITLE_MAX_CHARS)}"
        allowed: Allowed = {"live": live, "files": files}
        healings = Healings(healkit, self.recorded, self._send_news, advisors, budget_s, allowed)
        self.operations |= Patching(healkit, self.recorded).operations
        self.operations |= healings.operations
        self.endings = (healings.close,)
        healings.session(tool, persona)

    @property
    def _session(self) -> HealSession:
        return session_of(self.healkit, self._entry.tool_name, self._entry.persona)

    def static_card(self) -> CellOutput | None:
        """Draw its state: the report, what waits for a person, or at first, the purpose of the panel."""
        session = self._session
        return heal_card(session.state(), session.report, self._entry)

    def _send_news(self, content: dict[str, Any]) -> None:
        """Send the news to the page and redraw the card; called whenever the healing has news."""
        self._reply(content)
        self._redraw_card()


def heal_card(state: dict[str, Any], report: HealReport | None, entry: VaultEntry) -> CellOutput:
    """Draw the report if there is one, else the progress, the question, or the purpose of the panel.

    state: `HealSession.state` without secrets. report: The cleaned report.
    """
    if report is not None:
        since = state["settled"]
        if state["undone"]:
            since = f"Undone: {state['undone']} is active, with the previous code."
        card = healing.report_card(report)
        return CellOutput.of((card, Card(tone="warn", parts=(since,))) if since else card)
    if (problem := state["problem"]) is not None:
        headline = f"{entry.label} could not be healed: {problem['message']}"
        return CellOutput.of(Card(headline, "✗", "bad", parts=(problem["hint"],)))
    headline, phase, prompt = f"Healing of {entry.label}", state["phase"], state["asked"]
    tone: Tone = "warn" if phase in ("question", "consent") else "info"
    flag = "" if entry.persona == "default" else f" --persona {entry.persona}"
    words = (
        f"The report stands here once there is one. `%heal {entry.tool_name}{flag}` does the same in a cell."
    )
    if phase == "question":
        words = (
            f"It has a question. What is the right result of `{prompt['call']}`? "
            "The panel takes the answer; without one the healing goes by what it knows."
        )
    elif phase == "consent":
        words = (
            f"A patch is waiting for your approval: {prompt['words']}. The panel shows it; when the kernel ends, "
            "it waits as a request: `%healkit requests`"
        )
    elif phase in ("working", "keeping"):
        words = _KEEPING if phase == "keeping" else _GOES_ON
    line = Only("html", Line(Span(words, "ticked")))
    return CellOutput.of(Card(headline, tone=tone, parts=(line,), line=untick(f"{headline}. {words}")))


#: `working`: searches, tries and validates. `keeping`: the patch was accepted, and runs once more. `failed`:
#: the healing itself was not possible.
Phase = Literal["idle", "working", "question", "consent", "keeping", "done", "failed"]
Decision = Literal["keep", "decline", "later"]

_RUNNING: tuple[Phase, ...] = ("working", "question", "consent", "keeping")
_DECISIONS: dict[str, bool | None] = {"keep": True, "decline": False, "later": None}
#: Interval of updates of the numbers on the page, in seconds, and maximum number of sentences on it.
_NUMBERS_S, _SENTENCES_MAX = 0.25, 6
#: Longest wait for the end of a stopped healing, in seconds: a kernel that restarts is killed soon after.
_END_S = 5.0

#: Numbers of the states, so that a page never mistakes an older one for a newer one.
_versions = itertools.count(1)

#: Called whenever a session has news.
Changed = Callable[[], object]


class HealSession:
    """Healing of one tool; any thread may call its methods."""

    phase: Phase
    _undone: str
    _settled: str

    def __init__(self, healkit: Healkit, tool: str, persona: str) -> None:
        self.healkit, self.tool, self.persona = healkit, tool, persona
        #: The result, without secrets; None while there is none.
        self.report: HealReport | None = None
        self._recorded = PageData(healkit)
        self._listeners: list[Changed] = []
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._stop, self._stop_runs = threading.Event(), Stop()
        self._told_at = 0.0
        self._begin(0.0)

    @property
    def running(self) -> bool:
        """True while a healing is in progress, or waits for a person."""
        return self.phase in _RUNNING

    def state(self) -> dict[str, Any]:
        """Return everything that a page shows of it, as JSON."""
        with self._changed:
            return {
                "version": next(_versions),
                "phase": self.phase,
                "stopping": self._stop.is_set() and self.phase in ("working", "question", "consent"),
                "advisor": self._advisor,
                "tried": self._tried,
                "budget_s": self._budget_s,
                "spent_s": self._spent_s(),
                "sentences": list(self._sentences),
                "asked": self._asked,
                "report": self._shown_report,
                "problem": self._problem,
                "undone": self._undone,
                "settled": self._settled,
            }

    def start(
        self,
        advisors: Sequence[str | Advisor],
        budget_s: float,
        log_id: int | None = None,
        allowed: Allowed | None = None,
    ) -> dict[str, Any]:
        """Start to heal, unless a healing is already running; return the state."""
        with self._changed:
            if self.running:
                return self.state()
            self._stop, self._stop_runs = threading.Event(), Stop()
            self._begin(budget_s)
            self.phase = "working"
            self._thread = begin("healkit-heal", self._heal, tuple(advisors), budget_s, log_id, allowed or {})
        self._tell()
        return self.state()

    def stop(self) -> None:
        """Stop it within about a second; what waits for a person remains unanswered."""
        with self._changed:
            self._stop.set()
            keeping = self.phase == "keeping"
            self._changed.notify_all()
        if not keeping:  # an accepted patch runs once more; stopping that would withdraw the acceptance
            self._stop_runs.ask()
        self._tell()

    def answer(self, number: int, answer: Answer | None) -> None:
        """Take the person's answer to that question; None if they do not know."""
        self._reply("question", number, (answer,))

    def question(self, number: int) -> Question:
        """Return the open question; raise `UsageInvalid` if it is no longer open."""
        with self._changed:
            if self.phase == "question" and isinstance(self._open, Question) and self._open.number == number:
                return self._open
        raise UsageInvalid("That question is no longer open.", hint="Reload the page to see what is.")

    def decide(self, number: int, decision: str) -> None:
        """Decide on the attempt with that number: `keep`, `decline` or `later`."""
        if decision not in _DECISIONS:
            raise UsageInvalid(f"{decision!r} is not one of {', '.join(_DECISIONS)}.")
        self._reply("consent", number, (_DECISIONS[decision],))

    def undo(self) -> str:
        """Undo the patch that was kept; return the label of the revision that is then active.

        Raises `UsageInvalid` if none was kept, or another revision has become active since.
        """
        report = self.report
        if report is None or report.outcome != "kept" or self._undone:
            raise UsageInvalid("There is no patch of this healing to take back.")
        active = self.healkit.vault.get(report.tool_name, report.persona)
        if active.revision != report.revision:
            raise UsageInvalid(
                f"{active.label} is active by now, and not the patch of this healing.",
                hint=f"%vault history {self.tool} shows all revisions, %vault revert goes back to any.",
            )
        self._undone = self.healkit.undo(report.tool_name, report.persona).label
        self._tell()
        return self._undone

    def settle(self, decision: str) -> str:
        """Decide later on the waiting patch, `keep` or `decline`; return the result as a sentence.

        Raises `UsageInvalid` if none waits, and the errors of `Requests.accept` and `Requests.decline`.
        """
        report = self.report
        if report is None or report.outcome != "pending" or report.request_id is None or self._settled:
            raise UsageInvalid("There is no patch of this healing that waits.")
        if decision == "keep":
            request = self.healkit.requests.accept(report.request_id)
            self._settled = f"Request {request.id} was accepted: v{request.revision} is active."
        elif decision == "decline":
            request = self.healkit.requests.decline(report.request_id)
            self._settled = f"Request {request.id} was declined; nothing was changed."
        else:
            raise UsageInvalid(f"{decision!r} is neither keep nor decline.")
        self._tell()
        return self._settled

    def join(self, changed: Changed) -> None:
        """Add a listener."""
        with self._changed:
            self._listeners.append(changed)

    def leave(self, changed: Changed) -> None:
        """Remove a listener; with the last one the healing ends, and that listener still gets the end."""
        with self._changed:
            alone = self._listeners == [changed]
        if alone:
            self.end()
        with self._changed:
            if changed in self._listeners:
                self._listeners.remove(changed)

    def end(self) -> None:
        """Stop it and wait until it has ended, for some seconds at most."""
        self.stop()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(_END_S)

    def _begin(self, budget_s: float) -> None:
        """Reset the state of the previous healing."""
        self.phase = "idle"
        self.report = None
        self._budget_s, self._began, self._waited_s, self._waits_since = budget_s, time.monotonic(), 0.0, 0.0
        self._advisor, self._tried = "", 0
        self._sentences: deque[str] = deque(maxlen=_SENTENCES_MAX)
        self._asked: dict[str, Any] | None = None
        self._open: Question | Attempt | None = None
        self._said: tuple[Any] | None = None
        self._shown_report: dict[str, Any] | None = None
        self._problem: dict[str, Any] | None = None
        self._undone = self._settled = ""

    def _spent_s(self) -> float:
        """Return the used seconds of the budget; a person's time to think does not count."""
        now = self._waits_since or time.monotonic()
        return now - self._began - self._waited_s

    def _heal(
        self, advisors: tuple[str | Advisor, ...], budget_s: float, log_id: int | None, allowed: Allowed
    ) -> None:
        try:
            with self._stop_runs.heard():
                report = self.healkit.heal(
                    self.tool,
                    self.persona,
                    advisors=advisors,
                    budget_s=budget_s,
                    log_id=log_id,
                    ask=self._ask,
                    confirm=self._confirm,
                    progress=self._heard,
                    on_tried=self._counted,
                    stop=self._stop,
                    **allowed,
                )
            report = cleaned(report, self._recorded)
            with self._changed:
                self.phase, self.report, self._shown_report = "done", report, report_view(report)
        except Exception as error:  # noqa: BLE001 - the panel shows all of them
            problem = self._recorded.shown(described(error)).value
            with self._changed:
                self.phase, self._problem = "failed", problem
        finally:
            self._tell()

    def _ask(self, question: Question) -> Answer | None:
        reply = self._wait("question", question, question_view(question, self._recorded))
        answer: Answer | None = None if reply is None else reply[0]
        return answer

    def _confirm(self, best: Attempt) -> bool | None:
        base = self.healkit.vault.get(self.tool, self.persona)
        reply = self._wait("consent", best, consent_view(best, base, self._recorded))
        decided: bool | None = None if reply is None else reply[0]
        return decided

    def _wait(self, phase: Phase, about: Question | Attempt, shown: dict[str, Any]) -> tuple[Any] | None:
        """Wait for the person's reply; None after a stop."""
        with self._changed:
            self.phase, self._open, self._asked, self._said = phase, about, shown, None
            self._waits_since = time.monotonic()
        self._tell()
        with self._changed:
            self._changed.wait_for(lambda: self._said is not None or self._stop.is_set())
            reply, self._said = self._said, None
            self._waited_s += time.monotonic() - self._waits_since
            # In one step, because closing the panel at this moment must not stop an accepted patch.
            self.phase = "keeping" if phase == "consent" and reply == (True,) else "working"
            self._open, self._asked, self._waits_since = None, None, 0.0
        self._tell()
        return reply

    def _reply(self, phase: Phase, number: int, said: tuple[Any]) -> None:
        with self._changed:
            waits = self.phase == phase and self._open is not None and self._open.number == number
            if not waits or self._said is not None or self._stop.is_set():
                raise UsageInvalid(
                    "That is no longer asked: it was answered, or the healing has ended.",
                    hint="What the panel shows now is how it stands.",
                )
            self._said = said
            self._changed.notify_all()

    def _heard(self, sentence: str) -> None:
        text = safe_text(sentence, self._recorded)
        with self._changed:
            self._sentences.append(text)
        self._tell()

    def _counted(self, advisor: str, tried: int) -> None:
        with self._changed:
            news = advisor != self._advisor or time.monotonic() - self._told_at > _NUMBERS_S
            self._advisor, self._tried = advisor, tried
        if news:
            self._tell()

    def _tell(self) -> None:
        with self._changed:
            self._told_at = time.monotonic()
            listeners = list(self._listeners)
        for changed in listeners:
            with contextlib.suppress(Exception):  # a page that is gone must not end the healing
                changed()


_sessions: dict[tuple[str, str, str], HealSession] = {}
_lock = threading.Lock()


def session_of(healkit: Healkit, tool: str, persona: str) -> HealSession:
    """Return the only session of that tool in this process; a new one if the old one's Healkit is closed.

    It outlives its panels, with its report, so that a cell that was deleted by mistake can show it again.
    """
    key = (healkit.url, tool, persona)
    with _lock:
        session = _sessions.get(key)
        if session is None or (session.healkit.closed and not session.running):
            session = _sessions[key] = HealSession(healkit, tool, persona)
        return session


@atexit.register
def end_all() -> None:
    """Stop every healing, and wait for it; called when the kernel ends, before its databases are closed."""
    with _lock:
        running = [session for session in _sessions.values() if session.running]
        _sessions.clear()
    for session in running:
        session.stop()
    for session in running:
        session.end()


# Content of a page on a healing: texts without secrets, cut, in the words of the report's card.


#: Maximum length of a text and of a code on a page, in characters, and maximum length of a list.
_TEXT_MAX_CHARS, _CODE_MAX_CHARS, _ATTEMPTS_MAX = 2000, 60_000, 12
_CALL_MAX_CHARS = 400


def safe_text(text: str, recorded: PageData, limit: int = _TEXT_MAX_CHARS) -> str:
    """Return a text without secrets and control characters, cut at `limit`."""
    visible_text = visible(text)
    cut = visible_text if len(visible_text) <= limit else f"{visible_text[: limit - 1]}…"
    return str(recorded.clean(cut).value)


def question_view(question: Question, recorded: PageData) -> dict[str, Any]:
    """Return the input, and the result of each plausible patch for it; a frame also as a table."""
    return {
        "number": question.number,
        "call": safe_text(question.call, recorded, _CALL_MAX_CHARS),
        "tables": [
            {"name": visible(name), "text": safe_text(table, recorded)}
            for name, table in question.tables.items()
        ],
        "choices": [
            {
                "text": safe_text(choice.text, recorded, _CALL_MAX_CHARS),
                "table": safe_text(choice.lines, recorded) if "\n" in choice.lines else "",
                "patches": choice.patches,
            }
            for choice in question.choices
        ],
    }


def consent_view(best: Attempt, base: VaultEntry, recorded: PageData) -> dict[str, Any]:
    """Return the chosen patch: both codes, its verdict in the words of the screen, and the limits of the verdict."""
    return {
        "number": best.number,
        "verdict": best.verdict,
        "words": VERDICTS[best.verdict].words,
        "tone": VERDICTS[best.verdict].tone,
        "means": safe_text(f"{told_reach(best.reach)}{healing.meaning(best)}", recorded),
        "advisor": best.patch.advisor,
        "reason": safe_text(best.patch.reason, recorded),
        "held": f"{best.passed} of {plain.count(best.total, 'check')} passed",
        "revision": base.revision,
        "base": base.code[:_CODE_MAX_CHARS],
        "code": best.patch.code[:_CODE_MAX_CHARS],
    }


def cleaned(report: HealReport, recorded: PageData) -> HealReport:
    """Return the report with every text that came from a tool, a patch or a person sanitised."""

    def text(value: str) -> str:
        return safe_text(value, recorded)

    attempts = {
        attempt.number: msgspec.structs.replace(
            attempt,
            patch=msgspec.structs.replace(attempt.patch, reason=text(attempt.patch.reason)),
            diff=str(recorded.clean(attempt.diff[:_CODE_MAX_CHARS]).value),
            why=text(attempt.why),
        )
        for attempt in report.attempts
    }
    questions = (
        Answered(
            text(question.call), tuple(map(text, question.choices)), question.answer and text(question.answer)
        )
        for question in report.questions
    )
    return dataclasses.replace(
        report,
        reason=text(report.reason),
        diagnosis=text(report.diagnosis),
        attempts=tuple(attempts.values()),
        best=None if report.best is None else attempts[report.best.number],
        questions=tuple(questions),
        notes=tuple(map(text, report.notes)),
    )


def report_view(report: HealReport) -> dict[str, Any]:
    """Return a cleaned report for a page: outcome, facts, and every attempt with its verdict and its diff."""
    attempts = report.attempts[:_ATTEMPTS_MAX]
    return {
        "outcome": report.outcome,
        "revision": report.revision,
        "tone": healing.report_tone(report),
        "mark": healing.report_mark(report),
        "title": healing.report_title(report),
        "facts": [[name, value] for name, value in healing.report_facts(report) if value],
        "best": None if report.best is None else report.best.number,
        "attempts": [_attempt(attempt) for attempt in attempts],
        "left": len(report.attempts) - len(attempts),
        "request_id": report.request_id,
        "run_id": report.run_id,
    }


def _attempt(attempt: Attempt) -> dict[str, Any]:
    verdict = VERDICTS[attempt.verdict]
    return {
        "number": attempt.number,
        "mark": verdict.mark,
        "tone": verdict.tone,
        "verdict": attempt.verdict,
        "words": verdict.words,
        "advisor": attempt.patch.advisor,
        "reason": attempt.patch.reason,
        "why": attempt.why,
        "diff": attempt.diff,
    }


# A run to step through.


class HealTimeline(Panel):
    """A run from its folder; `teach` pauses before each patch and asks what you would change."""

    KIND = "HealTimeline"
    SAME_AS_CARD = True

    story = traitlets.Dict().tag(sync=True)

    def __init__(self, healkit: Healkit, run: Run, *, teach: bool = False) -> None:
        super().__init__(healkit, {"run_id": run.run_id})
        self.operations |= {"try_mine": self._try_mine}
        self.story = {**shown_story(run, self.recorded), "teach": teach}

    def static_card(self) -> CellOutput | None:
        """Draw the story as a card; for a class only up to the first patch, which it would reveal."""
        if not self.story["teach"]:
            return CellOutput.of(timeline.timeline_card(self.story))
        steps = self.story["steps"]
        before = list(itertools.takewhile(lambda step: step["kind"] != "proposed", steps))
        opening = {**self.story, "attempts": [], "steps": before, "total": len(steps)}
        return CellOutput.of(timeline.timeline_card(opening))

    def _try_mine(self, code: str) -> dict[str, Any]:
        """Run a student's edit with the arguments that failed, in a restricted worker; nothing is saved."""
        log_id = self.story["log_id"]
        row = None if log_id is None else self.healkit.log.get(log_id)
        if row is not None and row.tool_name == self.story["tool"]:
            arguments = arguments_of(row)
        else:
            arguments = values.remade(self.story["arguments"])
        is_complete = (
            isinstance(arguments, dict) and values.is_whole(arguments) and not values.has_tags(arguments)
        )
        if not self.story["tool"] or not is_complete:
            raise UsageInvalid(
                "This run has no arguments on record to try an edit with.",
                hint=f"Run {self.story['tool'] or 'the tool'} with the arguments that you mean.",
            )
        tried = self.healkit.try_code(
            self.story["tool"], code, arguments, persona=self.story["persona"], on_output=no_output
        )
        run_view = {**self.recorded.execution(tried), "label": "Your edit"}
        if (failure := run_view.get("failure")) and failure["place"]:
            failure["place"] = f"line {failure['lineno']} of your edit"  # which has no revision
        return {"run": run_view, "delta": None}
