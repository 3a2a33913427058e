"""Timeline of a run: step by step, in plain words.

`story_of` makes plain data from a run folder's events. The card and the widget show the same data, and neither knows an
event. So stepping through a run needs no kernel, no vault and no database.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from healkit.core.contracts.tools import revision_label
from healkit.core.rendering import plain
from healkit.core.rendering.document import (
    Card,
    Diff,
    Fold,
    Line,
    Only,
    Part,
    Section,
    Span,
    Step,
    Steps,
    Table,
    Tone,
)
from healkit.errors import PATCH_CODES, EvidenceChanged
from healkit.parts.heal.records import HEAL_ENDINGS, VERDICTS, VerdictText
from healkit.parts.runs.contract import EvidenceRef, Run, TraceEvent

#: Number of a step's checks that are shown; the run folder holds the rest.
_CHECKS_MAX = 100
#: Characters of one code that are shown; the run folder holds the rest.
CODE_MAX_CHARS = 40_000
_FRAME = re.compile(r'^ *File "<[^>"]+>", line (\d+)', re.MULTILINE)


def story_of(run: Run) -> dict[str, Any]:
    """Describe the run as plain data that JSON can contain.

    `steps` are in order, each with `kind`, `title` (a sentence), `tone` (good, warn, bad or empty), `text` (further
    sentences), `facts` (pairs) and, if it has them, `checks`, `code`, `diff`, `attempt` (its number). `attempts` are
    the patches with their verdicts and the positions of their steps. `base` is the failing code, `failing` its line and
    message. Values that were hidden when the run was written are not in it.
    """
    teller = Teller(run)
    for event in run.events:
        teller.tell(event)
    return {
        "run_id": run.run_id,
        "profile": run.manifest.execution_profile.name if run.manifest else "",
        "begun": run.manifest.started_at.isoformat() if run.manifest else "",
        "label": teller.label,
        "tool": teller.tool,
        "persona": teller.persona,
        "log_id": teller.log_id,
        "arguments": teller.arguments,
        "base": teller.base,
        "failing": teller.failing,
        "attempts": teller.attempts,
        "steps": teller.steps,
        "finished": run.finished,
        "problems": [str(problem) for problem in run.problems],
    }


def times(number: int) -> str:
    """Write how often: `once`, `twice`, `3 times`."""
    return {1: "once", 2: "twice"}.get(number, f"{number:,} times")


class Teller:
    """Describes one run: goes through the events once, in order, with a method `_<event type>` for each type."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._start = run.events[0].ts_utc if run.events else None
        self._kept: dict[tuple[str | None, str], EvidenceRef] = {}
        self._actions: dict[str | None, str] = {}
        for event in run.events:
            for ref in event.evidence_refs:
                self._kept.setdefault((event.step_id, ref.kind), ref)
            if event.action_spec is not None:
                self._actions.setdefault(event.step_id, event.action_spec.kind)
        self.steps: list[dict[str, Any]] = []
        self.attempts: list[dict[str, Any]] = []
        self.label = self.tool = self.base = ""
        self.persona = "default"
        self.log_id: int | None = None
        self.arguments: object = None
        self.failing: dict[str, Any] | None = None

    def tell(self, event: TraceEvent) -> None:
        """Add one more event; skip one without meaning for a reader."""
        teller: Callable[[TraceEvent], None] | None = getattr(self, f"_{event.event_type}", None)
        if teller is None:
            return
        try:
            teller(event)
        except EvidenceChanged as changed:
            self._step(event, "untold", changed.message, "bad")
        except Exception as error:  # noqa: BLE001 - leave out an event that cannot be shown
            message = f"The event {event.event_type} cannot be shown: {type(error).__name__}."
            self._step(event, "untold", message, "warn")

    def _step(
        self, event: TraceEvent, kind: str, title: str, tone: str = "", **more: object
    ) -> dict[str, Any]:
        took = (event.ts_utc - self._start).total_seconds() * 1000 if self._start is not None else -1.0
        step = {
            "kind": kind,
            "seq": event.seq,
            "step_id": event.step_id,
            "after": plain.duration(took) if took >= 0 else "",  # a clock may have been set back
            "title": title,
            "tone": tone,
            "text": [],
            "facts": [],
            **more,
        }
        self.steps.append(step)
        return step

    def _earlier(self, event: TraceEvent, *kinds: str) -> dict[str, Any] | None:
        """Return the newest step of one of these kinds that belongs to the same step of the run."""
        matching = (s for s in reversed(self.steps) if s["step_id"] == event.step_id and s["kind"] in kinds)
        return None if event.step_id is None else next(matching, None)

    def _attempt(self, event: TraceEvent) -> dict[str, Any] | None:
        matching = (a for a in reversed(self.attempts) if a["step_id"] == event.step_id)
        return next(matching, None)

    def _evidence(self, event: TraceEvent, kind: str) -> str:
        """Return a piece of evidence as text; empty if there is none or it was deleted; raise `EvidenceChanged`."""
        ref = self._kept.get((event.step_id, kind))
        try:
            return "" if ref is None else self._run.read_evidence(ref).decode(errors="replace")
        except OSError:
            return ""

    def _code(self, event: TraceEvent, kind: str) -> str:
        return self._evidence(event, kind)[:CODE_MAX_CHARS]

    def _data(self, event: TraceEvent, kind: str) -> Any:
        try:
            return json.loads(self._evidence(event, kind) or "null")
        except (ValueError, RecursionError):
            return None

    # Beginning and end of the run.

    def _run_started(self, event: TraceEvent) -> None:
        manifest = self._run.manifest
        heals = manifest is not None and manifest.execution_profile.name == "heal"
        step = self._step(event, "begun", "A healing begins." if heals else f"Run {self._run.run_id} begins.")
        if manifest is not None:
            caps = manifest.policy_defaults
            step["text"].append(
                f"Stops after {plain.count(caps.hard_cap_steps, 'attempt')}, or when the same error comes back "
                f"{times(caps.same_state_revisits)}."
            )
            step["facts"].append(("begun", plain.moment(manifest.started_at)))
            if manifest.execution_mode != "live":
                step["text"].append("It is a dry run: nothing is kept.")

    def _run_finished(self, event: TraceEvent) -> None:
        result = event.result or {}
        outcome, reason = str(result.get("outcome", "completed")), str(result.get("reason", ""))
        word, _, rest = reason.partition(": ")
        heals = word in HEAL_ENDINGS
        title = f"The healing ends: {HEAL_ENDINGS[word]}." if heals else f"The run ends: {outcome}."
        step = self._step(event, "ended", title, "" if outcome == "completed" else "bad")
        if message := rest if heals else reason:
            step["text"].append(sentence(message))
        for name in ("steps", "failures"):
            if name in result:
                step["facts"].append((name, short(result[name])))

    def _policy_halt(self, event: TraceEvent) -> None:
        message = event.error.message if event.error else "a cap was reached"
        step = self._step(event, "halted", f"The policy halts the run: {sentence(message)}", "bad")
        policy = _policy_of(event)
        step["facts"] += [
            (name, short(policy[name])) for name in ("reason", "count", "threshold") if name in policy
        ]

    # Facts before the first attempt.

    def _observation_captured(self, event: TraceEvent) -> None:
        metadata = event.metadata
        if metadata.get("phase") == "before":
            if event.step_id not in self._actions:
                self._observed(event)
            return
        count = _policy_of(event).get("same_state_revisit_count")
        last = self._earlier(event, "checked", "executed", "refused", "stumbled")
        if last is not None and isinstance(count, int) and count > 1:
            last["text"].append(f"The run has seen this failing state {plain.count(count, 'time')}.")

    def _observed(self, event: TraceEvent) -> None:
        state, failure = self._data(event, "state_before"), self._data(event, "failure")
        self._name(state if isinstance(state, dict) else {})
        self.base = self._code(event, "code") or self.base
        self.arguments = self._data(event, "arguments")
        log_id = event.metadata.get("log_id")
        self.log_id = log_id if isinstance(log_id, int) else self.log_id
        step = self._step(event, "observed", f"{self.label or 'The tool'} is diagnosed.", code=self.base)
        if isinstance(failure, dict) and failure.get("ename"):
            message = plain.one_line(f"{failure['ename']}: {failure.get('evalue', '')}".rstrip(": "), 400)
            step |= {"title": f"{self.label or 'The tool'} failed: {sentence(message)}", "tone": "bad"}
            line = failing_line(failure)
            self.failing = None if line is None else {"lineno": line, "message": message}
        if self.arguments is not None:
            step["facts"].append(("arguments", short(self.arguments)))
        if self.log_id is not None:
            step["facts"].append(("log row", str(self.log_id)))

    def _name(self, state: dict[str, Any]) -> None:
        self.tool = str(state.get("tool_name") or self.tool)
        self.persona = str(state.get("persona") or self.persona)
        revision = state.get("revision")
        self.label = revision_label(self.tool, self.persona, revision if isinstance(revision, int) else None)

    def _inspection_finished(self, event: TraceEvent) -> None:
        result = event.result or {}
        finding = result.get("sentence") or result.get("kind") or "The diagnosis found nothing"
        step = self._step(event, "diagnosed", sentence(finding))
        if isinstance(result.get("kind"), str):
            step["facts"].append(("kind", short(result["kind"])))
        if isinstance(thought := result.get("think_time_ms"), int | float):
            step["facts"].append(("answered after", plain.duration(thought)))
        if isinstance(line := result.get("line"), int) and line > 0:
            step["facts"].append(("line", str(line)))
            message = self.failing["message"] if self.failing else short(finding)
            self.failing = self.failing or {"lineno": line, "message": message}

    # A patch, from proposal to decision.

    def _proposal_received(self, event: TraceEvent) -> None:
        metadata = event.metadata
        self.base = self.base or self._code(event, "code")
        base = self._code(event, "code") or self.base
        code = self._code(event, "proposal")
        author, advisor = str(metadata.get("author", "")), str(metadata.get("advisor", ""))
        who = AUTHORS.get(author, author or "An unknown author")
        number = len(self.attempts) + 1
        step = self._step(
            event, "proposed", f"{who} proposes patch {number}.", attempt=number, code=code, base=base,
            diff=difference_of(base, code) if code else "",
        )  # fmt: skip
        step["text"] += [sentence(metadata["reason"])] if metadata.get("reason") else []
        step["text"] += [] if code else ["Its code was not kept."]
        step["facts"] += [("advisor", short(advisor))] if advisor else []
        self.attempts.append(
            {
                "number": number, "step_id": event.step_id, "advisor": advisor or author, "at": len(self.steps) - 1,
                "mark": "…", "tone": "", "words": "not decided", "verdict": "", "decision": "",
            }
        )  # fmt: skip

    def _proposal_accepted(self, event: TraceEvent) -> None:
        metadata = event.metadata
        if metadata.get("action"):
            self._decided(event, str(metadata["action"]))
        elif metadata.get("verdict"):
            self._judged(event, str(metadata["verdict"]), str(metadata.get("why") or ""))

    def _proposal_rejected(self, event: TraceEvent) -> None:
        if event.error is None or event.error.error_code in PATCH_CODES:
            self._proposal_accepted(event)
            return
        message = sentence(event.error.message)
        self._mark(event, verdict_text("not_cured"), verdict="not_cured")
        self._step(event, "refused", f"It cannot run as this tool: {message}", "bad", **self._number(event))

    def _judged(self, event: TraceEvent, verdict: str, why: str) -> None:
        step = self._checked(event)
        wording = verdict_text(verdict)
        attempt = self._attempt(event)
        patch = f"Patch {attempt['number']}" if attempt else "The patch"
        step |= {"title": f"{patch}: {wording.words}.", "tone": wording.tone, "verdict": verdict}
        if step["held"]:
            step["facts"].insert(0, ("checks", f"{step['passed']} of {step['held']} passed"))
        step["text"] += [sentence(text[:1].upper() + text[1:]) for text in (wording.meaning, why) if text]
        self._mark(event, wording, verdict=verdict)

    def _mark(self, event: TraceEvent, text: VerdictText, **more: str) -> None:
        attempt = self._attempt(event)
        if attempt is not None:
            attempt |= {"mark": text.mark, "tone": text.tone, "words": text.words, **more}

    def _decided(self, event: TraceEvent, action: str) -> None:
        metadata, attempt = event.metadata, self._attempt(event)
        tone, template = DECISIONS.get(action, ("", f"{{patch}} was {short(action)}."))
        revision = metadata.get("revision")
        title = template.format(
            patch=f"Patch {attempt['number']}" if attempt else "The patch",
            revision=f"v{revision}" if revision is not None else "it",
            request=short(metadata.get("request_id", "")),
        )
        step = self._step(event, "decided", title, tone, **self._number(event))
        step["text"] += [sentence(metadata["why"])] if metadata.get("why") else []
        if attempt is not None:
            attempt["decision"] = short(action)

    def _number(self, event: TraceEvent) -> dict[str, Any]:
        attempt = self._attempt(event)
        return {"attempt": attempt["number"]} if attempt else {}

    # Actions that ran.

    def _assert_checked(self, event: TraceEvent) -> None:
        result = event.result or {}
        if "outcome" not in result:
            self._compared(event, result)
            return
        step = self._checked(event)
        if len(step["checks"]) < _CHECKS_MAX:
            step["checks"].append(check_row(result))
        step["held"] += 1
        step["passed"] += result["outcome"] == "passed"
        passed = f"{step['passed']} of {plain.count(step['held'], 'check')} passed"
        step["title"] = f"{passed} with the patch." if "attempt" in step else f"Before any patch, {passed}."

    def _checked(self, event: TraceEvent) -> dict[str, Any]:
        """Return the step with this step's checks; begin one if there is none."""
        step = self._earlier(event, "checked")
        if step is None:
            more = {"checks": [], "held": 0, "passed": 0, **self._number(event)}
            step = self._step(event, "checked", "The checks run.", **more)
        return step

    def _compared(self, event: TraceEvent, came: dict[str, Any]) -> None:
        step = self._earlier(event, "executed")
        if step is not None and "same" in came:
            otherwise = f"It ended differently: {came.get('expected')} before, {came.get('found')} now."
            step["text"].append("It ended as before." if came["same"] else sentence(otherwise))

    def _action_compiled(self, event: TraceEvent) -> None:
        spec = event.action_spec
        if spec is None:
            return
        revision = "" if spec.revision is None else f" v{spec.revision}"
        label = f"{spec.tool_name}{revision}" if spec.kind != "try" else f"{spec.tool_name}, as proposed,"
        self.tool, self.persona = self.tool or spec.tool_name, spec.persona if not self.tool else self.persona
        self.label = self.label or label
        if str(spec.kind) == "validate":
            return
        self.arguments = spec.arguments if self.arguments is None else self.arguments
        step = self._step(event, "executed", f"{label} is run.", label=label, **self._number(event))
        step["facts"].append(("arguments", short(spec.arguments)))
        step["facts"].append(("isolation", spec.isolation or "–"))

    def _action_executed(self, event: TraceEvent) -> None:
        result = event.result or {}
        took = result.get("duration_ms")
        step = self._earlier(event, "executed")
        if step is None:
            step = self._checked(event)
        elif result.get("status") == "SUCCESS":
            step |= {"title": f"{step['label']} returned {short(result.get('value'))}.", "tone": "good"}
            self._mark(event, VerdictText("worked", "✓", "good"))
        else:
            step |= {"title": f"{step['label']} failed.", "tone": "bad"}
            self._mark(event, VerdictText("failed", "✗", "bad"))
        if isinstance(took, int | float):
            step["facts"].append(("took", plain.duration(float(took))))

    def _preconditions_checked(self, event: TraceEvent) -> None:
        checks = (event.result or {}).get("checks")
        failed = [name for name, is_met in checks.items() if not is_met] if isinstance(checks, dict) else []
        if failed:
            conditions = ", ".join(PRECONDITIONS.get(name, name) for name in failed)
            self._step(
                event,
                "refused",
                f"It did not run, because these conditions were not met: {conditions}.",
                "bad",
            )

    def _error_raised(self, event: TraceEvent) -> None:
        if event.error is None:
            return
        message, code = sentence(event.error.message), event.error.error_code
        host = self._earlier(event, "executed", "observed", "refused")
        if host is None or host.get("error"):
            warns = event.error.severity == "warning"
            what = "The run continues without this" if warns else "It failed"
            host = self._step(event, "stumbled", f"{what}: {message}", "warn" if warns else "bad")
        elif host["kind"] != "refused" and message.rstrip(".") not in host["title"]:
            host["title"] = f"{host.get('label') or self.label or 'It'} failed: {message}"
            host["tone"] = "bad"
        host["error"] = code
        host["facts"].append(("code", code))

    def _retry_scheduled(self, event: TraceEvent) -> None:
        details = {**(event.result or {}), **event.metadata}
        code = short(details.get("code") or details.get("error_code") or "a passing trouble")
        # A healing retries a patch that lost its worker; any other run, a tool that something outside did not answer.
        why = (
            f"{short(details['ename'])}, because something outside did not answer"
            if details.get("ename")
            else ""
        )
        why = why or f"{code}, which the patch did not cause"
        step = self._step(event, "retried", f"It runs again: {why}.", "warn")
        if isinstance(wait := details.get("wait_ms"), int | float):
            step["text"].append(f"After a pause of {plain.duration(float(wait))}.")

    def _recovery_started(self, event: TraceEvent) -> None:
        why = sentence(event.metadata.get("why") or "the kept patch does not work")
        self._step(event, "recovered", f"It is rolled back: {why}", "warn", **self._number(event))

    def _recovery_finished(self, event: TraceEvent) -> None:
        step = self._earlier(event, "recovered")
        revision = {**event.metadata, **(event.result or {})}.get("revision")
        message = "The previous code is active again" + (
            f", as v{revision}." if revision is not None else "."
        )
        if step is None:
            step = self._step(event, "recovered", "It is rolled back.", "warn")
        step["text"].append(message)


