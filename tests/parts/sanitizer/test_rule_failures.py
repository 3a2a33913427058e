"""Rules that fail or are costly cost a piece (R2, R8)."""

from __future__ import annotations

import dataclasses
import random
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from healkit.parts.sanitizer.matcher import HiddenSpan, Matcher, Traversal
from healkit.parts.sanitizer.personal_data import PhoneRules
from healkit.parts.sanitizer.rule import SanitizerRule, Span, expand, shared_limit
from healkit.parts.sanitizer.sanitizer import Sanitizer, rules_for

RULES = rules_for("US")
TRACE_2 = pytest.mark.requirement("TRACE-2")
TEMPLATES = [template for rule in RULES for template in (*rule.caught, *rule.survives)]
BASE64_CUT = "cert: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSU"
SECRET = "password=Tr0ub4dor&3"
#: What a mutation puts in: line ends, escapes, digits outside ASCII, half a surrogate pair.
PUT_IN = (
    "", " ", "\n", "\\n", "\0", "=", "@", ".", "-", '"', "'", "²", "٤", "İ", "ſ", "é", "\ud800", "a1B2" * 20,
)  # fmt: skip


class Faults:
    """Return the whole table, with every exception of a rule's own functions noted before it is passed on."""

    def __init__(self) -> None:
        self.found: list[str] = []
        self.matcher = Matcher([self._watched(rule) for rule in RULES])

    def _watched(self, rule: SanitizerRule) -> SanitizerRule:
        def watched(function: Callable[..., Any]) -> Callable[..., Any]:
            def call(*arguments: Any) -> Any:
                try:
                    return function(*arguments)
                except Exception as error:
                    self.found.append(f"{rule.id}: {error!r}")
                    raise

            return call

        changes = {name: watched(own) for name in ("check", "locate") if (own := getattr(rule, name))}
        return dataclasses.replace(rule, **changes)


FAULTS = Faults()


@TRACE_2
def test_an_unreadable_piece_of_base64_costs_itself_only() -> None:
    cleaned = Sanitizer().clean({"note": BASE64_CUT, "line": SECRET, "n": 1})
    assert cleaned.value == {"note": BASE64_CUT, "line": "password=[REDACTED:secret-name]", "n": 1}
    assert cleaned.hidden == {"secret-name": 1}


