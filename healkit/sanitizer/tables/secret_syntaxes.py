"""Syntaxes that hold secrets, whatever these are called."""

from __future__ import annotations

import re
from collections.abc import Iterator

from healkit.sanitizer import assignments
from healkit.sanitizer.judged_values import default_behind
from healkit.sanitizer.rule import SanitizerRule, Span, starts_word
from healkit.sanitizer.secret_names import NAME_KEYWORDS
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
    if (at < 0 or not _HOST.match(authority[0], at + 1)) and _STORES.match(
        scheme[0].rpartition("+")[0] or scheme[0]
    ):
        # Passwords with an unescaped slash or question mark are common in stores' URLs.
        authority = _AUTHORITY_LOOSE.match(text, end)
        if authority is None or re.match(r"[^:@/]*:\d{1,5}/", authority[0]):
            return None
        at = next((at for at in _ats(authority[0]) if _HOST.match(authority[0], at + 1)), -1)
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


#: A host, and what may stand behind it: another one, a port, a path.
_HOST = re.compile(r"(?:[\w.-]+|\[[0-9A-Fa-f:.]+\]|%\w+)(?::\d{1,5})?(?=[/?#,;)\]}|]|$)|(?=[/?]|$)")


def _ats(authority: str) -> Iterator[int]:
    at = authority.find("@")
    while at >= 0:
        yield at
        at = authority.find("@", at + 1)


_DIGIT_OR_SYMBOL = re.compile(r"[\d!@#$%^&*]")
_SQL_BEFORE = re.compile(r"(?i)\b(?:create|alter)\s+(?:user|role|login)\b|\bgrant\s")


def _in_statement(match: re.Match[str]) -> bool:
    """Require a statement about users before it; "identified by name" is prose."""
    before = match.string[max(0, match.start() - 160) : match.start()]
    found = match["secret"]
    quoted = match.string[match.start("secret") - 1] == '"' and _DIGIT_OR_SYMBOL.search(found) is not None
    return (
        not is_reference(found)
        and found.lower() not in {"values", "password", "external", "random"}
        and (quoted or _SQL_BEFORE.search(before) is not None)
    )


_TOKEN_HEAD = re.compile(r"eyJ[A-Za-z0-9_-]{8,}+")
_TOKEN_TAIL = re.compile(r"(?:\.[A-Za-z0-9_-]{4,}+){1,2}(?:\.[A-Za-z0-9_-]*+){0,2}")


def web_token(text: str, start: int, _end: int) -> Span | None:
    """Find a JSON web token; a run of its letters without a dot behind it is read once, however often it begins anew."""
    if not starts_word(text, start) or (head := _TOKEN_HEAD.match(text, start)) is None:
        return None
    tail = _TOKEN_TAIL.match(text, head.end())
    return (start, tail.end(), None) if tail else (head.end(), head.end(), None)


def auth_scheme(text: str, start: int, end: int) -> Span | None:
    """Find the credentials behind `Bearer` and `Basic`, wherever they stand."""
    if not starts_word(text, start):
        return None
    match = _CREDENTIALS.match(text, end)
    if match is None:
        return None
    found = match[1].rstrip(".:")
    long_enough = len(found) >= 20 and any(character.isdigit() for character in found)
    padded = found.endswith("=") and len(found) >= 8 and re.search(r"\d|[a-z][A-Z]", found) is not None
    if is_reference(found) or not (looks_like_token(found) or long_enough or padded):
        return None
    rest = _CREDENTIALS_REST.match(text, match.end()) if len(match[1]) == _CREDENTIALS_READ else None
    return match.start(1), rest.end() if rest else match.start(1) + len(found), None


_CREDENTIALS_READ = 256
_CREDENTIALS = re.compile(r"(?:\s|%20|\+|: ?|\\*[\"']\s?,?\s?\\*[\"']?){1,2}([A-Za-z0-9._~+/:|=-]{6,256})")
_CREDENTIALS_REST = re.compile(r"[A-Za-z0-9._~+/:|=-]*")


