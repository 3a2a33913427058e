"""Full-text search of tracebacks.

People type anything: words, a path, `KeyError: 'x'`, half a quotation. None of it is the full-text index's own query
language. The rules of matching:

- letters and digits make words, everything else separates them, `_` too: `my_func` is `my` next to `func`;
- a word is matched whole, whatever its case, on SQLite whatever its accents; a word of three letters or more that is
  nowhere in the log is taken for the beginning of longer ones: `Zero` matches `ZeroDivisionError` (`Division` does
  not), and `Zero*` always is a beginning;
- words that are typed without a space between them, such as `lib/foo.py`, must stand together, in that order;
- words in double quotes must stand together too, as whole words;
- all of several words must be there, in any order;
- a text without any letter or digit is looked for as it stands, which no index helps with.

What no index answers is refused where more failures than `SCANNED_MAX` would be read for it.

Beginnings are a second attempt, because an index has to gather all the words that begin so before it knows the newest
row, where that of a whole word is read off at once. benchmarks/bench_log_scale.py measures both.

SQLite's index is FTS5 with its tokenizer unicode61; its rows are numbered by time, so that the newest
matches come first without a sort. Its column `facts` holds the values that are filtered by most, so that a common word
of a rare tool is not looked for among all tools; the columns themselves decide in the end.
"""

from __future__ import annotations

import re
import string
import unicodedata
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
#: Separates words on PostgreSQL, like spaces; its own parser would keep paths and names whole.
_PUNCTUATION = string.punctuation
_SPACES = str.maketrans(dict.fromkeys(_PUNCTUATION, " "))
#: Stands among the facts of executions that did more than try code out, alone and before the tool.
OWN = "healkitown"
#: Failures that are read one by one for a text that no index finds.
SCANNED_MAX = 20_000
#: A shorter word is never taken for a beginning: there are too many words that begin so.
_BEGINNING_MIN_CHARS = 3
#: A beginning of so many words is looked for as these words.
_SPELLED_MAX = 50


class Piece(NamedTuple):
    """Words that must stand together; `goes_on`: the last of them may be the beginning of a longer one.

    `words`: all that the last of them is the beginning of; None while that is not known, or where they are many.
    """

    text: str
    goes_on: bool
    words: tuple[str, ...] | None = None


def has_words(text: str) -> bool:
    """Return True for a text with a letter or digit, which the index holds words of."""
    return _WORD.search(text) is not None


def read_pieces(session: Session, text: str) -> list[Piece]:
    """Split a typed text into pieces; a last word that the index does not hold is taken for a beginning."""
    found = []
    for quoted, loose in _PIECE.findall(text):
        piece = Piece(quoted or loose, goes_on=loose.endswith("*"))
        if not has_words(piece.text):
            continue
        if loose and not piece.goes_on and len(_last_word(loose)) >= _BEGINNING_MIN_CHARS:
            piece = Piece(loose, goes_on=not _is_anywhere(session, piece))
        found.append(piece)
    return found


def spelled_out(session: Session, pieces: list[Piece]) -> list[Piece]:
    """Return the pieces with the words that each beginning stands for, where they are few, on SQLite.

    Whole words are read off the index from the newest on; a beginning is not.
    """
    found: list[Piece] = []
    for piece in pieces:
        words = _words_beginning(session, piece) if piece.goes_on else None
        found.append(piece._replace(words=words))
    return found


def _words_beginning(session: Session, piece: Piece) -> tuple[str, ...] | None:
    """Return the indexed words with that beginning; None for more than `_SPELLED_MAX`."""
    folded = unicodedata.normalize("NFKD", _last_word(piece.text).lower())
    beginning = "".join(char for char in folded if not unicodedata.combining(char))
    session.connection().exec_driver_sql(
        "CREATE VIRTUAL TABLE IF NOT EXISTS temp.healkit_words USING fts5vocab(main, executionlog_fts, 'instance')"
    )
    # One look for each word: a list of words would count how often each of them occurs, which takes long.
    found: list[str] = []
    after, end = beginning, f"{beginning}\U0010ffff"
    while len(found) <= _SPELLED_MAX:
        term = session.connection().exec_driver_sql(
            "SELECT term FROM temp.healkit_words WHERE term >= ? AND term < ? LIMIT 1", (after, end)
        )
        if (word := term.scalar()) is None:
            return tuple(found)
        found.append(str(word))
        after = f"{word}\x01"
    return None


