"""Messages that try many variants of one code on its checks.

host → trial server: `batch` once, then `share` after `share`, each answered by `outcomes` as they come and a
`share_done`. A candidate is a list of splices of the batch's code, so that a variant travels in a few bytes.
"""

from __future__ import annotations

import msgspec

from healkit.core.contracts.cassette import Cassette
from healkit.core.contracts.patches import Edit
from healkit.core.contracts.tools import EntryRef, Withheld

PASSED, WRONG, RAISED, TIMED_OUT, DIED, NOT_RUN, NOT_ON_RECORD = ".wetd-n"
#: Outcomes of a check, one letter each (`healing.advisor.Workbench.score`).
LETTERS = PASSED + WRONG + RAISED + TIMED_OUT + DIED + NOT_RUN + NOT_ON_RECORD
#: Limits of a share's candidates and outcomes; one page of shared memory holds that many.
SHARE_MAX, SHARE_OUTCOMES_MAX = 4000, 1_000_000


class BatchCheck(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Check as a trial server gets it (`contracts.patches.Check`), with its time limit in seconds.

    Arguments travel as JSON, because they are decoded afresh for each candidate. `exact` says that arguments and
    expected value hold tags (`values.kept`), and that the result is compared as it is; `typed`, that
    a set or a dict with other keys than texts is wrong (`encoding.is_beyond_json`). `run` is the execution whose own
    calls the batch's cassette answers with first. `setup` is run before the code, which is a cell's then.
    """

    arguments: msgspec.Raw = msgspec.Raw(b"{}")
    call: str = ""
    known: bool = False
    expected: msgspec.Raw = msgspec.Raw(b"null")
    raises: str = ""
    timeout_s: float = 1.0
    exact: bool = False
    typed: bool = False
    run: str = ""
    setup: str = ""


class Batch(msgspec.Struct, frozen=True, tag="batch", kw_only=True):
    """Part of a search that stays the same for all candidates; `every` goes on after the first failed check.

    as_code: where a check's right answer is unknown, the code's own result there is right, a value or an exception;
    where the code does not end, any value is. cassette: answers the candidates' calls. withheld: the files that end a
    run which asks for one.
    """

    entry: EntryRef
    code: str
    checks: list[BatchCheck]
    every: bool
    memory_bytes: int
    result_max_bytes: int
    output_max_bytes: int
    as_code: bool = False
    cassette: Cassette = Cassette()
    withheld: Withheld = Withheld()


class Share(msgspec.Struct, frozen=True, tag="share"):
    """Next candidates of the batch."""

    candidates: list[list[Edit]]


class Outcomes(msgspec.Struct, frozen=True, tag="outcomes"):
    """Outcomes of some candidates: from `first` on in the share, as many letters each as there are checks."""

    first: int
    letters: list[str]


class ShareDone(msgspec.Struct, frozen=True, tag="share_done"):
    """End of a share; `setup_s` is the time spent on getting ready for it."""

    setup_s: float
    children: int