def _policy_of(event: TraceEvent) -> dict[str, Any]:
    """Return how near a cap the run was; empty if that is missing or unreadable."""
    policy = event.metadata.get("policy")
    return policy if isinstance(policy, dict) else {}


def difference_of(before: str, after: str) -> str:
    """Write the unified diff of two codes without its two head lines; empty if they are equal."""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=3)
    return "\n".join(list(lines)[2:])


def failing_line(failure: dict[str, Any]) -> int | None:
    """Find the innermost line of the tool's own code in a recorded failure, from 1."""
    frames = failure.get("frames")
    tool_frames = (
        [f for f in frames if isinstance(f, dict) and f.get("in_tool")] if isinstance(frames, list) else []
    )
    if tool_frames and isinstance(tool_frames[-1].get("lineno"), int):
        return int(tool_frames[-1]["lineno"])
    line_numbers = _FRAME.findall(str(failure.get("traceback") or ""))
    return int(line_numbers[-1]) if line_numbers else None


# Words.

#: Author → the beginning of a sentence.
AUTHORS = {
    "person": "A person",
    "rule": "A rule",
    "search": "The search",
    "model": "The language model",
    "agent": "An outside agent",
}
ORIGINS = {
    "failing": "the recorded failure",
    "passing": "a recorded run that passed",
    "declared": "an example of the tool",
    "answered": "an answer from a person",
}
#: Outcome of a check → its mark and its words.
OUTCOMES = {
    "passed": ("✓", "passed"),
    "wrong": ("✗", "returned another result"),
    "raised": ("✗", "raised"),
    "timeout": ("✗", "did not end in time"),
    "died": ("✗", "killed its process"),
    "not_run": ("–", "was not run"),
}
#: Decision on a patch → the tone, and the sentence.
DECISIONS = {
    "kept": ("good", "{patch} was accepted: {revision} is the active revision."),
    "accepted": ("good", "{patch} was accepted: {revision} is the active revision."),
    "declined": ("warn", "{patch} was declined; nothing was changed."),
    "denied": ("warn", "{patch} is forbidden by the policy; nothing was changed."),
    "pending": ("warn", "{patch} is waiting for approval, as request {request}."),
    "overtaken": (
        "warn",
        "{patch} was not applied, because the tool was changed in the meantime. The patch is kept.",
    ),
}
PRECONDITIONS = {
    "tool_found": "the tool was found",
    "code_hash": "its code is the stored code",
    "code_parses": "the code can be read",
    "arguments": "the arguments match the tool",
    "isolation": "it can be restricted here",
}
_VALUE_MAX_CHARS, _MESSAGE_MAX_CHARS = 300, 600


