"""Personal data: addresses, phone, card and account numbers.

Data contains many numbers, so a number alone is never enough. A card has an issuer's prefix, a length and a Luhn digit.
A social security number has its separators or its name before it. A phone number has a country code, a phone's
punctuation, or its name before it. Similar numbers (order numbers, times, versions, hashes, floats) stay.

`phonenumbers` decides which digits are a phone number. The rules' own patterns find them. The library's finder,
`PhoneNumberMatcher`, takes 24 times as long on this project's docs and lists of floats. It takes 600 of those floats
for phone numbers, and misses three of the rows' examples.
"""

from __future__ import annotations

import re
import string
from functools import cache, lru_cache
from importlib import import_module
from typing import Any

from healkit.core.secrets.secret_names import word_set
from healkit.parts.sanitizer.rule import SanitizerRule, Span

#: Words for what a number counts or names.
_COUNTED = (
    "order|invoice|tracking|serial|sku|part|ticket|case|ref(?:erence)?|isbn|ean|upc|gtin|imei|batch|lot"
    "|build|commit|version|seed|hash|uuid|guid|offset|epoch|timestamp|time|id|transaction|trace|span"
    "|request|row|port|size|bytes|count|total|product|item|model|doi|arxiv|pmid|issn|checksum|crc"
)
_ID_BEFORE = re.compile(
    rf"(?:{_COUNTED})(?:[ _-]?(?:id|no|number|num|nr|code|key|#))?"
    r"[\"']?\s{0,2}[:=#.]{0,2}\s{0,2}[\"'#]?$"
)
_CARD_BEFORE = re.compile(r"(?i)(?:card|pan|visa|master\s?card|amex|credit|debit|cc)[\w .:#=\"'-]{0,20}$")


def _is_id(before: str) -> bool:
    """Return True if the text before a number says that it counts or names something."""
    last = before.rstrip(_BETWEEN)[-1:]
    return (last.isalpha() or "#" in before[-4:]) and _ID_BEFORE.search(before.lower()) is not None


#: What may stand between a name and its number.
_BETWEEN = " \t\r\n:=#.\"'"


