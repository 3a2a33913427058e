"""Asking again while a server is busy, within the budget.

A server that says when to come back is taken at its word; where that is later than the budget lasts, the question is
given up at once instead of waiting for nothing.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any

from healkit.config import Config
from healkit.errors import BudgetSpent, ModelUnavailable
from healkit.healing.advisors.model.api_errors import TransientError, UnsupportedRequest
from healkit.healing.advisors.model.endpoint import Access
from healkit.healing.advisors.model.progress import Progress
from healkit.healing.advisors.model.protocol import Prompt, Reply
from healkit.healing.advisors.model.transport import POLL_S, Request, answer_max_bytes, exchange

#: A request is given up for the budget's sake by who watches the budget, and only after that by itself.
_LATER_S = 5.0
#: How many optional fields a server may complain of, one after another.
_COMPLAINTS_MAX = 3


class ModelClient:
    """Asks one model; `left_s` is what the budget has left, 0 once Stop was pressed."""

    def __init__(
        self,
        access: Access,
        config: Config,
        left_s: Callable[[], float],
        on_progress: Callable[[Progress], None],
    ) -> None:
        self._access = access
        self._config = config
        self._left_s = left_s
        self._on_progress = on_progress
        self._dropped: list[str] = []
        self.model = access.model
        self.requests = 0

    def ask(self, prompt: Prompt, attempt: int) -> Reply:
        """The model's answer; raises `BudgetSpent`, or `ModelError` and its kinds."""
        for tries in range(self._config.heal_model_retries + 1):
            self._on_progress(Progress(attempt))
            try:
                return self._understood(prompt, attempt)
            except TransientError as trouble:
                if tries == self._config.heal_model_retries:
                    raise trouble.error from None
                self._wait(trouble, tries, attempt)
        raise AssertionError("the last try returns or raises")

    def _understood(self, prompt: Prompt, attempt: int) -> Reply:
        """One answer, from a request without what this server does not know."""
        adapter = self._access.adapter
        body = adapter.body(self._access.model, prompt, self._config.heal_model_max_tokens)
        for complaint in self._dropped:
            body = adapter.without(body, complaint) or body
        while True:
            try:
                return self._exchange(body, attempt)
            except UnsupportedRequest as complaint:
                fewer = adapter.without(body, complaint.said)
                if fewer is None or len(self._dropped) >= _COMPLAINTS_MAX:
                    raise complaint.error from None
                self._dropped.append(complaint.said)
                body = fewer

    def _exchange(self, body: dict[str, Any], attempt: int) -> Reply:
        if (left_s := self._left_s()) <= 0:
            raise BudgetSpent("The healing was stopped, or its time was up, before the model was asked.")
        config = self._config
        request = Request(
            self._access,
            body,
            min(config.heal_model_timeout_s, left_s + _LATER_S),
            answer_max_bytes(config.heal_model_max_tokens),
        )
        self.requests += 1
        return exchange(
            request, self._left_s, lambda received: self._on_progress(Progress(attempt, received))
        )

    def _wait(self, trouble: TransientError, tries: int, attempt: int) -> None:
        """The pause before the next try: what the server asks for, else longer each time.

        With jitter: https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/
        """
        longest = self._config.heal_model_backoff_s * 2.0**tries
        wait_s = trouble.wait_s or random.uniform(longest / 2, longest)  # noqa: S311 - keeps no secret
        left_s = self._left_s()
        if 0 < left_s <= wait_s:
            raise ModelUnavailable(
                f"{trouble.error.message} Asking again makes sense in {wait_s:.3g} s, and {left_s:.3g} s of the budget "
                "are left.",
                hint="Give the healing more time, or try again later.",
            )
        self._on_progress(Progress(attempt, wait_s=wait_s, why=trouble.error.message))
        until = time.monotonic() + wait_s
        while (rest := until - time.monotonic()) > 0:
            if self._left_s() <= 0:
                raise BudgetSpent("The healing was stopped, or its time was up, while the model was busy.")
            time.sleep(min(POLL_S, rest))
