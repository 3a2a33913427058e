"""`trace.decision(node, outcome, condition)`: a tool says which way it went.

What it says ends up in the execution's trace. Nothing about it may hurt the tool: where nobody listens (a trial, a host
that has gone), it is said to nobody.
"""

from __future__ import annotations

from contextlib import suppress

from healkit.contracts import rpc
from healkit.workers.inside.endpoint import Endpoint


class Trace:
    """The name `trace` in a tool's code."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint

    def decision(self, node: object, outcome: object, condition: object = "") -> None:
        """Put on record that at `node` the tool chose `outcome`, because of `condition`; each is kept as text."""
        said = rpc.Decision(*(_text(value) for value in (node, outcome, condition)))
        with suppress(OSError):
            self._endpoint.call(rpc.DECISIONS_SERVER, "decision", rpc.raw(said))

    def __repr__(self) -> str:
        return "<trace: trace.decision(node, outcome, condition) says which way the tool went>"


#: More of it would be cut by the host.
_MAX_CHARS = 2000


def _text(value: object) -> str:
    """As text that JSON can hold."""
    return str(value)[:_MAX_CHARS].encode(errors="backslashreplace").decode()
