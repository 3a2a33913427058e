"""What the steps of one healing share: options, bench, voice."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import functools
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, TypeVar

import msgspec

from healkit.config import Config
from healkit.core.contracts.cassette import Tape
from healkit.core.contracts.patches import Check
from healkit.core.contracts.tools import Withheld
from healkit.core.contracts.vault import VaultEntry
from healkit.core.pysource.nodes import declares_effects
from healkit.core.rendering import cleaning
from healkit.core.runtime import background
from healkit.core.runtime.calls import allows, unaccepted
from healkit.core.runtime.execution import nested_grants
from healkit.core.secrets.cleaner import RecordCleaner, learn
from healkit.core.workers.tiers import achieved_tier
from healkit.errors import ConfigError, HealkitError
from healkit.parts.heal.advisor import Advisor, Case, advisors_for
from healkit.parts.heal.callers import Blamed
from healkit.parts.heal.case import gather
from healkit.parts.heal.checks import Validator
from healkit.parts.heal.questions import Answer, Question
from healkit.parts.heal.records import Attempt, Patch
from healkit.parts.heal.workbench import Bench, Conditions
from healkit.parts.runs.contract import PolicyDefaults
from healkit.parts.trials.cassette import LiveCalls, cassette_of
from healkit.parts.trials.shares import slots_of
from healkit.parts.trials.trials import Fixture, Trials
from healkit.parts.views import views

if TYPE_CHECKING:
    from healkit.core.store.models import ExecutionLog
    from healkit.services import Services

#: Part of the budget that is reserved for the validation of patches found at its end, and its most in seconds. With
#: a shorter budget, the validation still has that time.
_VALIDATION_PART, _VALIDATION_S = 0.15, 3.0
#: Number of recent executions whose calls are at hand besides those of the checks.
_RUNS_MAX = 50
Told = TypeVar("Told")


@dataclasses.dataclass(frozen=True)
class CellCase:
    """Case of a notebook's cell: it has no tool and no record, and comes with its surroundings and its limits."""

    case: Case
    fixture: Fixture
    config: Config


@dataclasses.dataclass(frozen=True, kw_only=True)
class HealOptions:
    """Options of one healing: the arguments of `HealService.heal`, with the settings for missing ones.

    advisors_named: The caller named the advisors; a default advisor that is not set up needs no note.
    cell: The case of a cell, which does not come from the record.
    improves: A tool that works may be patched too.
    client: The name of the calling MCP client.
    live, files: Calls that checks may make, and granted files that unaccepted code may read.
    """

    tool_name: str
    persona: str = "default"
    advisors: Sequence[str | Advisor]
    advisors_named: bool = False
    auto: bool = False
    budget_s: float
    log_id: int | None = None
    ask: Callable[[Question], Answer | None] | None = None
    confirm: Callable[[Attempt], bool | None] | None = None
    before_patch: Callable[[Case, Patch], None] | None = None
    progress: Callable[[str], None] | None = None
    on_tried: Callable[[str, int], object] | None = None
    stop: threading.Event
    policy: PolicyDefaults | None = None
    dry_run: bool = False
    executor: concurrent.futures.Executor | None = None
    live: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    cell: CellCase | None = None
    improves: bool = False
    client: str = ""


class Voice:
    """Texts of a healing: sentences on the way, and notes for its report, without the secrets of the case."""

    def __init__(self, options: HealOptions, notes: list[str]) -> None:
        self._progress, self._on_tried, self.notes = options.progress, options.on_tried, notes
        self._advisor = ""
        #: Sentences on patches that only hide the error, said together.
        self._silenced: list[str] = []
        self._case: Case | None = None
        self._cleaner: RecordCleaner | None = None

    def about(self, case: Case) -> None:
        """Remove the secrets of the case's arguments from all later texts."""
        self._case = case

    def say(self, sentence: str) -> None:
        """Report progress."""
        self.say_silenced()
        if self._progress is not None:
            self._progress(self.shown(sentence))

    def asking(self, advisor: str, tried: int) -> None:
        """Report which advisor is asked, after so many candidates."""
        self.say(f"Asking {advisor}.")
        self._advisor = advisor
        self.has_tried(tried)

    def has_tried(self, count: int) -> None:
        """Report the number of candidates tried so far."""
        if self._on_tried is not None:
            self._on_tried(self._advisor, count)

    def say_of_silenced(self, sentence: str) -> None:
        """Report a patch that only hides the error, together with the next ones of its kind."""
        self._silenced.append(sentence)

    def say_silenced(self) -> None:
        """Say in one line how many patches since the last sentence only hide the error."""
        sentences, self._silenced = self._silenced, []
        if sentences and self._progress is not None:
            advisor = sentences[0].partition(":")[0]
            many = f"{advisor}: {len(sentences)} patches only hide the error."
            self._progress(self.shown(sentences[0]) if len(sentences) == 1 else many)

    def shown(self, report: Told) -> Told:
        """Return a text about the healing without secrets."""
        if self._cleaner is None:
            self._cleaner = cleaning.sanitizer().of_record()
            if self._case is not None:
                cleaning.report(self._case.checks, self._cleaner)
                if self._case.failure is not None:
                    learn(self._case.failure, self._cleaner)
        return cleaning.report(report, self._cleaner)


