"""Decision service of a Healkit: `hk.decide`.

What decides is loaded by the first decision: a plain execution has no use for it.
"""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from healkit.config import Config
from healkit.contracts.runs import PolicyDefaults
from healkit.contracts.vault import VaultEntry
from healkit.errors import UsageInvalid, ViewNotFound
from healkit.runtime.runner import Runner
from healkit.runtime.runs import Runs
from healkit.runtime.traces import Traces

if TYPE_CHECKING:
    from healkit.decisions.analysis import Analyst
    from healkit.decisions.choosers import Chooser
    from healkit.decisions.correction import Ask, HealConsent, Heals
    from healkit.decisions.decision import Decision
    from healkit.decisions.performing import Given, Shared
    from healkit.decisions.record import Resumed
    from healkit.runtime.views import Views
    from healkit.store.audit import Audit
    from healkit.store.vault import Vault

#: Group of the tools that a decision offers where none are named.
TOOL_GROUP = "decide"
_QUESTION_MAX_CHARS = 10_000


class Parts(Protocol):
    """Parts of a Healkit that a decision uses; each is asked for when it begins."""

    config: Config
    runs: Runs
    runner: Runner
    traces: Traces

    @property
    def healing(self) -> Heals: ...
    @property
    def vault(self) -> Vault: ...
    @property
    def views(self) -> Views: ...
    @property
    def audit(self) -> Audit: ...


