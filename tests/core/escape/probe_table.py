"""Attempt to escape, as a row of a table.

Each probe's code defines `attempt(t)`, where `t` are the host's targets. Returning anything but "denied" means that it
was possible, an `OSError` that it was refused. Calls with senseless arguments go through `reached`: any other error
than a refusal shows that the kernel had begun to do it.
"""

from __future__ import annotations

import dataclasses

DENIED, OPEN = "denied", "ALLOWED"

LIMITED = "the limits are in force at the process tier too"


@dataclasses.dataclass(frozen=True)
class Probe:
    """Attempt at an escape: its name says what is tried, `code` does it.

    `namespaces` and `landlock` are the answers expected there; where one is `OPEN`, `said` is the sentence of
    docs/isolation.md that admits it. `control` says why the `process` tier refuses it too, where it does: a probe that
    never passes proves nothing without a reason.
    """

    name: str
    code: str
    namespaces: str = DENIED
    landlock: str = DENIED
    said: str = ""
    control: str = ""

    def expected(self, tier: str) -> str:
        """Return the answer that this tier must give."""
        return {"namespaces": self.namespaces, "landlock": self.landlock}[tier]


def table(table: dict[str, str], **expected: str) -> list[Probe]:
    """Make probes whose code is one expression over the targets `t`, or the lines of a function."""
    probes = []
    for name, code in table.items():
        body = code.strip("\n") if "\n" in code else f"    return {code}"
        probes.append(Probe(name, f"def attempt(t):\n{body}\n", **expected))
    return probes
