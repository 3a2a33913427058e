"""Settings: each describes itself and is read from a variable."""

from __future__ import annotations

import dataclasses

import pytest

from healkit.config import Config, settings
from healkit.errors import ConfigError


def test_every_field_of_the_configuration_describes_itself() -> None:
    assert [setting.name for setting in settings()] == [field.name for field in dataclasses.fields(Config)]
    assert [setting.name for setting in settings() if not setting.help] == []


def test_the_help_of_the_class_names_every_setting_with_unit_and_default() -> None:
    told = Config.__doc__ or ""
    for setting in settings():
        assert f"\n{setting.name}: {setting.help}" in told
    assert "memory_mb: address space that a tool may add to the bare worker (MiB). Default: 1024." in told


def test_every_default_is_read_back_from_its_variable() -> None:
    def text(value: object) -> str:
        return ",".join(value) if isinstance(value, tuple) else str(value)

    environ = {setting.variable: text(setting.default) for setting in settings()}
    assert environ["HEALKIT_HEAL_ADVISORS"] == "peers,rules,search,model"
    assert Config.from_environment(environ) == Config()


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
        ("sync_batch", 101, "sync_batch=101 is more than a collector takes at once."),
    ],
)
def test_a_setting_that_cannot_be_is_refused_by_name(name: str, value: object, said: str) -> None:
    with pytest.raises(ConfigError) as refused:
        Config(**{name: value})
    assert refused.value.message == said


def test_zero_is_a_value_where_a_setting_says_so() -> None:
    assert Config(spares=0, retention_rows=0).spares == 0


def test_a_variable_that_is_not_of_its_type_is_refused_with_the_default() -> None:
    with pytest.raises(ConfigError) as refused:
        Config.from_environment({"HEALKIT_SPARES": "many"})
    assert refused.value.message == "HEALKIT_SPARES='many' is not an integer."
    assert refused.value.hint == "The default is 1."


def test_the_status_lists_a_setting_only_where_it_is_set() -> None:
    assert Config().shown() == {}
    url = "https://collector.example"
    assert Config(sync_url=url).shown() == {"collector": url}
