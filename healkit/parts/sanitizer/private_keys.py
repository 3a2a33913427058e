"""Private keys: PEM, base64, JSON web keys, PuTTY's.

A key's block may be cut, have escaped line ends, or have a log's prefix before each of its lines.
"""

from __future__ import annotations

import base64
import re

from healkit.parts.sanitizer.rule import SanitizerRule, Span, starts_word
from healkit.parts.sanitizer.secret_values import either, looks_like_token

#: A blank, also in a URL, and the name of a block.
_BLANK = r"(?: |%20|\+)"
_NAME = rf"{_BLANK}(?:[A-Z0-9]+{_BLANK}){{0,4}}PRIVATE{_BLANK}KEY(?:{_BLANK}BLOCK)?-----"
_BLOCK_HEAD = re.compile(rf"-----BEGIN{_NAME}|---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----")
#: Line ends, also escaped for a program, a page or a URL; quotes, continuations and what quotes a line. In these
#: tables, an example stands before each pattern.
_BETWEEN_FORMS = {
    r"\n": r"\\+[rnt]",
    r"\u000a": r"\\u000[aAdD]",
    "&#10;": r"&#(?:1[03]|[xX]0?[aAdD]);",
    "<br>": r"<br\s?/?>",
    "%0A": r"%0[AaDd]",
    "// ": r"/{2,3}(?=\s)",
    "/*": r"/\*|\*/",
    "> ": r"[\s\"'`+,|>#*]",
}
_BETWEEN = either(_BETWEEN_FORMS)
_LETTER, _PADDING, _CHECKSUM = r"(?:[A-Za-z0-9+/]|%2[BbFf])", r"(?:=|%3[Dd]){0,3}", r"=[A-Za-z0-9+/]{4}"
#: Lines of a key.
_LINE_FORMS = {
    "Version: GnuPG v2": r"[A-Za-z][A-Za-z-]{2,20}: [^\n\\]{0,200}",
    "MIIEpAIBAAKCAQEA0123": rf"{_LETTER}{{16,4096}}{_PADDING}",
    "=a1b2": _CHECKSUM,
}
_CLOSES = rf"(?={_BETWEEN}*(?:{_CHECKSUM}{_BETWEEN}*)?-----END)"
#: A shorter last line: any before the end, otherwise one that is not a word.
_LAST_LINE_FORMS = {
    "a1b2==\n-----END": rf"{_BETWEEN}*{_LETTER}{{1,15}}{_PADDING}{_CLOSES}(?:{_BETWEEN}*{_CHECKSUM})?",
    "\na1b2": rf"{_BETWEEN}{{1,40}}(?=[A-Za-z]*[0-9+/]|[A-Z]*[a-z]+[A-Z])[A-Za-z0-9+/]{{1,15}}={{0,3}}"
    r"(?=\s|\\|[\"'`+,&<%-]|$)",
}
_BLOCK_BODY = re.compile(
    rf"(?:{_BETWEEN}*{either(_LINE_FORMS)}(?=\s|\\|[\"'`+,&<%*-]|$))*+{either(_LAST_LINE_FORMS)}?"
)
_BLOCK_END = re.compile(rf"{_BETWEEN}*-----END{_NAME}")


def private_block(text: str, start: int, _end: int) -> Span | None:
    """Find a PEM or PGP private key, whole or cut; its line ends may be escaped."""
    head = _BLOCK_HEAD.match(text, start)
    if head is None:
        return None
    body = _BLOCK_BODY.match(text, head.end())
    stop = body.end() if body else head.end()
    closing = _BLOCK_END.match(text, stop)
    if closing is not None:
        return start, closing.end(), None
    if (end := _end_of_lines(text, head.end())) is not None:
        return start, end, None
    text_after = text[head.end() : stop]
    if len(re.sub(r"[^A-Za-z0-9+/]", "", text_after)) < 16 or not any(
        c.isdigit() or c.isupper() for c in text_after
    ):
        return None
    return start, stop, None


