"""Healing in a thread of its own; a page follows and answers.

A healing waits for a person at a question and for consent. Here it waits on a condition, which the panel's operations
or Stop fulfil; so it never blocks the user's kernel, and no thread outlives the last panel that shows it. A process
has one session for each tool: a cell that is run again shows the healing that goes on, and a second Start does not
begin another.

When it ends, an open question counts as unanswered, and an undecided patch waits as a request.
"""

from __future__ import annotations

import atexit
import contextlib
import contextvars
import itertools
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Literal

from healkit.app import Healkit
from healkit.contracts.healing import Attempt
from healkit.errors import UsageInvalid
from healkit.healing.advisor import Advisor
from healkit.healing.questions import Answer, Question
from healkit.healing.report import HealReport
from healkit.notebook.widgets import heal_page_data as views
from healkit.notebook.widgets.page_data import PageData
from healkit.runtime.background import Stop

#: `working`: it looks, tries and validates. `keeping`: the patch was accepted, and is run once more. `failed`: the
#: healing itself could not be done.
Phase = Literal["idle", "working", "question", "consent", "keeping", "done", "failed"]
Decision = Literal["keep", "decline", "later"]

_RUNNING: tuple[Phase, ...] = ("working", "question", "consent", "keeping")
_DECISIONS: dict[str, bool | None] = {"keep": True, "decline": False, "later": None}
#: How often the page is told that the numbers have changed, and how many sentences it is shown.
_NUMBERS_S, _SENTENCES_MAX = 0.25, 6
#: How long the end of a stopped healing is waited for: a kernel that is restarted is killed soon after.
_END_S = 5.0

#: Numbers the states, so that a page never takes an older one for news.
_versions = itertools.count(1)

#: Called whenever a session has something new to tell.
Changed = Callable[[], object]


class HealSession:
    """Healing of one tool; every method may be called from any thread."""

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
        """True while a healing goes on, or waits for a person."""
        return self.phase in _RUNNING

    def state(self) -> dict[str, Any]:
        """Return all that a page shows of it, as JSON."""
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
        self, advisors: Sequence[str | Advisor], budget_s: float, log_id: int | None = None
    ) -> dict[str, Any]:
        """Begin to heal, unless that goes on already; the state then."""
        with self._changed:
            if self.running:
                return self.state()
            self._stop, self._stop_runs = threading.Event(), Stop()
            self._begin(budget_s)
            self.phase = "working"
            # The context names the message that asked: what is displayed belongs to this panel's cell.
            context = contextvars.copy_context()
            self._thread = threading.Thread(
                target=context.run,
                args=(self._heal, tuple(advisors), budget_s, log_id),
                name="healkit-heal",
                daemon=True,
            )
            self._thread.start()
        self._tell()
        return self.state()

    def stop(self) -> None:
        """End it within a second or so; what waits for a person is left unanswered."""
        with self._changed:
            self._stop.set()
            keeping = self.phase == "keeping"
            self._changed.notify_all()
        if not keeping:  # what was accepted is run once more; to end that would be to take it back
            self._stop_runs.ask()
        self._tell()

    def answer(self, number: int, answer: Answer | None) -> None:
        """Take the person's answer to that question; None where they do not know."""
        self._reply("question", number, (answer,))

    def question(self, number: int) -> Question:
        """Return the question that is open; raise `UsageInvalid` where it is no longer."""
        with self._changed:
            if self.phase == "question" and isinstance(self._open, Question) and self._open.number == number:
                return self._open
        raise UsageInvalid("That question is no longer open.", hint="Reload the page to see what is.")

    def decide(self, number: int, decision: str) -> None:
        """Decide on the attempt with that number: `keep`, `decline` or `later`."""
        if decision not in _DECISIONS:
            raise UsageInvalid(f"{decision!r} is none of {', '.join(_DECISIONS)}.")
        self._reply("consent", number, (_DECISIONS[decision],))

    def undo(self) -> str:
        """Take the patch back that was kept; the label of what is active then.

        Raises `UsageInvalid` where none was kept, or something else has become active since.
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
        """Decide after all on the patch that waits, `keep` or `decline`; return the result in words.

        Raises `UsageInvalid` where none waits, and as `Requests.accept` and `Requests.decline` do.
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
        """Remove a listener; with the last one the healing ends, which it still hears of."""
        with self._changed:
            alone = self._listeners == [changed]
        if alone:
            self.end()
        with self._changed:
            if changed in self._listeners:
                self._listeners.remove(changed)

    def end(self) -> None:
        """Stop it and wait until it has ended, some seconds at most."""
        self.stop()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(_END_S)

    def _begin(self, budget_s: float) -> None:
        """Forget the healing before."""
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
        """Return the seconds of the budget that are used up; a person's time to think does not count."""
        now = self._waits_since or time.monotonic()
        return now - self._began - self._waited_s

    def _heal(self, advisors: tuple[str | Advisor, ...], budget_s: float, log_id: int | None) -> None:
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
                )
            report = views.cleaned(report, self._recorded)
            with self._changed:
                self.phase, self.report, self._shown_report = "done", report, views.report_view(report)
        except Exception as error:  # noqa: BLE001 - all of them are shown in the panel
            problem = views.problem_view(error, self._recorded)
            with self._changed:
                self.phase, self._problem = "failed", problem
        finally:
            self._tell()

    def _ask(self, question: Question) -> Answer | None:
        said = self._wait("question", question, views.question_view(question, self._recorded))
        answer: Answer | None = None if said is None else said[0]
        return answer

    def _confirm(self, best: Attempt) -> bool | None:
        base = self.healkit.vault.get(self.tool, self.persona).code
        said = self._wait("consent", best, views.consent_view(best, base, self._recorded))
        decided: bool | None = None if said is None else said[0]
        return decided

    def _wait(self, phase: Phase, about: Question | Attempt, shown: dict[str, Any]) -> tuple[Any] | None:
        """Wait for the person's word; None where it was stopped before."""
        with self._changed:
            self.phase, self._open, self._asked, self._said = phase, about, shown, None
            self._waits_since = time.monotonic()
        self._tell()
        with self._changed:
            self._changed.wait_for(lambda: self._said is not None or self._stop.is_set())
            said, self._said = self._said, None
            self._waited_s += time.monotonic() - self._waits_since
            # In one step: closing the panel just then must not stop what was accepted.
            self.phase = "keeping" if phase == "consent" and said == (True,) else "working"
            self._open, self._asked, self._waits_since = None, None, 0.0
        self._tell()
        return said

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
        told = views.text_of(sentence, self._recorded)
        with self._changed:
            self._sentences.append(told)
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
            with contextlib.suppress(Exception):  # a page that is gone must not end what it showed
                changed()


_sessions: dict[tuple[str, str, str], HealSession] = {}
_lock = threading.Lock()


def session_of(healkit: Healkit, tool: str, persona: str) -> HealSession:
    """Return the one session of that tool in this process; a new one where the old one's Healkit is closed.

    It outlives its panels, with its report: a cell that was taken away by mistake comes back with it.
    """
    key = (healkit.url, tool, persona)
    with _lock:
        found = _sessions.get(key)
        if found is None or (found.healkit.closed and not found.running):
            found = _sessions[key] = HealSession(healkit, tool, persona)
        return found


@atexit.register
def end_all() -> None:
    """Stop every healing, and wait for it; called as the kernel ends, before its databases are closed."""
    with _lock:
        running = [session for session in _sessions.values() if session.running]
        _sessions.clear()
    for session in running:
        session.stop()
    for session in running:
        session.end()
