import pandas as pd


def replace_values(
    data: pd.DataFrame, column: str, replacements: dict, must_occur: bool = True
) -> pd.DataFrame:
    """Replace whole texts in a column: {"old": "new"}; a null as the new one makes it missing.

    With `must_occur` an old text that no row has is an error, since it is most often a misspelling.
    """
    table = _table(data)
    at = _position(table, column)
    values = table.iloc[:, at]
    if _kind(values) not in ("text", "nothing"):
        raise ValueError(
            f"Texts are replaced in a column of text, and {_shown(column)} holds {_kind(values)} values."
        )
    if any(not isinstance(new, str | None) for new in replacements.values()):
        raise ValueError("A text is replaced by a text or by null.")
    texts = _plain(values).astype(object)
    absent = [old for old in replacements if not (texts == old).any()] if must_occur else []
    if absent:
        raise ValueError(
            f"No row of {_shown(column)} has {len(absent)} of the texts; the first is {_shown(absent[0])}."
        )
    replaced = texts.map(lambda text: replacements.get(text, text) if isinstance(text, str) else text)
    if isinstance(values.dtype, pd.CategoricalDtype):
        order = [replacements.get(text, text) for text in values.cat.categories]
        kept = [text for text in dict.fromkeys(order) if text is not None]
        replaced = pd.Series(pd.Categorical(replaced, kept, ordered=values.cat.ordered), index=values.index)
    else:
        replaced = replaced.astype(values.dtype)
    columns = [replaced if place == at else table.iloc[:, place] for place in range(table.shape[1])]
    return pd.concat(columns, axis=1).set_axis(table.columns, axis=1)
