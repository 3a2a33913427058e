"""Messages between the host and what runs its trials.

There are two forms: a `Share` of work goes out, `Results` come back, in the order of the work. A trial server gets each
trial as its own share, which it reads when its turn comes, so that no child can see the next one. Trials that may run
in one child (`pure_code`) come in one share. A batch comes with the first share of its candidates. A worker of an
executor gets either kind of share in one message (`shares`).

A candidate is a list of changes of the batch's code, so that a variant needs only a few bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from healkit.core.contracts.cassette import Cassette
from healkit.core.contracts.patches import Edit
from healkit.core.contracts.rpc import Init
from healkit.core.contracts.tools import EntryRef, Withheld

PASSED, WRONG, RAISED, TIMED_OUT, DIED, NOT_RUN, NOT_ON_RECORD = ".wetd-n"
#: Outcomes of a check, one letter each (`healing.advisor.Workbench.score`).
LETTERS = PASSED + WRONG + RAISED + TIMED_OUT + DIED + NOT_RUN + NOT_ON_RECORD
#: Limits of a share's candidates and outcomes; one page of shared memory holds that many.
SHARE_MAX, SHARE_OUTCOMES_MAX = 4000, 1_000_000


class BatchCheck(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Check in the form for a trial server (`contracts.patches.Check`), with its time limit in seconds.

    Arguments travel as JSON, because they are decoded again for each candidate. `exact` says that arguments and
    expected value contain tags (`values.kept`), and that the result is compared exactly. `typed` says that a set, or a
    dict with keys other than texts, is wrong (`encoding.is_beyond_json`). `run` is the execution whose own calls the
    batch's cassette answers first. `setup` runs before the code, which is then a cell's code.
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


class Batch(msgspec.Struct, frozen=True, kw_only=True):
    """Part of a search that is the same for all candidates; `every` continues after the first failed check.

    as_code: If a check's right answer is unknown, the code's own result is right, a value or an exception. If the code
        does not end, any value is right.
    cassette: Answers the candidates' calls.
    withheld: Files that end a run if it reads one.
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


#: Variant of a batch's code.
Candidate = Sequence[Edit]


class Share(msgspec.Struct, frozen=True, omit_defaults=True):
    """Work that is sent together: trials, or candidates of this batch; without a batch, of the one before."""

    trials: list[Init] = []
    candidates: list[Candidate] = []
    batch: Batch | None = None


class TrialDone(msgspec.Struct, frozen=True, omit_defaults=True):
    """End of one trial; `claim` is the child's own message, unread.

    status: The exit status, negative for a signal.
    ending: `timeout` if the trial server killed it; `disk_limit` and `lost` come from the host, with the reason as
        `detail`.
    """

    status: int = 0
    claim: bytes = b""
    printed: bytes = b""
    ending: Literal["", "timeout", "disk_limit", "lost"] = ""
    detail: str = ""
    duration_ms: float = 0.0


class Results(msgspec.Struct, frozen=True, tag="results", omit_defaults=True):
    """Next results: of trials, or candidates' letters, one for each check.

    setup_s: The time used so far for preparing the share.
    last: The trial server ends now; the rest of its work did not run.
    back: How many trials at the end of the share were not started, and can run elsewhere.
    """

    trials: list[TrialDone] = []
    letters: list[str] = []
    setup_s: float = 0.0
    last: bool = False
    back: int = 0


class Unsealed(msgspec.Struct, frozen=True, tag="unsealed"):
    """Report of a child that could not seal itself, and ran nothing."""

    reason: str