@dataclasses.dataclass(frozen=True, kw_only=True)
class HealContext:
    """What the steps of one healing share. It is made once, by `prepare`, and travels whole.

    entry: The tool, with its current grants.
    log_id, failed_at: The failure to heal, and its time.
    blamed: The called tool whose failure it is.
    read: The views that the case was made of.
    isolation: The tier of all trials.
    bench: The search's bench.
    beside: A bench with more time, for a patch that is found in the last moment.
    whole: The surroundings of accepted code.
    accepted: Codes that have the tool's grants: its own, and codes that a person writes in an editor.
    calls: Calls that checks may make.
    acts: Returns whether a call has declared effects.
    watched: The tool itself declares effects, so nothing is kept without a person.
    lacks_grants: It has grants that other code does not have.
    """

    hk: Services
    options: HealOptions
    entry: VaultEntry
    log_id: int | None
    failed_at: datetime | None
    blamed: Blamed | None
    read: Mapping[str, str]
    isolation: str
    bench: Bench
    beside: Bench
    validator: Validator
    whole: Fixture
    accepted: dict[str, Fixture]
    calls: LiveCalls
    acts: Callable[[str], bool]
    watched: bool
    lacks_grants: bool
    voice: Voice
    started: float

    @property
    def is_cell(self) -> bool:
        """True for a notebook's cell, which has no tool and no record."""
        return self.options.cell is not None

    @property
    def may_act(self) -> bool:
        """True for a tool with declared side effects without isolation: it does not run."""
        return self.isolation == "process" and bool(self.entry.flags.get("side_effects"))