class DecideService:
    """Decides with the tools of one Healkit."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def decide(
        self,
        question: str | None = None,
        data: Mapping[str, Any] | None = None,
        *,
        chooser: Chooser | Sequence[Mapping[str, Any]] | str | None = None,
        resume: str | None = None,
        tools: Sequence[str] | None = None,
        persona: str = "default",
        share: Sequence[str] = (),
        aliases: Mapping[str, Sequence[str]] | None = None,
        heal: HealConsent = False,
        ask: Ask | None = None,
        analyst: Analyst | str | None = None,
        policy: PolicyDefaults | None = None,
        timeout: float | None = None,
        stop: threading.Event | None = None,
    ) -> Decision:
        """Answer a question about data with tools, chosen by a chooser that sees metadata only.

        data: frames, texts, lists of texts, or names of data views, by the names that choices use. tools: names of
        vault tools, by default those of the group `decide`, and the built-in operations where there are none. chooser:
        a list of choices, `person` for a prompt on the terminal, `model` for the configured language model, or an
        object with `name` and `choose(turn)`.

        share: columns of the data, as `region` or `sales.region`, whose distinct values the chooser is told, and texts
        whose most frequent words it is told. aliases: other names of
        entities, such as `{"Meta": ["Facebook", "FB"]}`. heal: whether a failing tool may be healed: True keeps what
        passes every check, a function is asked about each patch. ask: gets an `EntityQuestion` where several values may
        be meant, and returns one; without it the decision ends as `asked`.

        analyst: `model`, or an object with `name` and `write(turn)`: it writes the analysis of the result, told
        metadata only. policy: the caps of the run. timeout: seconds of each execution. stop: set it, from any thread,
        to end after the step that is going on.

        resume: the id of a decision whose process was killed. It goes on in a run of its own behind its last finished
        step: the views that it made are loaded, and no finished step is taken again. It has its question, data, tools,
        persona and shared columns; its chooser too, unless that was an object of the caller's.

        Raises `UsageInvalid` for a call that cannot be answered, and as `vault.lookup`, `views.put` and `runs` do. What
        a tool or a choice does is never raised; it is in the `Decision`.
        """
        from healkit.decisions.choosers import Plan
        from healkit.decisions.correction import Corrector
        from healkit.decisions.loop import DecideLoop
        from healkit.decisions.performing import Workshop, text_form
        from healkit.decisions.record import DecideRecord, decide_steps, read_back, refused, written_files

        parts, stop = self._parts, stop or threading.Event()
        resumed: Resumed | None = None
        if resume is not None:
            refused({"question": question, "data": data, "tools": tools, "shared columns": share})
            resumed = read_back(parts.runs.runs_dir, resume)
            question, tools, persona, share = resumed.question, resumed.tools, resumed.persona, resumed.shared
            chooser = _chooser_again(chooser, resumed)
        files = [] if resumed is None else written_files(parts.runs.runs_dir, resumed.done)
        who = _chooser(chooser, parts.config, stop)
        writer = _analyst(analyst, parts.config, stop)
        entries = self._entries(tools, persona, in_full=bool(getattr(who, "told_in_full", False)))
        given = self._given(data) if resumed is None else self._given_again(resumed)
        shared = _shared(share, given)
        others = _aliases(aliases)
        cleaner = parts.traces.tracer.sanitizer
        asked = _text(question, cleaner)
        offered = _offered(entries, cleaner)
        run = parts.runs.begin(
            "decide",
            allow=tuple(entries),
            policy=policy,
            parameters={"question": asked, "chooser": who.name, "share": list(share)},
            audited=decide_steps(is_clean=not parts.config.trace_raw),
        )
        with run:
            shop = Workshop(parts.runner, parts.views, run, cleaner, entries, shared, persona, timeout)
            shop.begin(given)
            shop.files += files
            record = DecideRecord(run)
            texts = {
                name: form for name, one in shop.views.items() if (form := text_form(one.value, one.texts))
            }
            plan = who.steps if isinstance(who, Plan) else None
            more = {"persona": persona, "plan": plan, "texts": texts}
            record.begun(
                asked,
                who.name,
                {name: held.kept_as for name, held in shop.views.items()},
                list(entries),
                share,
                {held.kept_as: held.file_name for held in shop.views.values()},
                more if resumed is None else {**more, "resumes": resumed.run_id},
            )
            lookup = functools.partial(parts.vault.lookup, persona=persona)
            corrector = Corrector(shop, record, parts.healing, lookup, others, heal, ask, stop)
            caps = policy or PolicyDefaults()
            loop = DecideLoop(
                asked,
                who,
                shop,
                corrector,
                record,
                offered,
                tuple(share),
                caps.hard_cap_steps,
                stop,
                functools.partial(_effects_of, entries=entries, lookup=lookup),
            )
            if resumed is not None:
                loop.restore(resumed)
            ended = loop.go()
            analysis = (
                _analysis(writer, loop, shop, record, cleaner) if ended.outcome == "finalized" else None
            )
            run.finish("completed", f"{ended.outcome}: {ended.reason}")
        return _decision(ended, loop, shop, run, asked, parts, analysis)

    async def adecide(self, *args: Any, **kwargs: Any) -> Decision:
        """Do as `decide`, for async code, in a thread of its own; cancelling it ends the decision after its step."""
        stop = kwargs.setdefault("stop", threading.Event())
        try:
            return await asyncio.to_thread(functools.partial(self.decide, *args, **kwargs))
        except asyncio.CancelledError:
            stop.set()
            raise

    def _entries(self, tools: Sequence[str] | None, persona: str, *, in_full: bool) -> dict[str, VaultEntry]:
        from healkit.decisions.operations import operation_of

        vault = self._parts.vault
        if tools is None:
            tools = _of_group(vault) or _installed(vault)
            found = {name: vault.lookup(name, persona) for name in tools}
            free = {name for name in found if (one := operation_of(name)) is not None and one.is_free}
            return {name: entry for name, entry in found.items() if in_full or name not in free}
        if isinstance(tools, str):
            raise UsageInvalid(f"tools={tools!r} is a text.", hint=f"Give a list: tools=[{tools!r}].")
        if not tools:
            raise UsageInvalid(
                "A decision needs tools.",
                hint="Name tools of the vault, or none at all: then the built-in operations are used.",
            )
        return {name: vault.lookup(name, persona) for name in tools}

    def _given_again(self, resumed: Resumed) -> dict[str, Given]:
        """Return the data of a decision that is resumed; raise as `views.load` does."""
        from healkit.decisions.performing import Given, as_texts

        found: dict[str, Given] = {}
        for name, kept_as in resumed.views.items():
            if form := resumed.texts.get(name, ""):
                frame, value, texts = as_texts(self._parts.views.load(kept_as), form)
                found[name] = Given(value, frame, texts, kept_as)
            else:
                found[name] = self._read(name, kept_as)
        return found

    def _given(self, data: Mapping[str, Any] | None) -> dict[str, Given]:
        import msgspec

        from healkit.contracts.decisions import ViewName

        if not isinstance(data, Mapping) or not data:
            raise UsageInvalid("A decision needs data.", hint="Give frames by name: data={'sales': frame}.")
        found: dict[str, Given] = {}
        for name, given in data.items():
            try:
                msgspec.convert(name, ViewName)
            except msgspec.ValidationError:
                raise UsageInvalid(
                    f"{name!r} cannot be the name of data.", hint="Take letters, digits and _, up to 64."
                ) from None
            found[name] = self._read(name, given)
        return found

    def _read(self, name: str, given: Any) -> Given:
        """Return one piece of data; a text without spaces is the name of a view."""
        import pandas as pd

        from healkit.decisions.performing import TEXT_COLUMN, Given
        from healkit.decisions.telling import as_frame, texts_of

        value, kept_as = given, None
        if isinstance(given, str) and not any(map(str.isspace, given)):
            try:
                value, kept_as = self._parts.views.load(given), given
            except ViewNotFound as error:
                raise ViewNotFound(
                    error.message, hint=f"{error.hint} A text of one word goes in a list."
                ) from None
        texts = texts_of(value) if kept_as is None else None
        if texts is not None:
            return Given(value, pd.DataFrame({TEXT_COLUMN: texts}), texts)
        frame = as_frame(value)
        if frame is None:
            raise UsageInvalid(
                f"data[{name!r}] is a {type(value).__name__}, neither a table nor a text.",
                hint="Give a DataFrame, a text or a list of texts.",
            )
        return Given(value, frame, None, kept_as)


def _shared(share: Sequence[str], given: Mapping[str, Given]) -> list[Shared]:
    """Return which columns and texts of the data are shared: `region`, `sales.region`, or a text's name."""
    from healkit.decisions.performing import Shared

    if isinstance(share, str):
        raise UsageInvalid(f"share={share!r} is a text.", hint=f"Give a list: share=[{share!r}].")
    found: list[Shared] = []
    for word in share:
        data, _, column = word.partition(".")
        fits = [Shared(name, None) for name, one in given.items() if name == word and one.texts is not None]
        fits += [
            Shared(name, word)
            for name, one in given.items()
            if word in one.frame.columns and one.texts is None
        ]
        if not fits and data in given and column in given[data].frame.columns:
            fits = [Shared(data, column)]
        if not fits:
            raise UsageInvalid(f"No data has a column {word!r} to share.")
        found += fits
    return found


