"""Memory of fixes: templates of past patches, with outcomes.

Patching a tool writes nothing here. The vault's history, the requests and the log contain everything, append-only, and
the memory is read from them. A patch that was rolled back later, or declined, counts against its templates. A table
contains only imported templates, and the time from which the vault's own fixes count.
"""

from __future__ import annotations

import ast
import builtins
import collections
import dataclasses
import datetime
import functools
import itertools
import json
import keyword
import math
import re
import statistics
import string
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
import sqlalchemy
from sqlalchemy import delete, func
from sqlalchemy.orm import Session, aliased
from sqlmodel import col, select

from healkit.core.contracts.execution import utc_now
from healkit.core.contracts.patches import Edit
from healkit.core.store.database import Database
from healkit.core.store.models import CodeVault, ExecutionLog, PatchRow, Revision
from healkit.errors import UsageInvalid
from healkit.parts.explain.source import Source
from healkit.parts.learn.tables import FixMemoryRow
from healkit.parts.learn.templates import BLOCK, FRESH, HOLE, Sites, Template, check_template, templates_of
from healkit.parts.sanitizer.sanitizer import sanitize

#: The newest fixes that are remembered, how many of their codes tell how often a template fits where it is wrong,
#: and the newest imports.
_FIXES_MAX, _CODES_MAX, _IMPORTED_MAX = 500, 100, 1000
#: A place that a template fits is the right one this often before anything is known, counted as so many places.
_RIGHT, _PLACES = 0.02, 8.0
_VERSION, _FILE_BYTES_MAX = 1, 1_000_000