def _unlike_reference(match: re.Match[str]) -> bool:
    return not is_reference(match["secret"])


def _shaped(match: re.Match[str]) -> bool:
    found = match["secret"]
    return not is_reference(found) and (looks_like_token(found) or any(c in "!@#$%^&*" for c in found))


_QUOTE_AHEAD = re.compile(r"[ \t]{0,4}(?=[\"'`])")


_DSN_BEFORE = re.compile(r"[\w.-]{1,64}:(?P<secret>[^\s\"'`]{3,128})$")


def dsn_password(text: str, start: int, _end: int) -> Span | None:
    """Find the password of `user:password@tcp(…)`, before the protocol."""
    found = _DSN_BEFORE.search(text[max(0, start - 200) : start].rpartition("\n")[2])
    if found is None or is_reference(found["secret"]):
        return None
    return start - len(found["secret"]), start, None


_PGPASS_LINE = re.compile(
    r"[\w.*/-]{1,120}:(?:\d{2,5}|\*):[\w*-]{1,63}:[\w*.@-]{1,63}:(?P<secret>[^\s:]{3,200})(?!\S)"
)


def pgpass_line(text: str, start: int, _end: int) -> Span | None:
    """Find the password at the end of `host:port:database:user:password`."""
    if not start or text[start - 1].isspace():
        return None
    begin = start - len(text[max(0, start - 120) : start].split()[-1])
    found = _PGPASS_LINE.match(text, begin)
    if found is None or is_reference(found["secret"]):
        return None
    return (*found.span("secret"), None)


def _default(text: str, start: int, end: int) -> Span | None:
    quoted = _QUOTE_AHEAD.match(text, end)
    return None if quoted is None else default_behind(text, start, quoted.end())


