"""Pages of the log, and filters as SQL conditions.

Pages are keyset pages: the next page begins after the last row of this one, found by index. So page 10,000 costs as
much as page 1, while OFFSET would read all rows before it (benchmarks/bench_log_scale.py). Rows are ordered by time,
then by id, because a row that waited in the spool has a late id and an early time. (Among matches of a text on SQLite,
rows of the same millisecond are ordered by id.)

Conditions on `status`, `origin` and `persona` are literals in the SQL text. The planner uses a partial index only if it
can prove its condition. SQLite plans again for a bound value; a generic plan of PostgreSQL does not.
"""

from __future__ import annotations

import dataclasses
import re
import string
import unicodedata
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Select,
    and_,
    column,
    func,
    literal,
    literal_column,
    or_,
    select,
    table,
    text,
    tuple_,
)
from sqlalchemy.dialects.postgresql import REGCONFIG
from sqlalchemy.orm import Session

from healkit.core.contracts.execution import (
    STATUSES,
    TRIED_COUNTED_MAX,
    TRIED_ORIGINS,
    Filters,
    Moment,
    status_of,
)
from healkit.core.store.models import DAYS, GROUPS, LOG, ExecutionLog
from healkit.errors import TOOL_CODES, UsageInvalid, check_whole

if TYPE_CHECKING:
    import pandas as pd


@dataclasses.dataclass(frozen=True)
class Page:
    """Rows of the log, newest first.

    next_before_id: Requests the next page, of older rows; None at the end.
    next_after_id: Requests the previous page, of newer rows. It is None at the beginning, where new rows arrive: then
        request rows after the first row's id.
    left_out: Number of trials and searches that this page omits because of `tried=False`, up to `TRIED_COUNTED_MAX`.
        From the newest page to the oldest, each of them is counted once.
    """

    rows: list[ExecutionLog]
    next_before_id: int | None = None
    next_after_id: int | None = None
    left_out: int = 0

    def __iter__(self) -> Iterator[ExecutionLog]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def to_pandas(self) -> pd.DataFrame:
        """Return the rows as a DataFrame with the table's columns in their order, indexed by id."""
        import pandas as pd

        names = [column.name for column in LOG.columns]
        records = [[getattr(row, name) for name in names] for row in self.rows]
        return pd.DataFrame(records, columns=names).set_index("id")


def read_page(
    session: Session,
    filters: Filters,
    limit: int,
    before_id: int | None = None,
    after_id: int | None = None,
    *,
    count: bool = True,
) -> Page:
    """Read at most `limit` rows: the newest, those before one row, or those right after one.

    count: False if `left_out` is not needed.

    Raises `ValueError` if both a row before and a row after are given.
    """
    if before_id is not None and after_id is not None:
        raise ValueError(f"before_id={before_id} and after_id={after_id} cannot both be given")
    check_whole("limit", limit)
    limit = max(1, limit)
    anchor = before_id if after_id is None else after_id
    newer = after_id is not None
    time = None if anchor is None else session.scalar(select(LOG.c.timestamp).where(LOG.c.id == anchor))
    statement = _statement(session, filters, anchor, time, newer=newer)
    rows = list(session.scalars(statement.limit(limit + 1)))
    more, rows = len(rows) > limit, rows[:limit]
    left_out = 0
    if filters.leaves_out_tried and count:
        end = rows[-1] if more else None
        left_out = _left_out(session, filters, anchor, time, end, newer=newer)
    if newer:
        rows.reverse()
        return Page(rows, rows[-1].id if rows else None, rows[0].id if more else None, left_out)
    after = rows[0].id if rows and before_id is not None else None
    return Page(rows, rows[-1].id if more else None, after, left_out)


def oldest_first(session: Session, filters: Filters, last: tuple[datetime, int] | None) -> Select[Any]:
    """Select the filtered rows, oldest first, after the row with that time and id."""
    time, anchor = (None, None) if last is None else last
    return _statement(session, filters, anchor, time, newer=True)