def short(value: object, limit: int = _VALUE_MAX_CHARS) -> str:
    """Write a recorded value on one line; text unchanged, everything else as Python writes it."""
    return plain.one_line(value if isinstance(value, str) else plain.recorded_text(value, limit), limit)


def sentence(text: object) -> str:
    """Write a recorded message on one line, with a full stop."""
    line = plain.one_line(str(text), _MESSAGE_MAX_CHARS)
    return line if not line or line[-1] in ".!?…" else f"{line}."


def verdict_text(verdict: str) -> VerdictText:
    """Return the words for a verdict; an unknown one is its own word."""
    return next((text for word, text in VERDICTS.items() if word == verdict), VerdictText(verdict, "?", ""))


def check_row(result: dict[str, Any]) -> dict[str, str]:
    """Write one checked assertion as a row: the assertion, and its result."""
    mark, outcome = OUTCOMES.get(str(result.get("outcome")), ("?", short(result.get("outcome", "?"))))
    origin = ORIGINS.get(str(result.get("origin")), short(result.get("origin", "")))
    row = {"mark": mark, "origin": origin, "outcome": outcome, "what": "", "wanted": "", "got": ""}
    if "call" in result:
        row["what"] = short(result["call"])
    elif isinstance(result.get("arguments"), dict):
        row["what"] = ", ".join(
            f"{name}={plain.one_line(plain.recorded_text(value, 120), 120)}"
            for name, value in result["arguments"].items()
        )
    elif "arguments" in result:
        row["what"] = short(result["arguments"])
    if "wanted" in result:
        row["wanted"] = short(result["wanted"])
    if "got" in result or "error" in result:
        row["got"] = short(result.get("error") or result.get("got"))
    return row


