"""Settings: each describes itself and is read from a variable."""

from __future__ import annotations

import dataclasses
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import text

from healkit import Healkit
from healkit.config import Config, settings
from healkit.errors import ConfigError


def test_every_field_of_the_configuration_describes_itself() -> None:
    fields = [field for field in dataclasses.fields(Config) if "setting" in field.metadata]
    assert [setting.name for setting in settings()] == [field.name for field in fields]
    assert all("fixed" in field.metadata for field in dataclasses.fields(Config) if field not in fields)
    assert [setting.name for setting in settings() if not setting.help] == []


def test_the_help_of_the_class_names_every_setting_with_unit_and_default() -> None:
    told = Config.__doc__ or ""
    for setting in settings():
        assert f"\n{setting.name}: {setting.help}" in told
    assert (
        "views_mb: limit on the frames and arrays stored beside the database; 0 stores none (MiB). Default: 2048."
        in told
    )


def test_every_default_is_read_back_from_its_variable() -> None:
    def as_text(value: object) -> str:
        return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)

    environ = {setting.variable: as_text(setting.default) for setting in settings()}
    assert environ["HEALKIT_HEAL_ADVISORS"] == "memory,peers,rules,search,model"
    assert Config.from_environment(environ) == Config()


def test_a_removed_environment_variable_is_refused() -> None:
    with pytest.raises(
        ConfigError, match="HEALKIT_SYNC_BATCH is not a setting any more: traces in one request"
    ):
        Config.from_environment({"HEALKIT_SYNC_BATCH": "20"})
    assert Config(sync_batch=20).sync_batch == 20


def test_a_command_says_in_one_line_which_variable_cannot_be_read(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "healkit", "status"],
        env={**os.environ, "HEALKIT_TIMEOUT_S": "abc", "HEALKIT_DB": str(tmp_path / "healkit.db")},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("HEALKIT_TIMEOUT_S='abc' is not a number. The default is 30.0.")
    assert "Traceback" not in done.stderr


def test_every_setting_is_named_on_a_page() -> None:
    root = Path(__file__).parents[1]
    pages = "\n".join(page.read_text() for page in [root / "README.md", *(root / "docs").glob("*.md")])
    words = set(re.findall(r"\w+", pages))
    assert [one.name for one in settings() if not {one.name, one.variable} & words] == []


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("timeout_s", 0, "timeout_s=0 must be greater than 0."),
        ("spares", -1, "spares=-1 must be 0 or greater."),
        (
            "isolation",
            "none",
            "isolation='none' is not a tier.",
        ),
        ("synchronous", "OFF", "synchronous='OFF' is not a choice."),
        ("sync_batch", 101, "sync_batch=101 is more than a collector takes at once."),
    ],
)
def test_a_setting_that_cannot_be_is_refused_by_name(name: str, value: object, said: str) -> None:
    with pytest.raises(ConfigError) as refused:
        Config(**{name: value})
    assert refused.value.message == said


def test_a_variable_that_is_not_of_its_type_is_refused_with_the_default() -> None:
    with pytest.raises(ConfigError) as refused:
        Config.from_environment({"HEALKIT_SPARES": "many"})
    assert refused.value.message == "HEALKIT_SPARES='many' is not an integer."
    assert refused.value.hint == "The default is 1."


def test_the_status_lists_a_setting_only_where_it_is_set() -> None:
    assert Config().shown() == {}
    url = "https://collector.example"
    assert Config(sync_url=url).shown() == {"collector": url}


def test_the_settings_of_the_database_reach_it(tmp_path: Path) -> None:
    with Healkit(tmp_path / "healkit.db", config=Config(sql_row_limit=2, synchronous="FULL")) as healkit:
        healkit.vault.add("rows", "SELECT 1 AS n UNION SELECT 2 UNION SELECT 3", type="sql")
        result = healkit.execute_tool("rows")
        with healkit.database.write() as session:
            (mode,) = session.execute(text("PRAGMA synchronous")).one()
    assert (result["rows"], result["truncated"]) == ([[1], [2]], True)
    assert mode == 2