def newest_first(conditions: list[ColumnElement[bool]]) -> Select[Any]:
    """Select the rows that meet the conditions, in the log's order."""
    return select(ExecutionLog).where(*conditions).order_by(LOG.c.timestamp.desc(), LOG.c.id.desc())


def _statement(
    session: Session,
    filters: Filters,
    anchor: int | None,
    time: datetime | None,
    *,
    newer: bool,
    end: ExecutionLog | None = None,
) -> Select[Any]:
    """Select the filtered rows older than that row, newest first, or `newer` than it, oldest first.

    end: The row before which the selection ends; None is the end of the log.
    """
    pieces = read_pieces(session, filters.text or "")
    on_sqlite = session.get_bind().dialect.name == "sqlite"
    if on_sqlite:
        pieces = spelled_out(session, pieces)
    _refuse_long_search(session, filters, pieces, on_sqlite=on_sqlite)
    if pieces and on_sqlite:
        statement = _matches(pieces, filters)
        if newer:
            statement = text_oldest_first(statement)
    else:
        last = None if end is None else end.timestamp
        narrowed = _narrowed(filters, time, last) if newer else _narrowed(filters, last, time)
        order = [LOG.c.timestamp, LOG.c.id]
        statement = select(ExecutionLog)
        if filters.tool is not None and filters.status != "REFUSED" and not on_sqlite:
            # For an equality, PostgreSQL uses the index of all tools, and reads a whole log for a tool's few
            # failures.
            statement = statement.where(LOG.c.tool_name.between(filters.tool, filters.tool))
            order, narrowed = [LOG.c.tool_name, *order], dataclasses.replace(narrowed, tool=None)
        statement = statement.where(*_all_conditions(_found_words(session, pieces), narrowed))
        statement = statement.order_by(*(order if newer else (part.desc() for part in order)))
    matched = bool(pieces) and on_sqlite
    if anchor is not None:
        statement = statement.where(_beyond(anchor, time, newer=newer, matched=matched))
    if end is not None:
        assert end.id is not None
        statement = statement.where(_beyond(end.id, end.timestamp, newer=not newer, matched=matched))
    return statement


def _narrowed(filters: Filters, oldest: datetime | None, newest: datetime | None) -> Filters:
    """Return the filters limited to rows between two times, because SQLite uses only the first of several bounds."""
    since = None if filters.since is None else utc_moment(filters.since)
    until = None if filters.until is None else utc_moment(filters.until)
    if oldest is not None and (since is None or since < oldest):
        since = oldest
    if newest is not None and (until is None or until > newest):
        until = newest + timedelta(microseconds=1)
    return dataclasses.replace(filters, since=since, until=until)


def _refuse_long_search(session: Session, filters: Filters, pieces: list[Piece], *, on_sqlite: bool) -> None:
    """Raise `UsageInvalid` for a text without an index, if too many failures would have to be read."""
    wide = [piece.text for piece in pieces if piece.goes_on and piece.words is None]
    if not filters.text or (pieces and not (wide and on_sqlite)):
        return
    # A prefix needs the whole index of words; for other texts, the other filters decide what is read.
    chosen = Filters() if pieces else dataclasses.replace(filters, text=None, status=None, tried=True)
    failures = select(LOG.c.id).where(status_is("FAILURE"), *conditions_of(chosen))
    if session.scalar(failures.offset(SCANNED_MAX).limit(1)) is None:
        return
    raise UsageInvalid(
        f"text={filters.text!r} cannot be looked for among more than {SCANNED_MAX:,} failures: "
        + (f"many words begin with {wide[0].strip('*')!r}." if wide else "it has no letter or digit."),
        hint="Type more of the word."
        if wide
        else "Type a word, or narrow the search with tool, since or until.",
    )


