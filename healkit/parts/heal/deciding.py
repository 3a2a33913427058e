"""Decision on the patches: policy, person, revision.

The best patch is kept, shown, declined, or left to a person. The policy says when it is applied without asking.

There are three answers. *deny*: the patch does not reach the vault, and there is no question. *allow*: it is applied.
*ask*: it becomes a patch request, which is waiting for the user's consent. Deny beats allow, and allow beats ask,
wherever each comes from.

Only a cure can be allowed in advance: an example says what is right, and the patch does that and breaks nothing else. A
patch that merely no longer fails, or that hides the failure, always needs a person, whatever the policy says. Allowing
it would silently accept a wrong tool. A patch that was never validated is not allowed either.

A pattern names tools (`report_*`), tools of a persona (`teacher/report_*`), or those for which an MCP client proposes a
patch (`claude-code/*/report_*`).
"""

from __future__ import annotations

import dataclasses
import fnmatch
from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal

from healkit.config import Config
from healkit.core.contracts.vault import DEFAULT_PERSONA, VaultEntry
from healkit.core.crossing import values
from healkit.errors import HealkitError, RevisionConflict
from healkit.parts.heal.advisor import Case
from healkit.parts.heal.checks import check_result, execute_check, why_not
from healkit.parts.heal.context import HealContext
from healkit.parts.heal.record import HealRecord
from healkit.parts.heal.records import VERDICTS, Attempt, Outcome, PatchRequest, RequestAuthor, Verdict
from healkit.parts.heal.verdicts import refuted

if TYPE_CHECKING:
    from healkit.parts.heal.requests import Requests


#: What the policy says of a patch.
PolicyAnswer = Literal["deny", "allow", "ask"]


def decide(
    tool_name: str,
    verdict: Verdict | Literal[""],
    author: RequestAuthor,
    config: Config,
    *,
    persona: str = DEFAULT_PERSONA,
    client: str = "",
    auto: bool = False,
    watched: bool = False,
) -> PolicyAnswer:
    """Decide on a patch of that tool.

    verdict: The verdict of its validation, empty without one.
    author: A person who writes a patch thereby consents to it, if it cures.
    client: The name of the MCP client that proposes it, if any.
    auto: The user allowed this call's patches (`--auto`).
    watched: A person must decide, whatever was allowed: the tool changes something outside, or the patch reaches
        further than the code that it replaces.
    """
    if denied(tool_name, config, persona, client):
        return "deny"
    if verdict != "cured":
        return "ask"
    if author == "person":
        return "allow"
    allowed = auto or _matches(config.heal_allow, client, persona, tool_name)
    return "allow" if allowed and not watched else "ask"


def denied(tool_name: str, config: Config, persona: str = DEFAULT_PERSONA, client: str = "") -> bool:
    """Return True for a tool that healing may never patch, so that no patch is sought."""
    return _matches(config.heal_deny, client, persona, tool_name)


def _matches(patterns: Iterable[str], *found: str) -> bool:
    """Return whether a pattern matches the client, the persona and the tool; missing parts match all."""
    pattern_parts = (["*", "*", *pattern.rsplit("/", 2)][-3:] for pattern in patterns)
    return any(all(map(fnmatch.fnmatchcase, found, parts)) for parts in pattern_parts)


@dataclasses.dataclass(frozen=True)
class Ending:
    """End of a healing, in the form of the report.

    refuted: The chosen attempt, if it failed once it was active.
    """

    outcome: Outcome
    reason: str = ""
    revision: int | None = None
    request_id: int | None = None
    refuted: Attempt | None = None


def best_of(case: Case) -> Attempt | None:
    """Return the likeliest patch that passes every check; None if none does."""
    first = next(iter(case.attempts), None)
    return first if first is not None and first.plausible else None


