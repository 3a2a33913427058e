"""Whole values: nested, hostile, large, known, and left alone."""

from __future__ import annotations

import json
import math
import threading
import time
import uuid
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import healkit
from healkit.config import Config
from healkit.core.secrets.cleaner import size_of
from healkit.parts.sanitizer.sanitizer import Sanitizer

SANITIZER = Sanitizer()


TRACE_2 = pytest.mark.requirement("TRACE-2")


PASSWORD = "Tr0ub4dor&3"


@TRACE_2
def test_secrets_are_found_at_any_depth_and_counted_by_rule() -> None:
    value = {
        "user": "jane", "password": PASSWORD,
        "rows": [{"email": "jane@example.com"}, ("x", {"apiKey": "a1b2c3d4e5"})],
        "argv": ["deploy", "--token", "a1b2c3d4e5"],
        "headers": [("Authorization", "Bearer a1b2c3d4e5f6g7"), ("Accept", "text/html")],
        "env": [{"name": "DB_PASSWORD", "value": PASSWORD}, {"name": "HOME", "value": "/root"}],
        "auth": ("jane", PASSWORD),
        "raw": f"password={PASSWORD}".encode(),
        "jane@example.com": 1, "joe@example.com": 2,
    }  # fmt: skip
    cleaned = SANITIZER.clean(value)
    text = json.dumps(cleaned.value)
    for secret in (PASSWORD, "a1b2c3d4e5", "jane@example.com", "joe@example.com"):
        assert secret not in text
    assert cleaned.value["user"] == "jane"
    assert cleaned.value["headers"][1] == ["Accept", "text/html"]
    assert cleaned.value["env"][1] == {"name": "HOME", "value": "/root"}
    assert (cleaned.value["[EMAIL]"], cleaned.value["[EMAIL] 2"]) == (1, 2)
    assert cleaned.hidden["email"] == 3
    assert sum(cleaned.hidden.values()) == 10
    assert cleaned.truncated_from is None


@TRACE_2
def test_ids_hashes_and_codes_are_never_changed() -> None:
    value = {
        "trace_id": str(uuid.uuid4()),
        "id": 4_111_111_111_111_111,
        "sha256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "code_hash": "3d698602187070aa11cb0fbd9795a1acd789cdee",
        "fingerprint": "1:9f86d081884c7d65",
        "error_code": "TOOL_EXCEPTION",
        "ts_utc": "2024-01-31T10:15:30.123456+00:00",
        "epoch_ms": 1_700_000_000_000,
        "duration_ms": 0.4111111111111111,
        "version": "3.11.9",
        "path": "evidence/9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08.json",
        "capability": "local.default.vault.fibonacci.9f86d081",
        "max_tokens": 4096, "tokens": 512, "author": "Jane Doe",
    }  # fmt: skip
    cleaned = SANITIZER.clean(value)
    assert (cleaned.value, cleaned.hidden) == (value, {})


class Unreadable:
    def __repr__(self) -> str:
        raise RuntimeError("no")


class Hostile(dict[str, str]):
    def items(self) -> Any:
        raise RuntimeError("no")

    __len__ = items


@TRACE_2
def test_values_that_json_cannot_hold_are_converted() -> None:
    cyclic: list[Any] = []
    cyclic.append(cyclic)
    value = {
        "nan": math.nan, "cyclic": cyclic, "binary": bytes(range(256)), "surrogate": "a\ud800b",
        7: "a key that is no text", "object": Unreadable(), "huge": 10**5000, "wide": 2**70,
        "deep": json.loads("[" * 200 + "]" * 200),
    }  # fmt: skip
    cleaned = SANITIZER.clean(value)
    json.dumps(cleaned.value, allow_nan=False)
    assert cleaned.value["nan"] == "NaN"
    assert cleaned.value["wide"] == str(2**70)
    assert cleaned.value["object"].startswith("<")
    assert "Hostile" in json.dumps(SANITIZER.clean(Hostile(a="b")).value)