def _effects_of(tool: str, entries: Mapping[str, VaultEntry], lookup: Callable[[str], VaultEntry]) -> str:
    """Say why a tool does more than look, in words that follow its name; empty where it does not."""
    from healkit.decisions.performing import effects_of

    return effects_of(entries[tool], lookup)


def _of_group(vault: Vault) -> list[str]:
    return sorted({entry.tool_name for entry in vault.list() if entry.group == TOOL_GROUP})


def _installed(vault: Vault) -> list[str]:
    """Put the built-in operations into the vault, and return their names."""
    from healkit.decisions.operations import install_in

    install_in(vault)
    return _of_group(vault)


def _chooser_again(given: Any, resumed: Resumed) -> Any:
    """Return the chooser of a decision that is resumed: the one that is given, or the one it had."""
    from healkit.decisions.choosers import Plan

    if given is None and resumed.plan is not None:
        given = resumed.plan
    if isinstance(given, list | tuple):
        return Plan(given, len(resumed.turns))
    if given is None and resumed.chooser == Plan.name:
        raise UsageInvalid(
            f"The plan of decision {resumed.run_id!r} is not whole on record: a part of it was hidden or cut.",
            hint="Give it again: hk.decide(resume=…, chooser=plan).",
        )
    if given is None and resumed.chooser not in {"person", "model"}:
        raise UsageInvalid(
            f"The chooser of decision {resumed.run_id!r} was {resumed.chooser!r}, which is not on record.",
            hint="Give it again: hk.decide(resume=…, chooser=…).",
        )
    return resumed.chooser if given is None else given


