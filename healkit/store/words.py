"""Words looked for in tracebacks.

A user types anything: words, a path, `KeyError: 'x'`, half a quotation. None of it is the full-text index's own
query language. What is matched:

- letters and digits make words, everything else only separates them, `_` too: `my_func` is `my` next to `func`;
- each word typed is found at the beginning of a word of the traceback (`Zero` finds `ZeroDivisionError`, `Division`
  does not), whatever its case, on SQLite whatever its accents;
- what hangs together, such as `lib/foo.py`, must stand together, in that order;
- what is in double quotes must stand so, in whole words;
- several of them must all be there, in any order;
- a text without any letter or digit is looked for as it stands, which no index helps with.

SQLite's index is FTS5 with its tokenizer unicode61; its rows are numbered by time (migration 0002), so that the
newest matches come first without a sort. `facts` holds what is filtered by most, so that a rare tool's common word is
not looked for among everybody's; the columns themselves decide in the end.
"""

from __future__ import annotations

import re
import string
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Select, column, func, literal, literal_column, select, table
from sqlalchemy.dialects.postgresql import REGCONFIG

from healkit.store.models import ExecutionLog
from healkit.store.rows import LOG

_FTS = table("executionlog_fts", column("rowid"))
_FTS_ROWS = table("executionlog_fts_rows", column("key"), column("log_id"))
_KEY_ID_BITS = 21

_PIECE = re.compile(r'"([^"]*)"|(\S+)')
_WORD = re.compile(r"[^\W_]")
#: What separates words besides spaces on PostgreSQL, whose own parser would keep paths and names whole.
_PUNCTUATION = string.punctuation
_SPACES = str.maketrans(dict.fromkeys(_PUNCTUATION, " "))


def has_words(text: str) -> bool:
    """Whether there is a letter or digit in it, which is what the index knows."""
    return _WORD.search(text) is not None


def newest_matches(text: str, facts: list[str]) -> Select[Any]:
    """The rows whose tracebacks hold the text, newest first, on SQLite; add conditions and a limit.

    facts: exact values of filtered columns that the index knows too; they must be filtered by themselves as well.
    """
    return (
        select(ExecutionLog)
        .select_from(
            _FTS.join(_FTS_ROWS, _FTS_ROWS.c.key == _FTS.c.rowid).join(LOG, LOG.c.id == _FTS_ROWS.c.log_id)
        )
        # A row is looked up by its id, never the other way round, whatever the planner makes of the filters.
        .with_hint(LOG, "NOT INDEXED", "sqlite")
        .where(literal_column("executionlog_fts").op("MATCH")(_fts5(text, facts)))
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


def holds_words(text: str) -> ColumnElement[bool]:
    """The condition on PostgreSQL, over the very expression that migration 0002 has an index on."""
    spaced = func.translate(
        func.left(LOG.c.error_traceback, literal_column("100000")),
        literal_column(_quoted(_PUNCTUATION)),
        literal_column(_quoted(" " * len(_PUNCTUATION))),
    )
    simple = literal_column("'simple'", REGCONFIG)
    wanted = func.to_tsquery(simple, literal(_tsquery(text)))
    return LOG.c.error_traceback.is_not(None) & func.to_tsvector(simple, spaced).op("@@")(wanted)


def _pieces(text: str) -> list[tuple[str, bool]]:
    """What must stand together, and whether its last word may go on."""
    found = ((quoted or loose, not quoted) for quoted, loose in _PIECE.findall(text))
    return [(piece, more) for piece, more in found if has_words(piece)]


def _fts5(text: str, facts: list[str]) -> str:
    """FTS5's expression for it; all that was typed is in quotes, so that none of it is an operator."""
    parts = [f"{{traceback}} : {_phrase(piece)}{' *' if more else ''}" for piece, more in _pieces(text)]
    parts += [f"{{facts}} : {_phrase(piece)}" for fact in facts for piece, _ in _pieces(f'"{fact}"')]
    return " AND ".join(parts)


def _phrase(piece: str) -> str:
    doubled = piece.replace('"', '""')
    return f'"{doubled}"'


def _tsquery(text: str) -> str:
    """PostgreSQL's expression for it; each word is in quotes and has no punctuation left."""
    parts = []
    for piece, more in _pieces(text):
        words = [f"'{word}'" for word in piece.translate(_SPACES).split() if has_words(word)]
        parts.append(f"({' <-> '.join(words)}{':*' if more else ''})")
    return " & ".join(parts)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
