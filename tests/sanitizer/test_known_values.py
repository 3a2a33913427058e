"""Values hidden once are hidden all over their record."""

from __future__ import annotations

import pytest

from healkit.sanitizer.sanitizer import Sanitizer

TRACE_2 = pytest.mark.requirement("TRACE-2")
SANITIZER = Sanitizer()
HIDDEN = "[REDACTED:secret-name]"


@TRACE_2
def test_a_secret_under_another_name_is_hidden_in_the_same_record() -> None:
    given = {
        "password": "Tr0ub4dor",
        "p": "Tr0ub4dor",
        "line": 'open("db", u, "Tr0ub4dor")',
        "list": ["Tr0ub4dor"],
    }
    assert SANITIZER.clean(given).value == {
        "password": HIDDEN,
        "p": HIDDEN,
        "line": f'open("db", u, "{HIDDEN}")',
        "list": [HIDDEN],
    }
    assert SANITIZER.text("password=Tr0ub4dor was refused: Tr0ub4dor").value.count(HIDDEN) == 2


@TRACE_2
def test_it_is_found_as_repr_json_and_a_url_write_it() -> None:
    record = SANITIZER.of_record()
    record.clean({"password": 'a"b\\c&9'})
    for text in ['a"b\\c&9', "'a\"b\\\\c&9'", '"a\\"b\\\\c&9"', "?x=a%22b%5Cc%269"]:
        assert HIDDEN in record.text(text).value, text


@TRACE_2
@pytest.mark.parametrize("value", ["abc", "secret", "localhost", "12345"])
def test_a_short_or_common_value_is_hidden_at_its_name_only(value: str) -> None:
    cleaned = SANITIZER.clean({"password": value, "said": f"the {value} of it"}).value
    assert cleaned["said"] == f"the {value} of it"


@TRACE_2
def test_only_a_whole_word_is_the_value() -> None:
    cleaned = SANITIZER.clean({"password": "Falcon9", "said": "Falcon9 is not Falcon99 nor aFalcon9"}).value
    assert cleaned["said"] == f"{HIDDEN} is not Falcon99 nor aFalcon9"


@TRACE_2
def test_what_a_later_part_teaches_is_hidden_in_an_earlier_one() -> None:
    record = SANITIZER.of_record()
    first = record.clean("refused Tr0ub4dor").value
    record.clean({"password": "Tr0ub4dor"})
    assert first == "refused Tr0ub4dor"
    assert record.again(first) == f"refused {HIDDEN}"


@TRACE_2
def test_personal_data_and_texts_with_half_characters_are_left_to_their_own_rules() -> None:
    cleaned = SANITIZER.clean(
        {"password": "Tr0ub4dor\ud800", "mail": "jane@example.com", "n": ["\ud800 jane"]}
    ).value
    assert cleaned == {"password": HIDDEN, "mail": "[EMAIL]", "n": ["\\ud800 jane"]}