# The card.

_TONES: dict[str, Tone] = {"good": "good", "warn": "warn", "bad": "bad", "": "ink"}
#: Limits of a card, in characters and in parts of a step; the widget and the run folder have it all.
_CARD_MAX_CHARS, _ROWS_MAX, _DIFF_LINES_MAX, _CHIPS_MAX = 22_000, 8, 60, 20
#: Column at which a step's text begins in a terminal, right of its number and its mark.
_INDENT = 7


def timeline_card(story: Mapping[str, Any]) -> Card:
    """Build a story's card: the attempts as a strip, and each step as a fold.

    A story with a `total` of steps has only the first of them, for a class. A card without room for every complete step
    shows the decided patch and the end completely.
    """
    story_steps = story["steps"]
    decided = {step.get("attempt") for step in story_steps if step["kind"] in ("decided", "recovered")} - {
        None
    }
    steps = [
        _step(number, step, rank=int(step.get("attempt") not in decided and number < len(story_steps)))
        for number, step in enumerate(story_steps, 1)
    ]
    problems = story["problems"]
    lines: list[Part] = [Only("html", Line(Span(problem, "quiet"))) for problem in problems[:_ROWS_MAX]]
    lines += [Only("text", Line(f"– {problem}")) for problem in problems]
    parts = (Section((Steps(steps, _CARD_MAX_CHARS), *lines)),)
    return Card(
        _title(story), tone=_tone(story), below=_chips(story["attempts"]), parts=parts, line=_title(story)
    )


