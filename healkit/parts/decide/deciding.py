"""Course of one decision: checked, answered, recorded."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from healkit.config import Config
from healkit.core.contracts.vault import VaultEntry
from healkit.core.secrets.cleaner import Cleaner
from healkit.errors import UsageInvalid, ViewNotFound
from healkit.parts.decide.analysis import ModelAnalyst, analyse
from healkit.parts.decide.asked import Analyst, Asked, Given, Shared
from healkit.parts.decide.choosers import Chooser, ModelChooser, Person, Plan
from healkit.parts.decide.decision import Decision, DecisionRun
from healkit.parts.decide.loop import DecideLoop
from healkit.parts.decide.operations import GROUP, install_in, operation_of
from healkit.parts.decide.performing import Workshop, as_texts, text_frame
from healkit.parts.decide.record import DecideRecord, read_back, written_files
from healkit.parts.decide.records import Resumed, ToolFacts, ViewName
from healkit.parts.decide.telling import as_frame, texts_of

if TYPE_CHECKING:
    from healkit.parts.decide.asked import DecideOptions
    from healkit.services import Services

_QUESTION_MAX_CHARS = 10_000


def decide(hk: Services, options: DecideOptions) -> Decision:
    """Answer a question about data; raise as `DecideService.decide` says."""
    request = _asked(hk, options)
    run = hk.runs.begin(
        "decide",
        allow=tuple(request.tools),
        policy=options.policy,
        parameters={
            "question": request.question,
            "chooser": request.chooser.name,
            "share": list(request.share),
        },
        audited=True,
    )
    with run:
        shop = Workshop(hk, run, request)
        shop.begin()
        record = DecideRecord(run)
        record.begun(request, shop.views)
        loop = DecideLoop(request, shop, record)
        if request.resumed is not None:
            loop.restore(request.resumed)
        ended = loop.go()
        analysis = None
        if request.analyst is not None and ended.outcome == "finalized":
            turn = loop.last_turn()
            analysis, problem = analyse(request.analyst, turn, shop.views, shop.names, request.cleaner)
            record.analysed(request.analyst.name, turn, analysis, problem)
            loop.marked += [problem] if problem else []
        run.finish("completed", f"{ended.outcome}: {ended.reason}")
    final_view = None if ended.view is None else shop.views[ended.view]
    return Decision(
        raw_data_view_name=None if final_view is None else final_view.kept_as,
        audit_log=tuple(hk.audit.get(run.run_id)),
        analysis=analysis.text if analysis else "",
        analysis_struck=analysis.struck if analysis else (),
        outcome=ended.outcome,
        run=DecisionRun(run.run_id, run.folder),
        reason=ended.reason,
        question=request.question,
        views={name: view.kept_as for name, view in shop.views.items()},
        files=tuple(shop.files),
        sent=tuple(loop.sent),
        marked=tuple(loop.marked),
        asked_for=ended.asked_for,
        problem=run.problem,
        view=None if final_view is None else hk.views.get(final_view.kept_as),
        first_rows=None if final_view is None else hk.views.first_rows(final_view.frame),
    )


def _asked(hk: Services, options: DecideOptions) -> Asked:
    """Check the arguments, and read the record of a decision that is resumed."""
    resumed, files = None, []
    if options.resume is not None:
        inputs = {"question": options.question, "data": options.data, "tools": options.tools}
        inputs["shared columns"] = options.share
        if names := [name for name, value in inputs.items() if value]:
            raise UsageInvalid(
                f"A resumed decision already has its {' and '.join(names)}.", hint="Leave that out."
            )
        resumed = read_back(hk.runs.runs_dir, options.resume)
        options = dataclasses.replace(
            options, question=resumed.question, tools=resumed.tools, persona=resumed.persona, share=resumed.shared,
            chooser=_chooser_again(options.chooser, resumed),
        )  # fmt: skip
        files = written_files(hk.runs.runs_dir, resumed.done)
    chooser = _chooser(options.chooser, hk.config, options.stop)
    analyst = _analyst(options.analyst, hk.config, options.stop)
    tools = _tools(hk, options, in_full=bool(getattr(chooser, "told_in_full", False)))
    data = _given(hk, options.data) if resumed is None else _given_again(hk, resumed)
    cleaner = hk.traces.tracer.sanitizer
    return Asked(
        question=_question(options.question, cleaner),
        chooser=chooser,
        analyst=analyst,
        tools=tools,
        offered=_offered(tools, cleaner),
        data=data,
        shared=_shared(options.share, data),
        share=tuple(options.share),
        aliases=_aliases(options.aliases),
        cleaner=cleaner,
        resumed=resumed,
        files=files,
        options=options,
    )


# Data and tools.


def _given(hk: Services, data: Mapping[str, Any] | None) -> dict[str, Given]:
    if not isinstance(data, Mapping) or not data:
        raise UsageInvalid("A decision needs data.", hint="Give frames by name: data={'sales': frame}.")
    inputs: dict[str, Given] = {}
    for name, value in data.items():
        try:
            msgspec.convert(name, ViewName)
        except msgspec.ValidationError:
            raise UsageInvalid(
                f"{name!r} cannot be the name of data.", hint="Use up to 64 letters, digits and _."
            ) from None
        inputs[name] = _read(hk, name, value)
    return inputs


def _given_again(hk: Services, resumed: Resumed) -> dict[str, Given]:
    """Return the data of a decision that is resumed; raise as `views.load` does."""
    inputs: dict[str, Given] = {}
    for name, kept_as in resumed.views.items():
        if form := resumed.texts.get(name, ""):
            frame = hk.views.load(kept_as)
            value, texts = as_texts(frame, form)
            inputs[name] = Given(value, frame, texts, kept_as)
        else:
            inputs[name] = _read(hk, name, kept_as)
    return inputs


def _read(hk: Services, name: str, given: object) -> Given:
    """Return one piece of data; a text without spaces is the name of a view."""
    value, kept_as = given, None
    if isinstance(given, str) and not any(map(str.isspace, given)):
        try:
            value, kept_as = hk.views.load(given), given
        except ViewNotFound as error:
            raise ViewNotFound(
                error.message, hint=f"{error.hint} Put a text of one word in a list."
            ) from None
    texts = texts_of(value) if kept_as is None else None
    if texts is not None:
        return Given(value, text_frame(texts), texts)
    frame = as_frame(value)
    if frame is None:
        raise UsageInvalid(
            f"data[{name!r}] is a {type(value).__name__}, neither a table nor a text.",
            hint="Give a DataFrame, a text or a list of texts.",
        )
    return Given(value, frame, None, kept_as)


def _shared(share: Sequence[str], given: Mapping[str, Given]) -> list[Shared]:
    """Return which columns and texts of the data are shared: `region`, `sales.region`, or a text's name."""
    if isinstance(share, str):
        raise UsageInvalid(f"share={share!r} is a string.", hint=f"Give a list: share=[{share!r}].")
    shared: list[Shared] = []
    for word in share:
        tables = {name: dataset for name, dataset in given.items() if dataset.texts is None}
        fits = [Shared(word, None)] if word in given.keys() - tables.keys() else []
        fits += [Shared(name, word) for name, dataset in tables.items() if word in dataset.frame.columns]
        name, _, column = word.partition(".")
        if not fits and name in given and column in given[name].frame.columns:
            fits = [Shared(name, column)]
        if not fits:
            raise UsageInvalid(f"No data has a column {word!r} to share.")
        shared += fits
    return shared


