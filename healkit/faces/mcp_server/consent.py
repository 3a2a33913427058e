"""Consent to changes that an agent requests.

The policy is that of all patches (`healing.consent`): deny, allow, or ask. Asking creates a patch request, which is in
the database before the question, so that it survives any end of this process. If the client can ask its user (MCP's
elicitation), the question is sent at once. Otherwise, the request waits for the panel, the magic or the command line.

Only what was shown is applied: an agent names the hash of the code, and a request's code never changes. An answer only
counts for a question that this server has sent, once, for a limited time. Approval does not run anything again.
"""

from __future__ import annotations

import asyncio
import functools
import secrets
import time
from typing import TYPE_CHECKING, Any

import anyio
from mcp_types import (
    CallToolRequestParams,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequiredResult,
)

from healkit.core.pysource.nodes import declares_effects
from healkit.core.rendering import cleaning
from healkit.errors import AgentRefused, ApprovalNeeded, PatchRequestDecided
from healkit.parts.heal.deciding import decide, denied
from healkit.parts.heal.reach import added_reach
from healkit.parts.heal.records import PatchRequest
from healkit.plain_text import visible

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

    from healkit.app import Healkit
    from healkit.faces.mcp_server.clients import Client

#: How long the server waits for an answer, in seconds, and the maximum number of open questions.
ANSWER_S = 600.0
_OPEN_MAX = 1000
_DIFF_MAX_CHARS = 6000
_FORM: dict[str, Any] = {
    "type": "object",
    "properties": {"apply": {"type": "boolean", "title": "Apply this patch", "default": False}},
    "required": ["apply"],
}


class Consent:
    """Decides on patch requests of agents; it keeps the questions that it has sent."""

    def __init__(self, hk: Healkit, *, through_client: bool) -> None:
        self._hk, self._through_client = hk, through_client
        #: Token of a question → request, hash of its code, and the time when it expires.
        self._open: dict[str, tuple[int, str, float]] = {}

    async def settle(
        self,
        request: PatchRequest,
        digest: str,
        context: ServerRequestContext[Any, Any],
        params: CallToolRequestParams,
        client: Client,
    ) -> PatchRequest | InputRequiredResult:
        """Return the accepted request, or the question for the client's user.

        digest: The hash of the code that the agent means. Raises `ApprovalNeeded` while it waits, and
        `PatchRequestDecided` if the answer is or was no, or if the policy forbids it.
        """
        if digest != request.code_hash:
            raise AgentRefused(
                f"Request {request.id} is for the code {request.code_hash[:12]}…, not {digest[:12]!r}.",
                hint="Look at the request again: what is applied is what was shown.",
            )
        if request.state != "pending":
            return await self._accepted(request, "")  # the result, or the reason for a refusal
        self.check_allowed(request.tool_name, request.persona, client)
        if await asyncio.to_thread(self._policy, request, client) == "allow":
            return await self._accepted(request, f"policy, for {client.name}")
        answer = await self._answer(request, context, params)
        if isinstance(answer, InputRequiredResult):
            return answer
        if answer is None or answer.action == "cancel":
            raise _waiting(request)
        if answer.action == "accept" and (answer.content or {}).get("apply") is True:
            return await self._accepted(request, f"user of {client.name}")
        decline = functools.partial(self._hk.requests.decline, by=f"user of {client.name}")
        await asyncio.to_thread(decline, request.id, "declined in the client")
        raise PatchRequestDecided(
            f"The user declined request {request.id}.", hint="Ask what they want instead."
        )

    def check_allowed(self, tool_name: str, persona: str, client: Client) -> None:
        """Raise `PatchRequestDecided` if the policy denies all patches of the tool."""
        if denied(tool_name, self._hk.config, persona, client.name):
            message = f"The policy forbids patches of {tool_name!r} (heal_deny)."
            raise PatchRequestDecided(message, hint="Ask its owner.")

    async def _accepted(self, request: PatchRequest, by: str) -> PatchRequest:
        return await asyncio.to_thread(self._hk.requests.accept, request.id, by)

    def _policy(self, request: PatchRequest, client: Client) -> str:
        vault = self._hk.vault
        base = vault.get(request.tool_name, request.persona, request.parent)
        acts = declares_effects(base, lambda name: vault.lookup(name, base.persona))
        reaches = base.type == "python" and bool(added_reach(base.code, request.code))
        return decide(
            request.tool_name,
            request.verdict,
            request.author,
            self._hk.config,
            persona=request.persona,
            client=client.name,
            watched=acts or reaches,
        )

    async def _answer(
        self, request: PatchRequest, context: ServerRequestContext[Any, Any], params: CallToolRequestParams
    ) -> ElicitResult | InputRequiredResult | None:
        """Send the question to the client's user; None if that is not possible, or no answer arrives in time."""
        if params.input_responses is not None or params.request_state is not None:
            return self._answered(request, params)
        capabilities = context.session.client_capabilities
        if not self._through_client or capabilities is None or capabilities.elicitation is None:
            return None
        form = ElicitRequestFormParams(message=question(request), requested_schema=_FORM)
        if context.session.can_send_request:
            with anyio.move_on_after(ANSWER_S):
                return await context.session.elicit_form(form.message, _FORM, context.request_id)
            return None
        token = secrets.token_urlsafe(16)
        self._open[token] = request.id, request.code_hash, time.monotonic() + ANSWER_S
        while len(self._open) > _OPEN_MAX:
            self._open.pop(next(iter(self._open)))
        return InputRequiredResult(input_requests={"apply": ElicitRequest(params=form)}, request_state=token)

    def _answered(self, request: PatchRequest, params: CallToolRequestParams) -> ElicitResult:
        """Return the answer to a question that this server has sent; raise `AgentRefused` for any other."""
        open_question = self._open.pop(params.request_state or "", None)
        answer = (params.input_responses or {}).get("apply")
        if (
            open_question is None
            or open_question[:2] != (request.id, request.code_hash)
            or time.monotonic() > open_question[2]
        ):
            raise AgentRefused(
                f"This answers no open question about request {request.id}.",
                hint="Call apply_patch again without an answer, and put its question to your user.",
            )
        if not isinstance(answer, ElicitResult):
            raise AgentRefused(f"The question about request {request.id} has no answer here.")
        return answer


def question(request: PatchRequest) -> str:
    """Return the question about a patch: its author, its content, its validation, the diff and its hash."""
    diff = request.diff
    if len(diff) > _DIFF_MAX_CHARS:
        diff = f"{diff[:_DIFF_MAX_CHARS]}… [cut; healkit requests show {request.id} has all of it]"
    return visible(
        cleaning.text(
            f"Apply patch request {request.id} to {request.label}?\n"
            f"Proposed by {request.advisor or request.author}: {request.reason or 'no reason given'}\n"
            f"Validation: {request.said}\n\n{diff}\nCode hash {request.code_hash[:12]}"
        )
    )


def _waiting(request: PatchRequest) -> ApprovalNeeded:
    return ApprovalNeeded(
        f"Request {request.id} for {request.label} waits for a person's approval; nothing was changed.",
        hint=f"Ask your user to look at it: `healkit requests show {request.id}`, then `healkit requests accept "
        f"{request.id}` (a notebook has %healkit requests too). Then call apply_patch(request_id={request.id}, "
        f"code_hash={request.code_hash!r}).",
    )
