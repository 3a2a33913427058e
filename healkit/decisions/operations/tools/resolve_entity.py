import re
import unicodedata

import pandas as pd


def resolve_entity(
    data: pd.DataFrame,
    column: str,
    entity: str,
    aliases: dict | None = None,
    limit: int = 5,
    min_score: float = 75,
) -> pd.DataFrame:
    """Find which values of a column an entity may be: the same text, an alias, or a near match.

    Gives the candidates, the best first: value, score (0 to 100), method and number of rows. No row means that the
    column has nothing like it. `aliases` are other names by name: {"Meta": ["Facebook", "FB"]}.
    """
    table = _table(data)
    values = table.iloc[:, _position(table, column)]
    if _kind(values) not in ("text", "nothing"):
        raise ValueError(
            f"An entity is looked for in a column of text, and {_shown(column)} holds {_kind(values)} values."
        )
    if limit < 1:
        raise ValueError("limit must be at least 1.")
    counts = _plain(values).dropna().astype(object).value_counts(sort=False)
    wanted, others = _normal(entity), set()
    for name, names in (aliases or {}).items():
        group = {_normal(text) for text in [name, *([names] if isinstance(names, str) else names)]}
        if wanted in group:
            others |= group - {wanted}
    ratio, rows = _ratio(), []
    for value, count in counts.items():
        score, method = _judged(str(value), entity, wanted, others, ratio)
        if score >= min_score:
            rows.append((str(value), round(score, 1), method, int(count)))
    rows.sort(key=lambda row: (-row[1], -row[3], row[0]))
    found = pd.DataFrame(rows[:limit], columns=["value", "score", "method", "rows"])
    return found.astype({"value": "str", "score": "float64", "method": "str", "rows": "int64"})


def _judged(value, entity, wanted, others, ratio):
    """Return how like the entity a value is, and by which method."""
    if value == entity:
        return 100.0, "same"
    normal = _normal(value)
    if not normal or not wanted:
        return 0.0, "none"
    if normal == wanted:
        return 99.0, "normalised"
    if normal in others:
        return 98.0, "alias"
    initials = "".join(word[0] for word in normal.split())
    if len(initials) > 1 and initials == wanted.replace(" ", ""):
        return 90.0, "initials"
    as_sorted = ratio(" ".join(sorted(wanted.split())), " ".join(sorted(normal.split())))
    return min(97.0, max(ratio(wanted, normal), as_sorted)), "near"


def _normal(text):
    """Return a text without case, accents, punctuation and double spaces."""
    folded = unicodedata.normalize("NFKD", str(text)).casefold()
    letters = "".join(letter for letter in folded if not unicodedata.combining(letter))
    return " ".join(re.sub(r"[\W_]+", " ", letters).split())


def _ratio():
    """Return how two texts are compared: by rapidfuzz where it can be imported, which is nine times faster here."""
    try:
        from rapidfuzz.fuzz import ratio
    except ImportError:
        from difflib import SequenceMatcher

        return lambda one, other: 100 * SequenceMatcher(None, one, other, autojunk=False).ratio()
    return ratio
