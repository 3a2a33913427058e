import base64
import io
import json

import pandas as pd


def export_notebook(data: pd.DataFrame, title: str, text: str = "") -> str:
    """Write a view as the text of a notebook, which holds the data itself and shows it; 5 MB at most."""
    table = _table(data)
    _require_new(table.columns, "the notebook")
    file = io.BytesIO()
    table.set_axis([str(label) for label in table.columns], axis=1).to_parquet(file)
    if len(file.getvalue()) > 5_000_000:
        raise ValueError("The data is larger than 5 MB. Write it with export_parquet, or aggregate it first.")
    packed = base64.b64encode(file.getvalue()).decode()
    load = f"import base64\nimport io\n\nimport pandas as pd\n\npacked = (\n{_lines(packed)})\n"
    load += "data = pd.read_parquet(io.BytesIO(base64.b64decode(packed)))"
    cells = [("markdown", f"# {title}\n\n{text}".rstrip()), ("code", load), ("code", "data")]
    cells.append(("code", 'data.describe(include="all")'))
    notebook = {
        "cells": [_cell(number, kind, source) for number, (kind, source) in enumerate(cells)],
        "metadata": {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(notebook, ensure_ascii=False, indent=1) + "\n"


def _lines(packed):
    return "".join(f'    "{packed[at : at + 100]}"\n' for at in range(0, len(packed), 100))


def _cell(number, kind, source):
    cell = {"cell_type": kind, "id": f"cell-{number}", "metadata": {}, "source": source}
    return cell if kind == "markdown" else {**cell, "execution_count": None, "outputs": []}