def _left_out(
    session: Session,
    filters: Filters,
    anchor: int | None,
    time: datetime | None,
    end: ExecutionLog | None,
    *,
    newer: bool,
) -> int:
    """Count the trials and searches from that row to the page's `end`; None is the end of the log."""
    both = dataclasses.replace(filters, tried=True)
    statement = _statement(session, both, anchor, time, newer=newer, end=end).where(_tried_only(filters))
    subquery = statement.with_only_columns(LOG.c.id).order_by(None).limit(TRIED_COUNTED_MAX).subquery()
    return session.scalar(select(func.count()).select_from(subquery)) or 0


def count_refused(session: Session, filters: Filters) -> int:
    """Count the filtered calls that were refused before any code ran, up to `TRIED_COUNTED_MAX`."""
    if filters.given.keys() <= {"tool", "persona", "fingerprint"} and filters.tried:
        # Counts by day and group contain them; reading rows would mean reading those of all tools, or all
        # failures.
        last = LOG.alias("last")
        if filters.fingerprint is None:
            counts, total = DAYS.c, select(func.sum(DAYS.c.refused))
        else:
            counts, total = GROUPS.c, select(func.sum(GROUPS.c.failures))
            total = total.join(last, last.c.id == GROUPS.c.last_log_id).where(refused(last.c.error_code))
            total = total.where(GROUPS.c.fingerprint == filters.fingerprint)
        for own_column, value in ((counts.tool_name, filters.tool), (counts.persona, filters.persona)):
            total = total.where(own_column == value) if value is not None else total
        return min(int(session.scalar(total) or 0), TRIED_COUNTED_MAX)
    chosen = dataclasses.replace(filters, status="REFUSED")
    statement = _statement(session, chosen, None, None, newer=False)
    subquery = statement.with_only_columns(LOG.c.id).order_by(None).limit(TRIED_COUNTED_MAX).subquery()
    return session.scalar(select(func.count()).select_from(subquery)) or 0


def _found_words(session: Session, pieces: list[Piece]) -> list[ColumnElement[bool]]:
    """Return the conditions on rows with all pieces, for PostgreSQL, which assumes that searching a row takes no time.

    Words in few rows are looked up in their index first; common ones are found quickly in order of time.
    """
    if not pieces:
        return []
    # Written so that no index applies and the planner assumes a 50 % chance; else it reads all rows of a
    # common word.
    each = LOG.c.error_traceback.is_not(None), func.coalesce(holds_words(pieces), literal_column("false"))
    common = _in_newest(session, pieces) >= _COMMON_IN_20
    found = [] if common else _words_in_index(session, pieces, SCANNED_MAX + 1)
    return [*each] if common or len(found) > SCANNED_MAX else [LOG.c.id.in_(found), *each]


def _in_newest(session: Session, pieces: list[Piece]) -> int:
    """Count the rows with all pieces among the newest twenty failures."""
    failures = select(LOG.c.error_traceback).where(status_is("FAILURE")).order_by(LOG.c.timestamp.desc())
    among = failures.limit(20).subquery().c.error_traceback
    return len(session.execute(select(1).where(holds_words(pieces, among))).all())


def _words_in_index(session: Session, pieces: list[Piece], limit: int) -> Sequence[int]:
    """Return the ids of at most `limit` rows with all words, from their index alone.

    A query with any other condition would not use a bitmap scan.
    """
    with session.begin_nested() as settings:
        for name in ("enable_seqscan", "enable_indexscan", "enable_indexonlyscan"):
            session.execute(text(f"SET LOCAL {name} = off"))
        session.execute(text("SET LOCAL work_mem = '128MB'"))  # with less, rows of large logs are read again
        # Processes and a compiler would be started for the rows that it expects, ten times as many as there are.
        session.execute(text("SET LOCAL max_parallel_workers_per_gather = 0"))
        session.execute(text("SET LOCAL jit = off"))
        found = session.scalars(select(LOG.c.id).where(holds_words(pieces, together="&")).limit(limit)).all()
        settings.rollback()
    return found