#: The end of a line of a key behind a prefix, as a log or a quotation writes it.
_KEY_LINE_FORMS = {
    "MIIEpAIBAAKCAQEA0123": r"[A-Za-z0-9+/]{16,76}={0,2}(?:[\s\"',\\│┃║|]|\x1b\[[\d;]*m)*$",
    f'{"a" * 64}"': r"[A-Za-z0-9+/]{60,76}={0,2}(?:\\+[rn])*[\"']",
}
_KEY_LINE = re.compile(rf"(?:^|[\s\"'#>|│┃║:+*/,\]-]|\x1b\[[\d;]*m){either(_KEY_LINE_FORMS)}")
#: What stands around each line of a key in a log of JSON objects.
_LOGGED_LINE = re.compile(r"\"[A-Za-z0-9+/]{16,76}={0,2}(?:\\+[rn])*\"")
_END_LINE = re.compile(r"[^\n]{0,160}?-----END (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)?-----")
#: The last line of a key, before its end.
_SHORT_LINE = re.compile(r"(?:^|[\s\"'#>|:])[A-Za-z0-9+/]{1,64}={0,2}[\"',\s]*$")
_KEY_LINES_MAX, _KEY_LINE_MAX_CHARS = 200, 240


def _end_of_lines(text: str, position: int) -> int | None:
    """Return the end of a key block whose lines have a prefix; None if the next line is not part of a key."""
    begin = text.find("\n", position, position + 80) + 1
    last_end: int | None = None
    for _ in range(_KEY_LINES_MAX if begin else 0):
        if (closing := _END_LINE.match(text, begin)) is not None:
            return closing.end() if last_end else None
        end = text.find("\n", begin, begin + _KEY_LINE_MAX_CHARS)
        line = text[begin : end if end >= 0 else begin + _KEY_LINE_MAX_CHARS]
        is_last = end >= 0 and _END_LINE.match(text, end + 1) is not None and _SHORT_LINE.search(line)
        if _KEY_LINE.search(line) is None and _LOGGED_LINE.search(line) is None and not is_last:
            return last_end
        last_end = begin + len(line)
        if end < 0:
            return last_end
        begin = end + 1
    return last_end


_END_HEAD = re.compile(r"-----END (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)?-----")
_LEAST_LINES = 2


def block_end(text: str, start: int, _end: int) -> Span | None:
    """Find the last lines of a private key without its beginning, from their `-----END …`."""
    closing = _END_HEAD.match(text, start)
    if closing is None:
        return None
    line_start = text.rfind("\n", max(0, start - _KEY_LINE_MAX_CHARS), start) + 1
    begin, lines = line_start, 0
    while begin and lines < _KEY_LINES_MAX:
        before = text.rfind("\n", max(0, begin - _KEY_LINE_MAX_CHARS), begin - 1) + 1
        if _KEY_LINE.search(text[before : begin - 1]) is None:
            break
        begin, lines = before, lines + 1
        if not before:
            break
    return (begin, closing.end(), None) if lines >= _LEAST_LINES else None


_BASE64_HEAD = re.compile(r"LS0tLS1CRUdJTi[A-Za-z0-9+/]{24,128}")
_BASE64_REST = re.compile(
    r"[A-Za-z0-9+/]*+={0,2}(?:(?:\\[rn]|[\s\"',]){1,40}[A-Za-z0-9+/]{20,128}+={0,2}(?=[\s\"'\\,]|$)){0,400}"
)