@lru_cache(maxsize=1024)
def is_card(digits: str) -> bool:
    """Check the issuer's prefix, its lengths (ISO/IEC 7812), and the Luhn digit."""
    size, two, four = len(digits), int(digits[:2]), int(digits[:4])
    plausible = (
        (digits[0] == "4" and size in {13, 16, 19})
        or (size == 16 and (51 <= two <= 55 or 2221 <= four <= 2720))
        or (size == 15 and two in {34, 37})
        or (size == 14 and (300 <= four // 10 <= 305 or two in {36, 38, 39}))
        or (
            16 <= size <= 19
            and (four == 6011 or 644 <= four // 10 <= 649 or two in {65, 62} or 3500 <= four <= 3599)
        )
        or (12 < size <= 19 and four in {5018, 5020, 5038, 5893, 6304, 6759, 6761, 6762, 6763})
        or (size == 16 and (two in {60, 81, 82} or 2200 <= four <= 2204))
    )
    return plausible and len(set(digits)) > 2 - (size == 16) and _luhn(digits)


def _luhn(digits: str) -> bool:
    """Check the digit of ISO/IEC 7812-1: the library's check takes ten times as long."""
    return (sum(map(int, digits[-1::-2])) + sum(map(_DOUBLED.__getitem__, digits[-2::-2]))) % 10 == 0


#: A digit's double, without its ten.
_DOUBLED = dict(zip("0123456789", (0, 2, 4, 6, 8, 1, 3, 5, 7, 9), strict=True))


def _card(match: re.Match[str]) -> bool:
    digits = re.sub(r"\D", "", match[0])
    if not 13 <= len(digits) <= 19 or not is_card(digits):
        return False
    if len(digits) != len(match[0]):
        return True
    before = match.string[max(0, match.start() - 40) : match.start()]
    if not any(map(str.isalpha, before)):
        return len(digits) in {14, 15, 16}
    return _CARD_BEFORE.search(before) is not None or (len(digits) in {14, 15, 16} and not _is_id(before))


def _ssn_area(match: re.Match[str]) -> bool:
    digits = re.sub(r"\D", "", match["secret"])
    return (
        digits[:3] not in {"000", "666"} and digits[0] != "9" and digits[3:5] != "00" and digits[5:] != "0000"
    )


def _sums_to_one(number: str) -> bool:
    """Check the digits of ISO 7064 mod 97-10; the library's check takes twenty times as long."""
    plain = number.replace(" ", "")
    return int((plain[4:] + plain[:4]).translate(_LETTERS)) % 97 == 1


_LETTERS = {ord(letter): str(number) for number, letter in enumerate(string.ascii_uppercase, 10)}


def _iban(match: re.Match[str]) -> bool:
    text = match[0].rstrip()
    if not any(map(_sums_to_one, (text, *(text[:-cut] for cut in range(1, 5))))):
        return False
    iban = _checksums("iban")
    return bool(iban.is_valid(text)) or any(iban.is_valid(text[:-cut]) for cut in range(1, 5))


class PhoneRules:
    """Rules for phone numbers as they are written; numbers without a country code are read for `region`."""

    def __init__(self, region: str) -> None:
        self.region = region

    def international(self, match: re.Match[str]) -> bool:
        """Accept `+` or `00`, a country code, and a length that the country has."""
        text = match["secret"]
        digits = re.sub(r"\D", "", text)
        if len(digits) < 8 or len(set(digits)) < 3 or text[-2] == ".":  # the last: a float with a sign
            return False
        plain = len(text) <= len(digits) + 1 or text.startswith("00")
        return _is_international(digits.removeprefix("00"), strict=plain and digits[0] != "1")

    def punctuated(self, match: re.Match[str]) -> bool:
        """Accept `(555) 010-0199` or `555-010-0199`: the punctuation of North America, whatever the area code."""
        text = match["secret"]
        before = match.string[max(0, match.start() - 30) : match.start()]
        if _is_id(before) and not _NAMED_BEFORE.search(before):
            return False
        digits = re.sub(r"\D", "", text)
        national = digits[-10:]
        if len(digits) not in {10, 11, 13} or (national[0] in "01" and national[:3] != "123"):
            return False
        if "(" in text or "-" in text or national[:3] == "555":
            return True
        if "." in text:
            return national[0] not in "01" and national[3] not in "01"
        return _valid(national, "US")

    def national(self, match: re.Match[str]) -> bool:
        """Accept a number with a trunk zero and separators that is valid in the configured region."""
        before = match.string[max(0, match.start() - 30) : match.start()]
        return self.region not in {"US", "CA"} and not _is_id(before) and _valid(match["secret"], self.region)

    def named(self, match: re.Match[str]) -> bool:
        """Accept a number of any punctuation after a word such as `phone`."""
        digits = re.sub(r"\D", "", match["secret"])
        if not 7 <= len(digits) <= 15 or len(set(digits)) < 3:
            return False
        if "phone" in match["word"].lower() or match["secret"][0] in "+(0":
            return True
        return len(digits) == 7 or _possible(match["secret"], self.region)

    def rules(self) -> tuple[SanitizerRule, ...]:
        """Return the rules for this region."""
        return (
            SanitizerRule(
                "phone", "a phone number with its country code, or written like one", "personal",
                pattern=r"(?P<secret>(?:(?<![\w.+/-])\+|(?<![\w.+:/=-])00)[1-9]\d{0,2}"
                r"(?:[ .\-/]{0,2}\(?0?\)?[ .\-/]{0,2}\d{1,5}){1,7})(?![\w]|[.:,/-]\d|%)",
                check=self.international, costly=True, among_numbers=True, replacement="[PHONE]",
                caught=("+49 30 901820", "call +1 (212) 555-0147 now", "+442079460958", "Tel: +33 1 42 68 53 00",
                        "+91 98765 43210"),
                survives=("2024-01-31T10:00:00+00:00", "+15%", "1e+10", "+1234", "@@ -120,7 +1200,7 @@", "10.0.0.1",
                          "+0530", "00:00:00.000"),
            ),
            SanitizerRule(
                "phone-national", "a phone number in North American form", "personal",
                pattern=r"(?<![\w.:/=+-])(?P<secret>(?:(?:\+?1|001)[ .-])?"
                r"(?:\(\d{3}\)[ -]?\d{3}[-. ]\d{4}|\d{3}(?P<s>[-. ])\d{3}(?P=s)\d{4}))(?![\w]|[-.:/]\d)",
                check=self.punctuated, costly=True, among_numbers=True, replacement="[PHONE]",
                caught=("(212) 555-0147", "212-555-0147", "1-800-555-0199", "212.555.0147"),
                survives=("order 212-555-0147", "100.200.3000", "2024-01-31", "978-0-306-40615-7", "012-345-6789",
                          "192.168.100.1000"),
            ),
            SanitizerRule(
                "phone-region", "a phone number in the form of the configured region", "personal",
                pattern=r"(?<![\w.:/=+-])(?P<secret>\(?0\d{1,5}\)?(?:[ /-]{1,2}\d{2,8}){1,5})(?![\w]|[-.:/]\d)",
                check=self.national, costly=True, among_numbers=True, replacement="[PHONE]",
                survives=("2024 01 31", "0123 4567 89ab"),
            ),
            SanitizerRule(
                "phone-named", "a number after a word for phone numbers", "personal",
                ("phone", "mobile", "tel", "cell", "fax", "whatsapp", "call", "sms", "msisdn", "handy", "contact"),
                r"(?i)(?P<word>(?:tele)?phones?|mobile|tel|cell|cellphone|fax|whatsapp|call|sms|msisdn|handy|contact)"
                r"(?:[ _-]?(?:phone|number|no|nr|num|me|us|him|her|at|to|on|is)){0,4}"
                r"[\"']?[.:)=]{0,2}\s{0,3}(?:at |on |is |to )?\\?"
                r"[\"'(]?(?P<secret>\+?\(?\d[\d ().\-/]{5,20}\d)(?![\w]|[.:/-]\d)",
                check=self.named, costly=True, replacement="[PHONE]",
                caught=('"phone": "2125550147"', "tel. 020 7946 0958", "mobile_number=07700900123",
                        "Call me at 555-0147", "Phone: 212 555 0147"),
                survives=("call 1234", "phone_count: 12", "cell 3", "telemetry 1234567", "mobile: true",
                          "fax no. of pages: 3"),
            ),
        )  # fmt: skip


_NAMED_BEFORE = re.compile(r"(?i)(?:phone|mobile|tel|cell|fax|call)[\w .:=\"']{0,12}$")


@lru_cache(maxsize=4096)
def _valid(number: str, region: str | None) -> bool:
    return _phone_number(number, region, "is_valid_number")


@lru_cache(maxsize=4096)
def _possible(number: str, region: str | None) -> bool:
    return _phone_number(number, region, "is_possible_number")


def _is_international(digits: str, *, strict: bool) -> bool:
    """Check a number that begins with its country's code; strict: a possible length is not enough.

    `phonenumbers` parses each number in 20 to 40 µs, and finds its country by trying each one. One pattern for each
    code, from the library's own data, gives the same result in less than one.
    """
    phonenumbers = import_module("phonenumbers")
    for size in (1, 2, 3):
        code, rest = int(digits[:size]), digits[size:]
        if digits[0] != "0" and code in phonenumbers.COUNTRY_CODE_TO_REGION_CODE and rest:
            break
    else:
        return False
    if not strict and {len(rest), len(rest.removeprefix("0"))} & _lengths(code):
        return True
    if rest[0] != "0" and _plan(code).match(rest) is not None:
        return True
    return (rest[0] == "0" or not strict) and _valid(
        "+" + digits, None
    )  # behind the zero or eight of a trunk


_KINDS = (
    "fixed_line", "mobile", "toll_free", "premium_rate", "shared_cost", "personal_number", "voip", "pager", "uan",
    "voicemail",
)  # fmt: skip


def _countries(code: int) -> list[Any]:
    phonenumbers = import_module("phonenumbers")
    of_region = phonenumbers.PhoneMetadata.metadata_for_region_or_calling_code
    return [of_region(code, region) for region in phonenumbers.COUNTRY_CODE_TO_REGION_CODE[code]]


@cache
def _lengths(code: int) -> frozenset[int]:
    """Return the lengths that a number of the code's main country may have."""
    country = _countries(code)[0].general_desc
    return frozenset((*country.possible_length, *country.possible_length_local_only))


@cache
def _plan(code: int) -> re.Pattern[str]:
    """Compile the numbering plans of the code's countries to one pattern."""
    plans = []
    for country in _countries(code):
        kinds = [getattr(country, kind) for kind in _KINDS]
        some = "|".join(
            kind.national_number_pattern for kind in kinds if kind and kind.national_number_pattern
        )
        plans.append(f"(?=(?:{country.general_desc.national_number_pattern})$)(?:{some})$")
    return re.compile("|".join(plans))


def _phone_number(number: str, region: str | None, check: str) -> bool:
    """Run one of the checks of `phonenumbers`, which the first possible number imports."""
    phonenumbers = import_module("phonenumbers")
    try:
        return bool(getattr(phonenumbers, check)(phonenumbers.parse(number, region)))
    except phonenumbers.NumberParseException:
        return False


def _checksums(kind: str) -> Any:
    """Import the check digits of one kind of number, when the first such number is met."""
    return import_module(f"stdnum.{kind}")


# E-mail addresses: which of them are a person's.
#
# An address that its owner has published stays: in a copyright notice, in a changelog's signature, or in a package's
# `Author-email` field. Payloads that hold code hold many of these.

_LOCAL = string.ascii_letters + string.digits + "!#$%&'*+/=?^_`{|}~-."
_LOCAL_BREAK = re.compile(r".*(?:[='`/|{&?$#]|\.(?=\.))", re.DOTALL)
_DOMAIN = re.compile(
    r"[^\W_](?:[\w-]{0,62}\.){1,8}(?:[^\W\d_]{2,24}|xn--[a-z0-9-]{2,30})(?![\w@(\[]|-\w|\.\w)"
)
#: Last parts of dotted names after an @ in code, units and file names that are not top-level domains.
_NO_DOMAINS = word_set(
    "png jpg jpeg gif svg webp ico css scss less js mjs cjs jsx tsx json yaml yml toml txt html htm xml csv "
    "pdf zip gz tar whl exe dll service socket timer target mount slice device scope path shape dtype inv dot "
    "sum data values real imag conj copy array matrix linalg transpose flatten ravel reshape astype mT lst "
    "linear weight grad fixture setter getter deleter property lock min max git parametrize cell_magic "
    "line_magic magic"
)
_NOT_MAIL_BEFORE = re.compile(
    r"(?i)(?:message-id|in-reply-to|references|content-id):[^\n]{0,200}$"
    r"|(?:ssh|git|svn|sftp|ftp|rsync)(?:\+\w+)?://\S*$"
)
#: Addresses of no person (RFC 2142, and what programs send from), and of mailing lists with their commands.
_ROLES = word_set(
    "noreply no-reply no_reply donotreply do-not-reply do_not_reply mailer-daemon postmaster hostmaster webmaster "
    "abuse noc security info marketing sales support usenet news www uucp ftp"
)
_OF_A_LIST = re.compile(r"(?i).+-(?:request|subscribe|unsubscribe|bounces|owner|announce|noreply|no-reply)$")
_LIST_HOSTS = ("lists.", "listserv.", "groups.")
_SHELL = re.compile(
    r"(?i)(?:^|[\n$#>;&|(`\"']|\bsudo)\s*"
    r"(?:ssh|scp|sftp|rsync|mosh|sshfs|autossh|ssh-copy-id|ssh-keyscan)\s[^\n|;&<>,]{0,200}$"
)
_VERSION = re.compile(r"\d+(?:x\.|\.\d+\.\d)")


def _is_role(local: str, host: str) -> bool:
    """Recognise the address of a function, a program or a mailing list."""
    folded = local.lower()
    return (
        folded.partition("+")[0] in _ROLES
        or host.startswith(_LIST_HOSTS)
        or _OF_A_LIST.match(local) is not None
    )


#: What stands before an address that was published, from its line's start, and what follows.
_YEAR, _PERSON, _LINE_END = r"(?:19|20)\d\d", r"[^\W\d][^\n<>=:;]{1,60}<$", re.compile(r">[ \t]*(?:\n|$)")
_PUBLISHED = (
    (
        re.compile(rf"(?i)(?:copyright(?: ?:| \(c\)| ©| {_YEAR})|©|\(c\) ?{_YEAR})[^\n\"=:;!?\\]{{0,100}}<$"),
        re.compile(">"),
    ),
    (re.compile(rf"^[ \t]{{1,20}}(?:{_YEAR}(?:-{_YEAR})?,?[ \t]{{1,8}}){{1,8}}{_PERSON}"), _LINE_END),
    (re.compile(rf"^\d{{4}}-\d\d-\d\d {{1,3}}{_PERSON}"), _LINE_END),
    (re.compile(rf"^ -- {_PERSON}"), re.compile(r">  (?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), {1,2}\d")),
    (re.compile(r"^(?:Author|Maintainer)-email: "), re.compile("")),
)


def _is_published(text: str, begin: int, end: int) -> bool:
    """Recognise an address in a copyright notice, a changelog's signature, or a package's field for its authors."""
    line = text[max(text.rfind("\n", max(0, begin - 200), begin) + 1, begin - 200, 0) : begin]
    return (line.endswith("<") or "-email:" in line) and any(
        before.search(line) is not None and behind.match(text, end) is not None
        for before, behind in _PUBLISHED
    )


def email(text: str, start: int, end: int) -> Span | None:
    """Find a person's address around the @ at `start`; not an ssh remote, decorator, version or matrix product."""
    if text.startswith("%40", start):
        end = start + 3
    domain = _DOMAIN.match(text, end)
    if domain is None:
        return None
    lowest = max(0, start - 64)
    begin = lowest + len(text[lowest:start].rstrip(_LOCAL))
    while begin > lowest and text[begin - 1].isalnum():  # a letter that is not ASCII
        begin = lowest + len(text[lowest : begin - 1].rstrip(_LOCAL))
    begin = _local_start(text, begin, start)
    if begin >= start or text[begin - 1 : begin] in {"@", "/"}:
        return None
    name = domain[0].lower()
    top = name.rpartition(".")[2]
    if top in _NO_DOMAINS or _VERSION.match(name) or text.startswith("://", domain.end()):
        return None
    if _is_no_mail(text, begin, start, domain.end()) or _is_role(text[begin:start], name):
        return None
    return None if _is_published(text, begin, domain.end()) else (begin, domain.end(), None)


def _is_no_mail(text: str, begin: int, start: int, end: int) -> bool:
    """Recognise a login at a host: in an ssh remote, a command, a URL; and a message's id."""
    after = text[end : end + 3]
    if (
        after[:1] == ":"
        and after[1:2].strip()
        and (
            text[begin:start].lower() in {"git", "hg", "ssh"}
            or after[1:2] in "/~$"
            or re.match(r":[\w.-]+/", text[end : end + 80])
        )
    ):
        return True  # user@host:path
    before = text[max(0, begin - 220) : begin].lower()
    if ("ssh" in before or "scp" in before or "rsync" in before or "sftp" in before) and _SHELL.search(
        before
    ):
        return True
    named = "://" in before or "-id:" in before or "reply-to:" in before or "references:" in before
    return (
        (named and _NOT_MAIL_BEFORE.search(before) is not None)
        or text[max(0, begin - 3) : begin] == "://"
        or (
            ":" in text[max(0, begin - 60) : begin]
            and re.search(r"://[^\s/@]*$", text[max(0, begin - 80) : begin]) is not None
        )
    )


def _local_start(text: str, begin: int, start: int) -> int:
    """Return the start of the local part, past `mailto:`, `user=`, quotes or an escape before it."""
    broken = _LOCAL_BREAK.match(text, begin, start)
    begin = broken.end() if broken else begin
    if begin and text[begin - 1] == "\\" and text[begin : begin + 1] in {"n", "r", "t"}:
        begin += 1
    while begin < start and text[begin] in "._-+!%^*~":
        begin += 1
    return begin


# The rules.

PERSONAL_DATA: tuple[SanitizerRule, ...] = (
    SanitizerRule(
        "email", "a person's e-mail address", "personal", ("@", "%40"), locate=email, replacement="[EMAIL]",
        caught=("jane.doe@example.com", "mailto:j+x@mail.example.co.uk", "<ünal@exämple.org>",
                "user=bob%40example.com", "a@b.io,", "1234+jane@users.noreply.github.com", "info.jane@example.com",
                "use ssh and ask jane@example.com", "security: jane@example.com",
                "copyright questions to <jane@example.com>", "(c) ask Jane Doe <jane@example.com>",
                "© 2020 Acme. Customer: jane@example.com",
                "2019-12-11 10:00:00 Jane Doe <jane@example.com> logged in", "2019 Jane Doe <jane@example.com>",
                "Author: Jane Doe <jane@example.com>", " -- Jane Doe <jane@example.com>",
                "2019-12-11  Jane Doe  <jane@example.com> paid"),
        survives=("git@github.com:org/repo.git", "@pytest.fixture", "lodash@4.17.21", "user@example", "icon@2x.png",
                  "x@np.linalg.inv(y)", "ssh://deploy@build.example.com/x", "getty@tty1.service",
                  "deploy@host.example.com:/srv", "@scope/name@1.0.0", "A@B.T", "noreply@github.com",
                  "no-reply+42@example.com", "postmaster@example.org", "python-dev@lists.example.org",
                  "users-unsubscribe@example.org", "pkg@2.0.0-rc.next",
                  "Copyright (c) 2011 Jane Doe <jane@example.com>", " (c) 2013-2017 Jane Doe <jane@example.com>",
                  "Copyright: © Jane Doe <jane@example.com>", "  2010-2011, Jane Doe <jane@example.com>",
                  " -- Jane Doe <jane@example.com>  Tue, 31 Jan 2023 09:57:20 +0000",
                  "2019-12-11  Jane Doe  <jane@example.com>",
                  "Author-email: Jane Doe <jane@example.com>, joe@example.com",
                  "ssh -p 2222 deploy@build.example.com uptime", "scp -r out jane@build.example.com:",
                  "rsync -a . deploy@host.example.com::web"),
    ),
    SanitizerRule(
        "ssn", "a US social security number", "personal",
        pattern=r"(?<![\w.+/-])(?P<secret>(?!000|666|9)\d{3}-(?!00)\d\d-(?!0000)\d{4})(?![\w]|[-.]\d|-\w)",
        check=_ssn_area, among_numbers=True, replacement="[SSN]",
        caught=("219-09-9999", "SSN 512-34-5678."),
        survives=("000-12-3456", "666-12-3456", "912-34-5678", "123-00-4567", "2024-01-3100", "1-219-09-9999"),
    ),
    SanitizerRule(
        "ssn-named", "a social security number after its name", "personal",
        ("ssn", "social security", "social_security", "socialsecurity"),
        r"(?i)(?:ssn|social[ _]?security)(?:[ _-]?(?:number|num|no|nr|is)){0,4}[\"']?[.:)=#]{0,2}\s{0,3}"
        r"(?:is )?\\?[\"'(]?(?P<secret>\d{3}[ -]?\d\d[ -]?\d{4})(?![\w]|[-.]\d)",
        check=_ssn_area, replacement="[SSN]",
        caught=('"ssn": "219099999"', "Social Security Number: 219 09 9999"),
        survives=("ssn_count: 3", "ssn: 000000000"),
    ),
    SanitizerRule(
        "card", "a payment card's number", "personal",
        pattern=r"(?<![\w.+/-])(?:\d{4}(?P<s>[ -])\d{4}(?P=s)\d{4}(?P=s)\d{1,4}(?:(?P=s)\d{1,3})?"
        r"|\d{4}(?P<a>[ -])\d{6}(?P=a)\d{4,5}|\d{13,19})(?![\w]|[-.]\d|-\w)",
        check=_card, among_numbers=True, replacement="[CARD]",
        caught=("4111 1111 1111 1111", "5555-5555-5555-4444", "3782 822463 10005", "6011111111111117",
                "card=30569309025904"),
        survives=("4111 1111 1111 1112", "1700000000000", "0.4111111111111111", "order 4111111111111111",
                  "4111-1111-1111-1111-abcd", "1700000000000000000"),
    ),
    SanitizerRule(
        "iban", "an international bank account number", "personal",
        pattern=r"[A-Z](?<![A-Za-z0-9_].)[A-Z]\d\d(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?(?![A-Za-z0-9_])",
        check=_iban, costly=True, replacement="[IBAN]",
        caught=("DE89 3704 0044 0532 0130 00", "GB82WEST12345698765432"),
        survives=("DE89 3704 0044 0532 0130 01", "AB12 CDEF 3456"),
    ),
)  # fmt: skip