@TRACE_2
def test_no_rule_raises_on_any_beginning_or_end_of_an_example() -> None:
    FAULTS.found.clear()
    for template in TEMPLATES:
        text = expand(template, random.Random(1))
        for cut in range(0, len(text) + 1, 1 + len(text) // 12):
            FAULTS.matcher.find(text[:cut])
            FAULTS.matcher.find(text[cut:])
    assert FAULTS.found == []


REST = "\n\nthe rest of the text stays as it is,\nand the last line of it too\n"


@pytest.mark.slow
@TRACE_2
def test_an_example_in_two_pieces_leaves_the_rest_of_the_text() -> None:
    """Audit R2: a key block that was cut took the words behind it for its lines."""
    for template in TEMPLATES:
        text = expand(template, random.Random(1))
        for place in {*range(1, len(text), 1 + len(text) // 8), len(text)}:
            for pieces in (text[:place] + REST, f"{text[:place]}\n{text[place:]}{REST}"):
                assert FAULTS.matcher.text(pieces, Counter()).endswith(REST), pieces


@TRACE_2
def test_what_is_hidden_in_an_example_is_hidden_next_to_another_too() -> None:
    source = random.Random(5)
    caught = [template for rule in RULES for template in rule.caught]
    source.shuffle(caught)
    FAULTS.found.clear()
    left: list[str] = []
    for number, pair in enumerate(zip(caught, caught[1:] + caught[:1], strict=True)):
        texts = [expand(template, source) for template in pair]
        hidden = [text[span.start : span.end] for text in texts for span in FAULTS.matcher.find(text)]
        cleaned = FAULTS.matcher.text((" ", "\n", "; ")[number % 3].join(texts), Counter())
        left += [cleaned for secret in hidden if len(secret) >= 12 and secret in cleaned]
    assert left == []
    assert FAULTS.found == []


@pytest.mark.slow
@TRACE_2
@settings(max_examples=300, deadline=None)
@given(st.sampled_from(TEMPLATES), st.randoms(use_true_random=False))
def test_no_rule_raises_on_a_mutated_example(template: str, source: random.Random) -> None:
    text = expand(template, source)
    for _ in range(source.randint(1, 4)):
        start = source.randrange(len(text) + 1)
        text = text[:start] + source.choice(PUT_IN) + text[start + source.randrange(4) :]
    FAULTS.found.clear()
    FAULTS.matcher.find(text)
    assert FAULTS.found == [], text


def raising(*_: object) -> Any:
    raise RuntimeError("a mistake in the rule")


def lookup_error(text: str, start: int, end: int) -> Span | None:
    raise IndexError(text[start:end])


def broken_rules() -> Iterator[SanitizerRule]:
    """Return a rule of each form that raises wherever it is tried."""
    yield SanitizerRule("broken-check", "", "token", ("zebra",), r"zebra-\w+", check=raising)
    yield SanitizerRule("broken-locate", "", "place", ("giraffe",), locate=lookup_error)
    yield SanitizerRule("broken-search", "", "token", pattern=r"lion-\w+", check=raising)
    yield SanitizerRule("broken-number", "", "token", pattern=r"\d{9}", check=raising, among_numbers=True)


@TRACE_2
def test_a_rule_that_raises_hides_what_it_cannot_judge_and_leaves_the_rest_to_the_others() -> None:
    sanitizer = Sanitizer(rules=tuple(broken_rules()))
    text = f"a zebra-77, a giraffe:99 and a lion-8. 012345678 {SECRET} jane@example.com end"
    cleaned = sanitizer.clean({"text": text, "other": [SECRET, 5]})
    assert cleaned.value["text"] == (
        "a [REDACTED:broken-check], a [REDACTED:broken-locate] and a [REDACTED:broken-search]. "
        "[REDACTED:broken-number] password=[REDACTED:secret-name] [EMAIL] end"
    )
    assert cleaned.value["other"] == ["password=[REDACTED:secret-name]", 5]


class Unreadable(dict[str, str]):
    """Part of a value that cannot be walked, as `to_jsonable` never makes one."""

    def keys(self) -> Any:
        raise RuntimeError("no")


@TRACE_2
def test_a_part_that_cannot_be_walked_costs_itself_only() -> None:
    walk = Traversal(Matcher(RULES))
    cleaned = walk.value({"part": Unreadable(), "line": SECRET})
    assert "Unreadable" in cleaned["part"]
    assert cleaned["line"] == "password=[REDACTED:secret-name]"
    assert walk.hidden == {"unreadable": 1, "secret-name": 1}


@TRACE_2
def test_a_custom_rule_that_fails_on_a_line_costs_that_line() -> None:
    """Audit R2: google-re2 refuses half a surrogate pair."""
    rule = SanitizerRule("badge", "", "place", pattern=r"AB-\d{4}", custom=True)
    text = f"badge AB-1234\nbroken \ud800 AB-5678\n{SECRET} AB-9999"
    lines = Sanitizer(rules=(rule,)).text(text).value.splitlines()
    assert lines[0] == "badge [REDACTED:badge]"
    assert "5678" not in "".join(lines)
    assert lines[-1] == "password=[REDACTED:secret-name] [REDACTED:badge]"


def test_base64_of_a_private_key_is_hidden_however_it_is_cut() -> None:
    text = expand("LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVktLS0tLQp‹b80›", random.Random(3))
    for cut in range(40, len(text)):
        assert re.fullmatch(r"\[REDACTED:private-key-base64\]", Sanitizer().text(text[:cut]).value), cut


class Work:
    """Return the whole table, with the characters counted that each rule's functions and patterns are given to judge."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.matcher = Matcher([self._counted(rule) for rule in RULES])

    def _counted(self, rule: SanitizerRule) -> SanitizerRule:
        own = rule.check

        def check(match: re.Match[str]) -> bool:
            self.calls[rule.id] += 1
            return own is None or own(match)

        return dataclasses.replace(rule, check=check) if rule.pattern else rule

    def done(self, text: str) -> Counter[str]:
        self.calls.clear()
        self.matcher.find(text)
        return Counter(self.calls)


PREFIXES = sorted({keyword for rule in RULES if rule.kind == "token" for keyword in rule.keywords})


@TRACE_2
def test_a_refused_match_is_not_judged_again_at_each_prefix_in_it() -> None:
    """Audit R8: 4.8 MB of `sk-sk-…` took the collector 35 s."""
    work = Work()
    for prefix in ("sk-", "pa-", "fc-", "xai-", "glpat-", "xoxb-"):
        for size in (4_000, 16_000):
            assert work.done(prefix * (size // len(prefix))).total() <= size / 20, prefix


@pytest.mark.slow
@TRACE_2
def test_the_work_of_every_rule_grows_no_faster_than_the_text() -> None:
    work = Work()
    for prefix in PREFIXES:
        short, long = (work.done(prefix * (size // len(prefix))).total() for size in (1_000, 4_000))
        assert long <= 4 * short + 40, prefix


@TRACE_2
def test_a_token_longer_than_its_pattern_reads_is_hidden_to_its_end() -> None:
    """Audit R8: the rest of it was searched again in each round, for 8 s a megabyte of `sk_test_sk_test_…`."""
    for piece in ("sk_test_", "glpat-a1B2c3", "xoxb-1a2b"):
        cleaned = Sanitizer().text(f"a {piece * 1000} b")
        assert re.fullmatch(r"a \[REDACTED:[\w-]+\] b", cleaned.value), cleaned.value[:80]
        assert sum(cleaned.hidden.values()) == 1


class Watched(Matcher):
    """Matcher that notes how much each round reads."""

    def __init__(self) -> None:
        super().__init__(RULES)
        self.read: list[int] = []

    def _find(self, text: str, windows: Sequence[tuple[int, int]]) -> list[HiddenSpan]:
        self.read.append(sum(end - begin for begin, end in windows))
        return super()._find(text, windows)


@TRACE_2
def test_later_rounds_and_later_texts_read_only_what_may_have_changed() -> None:
    """R8: beyond the bound, the name of a replacement was taken for a keyword, and hidden again in eight rounds."""
    surroundings, bounded, cut = Watched(), Watched(), Watched()
    text = f"{'a word ' * 20_000}{SECRET} {'and more ' * 20_000}+49 30 901820"
    cleaned = surroundings.text(text, Counter())
    assert cleaned.count("[REDACTED:secret-name]") == cleaned.count("[PHONE]") == 1
    assert surroundings.read[0] == len(text)
    assert sum(surroundings.read[1:]) < 8_000
    cleaned = bounded.text("pwd=a1b2c " * 20_000, Counter())
    assert "a1b2c" not in cleaned
    assert "[REDACTED:[" not in cleaned
    assert sum(bounded.read[2:]) < 20_000
    text = "a word and more " * 2000
    assert Traversal(cut, cut=True).value([text, text + SECRET]) == [
        text,
        text + "password=[REDACTED:secret-name]",
    ]
    assert sum(cut.read) < 6_000


@TRACE_2
def test_a_text_of_nothing_but_keywords_is_tried_at_some_and_hidden_beyond() -> None:
    """R8: each keyword costs microseconds, a megabyte holds 250,000, and each small text had the limit for itself."""
    tried: list[int] = []

    def watched(text: str, start: int, end: int) -> Span | None:
        tried.append(start)
        return None

    matcher = Matcher([dataclasses.replace(rule, locate=watched) if rule.locate else rule for rule in RULES])
    text = "pw token= @ :// " * 20_000 + "\n" + SECRET
    found = matcher.find(text)
    assert 2000 <= len(tried) <= len(text) // 8
    assert found[-1].end == len(text)
    assert "Tr0ub4dor" not in Sanitizer().text(text).value
    tried.clear()
    with shared_limit(100_000):
        for _ in range(5_000):
            matcher.find("pw token= @ :// pw")
    assert 10_000 <= len(tried) <= 20_000
    tried.clear()
    matcher.find("pw token= @")
    assert tried


@TRACE_2
def test_ten_kilobytes_of_one_piece_cost_a_bounded_number_of_calls() -> None:
    """M6: `"a" * 8000` tried a rule at each letter; the calls of functions are counted, as time is not to be relied on."""
    sanitizer = Sanitizer()
    calls = 0

    def count(_frame: object, event: str, _arg: object) -> None:
        nonlocal calls
        calls += event in {"call", "c_call"}

    for piece, most in {"a": 300, "A": 300, "token=": 35_000, "pw ": 35_000, " or '": 35_000}.items():
        text, calls = (piece * 10_000)[:10_000], 0
        sanitizer.text(text)
        sys.setprofile(count)
        try:
            sanitizer.text(text)
        finally:
            sys.setprofile(None)
        assert calls <= most, piece


@TRACE_2
def test_phone_numbers_with_a_countrys_code_are_judged_as_the_library_does() -> None:
    import phonenumbers

    source = random.Random(9)
    rules = PhoneRules("US")
    for code in phonenumbers.COUNTRY_CODE_TO_REGION_CODE:
        for _ in range(6):
            number = source.randrange(10**5, 10 ** source.randrange(6, 11))
            text = f"+{code}{number}"
            valid = phonenumbers.is_valid_number(
                phonenumbers.PhoneNumber(country_code=code, national_number=number)
            )
            if len(text) > 8 and len(set(text)) > 3 and code != 1:
                match = re.match(r"(?P<secret>.*)", text)
                assert match is not None
                assert rules.international(match) is valid, text


@TRACE_2
def test_a_short_text_is_searched_for_personal_data_too() -> None:
    """R8: short texts without a keyword take a shorter way."""
    for text in (
        "+49 30 901820",
        "(212) 555-0147",
        "219-09-9999",
        "4111111111111111",
        "GB82WEST12345698765432",
        "a@b.io",
    ):
        assert Sanitizer().text(text).value.startswith("["), text
    assert Sanitizer(phone_region="DE").text("030 901820").value == "[PHONE]"


@TRACE_2
def test_a_text_with_a_secret_on_every_line_is_judged_to_its_end() -> None:
    text = "conn = connect(host='db', password='a1b2c3d4', api_key='z9y8x7w6v5')  # jane@example.com\n" * 2000
    cleaned = Sanitizer().text(text)
    assert cleaned.value.splitlines()[-1] == cleaned.value.splitlines()[0]
    assert cleaned.hidden == {"secret-name": 4000, "email": 2000}


@TRACE_2
def test_beyond_a_bound_costly_matches_are_hidden_unchecked() -> None:
    """Audit R8: each number costs the phone library 30 µs."""
    calls: list[str] = []

    def check(match: re.Match[str]) -> bool:
        calls.append(match[0])
        return False

    rule = SanitizerRule("slow", "", "personal", pattern=r"#\d+", check=check, costly=True)
    found = Matcher([rule]).find(" ".join(f"#{number}" for number in range(5000)))
    assert 1000 <= len(calls) <= 1100
    assert len(found) == 5000 - len(calls)


def test_a_token_behind_prefixes_without_one_is_still_hidden() -> None:
    for seed, prefix in enumerate(("sk-sk-sk-", "sk-learn-", "xai-and-pa-") * 3):
        token = expand("sk-proj-‹s74›T3BlbkFJ‹s74›", random.Random(seed))
        for before in (prefix, f"{prefix} ", f"{prefix * 9} ", f"{prefix * 3}/"):
            assert token[8:] not in Sanitizer().text(before + token).value, before
