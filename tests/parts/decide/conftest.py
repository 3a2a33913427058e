"""Fixtures of decisions: a vault with small tools on frames."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pytest
from model_server import ModelServer, model_server
from trusted import trusted_copy

from healkit import Config, Healkit
from healkit.parts.decide.operations import install

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
    """Make a database with these tools and the built-in operations, to be copied."""
    path = Path(trusted_copy(empty_database, tmp_path_factory.mktemp("deciding") / "healkit.db"))
    with Healkit(path) as opened:
        install(opened)
        for name, code in TOOLS.items():
            opened.vault.add(name, code)
    return path


def opened(database: Path, folder: Path) -> Healkit:
    """Open a copy of the database; its workers have pandas, which each of the tools would else import."""
    config = dataclasses.replace(Config.from_environment(), preload=("pandas",))
    return Healkit(trusted_copy(database, folder / "healkit.db"), config=config)


@pytest.fixture(scope="module")
def deciding(tmp_path_factory: pytest.TempPathFactory, deciding_database: Path) -> Iterator[Healkit]:
    """Lend a vault with tools to the tests of a file; each adds tools under names of its own."""
    with opened(deciding_database, tmp_path_factory.mktemp("deciding")) as healkit:
        yield healkit


@pytest.fixture
def deciding_alone(tmp_path: Path, deciding_database: Path) -> Iterator[Healkit]:
    """Lend a vault with tools to one test, which may change them."""
    with opened(deciding_database, tmp_path) as healkit:
        yield healkit


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with model_server() as running:
        yield running