def _tools(hk: Services, options: DecideOptions, *, in_full: bool) -> dict[str, VaultEntry]:
    """Return the tools by name.

    in_full: Whether the chooser may use tools whose result it writes itself.
    """
    names = options.tools
    if isinstance(names, str):
        raise UsageInvalid(f"tools={names!r} is a string.", hint=f"Give a list: tools=[{names!r}].")
    if names is not None and not names:
        raise UsageInvalid(
            "A decision needs tools.",
            hint="Name tools of the vault. Without tools=, the built-in operations are used.",
        )
    if names is not None:
        return {name: hk.vault.lookup(name, options.persona) for name in names}
    if not (names := _of_group(hk)):
        install_in(hk.vault)
        names = _of_group(hk)
    entries = {name: hk.vault.lookup(name, options.persona) for name in names}
    free = {name for name in entries if (operation := operation_of(name)) is not None and operation.is_free}
    return {name: entry for name, entry in entries.items() if in_full or name not in free}


def _of_group(hk: Services) -> list[str]:
    return sorted({entry.tool_name for entry in hk.vault.list() if entry.group == GROUP})


def _offered(tools: Mapping[str, VaultEntry], cleaner: Cleaner) -> list[ToolFacts]:
    facts = []
    for name, entry in tools.items():
        schema = cleaner.clean(entry.input_schema, limit_bytes=1 << 20).value
        described = str(cleaner.clean(entry.description, limit_bytes=1 << 20).value)
        facts.append(ToolFacts(name, described, schema if isinstance(schema, dict) else {}))
    return facts