def _all_conditions(words: list[ColumnElement[bool]], filters: Filters) -> list[ColumnElement[bool]]:
    """Return all conditions, for PostgreSQL or for a text that the full-text index cannot find."""
    conditions = [*conditions_of(filters), *words]
    if filters.text and not words:
        conditions.append(LOG.c.error_traceback.icontains(filters.text, autoescape=True))
    return conditions


def _beyond(anchor: int, time: datetime | None, *, newer: bool, matched: bool) -> ColumnElement[bool]:
    """Return the condition on rows older, or newer, than that row; matched: rows of SQLite's full-text index."""
    if time is None:
        # A deleted row no longer has a time; its id shows roughly where it was.
        return LOG.c.id > anchor if newer else LOG.c.id < anchor
    if matched:
        number = match_key(time, anchor)
        return from_key(number + 1) if newer else before(number)
    row, key = tuple_(LOG.c.timestamp, LOG.c.id), tuple_(time, anchor)
    condition: ColumnElement[bool] = row > key if newer else row < key
    return condition


def _matches(pieces: list[Piece], filters: Filters) -> Select[Any]:
    """Select by SQLite's full-text index, which is in order of time."""
    statement = newest_matches(pieces, indexed_facts(filters))
    statement = statement.where(*conditions_of(filters, by_index=False))
    # The rows' own times decide; these conditions only limit the part of the index that is read.
    if filters.since is not None:
        statement = statement.where(from_key(match_key(utc_moment(filters.since))))
    if filters.until is not None:
        end = utc_moment(filters.until) + timedelta(milliseconds=1)
        statement = statement.where(before(match_key(end)))
    return statement


def conditions_of(filters: Filters, *, by_index: bool = True) -> list[ColumnElement[bool]]:
    """Make a condition from each filter except `text`, which each kind of database searches in its own way.

    by_index: False prevents the planner from starting with a filter's index, if another way finds fewer rows.
    """
    conditions: list[ColumnElement[bool]] = []
    if filters.status is not None:
        conditions.append(status_is(filters.status))
        by_index = by_index and not _are_running(filters)
    # Refused calls have their own index; a tool's failures and a persona's rows may be millions.
    by_tool = by_index and filters.status != "REFUSED"
    if filters.leaves_out_refused:
        conditions.append(ran(LOG.c.error_code))
    if filters.persona not in {None, "default"} and by_tool:
        conditions.append(LOG.c.persona != literal_column("'default'"))  # the condition of an index
    for own_column, value, indexed in (
        (LOG.c.tool_name, filters.tool, by_tool),
        (LOG.c.persona, filters.persona, by_tool),
        (LOG.c.fingerprint, filters.fingerprint, by_index),
        (LOG.c.run_id, filters.run, by_index),
        (LOG.c.origin, filters.origin, by_tool),
    ):
        if value is not None:
            conditions.append((own_column if indexed else func.coalesce(own_column, "")) == value)
    if filters.leaves_out_tried:
        conditions += own_only() if by_index else [func.coalesce(LOG.c.origin, "").not_in(TRIED_ORIGINS)]
    if filters.since is not None:
        conditions.append(LOG.c.timestamp >= utc_moment(filters.since))
    if filters.until is not None:
        conditions.append(LOG.c.timestamp < utc_moment(filters.until))
    if filters.trace is not None:
        conditions.append(or_(LOG.c.trace_id == filters.trace, LOG.c.parent_trace_id == filters.trace))
    return conditions


def indexed_facts(filters: Filters) -> list[str]:
    """Return the filtered values that the full-text index has too; not FAILURE, as only failures have tracebacks."""
    status = None if filters.status in {None, "FAILURE", "REFUSED"} else filters.status
    tool = filters.tool
    if filters.leaves_out_tried:
        tool = OWN + (tool or "")
    facts = (tool, filters.persona, filters.fingerprint, filters.run, status)
    return [value for value in facts if value is not None]