class PatchDecision:
    """Decides on the likeliest patch of a finished search: the policy first, then the person.

    case: Its attempts are in their last order.
    """

    def __init__(self, context: HealContext, record: HealRecord, case: Case) -> None:
        self._context, self._record, self._case = context, record, case
        self._hk, self._options = context.hk, context.options

    def ending(self) -> Ending | None:
        """Decide, and carry it out; None if there is no patch to decide on."""
        best, options = best_of(self._case), self._options
        if best is None:
            return self._left_to_a_person()
        if options.dry_run:
            return Ending("shown", "This was a dry run: the patch is only shown, and nothing was kept.")
        tool, step = self._case.entry.tool_name, best.step_id or ""
        word = decide(
            tool,
            best.verdict,
            best.patch.author,
            self._hk.config,
            persona=self._case.entry.persona,
            client=options.client,
            auto=options.auto,
            watched=self._context.watched or bool(best.reach),
        )
        if word == "deny":
            self._record.decided(step, "denied")
            return Ending(
                "denied", f"The policy forbids patches of {tool!r} (heal_deny); the patch is only shown."
            )
        if word == "allow":
            return self._apply(best)
        # On record before anyone is asked: no end of this process loses it.
        request = self._request(best)
        answer = None
        if options.confirm is not None:
            with self._context.bench.off_the_clock():
                answer = options.confirm(self._context.voice.shown(best))
        if answer is None:
            self._record.decided(step, request.state, request_id=request.id)
            if request.state == "pending":
                reason = f"It is waiting for approval as request {request.id}."
                return Ending("pending", reason, request_id=request.id)
            reason = f"The same patch was already {request.state}, as request {request.id}."
            return Ending("declined", reason, request_id=request.id)
        if not answer:
            if request.state == "pending":
                self._hk.requests.decline(request.id, "declined when it was proposed", in_run=True)
            self._record.decided(step, "declined")
            return Ending("declined", "The patch was declined; nothing was changed.")
        return self._apply(best, request)

    def _left_to_a_person(self) -> Ending | None:
        """Leave an agent's patch without counter-evidence as a request: the agent cannot allow what its checks need."""
        undecided = (
            undecided_attempt
            for undecided_attempt in self._case.attempts
            if undecided_attempt.verdict == "undecided" and undecided_attempt.patch.author == "agent"
        )
        if (attempt := next(undecided, None)) is None or self._options.dry_run:
            return None
        tool, options = self._case.entry.tool_name, self._options
        if denied(tool, self._hk.config, self._case.entry.persona, options.client):
            return None
        request = self._request(attempt)
        self._record.decided(attempt.step_id or "", request.state, request_id=request.id)
        if request.state != "pending":
            reason = f"The same patch was already {request.state}, as request {request.id}."
            return Ending("declined", reason, request_id=request.id)
        return Ending(
            "pending", f"Request {request.id} is waiting: a person has to decide it.", request_id=request.id
        )

    def _apply(self, best: Attempt, request: PatchRequest | None = None) -> Ending:
        """Make the patch a revision, with the answers as examples; roll it back if it fails on the execution path."""
        entry, step, vault = self._case.entry, best.step_id or "", self._hk.vault
        try:
            patched_entry = self._revision_of(best, request)
        except RevisionConflict as conflict:
            request = self._request(best)
            self._record.decided(step, request.state, request_id=request.id)
            self._record.error_raised(step, conflict)
            reason = f"The tool was changed meanwhile; the patch is kept as request {request.id}."
            return Ending("pending", reason, request_id=request.id)
        self._record.decided(step, "kept", revision=patched_entry.revision)
        for check in self._case.checks:
            if check.origin == "answered":  # in its kept form
                right = {"raises": check.raises} if check.raises else {"result": check.expected}
                example = {"arguments": check.arguments, **right}
                vault.add_example(entry.tool_name, example, persona=entry.persona)
        problem = self._problem_of(patched_entry)
        if not problem:
            words = VERDICTS[best.verdict].words
            return Ending("kept", f"{patched_entry.label} is active: {words}.", patched_entry.revision)
        failed = refuted(best, problem)
        if not self._record.recovering(step, problem):
            halt = self._record.run.halted
            why = "" if halt is None else f" {halt.reason}"
            reason = (
                f"{patched_entry.label} fails when it runs ({problem.rstrip('.')}), but stays active.{why}"
            )
            return Ending("halted", reason, patched_entry.revision, refuted=failed)
        back = vault.revert(
            entry.tool_name, entry.revision, persona=entry.persona, reason=f"rolled back: {problem}"
        )
        self._record.recovered(step, back.revision)
        return Ending("rolled_back", f"It was rolled back: {problem}", back.revision, refuted=failed)

    def _revision_of(self, best: Attempt, request: PatchRequest | None) -> VaultEntry:
        """Keep the patch; a pending request for it is accepted in the same transaction."""
        hk, entry = self._hk, self._case.entry
        if request is not None and request.state == "pending":
            accepted = hk.requests.accept(request.id, in_run=True)
            return hk.vault.get(entry.tool_name, entry.persona, revision=accepted.revision)
        return hk.vault.patch(
            entry.tool_name,
            best.patch.code,
            persona=entry.persona,
            reason=f"{best.patch.reason} [{VERDICTS[best.verdict].words}]",
            author=best.patch.author,
            parent=entry.revision,
            motivating_log_id=self._context.log_id,
        )

    def _request(self, best: Attempt) -> PatchRequest:
        """Add a request for the patch; one that was decided before keeps its state."""
        requests: Requests = self._hk.requests
        return requests.add(
            self._case.entry.tool_name,
            best.patch.code,
            persona=self._case.entry.persona,
            parent=self._case.entry.revision,
            advisor=best.patch.advisor,
            author=best.patch.author,
            reason=best.patch.reason,
            verdict=best.verdict,
            motivating_log_id=self._context.log_id,
            run_id=self._record.run.run_id,
        )

    def _problem_of(self, kept: VaultEntry) -> str:
        """Run the new revision once like any execution, on the failing input; return its problem, or an empty text."""
        checks = self._case.checks
        chosen = next((c for c in checks if c.origin == "failing"), None) or next(
            (c for c in checks if not c.call and not c.raises), None
        )
        if chosen is None or self._context.may_act:
            return ""
        replay = self._context.validator.replay(chosen)
        try:
            execution = execute_check(self._hk, kept, chosen, replay)
        except HealkitError as error:
            return error.message
        finally:
            self._context.validator.count(replay)
        if self._case.discreet:
            return why_not([chosen], [check_result(chosen, execution, 0.0)], discreet_about=kept.code)
        if execution.failure is not None:
            return execution.failure.summary
        if chosen.known and not values.meets(chosen.expected, execution.value):
            returned = values.value_text(values.kept(execution.value))
            return f"it returned {returned}, but {values.value_text(chosen.expected)} is right."
        return ""
