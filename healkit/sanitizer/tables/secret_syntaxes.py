"""Syntaxes that hold secrets, whatever these are called."""

from __future__ import annotations

import base64
import re

from healkit.sanitizer import assignments
from healkit.sanitizer.rule import SanitizerRule, Span, starts_word
from healkit.sanitizer.secret_names import NAME_KEYWORDS, Secrecy
from healkit.sanitizer.secret_values import QUOTED, hides, names_a_secret
from healkit.sanitizer.value_shapes import is_reference, looks_like_token

_STORES = re.compile(
    r"(?i)(?:postgres|mysql|mariadb|mongo|redis|valkey|amqp|mssql|sqlserver|oracle|ldap|clickhouse|cockroach|nats|ftp|smtp)"
)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,40}$")
_AUTHORITY = re.compile(r"[^\s\"'`<>/?#\\,]{1,1024}")
_AUTHORITY_LOOSE = re.compile(r"[^\s\"'`<>\\]{1,1024}")


def url_password(text: str, start: int, end: int) -> Span | None:
    """Find the password of `scheme://user:password@host`, or a token in the user's place."""
    scheme = _SCHEME.search(text, max(0, start - 42), start)
    authority = _AUTHORITY.match(text, end)
    if scheme is None or authority is None:
        return None
    at = authority[0].rfind("@")
    if at < 0 and _STORES.match(scheme[0].rpartition("+")[0] or scheme[0]):
        # Passwords with an unescaped slash or question mark are common in stores' URLs.
        authority = _AUTHORITY_LOOSE.match(text, end)
        at = authority[0].rfind("@") if authority else -1
        if authority is None or at < 0 or re.match(r"[^:@/]*:\d{1,5}/", authority[0]):
            return None
    if at <= 0:
        return None
    userinfo = authority[0][:at]
    user, colon, password = userinfo.partition(":")
    if colon:
        if not password or is_reference(password) or (is_reference(user) and password.startswith("{")):
            return None
        return end + len(user) + 1, end + at, None
    if (
        scheme[0].lower() not in {"ssh", "git", "svn", "sftp", "mailto"}
        and looks_like_token(userinfo)
        and len(userinfo) >= 12
    ):
        return end, end + at, None
    return None


_BLOCK_HEAD = re.compile(
    r"-----BEGIN (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)?-----|---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----"
)
_BLOCK_BODY = re.compile(
    r"""(?x)(?:
      (?:\\+[rnt]|[\s"'+,|>\#*]) *                                    # line ends, also escaped, quotes and continuations
      (?: [A-Za-z][A-Za-z-]{2,20}:\ [^\n\\]{0,200} | [A-Za-z0-9+/]{1,4096}={0,3} | =[A-Za-z0-9+/]{4} )
      (?=\s|\\|["'+,-]|$)
    )*+"""
)
_BLOCK_END = re.compile(r"(?:\\+[rnt]|[\s\"'+,|>#*])*-----END (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)?-----")


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
_KEY_LINE = re.compile(r"(?:^|[\s\"'#>|:+*/,\]-])[A-Za-z0-9+/]{16,76}={0,2}[\s\"',\\]*$")
_END_LINE = re.compile(r"[^\n]{0,160}?-----END (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)?-----")
_KEY_LINES_MAX, _KEY_LINE_MAX_CHARS = 200, 240


def _end_of_lines(text: str, position: int) -> int | None:
    """Return the end of a key block whose lines each have a prefix; None where the next line is none of a key."""
    begin = text.find("\n", position, position + 80) + 1
    kept: int | None = None
    for _ in range(_KEY_LINES_MAX if begin else 0):
        if (closing := _END_LINE.match(text, begin)) is not None:
            return closing.end() if kept else None
        end = text.find("\n", begin, begin + _KEY_LINE_MAX_CHARS)
        line = text[begin : end if end >= 0 else begin + _KEY_LINE_MAX_CHARS]
        if _KEY_LINE.search(line) is None:
            return kept
        kept = begin + len(line)
        if end < 0:
            return kept
        begin = end + 1
    return kept


#: Members of a JSON web key (RFC 7518) that are its private part.
JWK_MEMBERS = frozenset({"d", "p", "q", "dp", "dq", "qi", "k"})
_KTY_NEAR_CHARS = 6000


