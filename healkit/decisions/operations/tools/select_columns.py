import pandas as pd


def select_columns(data: pd.DataFrame, columns: list[str], rename: dict | None = None) -> pd.DataFrame:
    """Keep some columns, in the order given, and rename them: {"old": "new"}."""
    table = _table(data)
    positions = _positions(table, columns)
    new = dict(rename or {})
    _positions(table, list(new))
    for name in new:
        if _position(table, name) not in positions:
            raise ValueError(f"The column {_shown(name)} is renamed but not selected.")
    by_position = {_position(table, name): str(label) for name, label in new.items()}
    selected = table.iloc[:, positions]
    labels = [by_position.get(at, table.columns[at]) for at in positions]
    _require_new(labels)
    return selected.set_axis(labels, axis=1)
