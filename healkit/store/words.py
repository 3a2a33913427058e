"""Words looked for in tracebacks.

A user types anything: words, a path, `KeyError: 'x'`, half a quotation. None of it is the full-text index's own
query language. What is matched:

- letters and digits make words, everything else only separates them, `_` too: `my_func` is `my` next to `func`;
- a word is found whole, whatever its case, on SQLite whatever its accents; a word of three letters or more that is
  nowhere in the log is taken for the beginning of longer ones: `Zero` finds `ZeroDivisionError` (`Division` does
  not), and `Zero*` does so in any case;
- what hangs together, such as `lib/foo.py`, must stand together, in that order;
- what is in double quotes must stand so, in whole words;
- several of them must all be there, in any order;
- a text without any letter or digit is looked for as it stands, which no index helps with.

Beginnings are not looked for at once, because an index has to gather all the words that begin so before it knows the
newest row: 0.4 s for a common beginning in 100,000 tracebacks, where a whole word is read off in 1 ms.

SQLite's index is FTS5 with its tokenizer unicode61; its rows are numbered by time (migration 0002), so that the
newest matches come first without a sort. `facts` holds what is filtered by most, so that a rare tool's common word is
not looked for among everybody's; the columns themselves decide in the end.
"""

from __future__ import annotations

import re
import string
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Select, column, func, literal, literal_column, select, table
from sqlalchemy.dialects.postgresql import REGCONFIG
from sqlalchemy.orm import Session

from healkit.store.models import LOG, ExecutionLog

_FTS = table("executionlog_fts", column("rowid"))
_FTS_ROWS = table("executionlog_fts_rows", column("key"), column("log_id"))
_KEY_ID_BITS = 21

_PIECE = re.compile(r'"([^"]*)"|(\S+)')
_WORD = re.compile(r"[^\W_]")
#: What separates words besides spaces on PostgreSQL, whose own parser would keep paths and names whole.
_PUNCTUATION = string.punctuation
_SPACES = str.maketrans(dict.fromkeys(_PUNCTUATION, " "))
#: A shorter word is never taken for a beginning: there are too many words that begin so.
_BEGINNING_MIN_CHARS = 3


class Piece(NamedTuple):
    """Words that must stand together; whether the last of them may go on."""

    text: str
    goes_on: bool


def has_words(text: str) -> bool:
    """Whether there is a letter or digit in it, which is what the index knows."""
    return _WORD.search(text) is not None


def read_pieces(session: Session, text: str) -> list[Piece]:
    """What was typed, piece by piece, each with whether its last word may go on; asks the index."""
    found = []
    for quoted, loose in _PIECE.findall(text):
        piece = Piece(quoted or loose, goes_on=loose.endswith("*"))
        if not has_words(piece.text):
            continue
        if loose and not piece.goes_on and len(_last_word(loose)) >= _BEGINNING_MIN_CHARS:
            piece = Piece(loose, goes_on=not _is_anywhere(session, piece))
        found.append(piece)
    return found


def newest_matches(pieces: list[Piece], facts: list[str]) -> Select[Any]:
    """The rows whose tracebacks hold all pieces, newest first, on SQLite; add conditions and a limit.

    facts: exact values of filtered columns that the index knows too; they must be filtered by themselves as well.
    """
    return (
        select(ExecutionLog)
        .select_from(
            _FTS.join(_FTS_ROWS, _FTS_ROWS.c.key == _FTS.c.rowid).join(LOG, LOG.c.id == _FTS_ROWS.c.log_id)
        )
        # A row is looked up by its id, never the other way round, whatever the planner makes of the filters.
        .with_hint(LOG, "NOT INDEXED", "sqlite")
        .where(_matching(pieces, facts))
        .order_by(_FTS.c.rowid.desc())
    )


def match_key(moment: datetime, log_id: int = 0) -> int:
    """A row's number in SQLite's index: the ms of its time, then the low bits of its id."""
    milliseconds = (moment.astimezone(UTC) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
    return (milliseconds << _KEY_ID_BITS) + log_id % (1 << _KEY_ID_BITS)


def before(key: int) -> ColumnElement[bool]:
    """Older than the row with that number."""
    return _FTS.c.rowid < key


def from_key(key: int) -> ColumnElement[bool]:
    """As new as the row with that number, or newer."""
    return _FTS.c.rowid >= key


def oldest_first(statement: Select[Any]) -> Select[Any]:
    """The same matches the other way round."""
    return statement.order_by(None).order_by(_FTS.c.rowid)


def holds_words(pieces: list[Piece]) -> ColumnElement[bool]:
    """The condition on PostgreSQL, over the very expression that migration 0002 has an index on."""
    spaced = func.translate(
        func.left(LOG.c.error_traceback, literal_column("100000")),
        literal_column(_quoted(_PUNCTUATION)),
        literal_column(_quoted(" " * len(_PUNCTUATION))),
    )
    simple = literal_column("'simple'", REGCONFIG)
    wanted = func.to_tsquery(simple, literal(" & ".join(map(_tsquery, pieces))))
    return LOG.c.error_traceback.is_not(None) & func.to_tsvector(simple, spaced).op("@@")(wanted)


def _is_anywhere(session: Session, piece: Piece) -> bool:
    """Whether any traceback holds the piece as it stands."""
    if session.get_bind().dialect.name == "sqlite":
        statement = select(_FTS.c.rowid).where(_matching([piece], [])).limit(1)
    else:
        statement = select(LOG.c.id).where(holds_words([piece])).limit(1)
    return session.scalar(statement) is not None


def _matching(pieces: list[Piece], facts: list[str]) -> ColumnElement[bool]:
    """FTS5's condition; all that was typed is in quotes, so that none of it is an operator."""
    parts = [f"{{traceback}} : {_phrase(p.text)}{' *' if p.goes_on else ''}" for p in pieces]
    parts += [f"{{facts}} : {_phrase(fact)}" for fact in facts if has_words(fact)]
    return literal_column("executionlog_fts").op("MATCH")(" AND ".join(parts))


def _phrase(text: str) -> str:
    doubled = text.replace('"', '""')
    return f'"{doubled}"'


def _tsquery(piece: Piece) -> str:
    """PostgreSQL's expression for it; each word is in quotes and has no punctuation left."""
    words = [f"'{word}'" for word in piece.text.translate(_SPACES).split() if has_words(word)]
    return f"({' <-> '.join(words)}{':*' if piece.goes_on else ''})"


def _last_word(text: str) -> str:
    return text.translate(_SPACES).split()[-1]


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
