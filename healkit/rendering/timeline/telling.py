"""Steps of a timeline, told from a run's events.

Several events make one step (an assertion for each check, evidence, the compiled action), and some are none; the first
of them begins a step, and those that follow complete it. Unknown metadata is skipped, so that a run of a later healkit
is told as far as this one understands it.
"""

from __future__ import annotations

from typing import Any

from healkit.contracts.runs import Run, TraceEvent
from healkit.contracts.tools import revision_label
from healkit.errors import PATCH_CODES
from healkit.rendering import plain
from healkit.rendering.timeline import words
from healkit.rendering.timeline.notes import Notes, difference_of, failing_line

#: Number of a step's checks that are shown; the run folder holds the rest.
_CHECKS_MAX = 100


def story_of(run: Run) -> dict[str, Any]:
    """Tell the run as plain data that JSON can hold.

    `steps` are in order, each with `kind`, `title` (a sentence), `tone` (good, warn, bad or empty), `text` (further
    sentences), `facts` (pairs) and, where it has them, `checks`, `code`, `diff`, `attempt` (its number). `attempts`
    are the patches with their verdicts and the positions of their steps; `base` is the code that failed, `failing` its
    line and message. What was hidden when the run was written is not in it.
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


class Teller(Notes):
    """Teller of one run: goes through the events once, in order."""

    # Beginning and end of the run.

    def _run_started(self, event: TraceEvent) -> None:
        manifest = self._run.manifest
        heals = manifest is not None and manifest.execution_profile.name == "heal"
        step = self._step(event, "begun", "A healing begins." if heals else f"Run {self._run.run_id} begins.")
        if manifest is not None:
            caps = manifest.policy_defaults
            step["text"].append(
                f"It may make {plain.count(caps.hard_cap_steps, 'step')}, and see the same failing state "
                f"{plain.count(caps.same_state_revisits, 'time')}."
            )
            step["facts"].append(("begun", plain.moment(manifest.started_at)))
            if manifest.execution_mode != "live":
                step["text"].append("It is a dry run: nothing is kept.")

    def _run_finished(self, event: TraceEvent) -> None:
        came = event.result or {}
        outcome, reason = str(came.get("outcome", "completed")), str(came.get("reason", ""))
        word, _, rest = reason.partition(": ")
        heals = word in words.ENDINGS
        title = f"The healing ends: {words.ENDINGS[word]}." if heals else f"The run ends: {outcome}."
        step = self._step(event, "ended", title, "" if outcome == "completed" else "bad")
        if said := rest if heals else reason:
            step["text"].append(words.sentence(said))
        for name in ("steps", "failures"):
            if name in came:
                step["facts"].append((name, words.short(came[name])))

    def _policy_halt(self, event: TraceEvent) -> None:
        said = event.error.message if event.error else "a cap was reached"
        step = self._step(event, "halted", f"The policy halts the run: {words.sentence(said)}", "bad")
        known = _policy_of(event)
        step["facts"] += [
            (name, words.short(known[name])) for name in ("reason", "count", "threshold") if name in known
        ]

    # Facts before the first attempt.

    def _observation_captured(self, event: TraceEvent) -> None:
        known = event.metadata
        if known.get("phase") == "before":
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
        step = self._step(event, "observed", f"{self.label or 'The tool'} is looked at.", code=self.base)
        if isinstance(failure, dict) and failure.get("ename"):
            said = plain.one_line(f"{failure['ename']}: {failure.get('evalue', '')}".rstrip(": "), 400)
            step |= {"title": f"{self.label or 'The tool'} failed: {words.sentence(said)}", "tone": "bad"}
            line = failing_line(failure)
            self.failing = None if line is None else {"lineno": line, "message": said}
        if self.arguments is not None:
            step["facts"].append(("arguments", words.short(self.arguments)))
        if self.log_id is not None:
            step["facts"].append(("log row", str(self.log_id)))

    def _name(self, state: dict[str, Any]) -> None:
        self.tool = str(state.get("tool_name") or self.tool)
        self.persona = str(state.get("persona") or self.persona)
        revision = state.get("revision")
        self.label = revision_label(self.tool, self.persona, revision if isinstance(revision, int) else None)

    def _inspection_finished(self, event: TraceEvent) -> None:
        found = event.result or {}
        said = found.get("sentence") or found.get("kind") or "Nothing was found out about it"
        step = self._step(event, "diagnosed", words.sentence(said))
        if isinstance(found.get("kind"), str):
            step["facts"].append(("kind", words.short(found["kind"])))
        if isinstance(thought := found.get("think_time_ms"), int | float):
            step["facts"].append(("answered after", plain.duration(thought)))
        if isinstance(line := found.get("line"), int) and line > 0:
            step["facts"].append(("line", str(line)))
            message = self.failing["message"] if self.failing else words.short(said)
            self.failing = self.failing or {"lineno": line, "message": message}

    # A patch, from proposal to decision.

    def _proposal_received(self, event: TraceEvent) -> None:
        known = event.metadata
        self.base = self.base or self._code(event, "code")
        base = self._code(event, "code") or self.base
        code = self._code(event, "proposal")
        author, advisor = str(known.get("author", "")), str(known.get("advisor", ""))
        who = words.AUTHORS.get(author, author or "An unknown author")
        number = len(self.attempts) + 1
        step = self._step(
            event, "proposed", f"{who} proposes patch {number}.", attempt=number, code=code, base=base,
            diff=difference_of(base, code) if code else "",
        )  # fmt: skip
        step["text"] += [words.sentence(known["reason"])] if known.get("reason") else []
        step["text"] += [] if code else ["Its code was not kept."]
        step["facts"] += [("advisor", words.short(advisor))] if advisor else []
        self.attempts.append(
            {
                "number": number, "step_id": event.step_id, "advisor": advisor or author, "at": len(self.steps) - 1,
                "mark": "…", "tone": "", "words": "not decided", "verdict": "", "decision": "",
            }
        )  # fmt: skip

    def _proposal_accepted(self, event: TraceEvent) -> None:
        known = event.metadata
        if known.get("action"):
            self._decided(event, str(known["action"]))
        elif known.get("verdict"):
            self._judged(event, str(known["verdict"]), str(known.get("why") or ""))

    def _proposal_rejected(self, event: TraceEvent) -> None:
        if event.error is None or event.error.error_code in PATCH_CODES:
            self._proposal_accepted(event)
            return
        said = words.sentence(event.error.message)
        self._mark(event, "not_cured")
        self._step(event, "refused", f"It cannot be run as this tool: {said}", "bad", **self._number(event))

    def _judged(self, event: TraceEvent, verdict: str, why: str) -> None:
        step = self._checked(event)
        shown = words.verdict_text(verdict)
        attempt = self._attempt(event)
        patch = f"Patch {attempt['number']}" if attempt else "The patch"
        step |= {"title": f"{patch}: {shown.words}.", "tone": shown.tone, "verdict": verdict}
        if step["held"]:
            step["facts"].insert(0, ("checks", f"{step['passed']} of {step['held']} passed"))
        step["text"] += [words.sentence(text[:1].upper() + text[1:]) for text in (shown.meaning, why) if text]
        self._mark(event, verdict)

    def _mark(self, event: TraceEvent, verdict: str) -> None:
        attempt = self._attempt(event)
        if attempt is not None:
            text = words.verdict_text(verdict)
            attempt |= {"mark": text.mark, "tone": text.tone, "words": text.words, "verdict": verdict}

    def _decided(self, event: TraceEvent, action: str) -> None:
        known, attempt = event.metadata, self._attempt(event)
        tone, said = words.DECISIONS.get(action, ("", f"{{patch}} was {words.short(action)}."))
        revision = known.get("revision")
        title = said.format(
            patch=f"Patch {attempt['number']}" if attempt else "The patch",
            revision=f"v{revision}" if revision is not None else "it",
            request=words.short(known.get("request_id", "")),
        )
        step = self._step(event, "decided", title, tone, **self._number(event))
        step["text"] += [words.sentence(known["why"])] if known.get("why") else []
        if attempt is not None:
            attempt["decision"] = words.short(action)

    def _number(self, event: TraceEvent) -> dict[str, Any]:
        attempt = self._attempt(event)
        return {"attempt": attempt["number"]} if attempt else {}

    # Actions that ran.

    def _assert_checked(self, event: TraceEvent) -> None:
        came = event.result or {}
        if "outcome" not in came:
            self._compared(event, came)
            return
        step = self._checked(event)
        if len(step["checks"]) < _CHECKS_MAX:
            step["checks"].append(words.check_row(came))
        step["held"] += 1
        step["passed"] += came["outcome"] == "passed"
        passed = f"{step['passed']} of {plain.count(step['held'], 'check')} passed"
        step["title"] = f"{passed} with the patch." if "attempt" in step else f"Before any patch, {passed}."

    def _checked(self, event: TraceEvent) -> dict[str, Any]:
        """Return the step that holds this step's checks; begin one where there is none."""
        step = self._earlier(event, "checked")
        if step is None:
            more = {"checks": [], "held": 0, "passed": 0, **self._number(event)}
            step = self._step(event, "checked", "The checks are run.", **more)
        return step

    def _compared(self, event: TraceEvent, came: dict[str, Any]) -> None:
        step = self._earlier(event, "executed")
        if step is not None and "same" in came:
            otherwise = f"It ended otherwise: {came.get('expected')} before, {came.get('found')} now."
            step["text"].append("It ended as it had before." if came["same"] else words.sentence(otherwise))

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
        step["facts"].append(("arguments", words.short(spec.arguments)))
        step["facts"].append(("isolation", spec.isolation or "–"))

    def _action_executed(self, event: TraceEvent) -> None:
        came = event.result or {}
        took = came.get("duration_ms")
        step = self._earlier(event, "executed")
        if step is None:
            step = self._checked(event)
        elif came.get("status") == "SUCCESS":
            step |= {"title": f"{step['label']} returned {words.short(came.get('value'))}.", "tone": "good"}
            self._tried(event, ("✓", "good", "worked"))
        else:
            step |= {"title": f"{step['label']} failed.", "tone": "bad"}
            self._tried(event, ("✗", "bad", "failed"))
        if isinstance(took, int | float):
            step["facts"].append(("took", plain.duration(float(took))))

    def _tried(self, event: TraceEvent, look: tuple[str, str, str]) -> None:
        attempt = self._attempt(event)
        if attempt is not None:
            attempt |= dict(zip(("mark", "tone", "words"), look, strict=True))

    def _preconditions_checked(self, event: TraceEvent) -> None:
        checks = (event.result or {}).get("checks")
        failed = [name for name, held in checks.items() if not held] if isinstance(checks, dict) else []
        if failed:
            said = ", ".join(words.PRECONDITIONS.get(name, name) for name in failed)
            self._step(event, "refused", f"It was not run, because this did not hold: {said}.", "bad")

    def _error_raised(self, event: TraceEvent) -> None:
        if event.error is None:
            return
        said, code = words.sentence(event.error.message), event.error.error_code
        host = self._earlier(event, "executed", "observed", "refused")
        if host is None or host.get("error"):
            warns = event.error.severity == "warning"
            what = "It goes on without this" if warns else "It failed"
            host = self._step(event, "stumbled", f"{what}: {said}", "warn" if warns else "bad")
        elif host["kind"] != "refused" and said.rstrip(".") not in host["title"]:
            host["title"] = f"{host.get('label') or self.label or 'It'} failed: {said}"
            host["tone"] = "bad"
        host["error"] = code
        host["facts"].append(("code", code))

    def _retry_scheduled(self, event: TraceEvent) -> None:
        known = {**(event.result or {}), **event.metadata}
        code = words.short(known.get("code") or known.get("error_code") or "a passing trouble")
        # A healing retries a patch that lost its worker; any other run, a tool that something outside did not answer.
        why = (
            f"{words.short(known['ename'])}, because something outside did not answer"
            if known.get("ename")
            else ""
        )
        why = why or f"{code}, which is no fault of the patch's"
        step = self._step(event, "retried", f"It is tried again: {why}.", "warn")
        if isinstance(wait := known.get("wait_ms"), int | float):
            step["text"].append(f"After a pause of {plain.duration(float(wait))}.")

    def _recovery_started(self, event: TraceEvent) -> None:
        why = words.sentence(event.metadata.get("why") or "what was kept does not hold")
        self._step(event, "recovered", f"It is taken back: {why}", "warn", **self._number(event))

    def _recovery_finished(self, event: TraceEvent) -> None:
        step = self._earlier(event, "recovered")
        revision = {**event.metadata, **(event.result or {})}.get("revision")
        said = "The code from before is active again" + (
            f", as v{revision}." if revision is not None else "."
        )
        if step is None:
            step = self._step(event, "recovered", "It is taken back.", "warn")
        step["text"].append(said)


def _policy_of(event: TraceEvent) -> dict[str, Any]:
    """Return how near a cap the run was; empty where that is not said, or not understood."""
    known = event.metadata.get("policy")
    return known if isinstance(known, dict) else {}
