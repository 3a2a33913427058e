"""Many variants of one code against the same checks: the messages.

host → trial server: `batch` once, then `share` after `share`, each answered by `outcomes` as they come and a
`share_done`. A candidate is a list of splices of the batch's code, so that a variant travels in a few bytes.
"""

from __future__ import annotations

import msgspec

from healkit.contracts.healing import Edit
from healkit.contracts.tools import EntryRef

PASSED, WRONG, RAISED, TIMED_OUT, DIED, NOT_RUN = ".wetd-"
#: All outcomes of one check, one letter each (`healing.advisor.Workbench.score`).
LETTERS = PASSED + WRONG + RAISED + TIMED_OUT + DIED + NOT_RUN
#: The most candidates of one share, and the most outcomes: what one page of shared memory is made for.
SHARE_MAX, SHARE_OUTCOMES_MAX = 4000, 1_000_000


class BatchCheck(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One check as a trial server gets it (`contracts.healing.Check`), with its time limit in seconds.

    Arguments travel as JSON, because they are decoded afresh for each candidate.
    """

    arguments: msgspec.Raw = msgspec.Raw(b"{}")
    call: str = ""
    known: bool = False
    expected: msgspec.Raw = msgspec.Raw(b"null")
    raises: str = ""
    timeout_s: float = 1.0


class Batch(msgspec.Struct, frozen=True, tag="batch", kw_only=True):
    """What stays the same for all candidates; `every` goes on after the first check that is not passed.

    as_code: where nothing is known of a check, what the code itself does there is right, be it a value or an exception;
    where it does not end, any value is.
    """

    entry: EntryRef
    code: str
    checks: list[BatchCheck]
    every: bool
    memory_bytes: int
    result_max_bytes: int
    output_max_bytes: int
    as_code: bool = False


class Share(msgspec.Struct, frozen=True, tag="share"):
    """The next candidates of the batch."""

    candidates: list[list[Edit]]


class Outcomes(msgspec.Struct, frozen=True, tag="outcomes"):
    """What became of some candidates: from `first` on in the share, as many letters each as there are checks."""

    first: int
    letters: list[str]


class ShareDone(msgspec.Struct, frozen=True, tag="share_done"):
    """All candidates of the share have been told of; `setup_s` is what was spent on getting ready for them."""

    setup_s: float
    children: int