def status_is(status: str) -> ColumnElement[bool]:
    """Return the condition on `status`, in upper or lower case; raise `ValueError` for an unknown one."""
    wanted = status_of(status)
    if wanted not in STATUSES:
        raise ValueError(f"status={status!r} is not one of {', '.join(STATUSES)}")
    if wanted == "REFUSED":
        return and_(status_is("FAILURE"), refused(LOG.c.error_code))
    return LOG.c.status == literal_column(f"'{wanted}'")


def refused(code: ColumnElement[Any]) -> ColumnElement[bool]:
    """Return the condition that a failure's code is that of a refused call, as in the partial index."""
    condition: ColumnElement[bool] = code.not_in([literal_column(f"'{ran}'") for ran in sorted(TOOL_CODES)])
    return condition


def ran(code: ColumnElement[Any]) -> ColumnElement[bool]:
    """Return the condition that a failure's code means that code ran; old rows without a code count too."""
    return or_(
        code.is_(None), code.in_([literal_column(f"'{tool_code}'") for tool_code in sorted(TOOL_CODES)])
    )


def _are_running(filters: Filters) -> bool:
    """Return True if the filters select running rows, which are few and have their own index."""
    return filters.status is not None and filters.status.upper() == "RUNNING"


def own_only() -> list[ColumnElement[bool]]:
    """Return the conditions that exclude trials and searches, as in the partial indexes."""
    return [LOG.c.origin != literal_column(f"'{origin}'") for origin in TRIED_ORIGINS]


def _tried_only(filters: Filters) -> ColumnElement[bool]:
    """Return the condition on trials and searches."""
    if _are_running(filters):
        return func.coalesce(LOG.c.origin, "").in_(TRIED_ORIGINS)
    return or_(*(LOG.c.origin == literal_column(f"'{origin}'") for origin in TRIED_ORIGINS))


def utc_moment(value: Moment) -> datetime:
    """Return the moment in UTC; a time without a zone is local."""
    if isinstance(value, str):
        value = datetime.fromisoformat(value)
    if not isinstance(value, datetime):
        value = datetime.combine(value, datetime.min.time())
    return value.astimezone(UTC)


# Full-text search of tracebacks.
#
# Users type anything: words, a path, `KeyError: 'x'`, an unclosed quotation. Nothing of it is the query language of the
# full-text index. The rules are:
#
# - letters and digits make words, every other character separates them, also `_`: `my_func` is `my` next to `func`;
# - a word matches as a whole, in upper or lower case, and on SQLite with any accents. A word of three letters or more
#   that the log does not contain is a prefix of longer words: `Zero` matches `ZeroDivisionError` (`Division` does not).
#   `Zero*` is always a prefix;
# - words that are typed without a space between them, such as `lib/foo.py`, must be adjacent, in that order;
# - words in double quotes must be adjacent too, as whole words;
# - several words must all be present, in any order;
# - a text without any letter or digit is searched for literally, without an index.
#
# A search without an index is refused if it would read more failures than `SCANNED_MAX`.
#
# Prefixes are a second attempt, because the index has to collect all words with that prefix before it can find the
# newest row. For a whole word, it reads the newest row directly. benchmarks/bench_log_scale.py measures both.
#
# SQLite's index is FTS5 with its tokenizer unicode61; its rows are numbered by time, so that the newest matches come
# first without a sort. Its column `facts` contains the most common filter values. So a common word of a rare tool is
# not searched for among all tools. The columns themselves make the final decision.


_FTS = table("executionlog_fts", column("rowid"))
_FTS_ROWS = table("executionlog_fts_rows", column("key"), column("log_id"))
_KEY_ID_BITS = 21