def _title(story: Mapping[str, Any]) -> str:
    what = f"{story['label'] or 'A run'}" if story["profile"] == "heal" else "A run"
    counted = plain.count(story.get("total", len(story["steps"])), "step")
    if "total" in story:
        counted += "; the patches show as the class gets there"
    unfinished = "" if story["finished"] else ", and no end"
    return f"{what}, step by step: {counted}{unfinished} (run {story['run_id']})"


def _tone(story: Mapping[str, Any]) -> Tone:
    """Choose the tone by the outcome, as far as it is decided."""
    decided = [step["tone"] for step in story["steps"] if step["kind"] in ("decided", "recovered", "halted")]
    return _TONES[decided[-1] if decided else ""]


def _chips(attempts: Sequence[Mapping[str, Any]]) -> list[Part]:
    """Show the attempts in one line; a page shows only the first ones."""
    if not attempts:
        return []
    chips = []
    for attempt in attempts:
        by = f" · {attempt['advisor']}" if attempt["advisor"] else ""
        decided = f" ({attempt['decision']})" if attempt["decision"] else ""
        words = f"{attempt['number']} {attempt['mark']} {attempt['words']}{by}{decided}"
        chips.append((words, _TONES.get(attempt["tone"], "ink")))
    spaced = [part for words, tone in chips[:_CHIPS_MAX] for part in (Span(words, "code", tone), " ")]
    line = Line("   ".join(words for words, _ in chips), indent=5)
    return [Only("text", line), Only("html", Line(tuple(spaced)))]