def prepare(hk: Services, options: HealOptions) -> tuple[HealContext, Case, list[Advisor]]:
    """Gather the case, and prepare the things that its steps need; return it with the usable advisors.

    Raises `ConfigError` for bad options, and `HealError` if nothing shows that the tool fails.
    """
    if options.executor is not None:
        background.loop.wait_for(slots_of(options.executor))
    if not options.budget_s > 0:
        raise ConfigError(f"budget_s={options.budget_s!r} must be greater than 0 seconds.")
    advisors, notes = advisors_for(options.advisors, hk.config)
    voice = Voice(options, notes if options.advisors_named else [])
    #: Only this persona's rows are read, since an agent learns what they hold.
    only = options.persona if options.client else None
    with views.noting() as read:
        case, log_id, blamed = _gathered(hk, options, only)
    advisors = _with_something_to_say(advisors, hk, only)
    if blamed is not None:
        voice.notes.append(blamed.sentence)
    failed = None if log_id is None else hk.log.get(log_id)
    entry, is_cell = case.entry, options.cell is not None
    if not is_cell:  # a trial has no executor to ask for what counts of them
        entry = dataclasses.replace(entry, grants=hk.executor.grants_in_force(entry.grants))
    case = dataclasses.replace(case, entry=entry, discreet=bool(options.client))
    voice.about(case)
    lookup = functools.partial(hk.vault.lookup, persona=entry.persona)
    cassette = cassette_of(
        hk.log, _recorded_runs(hk, case, log_id, blamed, only), entry, hk.executor.providers
    )
    names = [f"{definition.server}.{definition.name}" for definition in cassette.definitions]
    acting = {name for name, definition in zip(names, cassette.definitions, strict=True) if definition.acts}

    def acts(name: str) -> bool:
        """Return True for a call that declares effects: its server says so, or the flags of a vault tool do."""
        server, _, tool = name.partition(".")
        try:
            return name in acting or (server == "vault" and declares_effects(lookup(tool), lookup))
        except HealkitError:
            return False

    def tell_call(note: str) -> None:
        """Report a live call before it is made."""
        voice.notes.append(note)
        voice.say(note)

    calls = LiveCalls(options.live, cassette.live, acts, tell_call)
    tape = Tape(msgspec.structs.replace(cassette, live=[name for name in names if calls.may_make(name)]))
    voice.notes += [
        f"{name} declares effects, so healing never calls it."
        for name in names
        if acts(name) and allows(calls.left, name)
    ]
    case = dataclasses.replace(case, answers=tape.answers())
    read_paths = (*entry.grants.read, *entry.grants.write)
    named = unaccepted(entry.grants, options.files).read
    # What a caller chose as arguments gets no more than the caller had: only a worker can be given that.
    as_called = bool(read_paths) and any(_is_nested(hk, check) for check in case.checks)
    watched = not is_cell and declares_effects(entry, lookup)
    started = time.monotonic()
    whole = Fixture(tape.cassette, () if as_called else read_paths)
    accepted = {} if is_cell or entry.draft else {entry.code: whole}
    own_fixture = Fixture(tape.cassette, () if as_called else named, Withheld(read_paths, named))
    bench = Bench(
        Trials(hk.recorder, hk.config if options.cell is None else options.cell.config),
        entry.ref,
        options.budget_s,
        options.stop,
        voice.has_tried,
        conditions=Conditions(
            options.executor,
            not entry.logged,
            own_fixture if options.cell is None else options.cell.fixture,
            accepted,
        ),
        reserve_s=min(_VALIDATION_S, _VALIDATION_PART * options.budget_s),
    )
    if case.failure is not None and case.failure.code == "TOOL_TIMEOUT":
        bench.expect_hanging(case.failing)
    more = bench.beside(max(0.0, _VALIDATION_S - options.budget_s))
    validator = Validator(hk, entry, more, options.stop, tape, calls, options.files, accepted)
    if as_called:
        validator.use_workers()
    context = HealContext(
        hk=hk,
        options=options,
        entry=entry,
        log_id=log_id,
        failed_at=None if failed is None else failed.timestamp,
        blamed=blamed,
        read=read,
        isolation=achieved_tier(hk.config),
        bench=bench,
        beside=bench.beside(0.0),
        validator=validator,
        whole=whole,
        accepted=accepted,
        calls=calls,
        acts=acts,
        watched=watched,
        lacks_grants=set(read_paths) != set(named) and not is_cell,
        voice=voice,
        started=started,
    )
    return context, case, advisors


def _gathered(hk: Services, options: HealOptions, only: str | None) -> tuple[Case, int | None, Blamed | None]:
    if options.cell is not None:
        return options.cell.case, None, None
    tool, persona, may_work = options.tool_name, options.persona, options.improves
    return gather(hk.vault, hk.log, tool, persona, options.log_id, may_work=may_work, only=only)


def _with_something_to_say(advisors: list[Advisor], hk: Services, only: str | None) -> list[Advisor]:
    """Return the advisors without those that already know that they have no patch, unless there are no others."""
    ready = [advisor for advisor in advisors if getattr(advisor, "prepare", _always)(hk, only)]
    return ready or advisors


def _always(_hk: Services, _only: str | None) -> bool:
    return True


def _is_nested(hk: Services, check: Check) -> bool:
    """Return True for the input of an execution that another tool requested."""
    return check.log_id is not None and nested_grants(hk.log.get(check.log_id)) is not None


def _recorded_runs(
    hk: Services, case: Case, log_id: int | None, blamed: Blamed | None, only: str | None
) -> Iterator[ExecutionLog]:
    """Yield the executions whose calls answer those of checks: those of the checks, then other recent ones."""
    if blamed is not None:
        yield from blamed.callers
    entry = case.entry
    if "mcp" not in entry.code:
        return
    log_ids = [check.log_id for check in case.checks] + [log_id]
    distinct_ids = list(dict.fromkeys(number for number in log_ids if number is not None))
    yield from filter(None, map(hk.log.get, distinct_ids))
    persona = only or entry.persona
    recent_rows = hk.log.query(tool=entry.tool_name, persona=persona, tried=False, limit=_RUNS_MAX).rows
    yield from (row for row in recent_rows if row.id not in distinct_ids and row.status != "RUNNING")