@pytest.mark.slow
@TRACE_2
def test_50_megabytes_are_cut_after_redaction() -> None:
    value = {"head": f"password={PASSWORD}", "body": "lorem ipsum " * 4_500_000}
    cleaned = SANITIZER.clean(value)
    assert size_of(cleaned.value) <= 10_240
    assert cleaned.truncated_from is not None
    assert cleaned.truncated_from > 50_000_000
    assert "[TRUNCATED]" in cleaned.value["body"]
    assert f"{54_000_000:,} bytes" in cleaned.value["body"]
    assert PASSWORD not in cleaned.value["head"]


@TRACE_2
def test_a_secret_across_the_cut_is_redacted_before_it_is_cut() -> None:
    token = "ghp_" + "a1B2" * 9
    for shift in range(0, 120, 7):
        text = "x " * ((10_240 - shift) // 2) + token + " tail" * 5000
        cleaned = SANITIZER.clean(text)
        assert "ghp_" not in cleaned.value
        assert "a1B2" not in cleaned.value
        assert "[REDACTED:github-token" not in cleaned.value.replace("[REDACTED:github-token]", "")
        assert cleaned.truncated_from == len(text)


@TRACE_2
def test_a_cut_value_keeps_its_outline() -> None:
    value = {"code": "x = 1\n" * 20_000, "result": 5, "rows": list(range(10_000)), "last": "kept"}
    cleaned = SANITIZER.clean(value)
    assert list(cleaned.value) == ["code", "result", "rows", "last"]
    assert (cleaned.value["result"], cleaned.value["last"]) == (5, "kept")
    assert cleaned.truncated_from == size_of(value)
    assert SANITIZER.clean({"n": list(range(1000))}, limit_bytes=300).value["n"][-1].startswith("[TRUNCATED]")
    assert SANITIZER.clean("a" * 500, limit_bytes=1 << 62).value == "a" * 500


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=40) | st.binary(max_size=20),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=12), inner, max_size=5),
    max_leaves=20,
)


WORDS = st.sampled_from(
    [
        "password", "=", ":", " ", '"', "'", "token", "hunter2", "a1b2c3d4e5", "jane@example.com", "://", "@", "\n", ",", "secret",
        "4111 1111 1111 1111", "+49 30 901820", "219-09-9999", "[", "]", "(", ")", "\\", "Bearer ", "api_key", "key", "<", ">", "x",
        "[REDACTED:secret-name]", "[EMAIL]", "-----BEGIN RSA PRIVATE KEY-----", "MIIEabcd1234abcd1234", "AKIA", "ABCDEFGH23456723",
    ]
)  # fmt: skip


@pytest.mark.slow
@TRACE_2
@settings(max_examples=75)
@given(JSON)
def test_cleaning_any_value_twice_changes_nothing(value: object) -> None:
    cleaned = SANITIZER.clean(value, limit_bytes=400)
    json.dumps(cleaned.value, allow_nan=False)
    assert size_of(cleaned.value) <= 400
    again = SANITIZER.clean(cleaned.value, limit_bytes=400)
    assert (again.value, again.hidden, again.truncated_from) == (cleaned.value, {}, None)


@TRACE_2
@settings(max_examples=100)
@given(st.lists(WORDS, max_size=25).map("".join))
def test_texts_made_of_keywords_are_clean_after_one_cleaning(text: str) -> None:
    cleaned = SANITIZER.text(text)
    again = SANITIZER.text(cleaned.value)
    assert (again.value, again.hidden) == (cleaned.value, {})


@TRACE_2
def test_secrets_that_uncover_each_other_are_all_hidden() -> None:
    for numbers in (1, 4, 40):
        cleaned = SANITIZER.text(f'"4111111111111111{"+4915112345678" * numbers}", and 7 more')
        assert "4915112345678" not in cleaned.value
        assert cleaned.value.endswith('", and 7 more')
        assert SANITIZER.text(cleaned.value).value == cleaned.value