def _step(number: int, step: Mapping[str, Any], rank: int) -> Step:
    mark = {"good": "✓", "bad": "✗", "warn": "!"}.get(step["tone"], "·")
    title = f"{mark} {plain.one_line(step['title'], 300)}"
    spoken = f"{number:>3}  {mark} {step['title']}"
    head = (
        Span(f"{number} ", "quiet", plain=""),
        Span(title, "strong", _TONES.get(step["tone"], "ink"), spoken),
    )
    brief = Line(head, "step", indent=0)
    below = _below(step)
    if not below:
        return Step(brief, brief, rank)
    is_open = step["kind"] in ("proposed", "decided", "halted")
    return Step(Fold(head, below, "both", is_open, "step", indent=0), brief, rank)


def _below(step: Mapping[str, Any]) -> list[Part]:
    """Show a step's text, its failed checks, its diff and its facts; the facts only on a page."""
    below: list[Part] = [Line(Span(text, "ticked"), indent=_INDENT) for text in step["text"]]
    if rows := [row for row in step.get("checks", ()) if row["mark"] != "✓"][:_ROWS_MAX]:
        names = ("mark", "origin", "what", "outcome", "wanted", "got")
        cells = [tuple(row[name] for name in names) for row in rows]
        below.append(Only("html", Table(("", "check", "with", "came to", "wanted", "got"), cells)))
        below += [Only("text", Line(_check(row), indent=_INDENT)) for row in rows]
    if lines := str(step.get("diff") or "").splitlines():
        more = len(lines) - _DIFF_LINES_MAX
        diff_lines = [
            *lines[:_DIFF_LINES_MAX],
            *([f"… {plain.count(more, 'more line')}"] if more > 0 else []),
        ]
        below.append(Diff("\n".join(diff_lines), compact=True, indent=_INDENT))
    if facts := " · ".join(f"{name} {value}" for name, value in step["facts"] if name != "code"):
        below.append(Only("html", Line(Span(facts, "quiet"))))
    return below


def _check(row: Mapping[str, str]) -> str:
    wanted = f", wanted {row['wanted']}" if row["wanted"] else ""
    got = f": {row['got']}" if row["got"] else ""
    what = f" {row['what']}" if row["what"] else ""
    return f"{row['mark']} {row['origin']}{what} {row['outcome']}{got}{wanted}"