_PIECE = re.compile(r'"([^"]*)"|(\S+)')
_WORD = re.compile(r"[^\W_]")
#: Separate words on PostgreSQL, like spaces; its own parser would keep paths and names whole.
_PUNCTUATION = string.punctuation
_SPACES = str.maketrans(dict.fromkeys(_PUNCTUATION, " "))
#: Marks executions other than trials and searches among the facts, alone and before the tool.
OWN = "healkitown"
#: Maximum number of failures that are read one by one for a text without an index.
SCANNED_MAX = 20_000
#: A text in at least this many of the newest twenty failures is searched for in order of time.
_COMMON_IN_20 = 2
#: Maximum length of a text. Each piece, and each word of a prefix, is looked up in the index: 40 KB of `a* a*
#: …` took longer than 10 s.
TEXT_MAX_CHARS = 1_000
#: A shorter word is never a prefix, because too many words begin with it.
_BEGINNING_MIN_CHARS = 3
#: A prefix of at most this many words is replaced by these words.
_SPELLED_MAX = 50


class Piece(NamedTuple):
    """Words that must be adjacent; `goes_on`: the last word may be a prefix.

    `words`: all words with that prefix; None while they are unknown, or if there are many.
    """

    text: str
    goes_on: bool
    words: tuple[str, ...] | None = None


def has_words(text: str) -> bool:
    """Return True for a text with a letter or digit, whose words the index contains."""
    return _WORD.search(text) is not None


def read_pieces(session: Session, text: str) -> list[Piece]:
    """Split a typed text into pieces; a last word that the index does not contain becomes a prefix."""
    pieces: list[Piece] = []
    if len(text) > TEXT_MAX_CHARS:
        raise UsageInvalid(
            f"A text to look for has at most {TEXT_MAX_CHARS:,} characters, and this one {len(text):,}.",
            hint="Take the words that matter: each piece is looked up by itself.",
        )
    for quoted, loose in _PIECE.findall(text):
        piece = Piece(quoted or loose, goes_on=loose.endswith("*"))
        if not has_words(piece.text):
            continue
        if loose and not piece.goes_on and len(_last_word(loose)) >= _BEGINNING_MIN_CHARS:
            piece = Piece(loose, goes_on=not _is_anywhere(session, piece))
        pieces.append(piece)
    return pieces


def spelled_out(session: Session, pieces: list[Piece]) -> list[Piece]:
    """Return the pieces with the words of each prefix, if they are few, on SQLite.

    The index returns whole words newest first, but not a prefix.
    """
    spelled: list[Piece] = []
    for piece in pieces:
        words = _words_beginning(session, piece) if piece.goes_on else None
        spelled.append(piece._replace(words=words))
    return spelled


def _words_beginning(session: Session, piece: Piece) -> tuple[str, ...] | None:
    """Return the indexed words with that prefix; None for more than `_SPELLED_MAX`."""
    folded = unicodedata.normalize("NFKD", _last_word(piece.text).lower())
    beginning = "".join(char for char in folded if not unicodedata.combining(char))
    session.connection().exec_driver_sql(
        "CREATE VIRTUAL TABLE IF NOT EXISTS temp.healkit_words USING fts5vocab(main, executionlog_fts, 'instance')"
    )
    # One query for each word: a list of words would count how often each of them occurs, which is slow.
    words: list[str] = []
    after, end = beginning, f"{beginning}\U0010ffff"
    while len(words) <= _SPELLED_MAX:
        term = session.connection().exec_driver_sql(
            "SELECT term FROM temp.healkit_words WHERE term >= ? AND term < ? LIMIT 1", (after, end)
        )
        if (word := term.scalar()) is None:
            return tuple(words)
        words.append(str(word))
        after = f"{word}\x01"
    return None


def newest_matches(pieces: list[Piece], facts: list[str]) -> Select[Any]:
    """Select the rows whose tracebacks contain all pieces, newest first, on SQLite; add conditions and a limit.

    facts: Exact values of filtered columns that the index also contains. The columns must be filtered too, without an
        index; otherwise the planner would start from it and test each row for the text.
    """
    return (
        select(ExecutionLog)
        .select_from(
            _FTS.join(_FTS_ROWS, _FTS_ROWS.c.key == _FTS.c.rowid).join(LOG, LOG.c.id == _FTS_ROWS.c.log_id)
        )
        .where(_matching(pieces, facts))
        .order_by(_FTS.c.rowid.desc())
    )