def _in_jwk(match: re.Match[str]) -> bool:
    start, end = max(0, match.start() - _KTY_NEAR_CHARS), match.end() + _KTY_NEAR_CHARS
    return re.search(r"[\"']kty", match.string[start:end]) is not None


_SQL_BEFORE = re.compile(r"(?i)\b(?:create|alter)\s+(?:user|role|login)\b|\bgrant\s")


def _in_statement(match: re.Match[str]) -> bool:
    """Require a statement about users before it; "identified by name" is prose."""
    before = match.string[max(0, match.start() - 160) : match.start()]
    found = match["secret"]
    return (
        not is_reference(found)
        and found.lower() not in {"values", "password", "external", "random"}
        and (_SQL_BEFORE.search(before) is not None)
    )


def auth_scheme(text: str, start: int, end: int) -> Span | None:
    """Find the credentials behind `Bearer` and `Basic`, wherever they stand."""
    if not starts_word(text, start):
        return None
    match = re.compile(
        r"(?:\s|%20|\+|: ?|\\*[\"']\s?,?\s?\\*[\"']?){1,2}([A-Za-z0-9._~+/:|=-]{6,8192})"
    ).match(text, end)
    if match is None:
        return None
    found = match[1].rstrip(".:")
    long_enough = len(found) >= 20 and any(character.isdigit() for character in found)
    padded = found.endswith("=") and len(found) >= 8 and re.search(r"\d|[a-z][A-Z]", found) is not None
    if is_reference(found) or not (looks_like_token(found) or long_enough or padded):
        return None
    return match.start(1), match.start(1) + len(found), None


def _unlike_reference(match: re.Match[str]) -> bool:
    return not is_reference(match["secret"])