@TRACE_2
def test_one_sanitizer_serves_several_threads() -> None:
    text = f"password={PASSWORD} for jane@example.com"
    expected = SANITIZER.text(text)
    wrong: list[object] = []

    def work() -> None:
        wrong.extend(found for _ in range(200) if (found := SANITIZER.text(text)) != expected)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert not wrong


@pytest.mark.slow
@TRACE_2
def test_a_hostile_text_costs_no_more_than_its_length() -> None:
    """Quadratic rules would take minutes; the bound is three times the slowest time that was measured.

    The thread's own time on the processor, which others on a busy machine hardly change.
    """
    for piece in (
        "a", "password=", "password ", 'password="', "password=\\", "token: ", "api key ", "@", "a@a.", "://a", "http://a:b",
        "-----BEGIN RSA PRIVATE KEY-----\n", "eyJ", "eyJaaaaaaaa.", "1", "1-", "1 ", "+1", "4111 ", "DE89", "sk-", "bearer ",
        "curl -u ", "mysql a ", "login a ", "a_live_", "<password ", "phone ", "ssn ", "Private-Lines: 3\nAAAA ", "cookie: a=bcd; ",
        "LS0tLS1CRUdJTi", "hooks.slack.com/services/a", "xoxb-", "%40", "01 23 45 67 ", "s.", 'auth=("a", ', "password:\n ",
    ):  # fmt: skip
        text = piece * (65_000 // len(piece))
        begun = time.thread_time()
        SANITIZER.text(text)
        assert time.thread_time() - begun < 3, piece


@TRACE_2
def test_the_standard_librarys_source_is_nearly_unchanged() -> None:
    """Real code about tokens, passwords and numbers; what is left over is addresses of real people."""
    folder = Path(json.__file__).parents[1]
    lines = changed = 0
    for name in (
        "tokenize",
        "netrc",
        "smtplib",
        "http/cookies",
        "urllib/request",
        "imaplib",
        "ftplib",
        "ssl",
    ):
        for line in (folder / f"{name}.py").read_text().splitlines():
            lines += 1
            found = set(SANITIZER.text(line).hidden) - {"email"}
            changed += bool(found)
    assert lines > 5000
    assert changed / lines < 0.005


@TRACE_2
def test_the_face_and_the_configuration_reach_the_sanitizer() -> None:
    value, hidden = healkit.sanitize({"password": PASSWORD, "n": 1})
    assert (value, hidden) == ({"password": "[REDACTED:secret-name]", "n": 1}, {"secret-name": 1})
    short = Sanitizer.from_config(Config(payload_max_bytes=200, phone_region="DE"))
    assert size_of(short.clean("word " * 100).value) <= 200
    assert short.text("ruf an: 030 901820 bitte").hidden


HIDDEN = "[REDACTED:secret-name]"


@TRACE_2
def test_a_secret_under_another_name_is_hidden_in_the_same_record() -> None:
    def record(value: str) -> dict[str, object]:
        return {"password": value, "p": value, "line": f'open("db", u, "{value}")', "list": [value]}

    assert SANITIZER.clean(record("Tr0ub4dor")).value == record(HIDDEN)
    assert SANITIZER.text("password=Tr0ub4dor was refused: Tr0ub4dor").value.count(HIDDEN) == 2


@TRACE_2
def test_it_is_found_as_repr_json_and_a_url_write_it() -> None:
    record = SANITIZER.of_record()
    record.clean({"password": 'a"b\\c&9'})
    for text in ['a"b\\c&9', "'a\"b\\\\c&9'", '"a\\"b\\\\c&9"', "?x=a%22b%5Cc%269"]:
        assert HIDDEN in record.text(text).value, text


@TRACE_2
def test_a_short_or_common_value_is_hidden_at_its_name_only() -> None:
    for value in ("abc", "secret", "localhost", "12345"):
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