def match_key(moment: datetime, log_id: int = 0) -> int:
    """Return a row's number in SQLite's index: the milliseconds of its time, then the low bits of its id."""
    milliseconds = (moment.astimezone(UTC) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
    return (milliseconds << _KEY_ID_BITS) + log_id % (1 << _KEY_ID_BITS)


def before(key: int) -> ColumnElement[bool]:
    """Return the condition on matches older than the row with that number."""
    return _FTS.c.rowid < key


def from_key(key: int) -> ColumnElement[bool]:
    """Return the condition on matches at least as new as the row with that number."""
    return _FTS.c.rowid >= key


def text_oldest_first(statement: Select[Any]) -> Select[Any]:
    """Return the statement with its matches oldest first."""
    return statement.order_by(None).order_by(_FTS.c.rowid)


def holds_words(
    pieces: list[Piece], traceback: Any = LOG.c.error_traceback, together: str = "<->"
) -> ColumnElement[bool]:
    """Return the condition for PostgreSQL, over the exact expression that is indexed; `<->`: adjacent words."""
    spaced = func.translate(
        func.left(traceback, literal_column("100000")),
        literal_column(_quoted(_PUNCTUATION)),
        literal_column(_quoted(" " * len(_PUNCTUATION))),
    )
    simple = literal_column("'simple'", REGCONFIG)
    wanted = func.to_tsquery(simple, literal(" & ".join(_tsquery(piece, together) for piece in pieces)))
    condition: ColumnElement[bool] = traceback.is_not(None) & func.to_tsvector(simple, spaced).op("@@")(
        wanted
    )
    return condition


def _is_anywhere(session: Session, piece: Piece) -> bool:
    """Return True if any traceback contains the piece literally."""
    if session.get_bind().dialect.name == "sqlite":
        statement = select(_FTS.c.rowid).where(_matching([piece], [])).limit(1)
        return session.scalar(statement) is not None
    if _in_newest(session, [piece]):
        return True
    found = _words_in_index(session, [piece], SCANNED_MAX)
    return (
        session.scalar(select(LOG.c.id).where(LOG.c.id.in_(found), holds_words([piece])).limit(1)) is not None
    )


def _matching(pieces: list[Piece], facts: list[str]) -> ColumnElement[bool]:
    """Return FTS5's condition; all typed text is in quotes, so that no part of it acts as an operator."""
    parts = [f"{{traceback}} : {_expression(piece)}" for piece in pieces]
    parts += [f"{{facts}} : {_phrase(fact)}" for fact in facts if has_words(fact)]
    return literal_column("executionlog_fts").op("MATCH")(" AND ".join(parts))


def _expression(piece: Piece) -> str:
    """Return FTS5's expression for a piece: a phrase, or one for each possible last word."""
    if not piece.words:
        return f"{_phrase(piece.text)}{' *' if piece.goes_on else ''}"
    before = " ".join(piece.text.translate(_SPACES).split()[:-1])
    return f"({' OR '.join(_phrase(f'{before} {word}'.strip()) for word in piece.words)})"


def _phrase(text: str) -> str:
    doubled = text.replace('"', '""')
    return f'"{doubled}"'


def _tsquery(piece: Piece, together: str) -> str:
    """Return PostgreSQL's expression; each word is in quotes and contains no punctuation."""
    words = [f"'{word}'" for word in piece.text.translate(_SPACES).split() if has_words(word)]
    return f"({f' {together} '.join(words)}{':*' if piece.goes_on else ''})"


def _last_word(text: str) -> str:
    return text.translate(_SPACES).split()[-1]


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