def _is_private(match: re.Match[str]) -> bool:
    """Decode the beginning of the block, which may be cut anywhere."""
    head = match[0][:64].rstrip("=")
    return b"PRIVATE KEY" in base64.b64decode(head[: len(head) // 4 * 4])


def _shaped(match: re.Match[str]) -> bool:
    found = match["secret"]
    return not is_reference(found) and (looks_like_token(found) or any(c in "!@#$%^&*" for c in found))


_QUOTE_AHEAD = re.compile(r"[ \t]{0,4}(?=[\"'`])")


def _default(text: str, start: int, end: int) -> Span | None:
    quoted = _QUOTE_AHEAD.match(text, end)
    return None if quoted is None else assignments.default_behind(text, start, quoted.end())


SECRET_SYNTAXES: tuple[SanitizerRule, ...] = (
    SanitizerRule(
        "private-key", "a private key block (PEM, OpenSSH, PGP), also cut or with escaped line ends", "place",
        ("-----begin", "---- begin"), locate=private_block,
        caught=(
            "-----BEGIN RSA PRIVATE KEY-----\n‹b64›\n‹b64›\n‹b22›==\n-----END RSA PRIVATE KEY-----",
            "-----BEGIN OPENSSH PRIVATE KEY-----\\n‹b64›\\n‹b64›\\n-----END OPENSSH PRIVATE KEY-----\\n",
            "-----BEGIN PRIVATE KEY-----\nMIIE‹b60›\n‹b64›\n‹b30›",
            "-----BEGIN PGP PRIVATE KEY BLOCK-----\nVersion: GnuPG v2\n\n‹b64›\n=‹b4›\n-----END PGP PRIVATE KEY BLOCK-----",
            "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,‹H32›\n\n‹b64›\n-----END RSA PRIVATE KEY-----",
        ),
        survives=(
            "-----BEGIN PUBLIC KEY-----\n‹b64›\n-----END PUBLIC KEY-----",
            "-----BEGIN CERTIFICATE-----\n‹b64›\n-----END CERTIFICATE-----",
            "a file that starts with -----BEGIN RSA PRIVATE KEY----- is a key",
        ),
    ),
    SanitizerRule(
        "private-key-base64", "a private key block in base64, as Kubernetes keeps it", "place", ("ls0tls1crudjt",),
        r"LS0tLS1CRUdJTi[A-Za-z0-9+/]{24,65536}={0,2}", check=_is_private,
        caught=("tls.key: LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVktLS0tLQp‹b80›", "LS0tLS1CRUdJTiBQUklWQVRFIEtFWS0tLS0tCk‹b80›="),
        survives=("certificate-authority-data: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUR‹w60›", "cert: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSU"),
    ),
    SanitizerRule(
        "putty-key", "the private lines of a PuTTY key", "place", ("private-lines:",),
        r"Private-Lines:\s\d{1,3}(?:\s|\\[rn]){1,4}(?P<secret>(?:[A-Za-z0-9+/=]{4,64}(?:\s|\\[rn]|$){1,4}){1,200}(?:Private-MAC:\s[0-9a-f]{40,64})?)",
        caught=("Private-Lines: 2\n‹b64›\n‹b40›\nPrivate-MAC: ‹h40›",), survives=("Private-Lines: 14", "Public-Lines: 2\n‹b64›"),
    ),
    SanitizerRule(
        "oracle-login", "the password of an Oracle login", "place", ("jdbc:oracle:thin:", "sqlplus "),
        r"(?:jdbc:oracle:thin:|sqlplus\s(?:-\w\s)*)[\w$#]{1,60}/(?P<secret>[^\s@/\"']{3,128})@", check=_unlike_reference,
        caught=("jdbc:oracle:thin:scott/‹w8›@//db:1521/x", "sqlplus app/‹w9›@orcl"), survives=("jdbc:oracle:thin:@//db:1521/x", "sqlplus /nolog"),
    ),
    SanitizerRule(
        "jwt", "a JSON web token, signed or encrypted", "token", ("eyj",),
        r"eyJ[A-Za-z0-9_-]{8,4096}(?:\.[A-Za-z0-9_-]{4,65536}){1,2}(?:\.[A-Za-z0-9_-]{0,8192}){0,2}",
        caught=("eyJhbGciOiJIUzI1NiJ9.eyJ‹s40›.‹s43›", "token eyJhbGciOiJub25lIn0.eyJ‹s30›."),
        survives=("sourceMappingURL=data:application/json;base64,eyJ2ZXJzaW9uIjozLCJzb3VyY2VzIjpbXX0=", "eyJ.x"),
    ),
    SanitizerRule(
        "url-password", "a password or token in a URL, of any scheme", "place", ("://",), locate=url_password,
        caught=(
            "postgresql://app:‹w12›@db.internal:5432/prod", "redis://:‹w16›@cache:6379/0", "amqp://svc:p/‹w8›?x@mq:5672/",
            "https://‹h32›@errors.example.com/42", "mongodb+srv://root:‹a9›@cluster0.example.net/?w=majority",
        ),
        survives=(
            "https://example.com:8443/@scope/pkg", "ssh://git@example.com/repo.git", "postgresql://app@localhost/db",
            "postgres://user:${DB_PASSWORD}@db/x", "http://[::1]:8080/a@b", "https://user@example.com/",
        ),
    ),
    SanitizerRule(
        "auth-scheme", "credentials behind Bearer or Basic", "place", ("bearer", "basic"), locate=auth_scheme,
        caught=("Bearer ‹w32›", "sent Basic ‹b24›== to the proxy", "'Bearer', '‹w40›'"),
        survives=("Bearer authentication is required", "Basic usage: see below", "bearer tokens expire", "Basic 12345678"),
    ),
    SanitizerRule(
        "secret-name", "the value behind a secret's name, in any syntax", "named", NAME_KEYWORDS, locate=assignments.locate,
        caught=(
            "password=‹w10›", '"api_key": "‹w24›"', "--token ‹w20›", "export AWS_SECRET_ACCESS_KEY=‹b40›", "X-Api-Key: ‹w32›",
            "db_password: ‹a8›", "PASSWORD = '‹w9›'", "?access_token=‹w30›&page=2", "&sig=‹w43›%3D", "<password>‹w12›</password>",
            "clientSecret: '‹s34›'", "Cookie: theme=dark; sid=‹w26›", "Authorization: Token ‹h40›", "Server=db;Uid=sa;Pwd=‹w10›;",
            "AccountKey=‹b86›==;EndpointSuffix=core.windows.net", "- name: DB_PASSWORD\n  value: ‹w12›", "os.environ['API_TOKEN'] = '‹w24›'",
            'connect(host="db", passwd="‹a8›")', "passphrase: \"correct horse battery staple\"", "The password is ‹w12›.",
            '{\\"secret\\": \\"‹w16›\\"}', "DB_PASS=‹w8›", "auth=('admin', '‹w10›')", "PGPASSWORD=‹w8› psql -h db",
        ),
        survives=(
            "token = lexer.next_token()", "password = getpass()", "auth = None", "max_tokens=4096", "tokens: 512",
            "the password must have 8 characters", "Authorization header missing", "secret_santa = 'Alice Jones'", "author=jane12345",
            'key = row["id"]', "password: str | None = None", "def login(user, password=None):", "primary_key=True", "api_key=settings.api_key",
            "password_field_visible: true", "token: identifier", "cache_key = 'user:1234:profile'", "password=${DB_PASSWORD}",
            "PASSWORD=$(cat /run/secrets/db)", "private_key: /etc/ssl/server.key", "secretName: my-tls-secret", "pad_token='[PAD]'",
            "Enter password:", "public_key = '‹w43›'", "token_type: bearer", "foreign_key: user_id", "secrets.py:12: note",
        ),
    ),
    SanitizerRule(
        "sql-password", "a password in a SQL statement", "place", ("identified", "password", "secret"),
        r"(?i)(?:IDENTIFIED\s{1,3}(?:BY|WITH\s\S{1,40}\s{1,3}(?:BY|AS)|VIA\s\S{1,40}\sUSING)|(?:ENCRYPTED\s)?PASSWORD(?:\s{1,3}FOR\s\S{1,80}\s{1,3}=)?|SECRET)"
        r"\s{1,3}\\?'(?P<secret>[^'\s\\]{4,256})'",
        check=lambda match: _unlike_reference(match) and (match[0][:1].isupper() or any(c.isdigit() for c in match["secret"])),
        caught=("CREATE USER app IDENTIFIED BY '‹w10›'", "ALTER ROLE app WITH PASSWORD '‹w10›';", "SET PASSWORD FOR 'a'@'%' = '‹w10›'"),
        survives=("unknown PASSWORD plugin 'x'", "IDENTIFIED BY '${PW}'", "identified by 'name'"),
    ),
    SanitizerRule(
        "sql-password-bare", "a password in a SQL statement, without quotes or in double ones", "place", ("identified",),
        r"(?i)IDENTIFIED\s{1,3}BY\s{1,3}\\?\"?(?P<secret>[^\s'\"`;,()\\]{4,128})", check=_in_statement,
        caught=("ALTER USER app IDENTIFIED BY ‹w10›", "create user app identified by \"‹w10›\"", "GRANT ALL ON *.* TO x IDENTIFIED BY ‹a9›;"),
        survives=("each row is identified by name", "CREATE USER app IDENTIFIED BY :password", "users identified by number42"),
    ),
    SanitizerRule(
        "jwk", "a private member of a JSON web key", "place",
        tuple(f"{quote}{name}{quote}" for name in sorted(JWK_MEMBERS) for quote in ("'", '"', '\\"')),
        r"\\*[\"']\w{1,2}\\*[\"']\s{0,3}:\s{0,3}\\*[\"'](?P<secret>[A-Za-z0-9_-]{16,1400})(?=\\*[\"'])", check=_in_jwk,
        caught=('{"kty":"EC","x":"‹s43›","d":"‹s43›"}', "{'kty': 'oct', 'k': '‹s43›'}", '{"dp": "‹s86›", "kty": "RSA"}'),
        survives=('{"kty":"EC","x":"‹s43›","y":"‹s43›"}', '{"d": "‹s43›"}', '{"kty": "RSA", "n": "‹s86›", "d": "short"}'),
    ),
    SanitizerRule(
        "default-secret", "a literal that stands in for a secret: `getenv(…) or \"…\"`", "named",
        (" or ", "||", "??", " else "), locate=_default,
        caught=('password = os.getenv("DB_PASSWORD") or "‹w12›"', "process.env.CLIENT_SECRET || '‹w16›'", "process.env.API_KEY ?? \"‹w24›\"", "a.password if a.password else '‹w12›'"),
        survives=('name = user or "‹w12›"', 'token = token or ""', 'password = password or "password"', "if token == '(' or ')':"),
    ),
    SanitizerRule(
        "command-password", "a password as a program's argument", "place", ("curl", "wget"),
        r"(?:curl|wget)\b[^\n]{0,400}?\s(?:-u|--user|--proxy-user|-a|--auth)[ =]?[\"']?[^\s:\"'$-][^\s:\"']{0,100}:(?P<secret>[^\s\"']{3,256})",
        check=_unlike_reference,
        caught=("curl -s -u admin:‹w10› https://example.com", "curl https://example.com --user 'svc:‹w12›'"),
        survives=("curl -u $USER:$PASS https://example.com", "curl -o out https://example.com:8080/x", "curl -u admin https://example.com"),
    ),
    SanitizerRule(
        "command-password-flag", "a password behind a program's short option", "place", ("sshpass", "mysql", "mariadb", "mysqldump", "docker login", "redis-cli", "-pass"),
        r"(?:sshpass\s{1,3}-p\s{0,3}|(?:mysql|mariadb|mysqldump|mysqladmin)\b[^\n|;]{0,200}?\s-p(?=\S)|docker login\b[^\n|;]{0,200}?\s-p\s{1,3}|redis-cli\b[^\n|;]{0,200}?\s-a\s{1,3}|-pass(?:in|out)?\s{1,3}pass:)[\"']?(?P<secret>[^\s\"'-][^\s\"']{2,256})",
        check=_unlike_reference,
        caught=("sshpass -p ‹w10› ssh host", "mysql -u root -p‹w10› shop", "docker login -u me -p ‹w20› registry", "openssl rsa -passin pass:‹w8› -in k"),
        survives=("mysql -u root -p shop", "sshpass -p $PW ssh host", "mysql -P 3306 db"),
    ),
    SanitizerRule(
        "login-call", "the password that a login is called with", "place",
        ("login(", "basicauth(", "httpbasicauth(", "basic_auth(", "httpdigestauth(", "authenticate("),
        r"(?i)(?:login|(?:http)?basicauth|basic_auth|httpdigestauth|authenticate)\(\s{0,9}(?:user(?:name)?=)?[bu]?[\"'][^\"'\n]{1,100}[\"']\s{0,9},\s{0,9}"
        r"(?:pass(?:word|wd)?=)?[bu]?(?P<q>[\"'])(?P<secret>[^\"'\s]{4,200})(?P=q)",
        check=lambda match: hides(Secrecy.PASSWORD, "password", match["secret"], QUOTED) and not names_a_secret(match["secret"]),
        caught=("server.login('me@example.com', '‹w10›')", "login(\"admin\", \"‹a8›\")"),
        survives=("login('email', 'password')", "login(user, password)", "authenticate('next', 'new_password')"),
    ),
    SanitizerRule(
        "netrc", "a password in a netrc line", "place", ("machine", "login"),
        r"(?:machine\s+\S{1,200}\s+login\s+\S{1,200}\s+password\s+|login[ \t]+\S{1,200}[ \t]+password[ \t]+)(?P<secret>[^\s'\"]{3,256})",
        check=lambda match: match[0].startswith("machine") or _shaped(match) or len(match["secret"]) >= 6, caught=("machine example.com login me password ‹w12›",), survives=("login with password and code",),
    ),
    SanitizerRule(
        "crypt-hash", "a password's hash as crypt(3) and its kin write it", "token", ("$1$", "$2", "$5$", "$6$", "$y$", "$apr1$", "$argon2", "$pbkdf2", "$scrypt", "$7$"),
        r"\$(?:(?:1|5|6|7|y|apr1)\$[\w./=,$-]{16,300}|2[abxy]?\$\d\d\$[A-Za-z0-9./]{53}|(?:argon2(?:id|i|d)|pbkdf2|scrypt)[\w-]{0,20}\$[\w./=,+$-]{20,400})",
        caught=("root:$6$‹w16›$‹w86›:19000:0:99999", "$2b$12$‹w53›", "$argon2id$v=19$m=65536,t=3,p=4$‹b22›$‹b43›"),
        survives=("replace with $1$2", "costs $5 or $6", "$2.50 and $6.00"),
    ),
)  # fmt: skip

#: Rule under which a value is counted that only its name gave away.
SECRET_NAME = next(rule for rule in SECRET_SYNTAXES if rule.id == "secret-name")