def base64_block(text: str, start: int, _end: int) -> Span | None:
    """Find a private key's block in base64, on one line or several; the block may be cut anywhere."""
    if not starts_word(text, start) or (head := _BASE64_HEAD.match(text, start)) is None:
        return None
    sure = head[0][:64]
    if b"PRIVATE KEY" not in base64.b64decode(sure[: len(sure) // 4 * 4]):
        return head.end(), head.end(), None
    rest = _BASE64_REST.match(text, head.end())
    return start, rest.end() if rest else head.end(), None


#: How the encoding of a private key begins.
_DER_FORMS = {
    "MIIEpAIBAAKC": r"MII[A-Za-z0-9+/]{2,4}IBAAK[BC]",
    "MIIEvgIBADANBgkqhkiG9w0BAQEFAAS": r"MII[A-Za-z0-9+/]{2,4}IBADANBgkqhkiG9w0BAQEFAAS",
    "MHcCAQEE": r"MHcCAQEE|MIGkAgEBBD|MHQCAQEE",
    "MIGHAgEAM": r"MI(?:GH|GT|G2|HuA)AgEAM",
    "MC4CAQAwBQYDK2V": r"MC4CAQAwBQYDK2V",
    "b3BlbnNzaC1rZXktdjE": r"b3BlbnNzaC1rZXktdjE",
}
_DER_HEAD = re.compile(rf"{either(_DER_FORMS)}[A-Za-z0-9+/]{{24,128}}")


def der_block(text: str, start: int, _end: int) -> Span | None:
    """Find a private key in base64 without its header, by the first bytes of its encoding."""
    if not starts_word(text, start) or (head := _DER_HEAD.match(text, start)) is None:
        return None
    rest = _BASE64_REST.match(text, head.end())
    return start, rest.end() if rest else head.end(), None


#: Members of a JSON web key (RFC 7518) that are its private part.
JWK_MEMBERS = frozenset({"d", "p", "q", "dp", "dq", "qi", "k"})
_KTY_NEAR_CHARS = 6000


def _in_jwk(match: re.Match[str]) -> bool:
    start, end = max(0, match.start() - _KTY_NEAR_CHARS), match.end() + _KTY_NEAR_CHARS
    return match.string.find("kty", start, end) >= 0


_QUOTES = r"(?:\\*[\"']|&(?:quot|apos|#0?3[49]|#x2[27]);)?"
_MEMBER = re.compile(
    rf"(?<![\w-])(?:dp|dq|qi|[dpqk]){_QUOTES}\s{{0,3}}[:=]\s{{0,3}}[bB]?{_QUOTES}"
    r"([A-Za-z0-9_-]{16,1400}+)(?![\w./])"
)
_READ_AHEAD, _READ_BEHIND = 4000, 1500


def other_jwk(text: str, start: int, end: int) -> Span | None:
    """Find the private members of a web key in YAML, in a call or in a page: all from the first to the last one."""
    begin, limit = max(0, start - _READ_BEHIND), end + _READ_AHEAD
    matches = [match for match in _MEMBER.finditer(text, begin, limit) if looks_like_token(match[1])]
    if not matches:
        return end + _READ_BEHIND // 2, end + _READ_BEHIND // 2, None
    first = matches[0]
    last = first
    for match in matches[1:]:
        if match.start() - last.end() > _GAP_CHARS:
            break
        last = match
    return first.start(1), last.end(1), None


#: Between two private members stands at most a public one of so many characters.
_GAP_CHARS = 1500


KEY_SYNTAXES: tuple[SanitizerRule, ...] = (
    SanitizerRule(
        "private-key", "a private key block (PEM, OpenSSH, PGP), also cut or with escaped line ends", "place",
        ("-----begin", "---- begin"), locate=private_block,
        caught=("-----BEGIN RSA PRIVATE KEY-----\n‹b64›\n‹b64›\n‹b22›==\n-----END RSA PRIVATE KEY-----",
               "-----BEGIN OPENSSH PRIVATE KEY-----\\n‹b64›\\n‹b64›\\n-----END OPENSSH PRIVATE KEY-----\\n",
               "-----BEGIN PRIVATE KEY-----\nMIIE‹b60›\n‹b64›\n‹b30›",
               ("-----BEGIN PGP PRIVATE KEY BLOCK-----\nVersion: GnuPG v2\n\n‹b64›\n=‹b4›\n"
                "-----END PGP PRIVATE KEY BLOCK-----"),
               ("-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,‹H32›\n\n‹b64›\n"
                "-----END RSA PRIVATE KEY-----"),
               ("-----BEGIN%20PRIVATE%20KEY-----%0AMIIE‹w58›%2F%0A‹w60›%2B‹w3›%0A‹w20›%3D%0A"
                "-----END%20PRIVATE%20KEY-----"),
               ("\x1b[32m-----BEGIN EC PRIVATE KEY-----\x1b[0m\n\x1b[32m‹b64›\x1b[0m\n\x1b[32m‹b40›\x1b[0m\n"
                "\x1b[32m-----END EC PRIVATE KEY-----\x1b[0m"),
               "║ -----BEGIN PRIVATE KEY-----   ║\n║ ‹b64›  ║\n║ ‹b40›   ║\n║ -----END PRIVATE KEY-----   ║",
               ('{"msg":"-----BEGIN PRIVATE KEY-----\\n","n":1}\n{"msg":"‹b64›\\n","n":2}\n'
                '{"msg":"‹b30›=\\n","n":3}\n{"msg":"-----END PRIVATE KEY-----\\n","n":4}')),
        survives=("-----BEGIN PUBLIC KEY-----\n‹b64›\n-----END PUBLIC KEY-----",
                 "-----BEGIN CERTIFICATE-----\n‹b64›\n-----END CERTIFICATE-----",
                 "a file that starts with -----BEGIN RSA PRIVATE KEY----- is a key"),
    ),
    SanitizerRule(
        "private-key-end", "the last lines of a private key block without its beginning", "place",
        ("-----end",), locate=block_end,
        caught=("…\n‹b64›\n‹b64›\n‹b22›==\n-----END RSA PRIVATE KEY-----",),
        survives=("‹b64›\n‹b64›\n-----END CERTIFICATE-----", "up to the line -----END PRIVATE KEY-----"),
    ),
    SanitizerRule(
        "private-key-base64", "a private key block in base64, as Kubernetes stores it", "place",
        ("ls0tls1crudjt",), locate=base64_block,
        caught=("tls.key: LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVktLS0tLQp‹b80›",
               "LS0tLS1CRUdJTiBQUklWQVRFIEtFWS0tLS0tCk‹b80›="),
        survives=("certificate-authority-data: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUR‹w60›",
                 "cert: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSU"),
    ),
    SanitizerRule(
        "private-key-der", "a private key in base64 without its header", "place",
        ("miie", "miic", "miij", "miib", "mhcc", "migh", "migt", "mig2", "mihu", "mc4c", "migk", "mhqc",
         "b3blbnnzac1rzxktdje"), locate=der_block,
        caught=("MIIEpAIBAAKCAQEA‹b60›", "MC4CAQAwBQYDK2VwBCIEI‹b43›=", "key MHcCAQEEI‹b60›\n‹b64›\n"),
        survives=("MIIDdzCCAl+gAwIBAgIE‹b60›", "MIIEvery", "MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8A‹b60›"),
    ),
    SanitizerRule(
        "putty-key", "the private lines of a PuTTY key", "place",
        ("private-lines:",),
        r"Private-Lines:\s\d{1,3}(?:\s|\\[rn]){1,40}"
        r"(?P<secret>[A-Za-z0-9+/]{16,64}={0,2}(?:(?:\s|\\[rn]){1,40}[A-Za-z0-9+/]{16,64}={0,2}){0,200}"
        r"(?:(?:\s|\\[rn]){1,40}(?=[A-Za-z]*[0-9+/=])[A-Za-z0-9+/]{1,15}={0,2}(?![\w+/=]))?"
        r"(?:(?:\s|\\[rn]){1,40}Private-MAC:\s[0-9a-f]{40,64})?)",
        caught=("Private-Lines: 2\n‹b64›\n‹b40›\nPrivate-MAC: ‹h40›",
               "      Private-Lines: 2\n      ‹b64›\n      ‹b40›\n"),
        survives=("Private-Lines: 14", "Public-Lines: 2\n‹b64›"),
    ),
    SanitizerRule(
        "jwk", "a private member of a JSON web key", "place",
        tuple(f"{quote}{name}{quote}" for name in sorted(JWK_MEMBERS) for quote in ("'", '"', '\\"')),
        r"\\*[\"']\w{1,2}\\*[\"']\s{0,3}:\s{0,3}\\*[\"'](?P<secret>[A-Za-z0-9_-]{16,1400})(?=\\*[\"'])", check=_in_jwk,
        caught=("{\"kty\":\"EC\",\"x\":\"‹s43›\",\"d\":\"‹s43›\"}", "{'kty': 'oct', 'k': '‹s43›'}",
               "{\"dp\": \"‹s86›\", \"kty\": \"RSA\"}"),
        survives=("{\"kty\":\"EC\",\"x\":\"‹s43›\",\"y\":\"‹s43›\"}", "{\"d\": \"‹s43›\"}",
                 "{\"kty\": \"RSA\", \"n\": \"‹s86›\", \"d\": \"short\"}"),
    ),
    SanitizerRule(
        "jwk-unquoted", "the private members of a web key that is not written as JSON", "place",
        ("kty",), locate=other_jwk,
        caught=("kty: EC\nx: ‹s43›\nd: ‹s43›\n", "JWK(kty='EC', d='‹s43›')",
               "{&quot;kty&quot;: &quot;EC&quot;, &quot;d&quot;: &quot;‹s43›&quot;}", "kty=oct&k=‹s43›"),
        survives=("kty: EC\nx: ‹s43›\ny: ‹s43›\n", "the member kty: d=1", "kty: oct\nkid: ‹s43›"),
    ),
)  # fmt: skip
