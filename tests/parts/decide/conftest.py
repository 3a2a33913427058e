"""Fixtures of decisions: a vault with small tools on frames."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from model_server import ModelServer, model_server
from trusted import trusted_copy

from healkit import Healkit

FRAME = "import pandas as pd\n\n\n"
TOOLS = {
    "pick": FRAME
    + "def pick(df: pd.DataFrame, column: str, values: list):\n    return df[df[column].isin(values)]\n",
    "totals": FRAME
    + "def totals(df: pd.DataFrame):\n"
    + "    return df.groupby('region', as_index=False)['sales'].sum().rename(columns={'sales': 'total'})\n",
    "spread": FRAME
    + "def spread(df: pd.DataFrame, column: str):\n"
    + "    return df.pivot_table(index='sales', columns=column, aggfunc='size').reset_index()\n",
    "regions": FRAME + "def regions(df: pd.DataFrame):\n    return sorted(set(df['region'].dropna()))\n",
    "as_numbers": FRAME
    + "def as_numbers(df: pd.DataFrame, column: str):\n    return df.assign(number=df[column].astype(float))\n",
    "to_csv": FRAME + "def to_csv(df: pd.DataFrame):\n    return df.to_csv(index=False)\n",
}


@pytest.fixture(scope="session")
def deciding_database(tmp_path_factory: pytest.TempPathFactory, empty_database: Path) -> Path:
    path = Path(trusted_copy(empty_database, tmp_path_factory.mktemp("deciding") / "healkit.db"))
    with Healkit(path) as opened:
        for name, code in TOOLS.items():
            opened.vault.add(name, code)
    return path


@pytest.fixture
def deciding(tmp_path: Path, deciding_database: Path) -> Iterator[Healkit]:
    with Healkit(trusted_copy(deciding_database, tmp_path / "healkit.db")) as opened:
        yield opened


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with model_server() as running:
        yield running