class Outcome(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """Template, its failures (an exception's name, empty for a wrong result), and its outcomes.

    types: Types seen for each hole, empty if unknown.
    good, bad: Patches that were kept, and patches that were rolled back or declined.
    """

    old: Annotated[str, msgspec.Meta(max_length=2000)]
    new: Annotated[str, msgspec.Meta(max_length=2000)]
    place: Annotated[str, msgspec.Meta(max_length=40)] = ""
    failure: Annotated[str, msgspec.Meta(max_length=80)] = ""
    types: Annotated[
        list[list[Annotated[str, msgspec.Meta(max_length=40)]]], msgspec.Meta(max_length=60)
    ] = []
    good: Annotated[int, msgspec.Meta(ge=0, le=1000)] = 0
    bad: Annotated[int, msgspec.Meta(ge=0, le=1000)] = 0


class _Exported(msgspec.Struct, forbid_unknown_fields=True):
    version: int
    fixes: Annotated[list[Outcome], msgspec.Meta(max_length=_IMPORTED_MAX)]


@dataclasses.dataclass(frozen=True)
class Fix:
    """Past patch: its code before and after, whether it is still active, and the failure that it answered."""

    source: str
    before: str
    after: str
    stands: bool
    failure: str = ""
    fingerprint: str = ""
    values: Mapping[str, Any] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Recalled:
    """Edit that a template makes: its node, how likely it is right, and the fix that it comes from.

    guard: It adds a statement, which may only avoid a failure.
    """

    edit: Edit
    node: ast.AST
    chance: float
    source: str
    guard: bool


@dataclasses.dataclass
class _Known:
    """Outcome of a template over all fixes: its sources, active ones last; fingerprints of the failures."""

    outcome: Outcome
    sources: list[str] = dataclasses.field(default_factory=list)
    fingerprints: set[str] = dataclasses.field(default_factory=set)

    @property
    def template(self) -> Template:
        """Template of the outcome."""
        return Template(self.outcome.old, self.outcome.new, self.outcome.place)


class Recollection:
    """Templates of fixes, by failure, at one moment."""

    def __init__(self, fixes: Sequence[Fix], imported: Iterable[Outcome] = ()) -> None:
        self.known: dict[tuple[Template, str], _Known] = {}
        codes = []
        for fix in fixes:
            templates = _templates(fix.before, fix.after, json.dumps(fix.values, default=str))
            codes += [fix.before] if templates else []
            for template, types in templates:
                self._add(template, types, fix)
        self._codes = codes[-_CODES_MAX:]
        for outcome in imported:
            record = self._known(
                Template(outcome.old, outcome.new, outcome.place), outcome.failure, len(outcome.types)
            )
            record.outcome.good += outcome.good
            record.outcome.bad += outcome.bad
            record.sources.insert(0, "an imported fix")
            for recorded_kinds, kinds in zip(record.outcome.types, outcome.types, strict=False):
                recorded_kinds.extend(kind for kind in kinds if kind not in recorded_kinds)

    def _known(self, template: Template, failure: str, holes: int) -> _Known:
        blank = Outcome(template.old, template.new, template.place, failure, [[] for _ in range(holes)])
        return self.known.setdefault((template, failure), _Known(blank))

    def _add(self, template: Template, types: Sequence[str], fix: Fix) -> None:
        record = self._known(template, fix.failure, len(types))
        record.outcome.good += fix.stands
        record.outcome.bad += not fix.stands
        record.fingerprints.add(fix.fingerprint)
        for recorded_kinds, kind in zip(record.outcome.types, types, strict=False):
            if kind not in recorded_kinds:
                recorded_kinds.append(kind)
        if fix.stands:
            record.sources.append(fix.source)

    def edits(
        self, source: Source, failure: str, fingerprint: str = "", values: Mapping[str, Any] | None = None
    ) -> Iterator[Recalled]:
        """Yield the edits of the matching templates, without templates with mostly bad outcomes.

        failure: Name of the exception, empty for a wrong result.
        values: Values of names, such as the failing arguments.
        """
        sites = Sites(source)
        for (template, kind), record in self.known.items():
            outcome = record.outcome
            if kind != failure or outcome.bad >= outcome.good:
                continue
            fits = [fit for fit in sites.fits(template) if _typed(outcome.types, fit.types(values or {}))]
            chance = self._chance(record) if fits else 0.0
            if fingerprint in record.fingerprints and fingerprint:
                chance = 1 - (1 - chance) / 2  # the very same failure
            for fit in fits:
                for edit in sites.edits(template, fit):
                    yield Recalled(edit, fit.node, chance, _told(record), template.adds)

    def _chance(self, known: _Known) -> float:
        """Return how likely the template is right at a matching place: Beta-smoothed over all such places."""
        places = sum(self._fits(at, known.template) for at in range(len(self._codes)))
        good, bad = known.outcome.good, known.outcome.bad
        return (good + _RIGHT * _PLACES) / (max(places, good + bad) + _PLACES)

    def _fits(self, at: int, template: Template) -> int:
        sites = self._sites.get(at) or self._sites.setdefault(at, Sites(Source(self._codes[at])))
        return sum(1 for _ in sites.fits(template))

    @functools.cached_property
    def _sites(self) -> dict[int, Sites]:
        return {}


@functools.lru_cache(maxsize=2 * _FIXES_MAX)
def _templates(before: str, after: str, values: str) -> list[tuple[Template, tuple[str, ...]]]:
    return templates_of(before, after, json.loads(values))


def _typed(seen: Sequence[Sequence[str]], types: Sequence[str]) -> bool:
    """Return False if a hole stands for a known type that it never had before."""
    return all(
        not kind or "" in kinds or not kinds or kind in kinds
        for kinds, kind in zip(seen, types, strict=False)
    )


def _told(known: _Known) -> str:
    good, bad = known.outcome.good, known.outcome.bad
    times = f"kept {good} time{'' if good == 1 else 's'}"
    against = f", taken back {bad} time{'' if bad == 1 else 's'}" if bad else ""
    return f"as in {known.sources[-1]}, {times}{against}"


class FixMemory:
    """Memory of one database's fixes; every method raises `DatabaseError`s."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def recall(self, persona: str | None = None) -> Recollection:
        """Return the memory.

        persona: Use only that persona's tools and the imports.
        """
        with self._database.read() as session:
            return Recollection(_fixes(session, persona), _imported(session))

    def show(self) -> list[dict[str, Any]]:
        """Return a row for each template, those with most outcomes first."""
        records = sorted(self.recall().known.values(), key=lambda one: -(one.outcome.good + one.outcome.bad))
        return [
            {
                "old": outcome.old,
                "new": outcome.new,
                "place": outcome.place or "anywhere",
                "failure": outcome.failure or "wrong result",
                "kept": outcome.good,
                "against": outcome.bad,
                "proposed": outcome.good > outcome.bad,
                "source": sources[-1] if sources else "",
            }
            for outcome, sources in ((record.outcome, record.sources) for record in records)
        ]

    def reset(self) -> None:
        """Forget everything: the imports, and the fixes up to now; the vault's history stays."""
        with self._database.write() as session:
            session.execute(delete(FixMemoryRow))
            session.add(FixMemoryRow(kind="reset", created_at=utc_now()))

    def export(self, path: Path) -> int:
        """Write templates with their outcomes to a file, and return how many.

        Only code whose names and constants are all Python's own, or holes, is exported; the rest is left out.
        """
        outcomes = [record.outcome for record in self.recall().known.values()]
        public_outcomes = [
            outcome
            for outcome in outcomes
            if _is_public(outcome) and not any(sanitize([outcome.old, outcome.new])[1])
        ]
        for public_outcome in public_outcomes:
            public_outcome.types = [
                [kind if kind in _NAMES else "" for kind in kinds] for kinds in public_outcome.types
            ]
        path.write_bytes(
            msgspec.json.format(msgspec.json.encode(_Exported(_VERSION, public_outcomes)), indent=1)
        )
        return len(public_outcomes)

    def import_(self, path: Path) -> int:
        """Read templates from a file that `export` wrote, and return how many; they are tried like any others.

        Raises `UsageInvalid` for anything else, and then changes nothing.
        """
        try:
            with path.open("rb") as file:
                content = file.read(_FILE_BYTES_MAX + 1)
            if len(content) > _FILE_BYTES_MAX:
                raise ValueError(f"it has more than {_FILE_BYTES_MAX} bytes")
            read = msgspec.json.decode(content, type=_Exported)
            if read.version != _VERSION:
                raise ValueError(f"it is of version {read.version}, not {_VERSION}")
            for outcome in read.fixes:
                check_template(Template(outcome.old, outcome.new, outcome.place))
                if not _is_public(outcome):
                    raise ValueError(f"{outcome.old!r} has names or values that an export cannot contain")
        except (OSError, ValueError, RecursionError) as error:  # msgspec's errors are ValueErrors
            raise UsageInvalid(
                f"{str(path)!r} cannot be imported: {error}",
                hint="Import a file that `healkit learn export` wrote.",
            ) from None
        with self._database.write() as session:
            for outcome in read.fixes:
                session.add(
                    FixMemoryRow(kind="import", outcome=msgspec.to_builtins(outcome), created_at=utc_now())
                )
        return len(read.fixes)


# What may leave: names of Python itself and of its common modules, and constants that are not data.

_MODULES = (math, re, json, string, datetime, itertools, collections, statistics, functools)
_TYPES = (
    str,
    bytes,
    list,
    tuple,
    dict,
    set,
    int,
    float,
    datetime.datetime,
    datetime.date,
    datetime.timedelta,
)
_NAMES = frozenset(
    itertools.chain(
        dir(builtins), keyword.kwlist, keyword.softkwlist, *map(dir, (*_MODULES, *_TYPES)),
        ("math", "re", "json", "string", "datetime", "itertools", "collections", "statistics", "functools"),
        ("key", "reverse", "default", "start", "encoding", "errors", "newline", "indent", "sep", "end", "maxsplit"),
    )
)  # fmt: skip
_CONSTANTS = frozenset(map(repr, (0, 1, -1, 2, 10, 100, 0.0, 1.0, "", " ", ",", ", ", "\n", "r", "w", "utf-8", None,
                                  True, False, ...)))  # fmt: skip
_IDENTIFIERS = ("id", "attr", "arg", "name", "module", "asname", "names", "rest")


def _is_public(outcome: Outcome) -> bool:
    """Return whether code, place and failure contain only Python's own names, holes and common constants."""
    place, failure = outcome.place, outcome.failure
    if not (place in ("", BLOCK) or re.fullmatch(r"[A-Za-z]+\.[a-z]+", place)):
        return False
    if failure and failure not in _NAMES:
        return False
    nodes = [node for text in (outcome.old, outcome.new) for node in ast.walk(ast.parse(text))]
    for node in nodes:
        if isinstance(node, ast.Constant) and repr(node.value) not in _CONSTANTS:
            return False
        for field in _IDENTIFIERS:
            value = getattr(node, field, None)
            words = value if isinstance(value, list) else [value]
            if any(isinstance(w, str) and w not in _NAMES and not w.startswith((HOLE, FRESH)) for w in words):
                return False
    return True


# Reading the fixes off the vault.


def _imported(session: Session) -> list[Outcome]:
    imports = select(FixMemoryRow).where(FixMemoryRow.kind == "import")
    rows = session.scalars(imports.order_by(col(FixMemoryRow.id).desc()).limit(_IMPORTED_MAX))
    return [msgspec.convert(row.outcome, Outcome) for row in rows]


def _fixes(session: Session, persona: str | None) -> list[Fix]:
    """Return the newest fixes, oldest first: revisions and declined requests, of Python code, since the last reset.

    A revision with the code of an earlier one rolls back everything since. A person's own edit counts as a fix only if
    a failure led to it.
    """
    since = session.scalar(select(func.max(FixMemoryRow.created_at)).where(FixMemoryRow.kind == "reset"))
    chains, changes = collections.defaultdict[Any, list[str]](list), list[tuple[Any, str, list[str] | None]]()
    for row in _changes(session, Revision, persona):
        revision: Revision = row[0]
        chain = chains[revision.tool_name, revision.target_persona]
        if revision.code_hash in chain:
            del chain[chain.index(revision.code_hash) + 1 :]
        elif not revision.draft:
            chain.append(revision.code_hash)
            if revision.motivating_log_id is not None or revision.author not in ("person", "seed"):
                changes.append((row, f"revision {revision.number} of {revision.tool_name}", chain))
    declined = (row for row in _changes(session, PatchRow, persona) if row[0].state == "declined")
    changes += [(row, f"a declined patch of {row[0].tool_name}", None) for row in declined]
    changes = [
        change for change in changes if change[0][1] and (since is None or change[0][0].created_at > since)
    ]
    fixes = []
    for row, source, chain_of in sorted(changes, key=lambda one: one[0][0].created_at)[-_FIXES_MAX:]:
        patch, before, after, ename, mark, arguments = row
        fix = Fix(
            source, before, after, chain_of is not None and patch.code_hash in chain_of, ename or "", mark or "",
            arguments if isinstance(arguments, dict) else {},
        )  # fmt: skip
        fixes.append(fix)
    return fixes


def _changes(session: Session, kind: Any, persona: str | None) -> list[Any]:
    """Return the revisions or requests, each with both codes, and the failure that it answered."""
    base: Any = aliased(Revision)
    before: Any = aliased(CodeVault)
    after: Any = aliased(CodeVault)
    same = (
        base.tool_name == kind.tool_name,
        base.target_persona == kind.target_persona,
        base.number == kind.parent,
    )
    log = (ExecutionLog.ename, ExecutionLog.fingerprint, ExecutionLog.arguments)
    columns: tuple[Any, ...] = (kind, before.code, after.code, *log)
    statement = (
        sqlalchemy.select(*columns)
        .join(after, after.hash == kind.code_hash)
        .outerjoin(base, sqlalchemy.and_(*same))
        .outerjoin(before, before.hash == base.code_hash)
        .outerjoin(ExecutionLog, kind.motivating_log_id == ExecutionLog.id)
        .where(after.type == "python")
        .order_by(kind.id)
    )
    if persona is not None:
        statement = statement.where(kind.target_persona == persona)
    return list(session.execute(statement))
