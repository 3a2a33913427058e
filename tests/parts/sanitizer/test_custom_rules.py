"""Custom rules and allow-lists: used, or refused."""

from __future__ import annotations

import builtins
import json
import re
from pathlib import Path
from typing import Any

import pytest

from healkit.config import Config
from healkit.errors import RulesInvalid
from healkit.parts.sanitizer.matcher import fast_pattern
from healkit.parts.sanitizer.sanitizer import Sanitizer

TRACE_2 = pytest.mark.requirement("TRACE-2")
GOOD = """
[[rule]]
id = "badge"
what = "a staff badge's number"
keywords = ["badge"]
pattern = 'badge[ :]+(?P<secret>[A-Z]{2}-\\d{4})'
replacement = "[BADGE]"
caught = ["badge: AB-1234"]
survives = ["badge of honour"]
"""


def rules_file(folder: Path, text: str, name: str = "rules.toml") -> str:
    path = folder / name
    path.write_text(text)
    return str(path)


@TRACE_2
def test_a_custom_rule_hides_its_matches(tmp_path: Path) -> None:
    sanitizer = Sanitizer.from_config(Config(sanitizer_rules=rules_file(tmp_path, GOOD)))
    cleaned = sanitizer.text("badge: AB-1234, password=hunter22, a badge of honour")
    assert cleaned.value == "badge: [BADGE], password=[REDACTED:secret-name], a badge of honour"
    assert cleaned.hidden == {"badge": 1, "secret-name": 1}
    assert sanitizer.text(cleaned.value).hidden == {}


@TRACE_2
def test_rules_may_be_json_and_need_no_keywords(tmp_path: Path) -> None:
    rules = json.dumps([{"id": "ticket", "pattern": r"TCK-\d{6}"}])
    sanitizer = Sanitizer.from_config(Config(sanitizer_rules=rules_file(tmp_path, rules, "rules.json")))
    assert sanitizer.text("see TCK-123456").value == "see [REDACTED:ticket]"


@TRACE_2
def test_a_whole_match_of_the_allow_list_stays() -> None:
    config = Config.from_environment({"HEALKIT_SANITIZER_ALLOW": r"[\w.]+@example\.com, noreply@.*"})
    sanitizer = Sanitizer.from_config(config)
    cleaned = sanitizer.text("jane@example.com noreply@x.org jane@example.com.evil.org")
    assert cleaned.value == "jane@example.com noreply@x.org [EMAIL]"


@TRACE_2
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[[rule]]\nid = 'x'\npattern = '(a'\n", r"rule 1 of .*rules.toml.*\('x'\).*position 0"),
        ("[[rule]]\nid = 'x'\n", r"rule 1 .*\('x'\) has no pattern"),
        ("[[rule]]\npattern = 'a'\n", r"rule 1 .*has no id"),
        ("[[rule]]\nid = 'Bad Id'\npattern = 'a'\n", r"'Bad Id' must be lower-case words"),
        ("[[rule]]\nid = 'x'\npattern = 'a'\ncolour = 'red'\n", r"unknown field 'colour'"),
        ("[[rule]]\nid = 'x'\npattern = 'a'\nkeywords = 'a'\n", r"keywords='a' is not a list of strings"),
        ("[[rule]]\nid = 'x'\npattern = 'ab'\ncaught = ['a']\n", r"does not catch its own example 'a'"),
        ("[[rule]]\nid = 'x'\npattern = 'ab'\nsurvives = ['cab']\n", r"hides 'cab', which must stay"),
        ("[[rule]]\nid = 'x'\npattern = 'a*'\n", r"hides '', which must stay"),
        ("[[rule]]\nid = 'x'\npattern = 'a'\n[[rule]]\nid = 'x'\npattern = 'b'\n", r"Two rules of .* are called 'x'"),
        ("[[rule]\n", r"do not parse: .*line 1"),
        ("x = 1\n", r"contain no rule"),
    ],
)  # fmt: skip
def test_a_bad_rule_is_refused_with_its_id_and_place(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(RulesInvalid, match=said) as caught:
        Sanitizer.from_config(Config(sanitizer_rules=rules_file(tmp_path, text)))
    assert caught.value.code == "RULES_INVALID"
    assert caught.value.hint


def test_a_missing_file_and_a_bad_allowed_pattern_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RulesInvalid, match="cannot be read"):
        Sanitizer.from_config(Config(sanitizer_rules=str(tmp_path / "none.toml")))
    with pytest.raises(RulesInvalid, match=r"sanitizer_allow\[1\].*position 1"):
        Sanitizer(allow=["fine", "a("])


def without_re2(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide google-re2, as on a machine without `healkit[speed]`."""
    real = builtins.__import__

    def missing(name: str, *rest: Any, **more: Any) -> Any:
        if name == "re2":
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", missing)


@TRACE_2
def test_a_rule_works_the_same_with_re2_and_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = rules_file(tmp_path, GOOD)
    text = "ü badge: AB-1234 and badge: CD-5678"
    fast = Sanitizer.from_config(Config(sanitizer_rules=path)).text(text)
    without_re2(monkeypatch)
    assert isinstance(fast_pattern("a"), re.Pattern)
    assert Sanitizer.from_config(Config(sanitizer_rules=path)).text(text) == fast
    assert fast.hidden == {"badge": 2}


@TRACE_2
def test_an_exponential_pattern_is_linear_on_re2(tmp_path: Path) -> None:
    pytest.importorskip("re2")
    rule = "[[rule]]\nid = 'slow'\npattern = '(a+)+!'\n"
    sanitizer = Sanitizer.from_config(Config(sanitizer_rules=rules_file(tmp_path, rule)))
    assert sanitizer.text("a" * 5000 + "b").hidden == {}  # on re it would not end in a lifetime


def test_a_pattern_unknown_to_re2_runs_on_re() -> None:
    assert fast_pattern(r"(?<=x)y(?!z)").search("xy") is not None


@TRACE_2
def test_a_number_inside_an_allowed_text_is_still_masked() -> None:
    """R8: numbers inside what another rule hides are not judged again, unless that may be allowed."""
    sanitizer = Sanitizer(allow=[r".*@corp\.io"])
    assert sanitizer.text("4111111111111111@corp.io, jane@corp.io").value == "[CARD]@corp.io, jane@corp.io"
