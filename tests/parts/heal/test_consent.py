"""Consent policy: deny beats allow, and allow beats ask."""

from __future__ import annotations

import itertools
from typing import Any, get_args

import pytest

from healkit.config import Config
from healkit.parts.heal.deciding import decide, denied
from healkit.parts.heal.records import RequestAuthor, Verdict

HEAL_4 = pytest.mark.requirement("HEAL-4")
VERDICTS: tuple[Any, ...] = ("", *get_args(Verdict))
AUTHORS: tuple[RequestAuthor, ...] = get_args(RequestAuthor)


def every_policy(**fixed: Any) -> list[tuple[Config, bool]]:
    """Each combination of the settings that could allow something, with `--auto` and without."""
    return [
        (Config(**{"heal_allow": allow, **fixed}), flag)
        for allow, flag in itertools.product([(), ("*",), ("share",)], [False, True])
    ]


@HEAL_4
def test_by_default_only_a_persons_cured_patch_needs_no_consent() -> None:
    for verdict, author in itertools.product(VERDICTS, AUTHORS):
        expected = "allow" if (verdict, author) == ("cured", "person") else "ask"
        assert decide("share", verdict, author, Config()) == expected


@HEAL_4
def test_deny_beats_allow() -> None:
    for config, auto in every_policy(heal_deny=("pay_*", "sha?e")):
        for verdict, author in itertools.product(VERDICTS, AUTHORS):
            assert decide("share", verdict, author, config, auto=auto) == "deny"
            assert decide("pay_rent", verdict, author, config, auto=auto) == "deny"
            assert decide("shares", verdict, author, config, auto=auto) != "deny"


@HEAL_4
def test_only_a_cured_patch_can_be_allowed() -> None:
    for config, auto in every_policy():
        for verdict, author in itertools.product(VERDICTS, AUTHORS):
            if verdict != "cured":
                assert decide("share", verdict, author, config, auto=auto) == "ask"


@HEAL_4
@pytest.mark.parametrize(
    ("settings", "auto", "expected"),
    [
        ({"heal_allow": ("share",)}, False, "allow"),
        ({"heal_allow": ("sh*",)}, False, "allow"),
        ({"heal_allow": ("Share", "other_*")}, False, "ask"),
        ({"heal_allow": ("*",)}, False, "allow"),
        ({}, True, "allow"),
        ({"heal_deny": ("share",)}, True, "deny"),
        ({"heal_deny": ("*",), "heal_allow": ("share",)}, True, "deny"),
    ],
)
def test_a_cured_patch_is_allowed_by_name_or_call(
    settings: dict[str, Any], auto: bool, expected: str
) -> None:
    assert decide("share", "cured", "search", Config(**settings), auto=auto) == expected


def test_the_policy_is_read_from_the_environment() -> None:
    given = {
        "HEALKIT_HEAL_DENY": "pay_*, send_mail",
        "HEALKIT_HEAL_ALLOW": "report_*",
    }
    config = Config.from_environment(given)
    assert (config.heal_deny, config.heal_allow) == (("pay_*", "send_mail"), ("report_*",))
    assert denied("send_mail", config)
    assert not denied("report_day", config)