SECRET_SYNTAXES: tuple[SanitizerRule, ...] = (
    SanitizerRule(
        "oracle-login", "the password of an Oracle login", "place", ("jdbc:oracle:thin:", "sqlplus ", "impdp ", "expdp ", "rman target ", "sqlldr ", "connect("),
        r"(?:jdbc:oracle:thin:|(?:sqlplus|impdp|expdp|rman target|sqlldr)\s(?:-\w\s|userid=)*[\"']?|connect\([\"'])[\w$#]{1,60}/(?P<secret>[^\s@/\"']{3,128})@", check=_unlike_reference,
        caught=("jdbc:oracle:thin:scott/‹w8›@//db:1521/x", "sqlplus app/‹w9›@orcl", "cx_Oracle.connect('hr/‹w9›@db:1521/x')", "impdp hr/‹w8›@orcl full=y"),
        survives=("jdbc:oracle:thin:@//db:1521/x", "sqlplus /nolog", "connect('a/b')"),
    ),
    SanitizerRule(
        "jwt", "a JSON web token, signed or encrypted", "token", ("eyj",), locate=web_token,
        caught=("eyJhbGciOiJIUzI1NiJ9.eyJ‹s40›.‹s43›", "token eyJhbGciOiJub25lIn0.eyJ‹s30›."),
        survives=("sourceMappingURL=data:application/json;base64,eyJ2ZXJzaW9uIjozLCJzb3VyY2VzIjpbXX0=", "eyJ.x"),
    ),
    SanitizerRule(
        "url-password", "a password or token in a URL, of any scheme", "place", ("://", ":\\/\\/"), locate=url_password,
        caught=(
            "postgresql://app:‹w12›@db.internal:5432/prod", "redis://:‹w16›@cache:6379/0", "amqp://svc:p/‹w8›?x@mq:5672/",
            "https://‹h32›@errors.example.com/42", "mongodb+srv://root:‹a9›@cluster0.example.net/?w=majority",
            '{"url": "amqp:\\/\\/svc:‹w12›@mq\\/x"}',
        ),
        survives=(
            "https://example.com:8443/@scope/pkg", "ssh://git@example.com/repo.git", "postgresql://app@localhost/db",
            "postgres://user:${DB_PASSWORD}@db/x", "http://[::1]:8080/a@b", "https://user@example.com/",
        ),
    ),
    SanitizerRule(
        "url-password-encoded", "a password in a URL that is itself a part of one", "place", ("%3a%2f%2f",),
        r"(?i)%3A%2F%2F[^\s%\"'&]{0,60}%3A(?P<secret>[^\s\"'&]{3,200}?)%40", check=_unlike_reference,
        caught=("?db=postgresql%3A%2F%2Fapp%3A‹w12›%40db%2Fx",), survives=("?next=https%3A%2F%2Fexample.com%3A8080%2Fx", "https%3A%2F%2Fexample.com%2Fa%40b"),
    ),
    SanitizerRule(
        "dsn-password", "the password of `user:password@tcp(host)`, as Go's drivers take it", "place", ("@tcp(", "@unix(", "@tcp6("), locate=dsn_password,
        caught=("shop:‹w12›@tcp(10.0.0.5:3306)/shop", 'sql.Open("mysql", "app:‹w9›@unix(/tmp/mysql.sock)/x")'), survives=("app@tcp(db:3306)/x", "${U}:${P}@tcp(db:3306)/x"),
    ),
    SanitizerRule(
        "pgpass", "the password in a line of a PostgreSQL password file", "place", (":5432:", ":5433:", ":5434:", ":6432:", ":*:"), locate=pgpass_line,
        caught=("db.internal:5432:shop:app:‹w12›", "*:*:*:postgres:‹a9›"), survives=("db:5432:shop", "see a:*:b for more", "localhost:5432:shop:app:$PW"),
    ),
    SanitizerRule(
        "url-key", "a key or a code among a URL's parameters", "place", ("?key=", "&key=", "&amp;key=", "?code=", "&code="),
        r"(?:[?&]|&amp;)(?:key|code)=(?P<secret>[\w%+/=~.-]{20,512})", check=lambda match: looks_like_token(match["secret"]),
        caught=("https://maps.example.com/api?q=x&key=‹s39›", "GET /api/run?code=‹s52›== HTTP/1.1", "/callback?code=4/‹s60›&state=x"),
        survives=("/list?key=user:profile:settings:name", "?code=404", "/x?key=short12"),
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
        "default-secret", "a literal that stands in for a secret: `getenv(…) or \"…\"`", "named",
        (" or ", "||", "??", " else ", "default=", "default =", "default:", ") {"), locate=_default,
        caught=('password = os.getenv("DB_PASSWORD") or "‹w12›"', "process.env.CLIENT_SECRET || '‹w16›'", "process.env.API_KEY ?? \"‹w24›\"", "a.password if a.password else '‹w12›'", 'parser.add_argument("--password", default="‹w12›")', 'SECRET_KEY = config("SECRET_KEY", default="‹w24›")', 'ENV.fetch("SECRET_TOKEN") { "‹w16›" }'),
        survives=('name = user or "‹w12›"', 'token = token or ""', 'password = password or "password"', "if token == '(' or ')':", 'add_argument("--tokenizer", default="bert-base-uncased")', 'add_argument("--token", default="")'),
    ),
    SanitizerRule(
        "netrc", "a password in a netrc line", "place", ("machine", "login"),
        r"(?:machine\s+\S{1,200}\s+login\s+\S{1,200}\s+password\s+|login[ \t]+\S{1,200}[ \t]+password[ \t]+)(?P<secret>[^\s'\"]{3,256})",
        check=lambda match: _unlike_reference(match) and (match[0].startswith("machine") or _shaped(match) or len(match["secret"]) >= 6), caught=("machine example.com login me password ‹w12›",), survives=("login with password and code",),
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
