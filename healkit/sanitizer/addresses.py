"""E-mail addresses: which of them are a person's.

An address that its owner has published stays: one in a copyright notice, in a changelog's signature, or in a package's
`Author-email` field. Payloads that hold code hold many of these.
"""

from __future__ import annotations

import re
import string

from healkit.sanitizer.rule import Span
from healkit.sanitizer.secret_names import word_set

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
    r"(?i)(?:message-id|in-reply-to|references|content-id):[^\n]{0,200}$|(?:ssh|git|svn|sftp|ftp|rsync)(?:\+\w+)?://\S*$"
)


#: Addresses of no person (RFC 2142, and what programs send from), and of mailing lists with their commands.
_ROLES = word_set(
    "noreply no-reply no_reply donotreply do-not-reply do_not_reply mailer-daemon postmaster hostmaster webmaster "
    "abuse noc security info marketing sales support usenet news www uucp ftp"
)
_OF_A_LIST = re.compile(r"(?i).+-(?:request|subscribe|unsubscribe|bounces|owner|announce|noreply|no-reply)$")
_LIST_HOSTS = ("lists.", "listserv.", "groups.")
_SHELL = re.compile(
    r"(?i)(?:^|[\n$#>;&|(`\"']|\bsudo)\s*(?:ssh|scp|sftp|rsync|mosh|sshfs|autossh|ssh-copy-id|ssh-keyscan)\s[^\n|;&<>,]{0,200}$"
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
    """Find a person's address around the @ at `start`; no ssh remote, decorator, version or matrix product."""
    if text.startswith("%40", start):
        end = start + 3
    domain = _DOMAIN.match(text, end)
    if domain is None:
        return None
    lowest = max(0, start - 64)
    begin = lowest + len(text[lowest:start].rstrip(_LOCAL))
    while begin > lowest and text[begin - 1].isalnum():  # a letter that is no ASCII
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