# The question, and who chooses and writes.


def _question(question: str | None, cleaner: Cleaner) -> str:
    """Return the cleaned question: the chooser gets it, and the run keeps it."""
    if not isinstance(question, str) or not 0 < len(question.strip()) <= _QUESTION_MAX_CHARS:
        raise UsageInvalid(f"A question is a text of up to {_QUESTION_MAX_CHARS:,} characters.")
    return str(cleaner.clean(question, limit_bytes=1 << 20).value)


def _aliases(given: Mapping[str, Sequence[str]] | None) -> Mapping[str, Sequence[str]]:
    given = {} if given is None else given
    if isinstance(given, Mapping) and not any(isinstance(names, str) for names in given.values()):
        return given
    raise UsageInvalid(
        f"aliases={given!r} are not lists of names.",
        hint="Give a list for each name: {'Meta': ['Facebook', 'FB']}.",
    )


def _chooser_again(given: object, resumed: Resumed) -> Any:
    """Return the chooser of a resumed decision: the given one, or its earlier one."""
    given = resumed.plan if given is None else given
    if isinstance(given, list | tuple):
        return Plan(given, len(resumed.turns))
    if given is not None or resumed.chooser in {"person", "model"}:
        return resumed.chooser if given is None else given
    if resumed.chooser == Plan.name:
        raise UsageInvalid(
            f"The plan of decision {resumed.run_id!r} is not completely on record: part of it was hidden or cut.",
            hint="Give it again: hk.decide(resume=…, chooser=plan).",
        )
    raise UsageInvalid(
        f"The chooser of decision {resumed.run_id!r} was {resumed.chooser!r}, which is not on record.",
        hint="Give it again: hk.decide(resume=…, chooser=…).",
    )


def _chooser(given: object, config: Config, stop: threading.Event) -> Chooser:
    if given == "person":
        return Person()
    if isinstance(given, list | tuple):
        return Plan(given)
    hint = "Give a list of choices, 'person', 'model', or an object with choose(turn)."
    chooser: Chooser = _prepared(
        "chooser", ModelChooser(config) if given == "model" else given, "choose", stop, hint
    )
    return chooser


def _analyst(given: object, config: Config, stop: threading.Event) -> Analyst | None:
    if given is None:
        return None
    hint = "Give 'model', or an object with write(turn)."
    analyst: Analyst = _prepared(
        "analyst", ModelAnalyst(config) if given == "model" else given, "write", stop, hint
    )
    return analyst


def _prepared(argument: str, given: object, method: str, stop: threading.Event, hint: str) -> Any:
    """Return a prepared chooser; its `name` is not checked here."""
    if isinstance(given, str) or not callable(getattr(given, method, None)):
        raise UsageInvalid(f"{argument}={given!r} cannot {method}.", hint=hint)
    if prepare := getattr(given, "prepare", None):
        prepare(stop)
    return given