def _chooser(given: Any, config: Config, stop: threading.Event) -> Chooser:
    from healkit.decisions.choosers import Person, Plan

    if given == "person":
        return Person()
    if given == "model":
        from healkit.decisions.choosers import ModelChooser

        given = ModelChooser(config)
    if isinstance(given, list | tuple):
        return Plan(given)
    if not isinstance(given, str) and callable(getattr(given, "choose", None)):
        found: Chooser = given
        if prepare := getattr(found, "prepare", None):
            prepare(stop)
        return found
    raise UsageInvalid(
        f"chooser={given!r} cannot choose.",
        hint="Give a list of choices, 'person', 'model', or an object with choose(turn).",
    )


def _analyst(given: Any, config: Config, stop: threading.Event) -> Analyst | None:
    if given == "model":
        from healkit.decisions.analysis import ModelAnalyst

        given = ModelAnalyst(config)
    if given is not None and (isinstance(given, str) or not callable(getattr(given, "write", None))):
        raise UsageInvalid(
            f"analyst={given!r} cannot write.", hint="Give 'model', or an object with write(turn)."
        )
    if prepare := getattr(given, "prepare", None):
        prepare(stop)
    found: Analyst | None = given
    return found


def _analysis(writer: Analyst | None, loop: Any, shop: Any, record: Any, cleaner: Any) -> Any:
    if writer is None:
        return None
    from healkit.decisions.analysis import analyse

    turn = loop.last_turn()
    analysis, problem = analyse(writer, turn, shop.views, shop.names, cleaner)
    record.analysed(writer.name, turn.number, analysis.text, analysis.filled, len(analysis.struck), problem)
    if problem:
        loop.marked.append(problem)
    return analysis


def _aliases(given: Any) -> Mapping[str, Sequence[str]]:
    given = {} if given is None else given
    if isinstance(given, Mapping) and not any(isinstance(others, str) for others in given.values()):
        return given
    raise UsageInvalid(
        f"aliases={given!r} are no lists of names.",
        hint="Give a list for each name: {'Meta': ['Facebook', 'FB']}.",
    )


def _text(question: Any, cleaner: Any) -> str:
    """Return the question without what the sanitiser hides: the chooser is told it, and the run keeps it."""
    if not isinstance(question, str) or not 0 < len(question.strip()) <= _QUESTION_MAX_CHARS:
        raise UsageInvalid(f"A question is a text of up to {_QUESTION_MAX_CHARS:,} characters.")
    return str(cleaner.clean(question, limit_bytes=1 << 20).value)


def _offered(entries: Mapping[str, VaultEntry], cleaner: Any) -> list[Any]:
    from healkit.contracts.decisions import ToolFacts

    found = []
    for name, entry in entries.items():
        schema = cleaner.clean(entry.input_schema, limit_bytes=1 << 20).value
        described = str(cleaner.clean(entry.description, limit_bytes=1 << 20).value)
        found.append(ToolFacts(name, described, schema if isinstance(schema, dict) else {}))
    return found


def _decision(
    ended: Any, loop: Any, shop: Any, run: Any, question: str, parts: Parts, analysis: Any
) -> Decision:
    from healkit.decisions.decision import Decision, DecisionRun

    held = None if ended.view is None else shop.views[ended.view]
    return Decision(
        raw_data_view_name=None if held is None else held.kept_as,
        audit_log=tuple(parts.audit.get(run.run_id)),
        analysis=analysis.text if analysis else "",
        analysis_struck=analysis.struck if analysis else (),
        outcome=ended.outcome,
        run=DecisionRun(run.run_id, run.folder),
        reason=ended.reason,
        question=question,
        views={name: held.kept_as for name, held in shop.views.items()},
        files=tuple(shop.files),
        sent=tuple(loop.sent),
        marked=tuple(loop.marked),
        asked_for=ended.asked_for,
        problem=run.problem,
        view=None if held is None else parts.views.get(held.kept_as),
        first_rows=None if held is None else parts.views.first_rows(held.frame),
    )