def newest_matches(pieces: list[Piece], facts: list[str]) -> Select[Any]:
    """Select the rows whose tracebacks hold all pieces, newest first, on SQLite; add conditions and a limit.

    facts: exact values of filtered columns that the index holds too; the columns must be filtered as well, without the
    help of an index: the planner would start from it and test each row for the text.
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
    """Return a row's number in SQLite's index: the ms of its time, then the low bits of its id."""
    milliseconds = (moment.astimezone(UTC) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
    return (milliseconds << _KEY_ID_BITS) + log_id % (1 << _KEY_ID_BITS)


def before(key: int) -> ColumnElement[bool]:
    """Return the condition on matches older than the row with that number."""
    return _FTS.c.rowid < key


def from_key(key: int) -> ColumnElement[bool]:
    """Return the condition on matches as new as the row with that number, or newer."""
    return _FTS.c.rowid >= key


def oldest_first(statement: Select[Any]) -> Select[Any]:
    """Return the statement with its matches oldest first."""
    return statement.order_by(None).order_by(_FTS.c.rowid)


def holds_words(pieces: list[Piece]) -> ColumnElement[bool]:
    """Return the condition on PostgreSQL, over the very expression that has an index."""
    spaced = func.translate(
        func.left(LOG.c.error_traceback, literal_column("100000")),
        literal_column(_quoted(_PUNCTUATION)),
        literal_column(_quoted(" " * len(_PUNCTUATION))),
    )
    simple = literal_column("'simple'", REGCONFIG)
    wanted = func.to_tsquery(simple, literal(" & ".join(map(_tsquery, pieces))))
    return LOG.c.error_traceback.is_not(None) & func.to_tsvector(simple, spaced).op("@@")(wanted)


def _is_anywhere(session: Session, piece: Piece) -> bool:
    """Return True when any traceback holds the piece as it stands."""
    if session.get_bind().dialect.name == "sqlite":
        statement = select(_FTS.c.rowid).where(_matching([piece], [])).limit(1)
    else:
        statement = select(LOG.c.id).where(holds_words([piece])).limit(1)
    return session.scalar(statement) is not None


def _matching(pieces: list[Piece], facts: list[str]) -> ColumnElement[bool]:
    """Return FTS5's condition; all typed text is in quotes, so that none of it is an operator."""
    parts = [f"{{traceback}} : {_expression(piece)}" for piece in pieces]
    parts += [f"{{facts}} : {_phrase(fact)}" for fact in facts if has_words(fact)]
    return literal_column("executionlog_fts").op("MATCH")(" AND ".join(parts))


def _expression(piece: Piece) -> str:
    """Return FTS5's expression for a piece: a phrase, or one for each word that it may end in."""
    if not piece.words:
        return f"{_phrase(piece.text)}{' *' if piece.goes_on else ''}"
    before = " ".join(piece.text.translate(_SPACES).split()[:-1])
    return f"({' OR '.join(_phrase(f'{before} {word}'.strip()) for word in piece.words)})"


def _phrase(text: str) -> str:
    doubled = text.replace('"', '""')
    return f'"{doubled}"'


def _tsquery(piece: Piece) -> str:
    """Return PostgreSQL's expression; each word is in quotes and has no punctuation left."""
    words = [f"'{word}'" for word in piece.text.translate(_SPACES).split() if has_words(word)]
    return f"({' <-> '.join(words)}{':*' if piece.goes_on else ''})"


def _last_word(text: str) -> str:
    return text.translate(_SPACES).split()[-1]


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
