"""Syntaxes that a secret stands in, whatever it looks like.

They are assignments and headers; commands and directives; calls and statements of code; private keys as text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from healkit.core.secrets.secret_names import NAME_KEYWORDS, Secrecy, secrecy_of, word_set
from healkit.parts.sanitizer import assignments
from healkit.parts.sanitizer.assignments import default_behind
from healkit.parts.sanitizer.rule import SanitizerRule, Span, starts_word
from healkit.parts.sanitizer.secret_values import (
    ALGORITHM,
    QUOTED,
    either,
    hides,
    is_generated,
    is_path_or_url,
    is_reference,
    looks_like_token,
    names_a_secret,
)

_STORES = re.compile(
    r"(?i)(?:postgres|mysql|mariadb|mongo|redis|valkey|amqp|mssql|sqlserver|oracle"
    r"|ldap|clickhouse|cockroach|nats|ftp|smtp)"
)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,40}$")
_AUTHORITY = re.compile(r"[^\s\"'`<>/?#\\,]{1,1024}")
_AUTHORITY_LOOSE = re.compile(r"[^\s\"'`<>\\]{1,1024}")


def url_password(text: str, start: int, end: int) -> Span | None:
    """Find the password of `scheme://user:password@host`, or a token in place of the user."""
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


def unlike_reference(match: re.Match[str]) -> bool:
    """Refuse a variable or a template in place of the secret."""
    return not is_reference(match["secret"])


def _in_sql(match: re.Match[str]) -> bool:
    """Require capitals or a digit: "identified by 'name'" is prose."""
    return unlike_reference(match) and (match[0][:1].isupper() or any(map(str.isdigit, match["secret"])))


_SIGN_OR_DIGIT = re.compile(r"[\d!@#$%^&*]")
_SQL_BEFORE = re.compile(r"(?i)\b(?:create|alter)\s+(?:user|role|login)\b|\bgrant\s")


def _in_statement(match: re.Match[str]) -> bool:
    """Require a statement about users before it; "identified by name" is prose."""
    before = match.string[max(0, match.start() - 160) : match.start()]
    secret = match["secret"]
    quoted = match.string[match.start("secret") - 1] == '"' and _SIGN_OR_DIGIT.search(secret) is not None
    return (
        not is_reference(secret)
        and secret.lower() not in {"values", "password", "external", "random"}
        and (quoted or _SQL_BEFORE.search(before) is not None)
    )


_TOKEN_HEAD = re.compile(r"eyJ[A-Za-z0-9_-]{8,}+")
_TOKEN_TAIL = re.compile(r"(?:\.[A-Za-z0-9_-]{4,}+){1,2}(?:\.[A-Za-z0-9_-]*+){0,2}")


def web_token(text: str, start: int, _end: int) -> Span | None:
    """Find a JSON web token; a sequence of its letters without a dot after it is read once."""
    if not starts_word(text, start) or (head := _TOKEN_HEAD.match(text, start)) is None:
        return None
    tail = _TOKEN_TAIL.match(text, head.end())
    return (start, tail.end(), None) if tail else (head.end(), head.end(), None)


def auth_scheme(text: str, start: int, end: int) -> Span | None:
    """Find the credentials after `Bearer` and `Basic`, anywhere."""
    if not starts_word(text, start):
        return None
    match = _CREDENTIALS.match(text, end)
    if match is None:
        return None
    credentials = match[1].rstrip(".:")
    long_enough = len(credentials) >= 20 and any(character.isdigit() for character in credentials)
    padded = (
        credentials.endswith("=")
        and len(credentials) >= 8
        and re.search(r"\d|[a-z][A-Z]", credentials) is not None
    )
    if is_reference(credentials) or not (looks_like_token(credentials) or long_enough or padded):
        return None
    rest = _CREDENTIALS_REST.match(text, match.end()) if len(match[1]) == _CREDENTIALS_READ else None
    return match.start(1), rest.end() if rest else match.start(1) + len(credentials), None


_CREDENTIALS_READ = 256
_CREDENTIALS = re.compile(r"(?:\s|%20|\+|: ?|\\*[\"']\s?,?\s?\\*[\"']?){1,2}([A-Za-z0-9._~+/:|=-]{6,256})")
_CREDENTIALS_REST = re.compile(r"[A-Za-z0-9._~+/:|=-]*")


_QUOTE_AHEAD = re.compile(r"[ \t]{0,4}(?=[\"'`])")
_DSN_BEFORE = re.compile(r"[\w.-]{1,64}:(?P<secret>[^\s\"'`]{3,128})$")


def dsn_password(text: str, start: int, _end: int) -> Span | None:
    """Find the password of `user:password@tcp(…)`, before the protocol."""
    match = _DSN_BEFORE.search(text[max(0, start - 200) : start].rpartition("\n")[2])
    if match is None or is_reference(match["secret"]):
        return None
    return start - len(match["secret"]), start, None


_PGPASS_LINE = re.compile(
    r"[\w.*/-]{1,120}:(?:\d{2,5}|\*):[\w*-]{1,63}:[\w*.@-]{1,63}:(?P<secret>[^\s:]{3,200})(?!\S)"
)


def pgpass_line(text: str, start: int, _end: int) -> Span | None:
    """Find the password at the end of `host:port:database:user:password`."""
    if not start or text[start - 1].isspace():
        return None
    begin = start - len(text[max(0, start - 120) : start].split()[-1])
    match = _PGPASS_LINE.match(text, begin)
    if match is None or is_reference(match["secret"]):
        return None
    return (*match.span("secret"), None)


def _default(text: str, start: int, end: int) -> Span | None:
    quoted = _QUOTE_AHEAD.match(text, end)
    return None if quoted is None else default_behind(text, start, quoted.end())


#: What stands before an Oracle login. In these tables, an example stands before each pattern.
_ORACLE_FORMS = {
    "jdbc:oracle:thin:scott/": r"jdbc:oracle:thin:",
    "sqlplus scott/": r"(?:sqlplus|impdp|expdp|rman target|sqlldr)\s[\"']?",
    "connect('scott/": r"connect\([\"']",
}
#: What stands before a password in a SQL statement.
_SQL_FORMS = {
    "IDENTIFIED BY": r"IDENTIFIED\s{1,3}BY",
    "IDENTIFIED WITH sha256_password BY": r"IDENTIFIED\s{1,3}WITH\s\S{1,40}\s{1,3}(?:BY|AS)",
    "PASSWORD FOR 'a'@'%' =": r"PASSWORD(?:\s{1,3}FOR\s\S{1,80}\s{1,3}=)?",
    "SECRET": r"SECRET",
}
#: What follows the first `$` of a password's hash.
_CRYPT_FORMS = {
    "6$salt$0123456789abcdef": r"(?:1|5|6|7|y|apr1)\$[\w./=,$-]{16,300}",
    f"2b$12${'a' * 53}": r"2[abxy]?\$\d\d\$[A-Za-z0-9./]{53}",
    "argon2id$v=19$m=65536,t=3$salt$hash": r"(?:argon2(?:id|i|d)|pbkdf2|scrypt)[\w-]{0,20}\$[\w./=,+$-]{20,400}",
}
SECRET_SYNTAXES: tuple[SanitizerRule, ...] = (
    SanitizerRule(
        "oracle-login", "the password of an Oracle login", "place",
        ("jdbc:oracle:thin:", "sqlplus ", "impdp ", "expdp ", "rman target ", "sqlldr ", "connect("),
        rf"{either(_ORACLE_FORMS)}[\w$#]{{1,60}}/(?P<secret>[^\s@/\"']{{3,128}})@",
        check=unlike_reference,
        caught=("jdbc:oracle:thin:scott/‹w8›@//db:1521/x", "sqlplus app/‹w9›@orcl",
               "cx_Oracle.connect('hr/‹w9›@db:1521/x')", "impdp hr/‹w8›@orcl full=y"),
        survives=("jdbc:oracle:thin:@//db:1521/x", "sqlplus /nolog", "connect('a/b')"),
    ),
    SanitizerRule(
        "jwt", "a JSON web token, signed or encrypted", "token",
        ("eyj",), locate=web_token,
        caught=("eyJhbGciOiJIUzI1NiJ9.eyJ‹s40›.‹s43›", "token eyJhbGciOiJub25lIn0.eyJ‹s30›."),
        survives=("sourceMappingURL=data:application/json;base64,eyJ2ZXJzaW9uIjozLCJzb3VyY2VzIjpbXX0=", "eyJ.x"),
    ),
    SanitizerRule(
        "url-password", "a password or token in a URL of any scheme", "place",
        ("://", ":\\/\\/"), locate=url_password,
        caught=("postgresql://app:‹w12›@db.internal:5432/prod", "redis://:‹w16›@cache:6379/0",
               "amqp://svc:p/‹w8›?x@mq:5672/", "https://‹h32›@errors.example.com/42",
               "mongodb+srv://root:‹a9›@cluster0.example.net/?w=majority",
               "{\"url\": \"amqp:\\/\\/svc:‹w12›@mq\\/x\"}"),
        survives=("https://example.com:8443/@scope/pkg", "ssh://git@example.com/repo.git",
                 "postgresql://app@localhost/db", "postgres://user:${DB_PASSWORD}@db/x", "http://[::1]:8080/a@b",
                 "https://user@example.com/"),
    ),
    SanitizerRule(
        "dsn-password", "the password of `user:password@tcp(host)`, as in Go drivers", "place",
        ("@tcp(", "@unix(", "@tcp6("), locate=dsn_password,
        caught=("shop:‹w12›@tcp(10.0.0.5:3306)/shop", "sql.Open(\"mysql\", \"app:‹w9›@unix(/tmp/mysql.sock)/x\")"),
        survives=("app@tcp(db:3306)/x", "${U}:${P}@tcp(db:3306)/x"),
    ),
    SanitizerRule(
        "pgpass", "the password in a line of a PostgreSQL password file", "place",
        (":5432:", ":5433:", ":5434:", ":6432:", ":*:"), locate=pgpass_line,
        caught=("db.internal:5432:shop:app:‹w12›", "*:*:*:postgres:‹a9›"),
        survives=("db:5432:shop", "see a:*:b for more", "localhost:5432:shop:app:$PW"),
    ),
    SanitizerRule(
        "url-key", "a key or a code in the parameters of a URL", "place",
        ("?key=", "&key=", "&amp;key=", "?code=", "&code="),
        r"(?:[?&]|&amp;)(?:key|code)=(?P<secret>[\w%+/=~.-]{20,512})",
        check=lambda match: looks_like_token(match["secret"]),
        caught=("https://maps.example.com/api?q=x&key=‹s39›", "GET /api/run?code=‹s52›== HTTP/1.1",
               "/callback?code=4/‹s60›&state=x"),
        survives=("/list?key=user:profile:settings:name", "?code=404", "/x?key=short12"),
    ),
    SanitizerRule(
        "auth-scheme", "credentials after Bearer or Basic", "place",
        ("bearer", "basic"), locate=auth_scheme,
        caught=("Bearer ‹w32›", "sent Basic ‹b24›== to the proxy", "'Bearer', '‹w40›'"),
        survives=("Bearer authentication is required", "Basic usage: see below", "bearer tokens expire",
                 "Basic 12345678"),
    ),
    SanitizerRule(
        "secret-name", "the value after the name of a secret, in any syntax", "named",
        NAME_KEYWORDS, locate=assignments.locate, work=1,
        caught=("password=‹w10›", "\"api_key\": \"‹w24›\"", "--token ‹w20›", "export AWS_SECRET_ACCESS_KEY=‹b40›",
               "X-Api-Key: ‹w32›", "db_password: ‹a8›", "PASSWORD = '‹w9›'", "?access_token=‹w30›&page=2",
               "&sig=‹w43›%3D", "<password>‹w12›</password>", "clientSecret: '‹s34›'",
               "Cookie: theme=dark; sid=‹w26›", "Authorization: Token ‹h40›", "Server=db;Uid=sa;Pwd=‹w10›;",
               "AccountKey=‹b86›==;EndpointSuffix=core.windows.net", "- name: DB_PASSWORD\n  value: ‹w12›",
               "os.environ['API_TOKEN'] = '‹w24›'", "connect(host=\"db\", passwd=\"‹a8›\")",
               "passphrase: \"correct horse battery staple\"", "The password is ‹w12›.",
               "{\\\"secret\\\": \\\"‹w16›\\\"}", "DB_PASS=‹w8›", "auth=('admin', '‹w10›')",
               "PGPASSWORD=‹w8› psql -h db"),
        survives=("token = lexer.next_token()", "password = getpass()", "auth = None", "max_tokens=4096",
                 "tokens: 512", "the password must have 8 characters", "Authorization header missing",
                 "secret_santa = 'Alice Jones'", "author=jane12345", "key = row[\"id\"]",
                 "password: str | None = None", "def login(user, password=None):", "primary_key=True",
                 "api_key=settings.api_key", "password_field_visible: true", "token: identifier",
                 "cache_key = 'user:1234:profile'", "password=${DB_PASSWORD}", "PASSWORD=$(cat /run/secrets/db)",
                 "private_key: /etc/ssl/server.key", "secretName: my-tls-secret", "pad_token='[PAD]'",
                 "Enter password:", "public_key = '‹w43›'", "token_type: bearer", "foreign_key: user_id",
                 "secrets.py:12: note"),
    ),
    SanitizerRule(
        "sql-password", "a password in a SQL statement", "place",
        ("identified", "password", "secret"),
        rf"(?i){either(_SQL_FORMS)}\s{{1,3}}\\?'(?P<secret>[^'\s\\]{{4,256}})'",
        check=_in_sql,
        caught=("CREATE USER app IDENTIFIED BY '‹w10›'", "ALTER ROLE app WITH PASSWORD '‹w10›';",
               "SET PASSWORD FOR 'a'@'%' = '‹w10›'"),
        survives=("unknown PASSWORD plugin 'x'", "IDENTIFIED BY '${PW}'", "identified by 'name'"),
    ),
    SanitizerRule(
        "sql-password-bare", "a password in a SQL statement, without quotes or in double ones", "place",
        ("identified",),
        r"(?i)IDENTIFIED\s{1,3}BY\s{1,3}\\?\"?(?P<secret>[^\s'\"`;,()\\]{4,128})", check=_in_statement,
        caught=("ALTER USER app IDENTIFIED BY ‹w10›", "create user app identified by \"‹w10›\"",
               "GRANT ALL ON *.* TO x IDENTIFIED BY ‹a9›;"),
        survives=("each row is identified by name", "CREATE USER app IDENTIFIED BY :password",
                 "users identified by number42"),
    ),
    SanitizerRule(
        "default-secret", "a default value for a secret: `getenv(…) or \"…\"`", "named",
        (" or ", "||", "??", " else ", "default=", "default =", "default:", ") {"), locate=_default,
        caught=("password = os.getenv(\"DB_PASSWORD\") or \"‹w12›\"", "process.env.CLIENT_SECRET || '‹w16›'",
               "process.env.API_KEY ?? \"‹w24›\"", "a.password if a.password else '‹w12›'",
               "parser.add_argument(\"--password\", default=\"‹w12›\")",
               "SECRET_KEY = config(\"SECRET_KEY\", default=\"‹w24›\")", "ENV.fetch(\"SECRET_TOKEN\") { \"‹w16›\" }"),
        survives=("name = user or \"‹w12›\"", "token = token or \"\"", "password = password or \"password\"",
                 "if token == '(' or ')':", "add_argument(\"--tokenizer\", default=\"bert-base-uncased\")",
                 "add_argument(\"--token\", default=\"\")"),
    ),
    SanitizerRule(
        "netrc", "a password in a netrc line", "place",
        ("machine",),
        r"machine\s+\S{1,200}\s+login\s+\S{1,200}\s+password\s+(?P<secret>[^\s'\"]{3,256})", check=unlike_reference,
        caught=("machine example.com login me password ‹w12›",),
        survives=("machine learning on login and password",),
    ),
    SanitizerRule(
        "crypt-hash", "a password hash in the form of crypt(3) or similar", "token",
        ("$1$", "$2", "$5$", "$6$", "$y$", "$apr1$", "$argon2", "$pbkdf2", "$scrypt", "$7$"),
        rf"\${either(_CRYPT_FORMS)}",
        caught=("root:$6$‹w16›$‹w86›:19000:0:99999", "$2b$12$‹w53›", "$argon2id$v=19$m=65536,t=3,p=4$‹b22›$‹b43›"),
        survives=("replace with $1$2", "costs $5 or $6", "$2.50 and $6.00"),
    ),
)  # fmt: skip
#: Rule under which a value is counted that only its name gave away.
SECRET_NAME = next(rule for rule in SECRET_SYNTAXES if rule.id == "secret-name")


# Commands and directives.

_DIGIT_OR_SYMBOL = re.compile(r"[\d!@#$%^&*?~+=|<>]")


def is_sure(found: str) -> bool:
    """Accept a text that is surely not a common word: with a digit or a symbol, or a generator's phrase."""
    return _DIGIT_OR_SYMBOL.search(found) is not None or is_generated(found)


def password(match: re.Match[str]) -> bool:
    """Accept a text that may be a password, but not the name of one."""
    secret = match["secret"]
    return hides(Secrecy.PASSWORD, "password", secret, QUOTED) and not names_a_secret(secret)


def _in_directive(match: re.Match[str]) -> bool:
    return unlike_reference(match) and is_sure(match["secret"]) and not names_a_secret(match["secret"])


def sure_password(match: re.Match[str]) -> bool:
    """Accept a password that is not a plain word, because other words occur in these places too."""
    secret = match["secret"]
    return password(match) and is_sure(secret) and ALGORITHM.match(secret) is None


#: Options by program; the secret follows, behind blanks or, in a list of arguments, what is between them. Of a line, so
#: many characters behind the program are read.
_LINE_CHARS = 240
_GAP = r"[ =]{1,8}"
_REST = r"[\"']?(?P<secret>[^\s\"'-][^\s\"']{2,256})"
_USER = r"[\"']?[^\s:\"'$-][^\s:\"']{0,100}:"
_OPTIONS = {
    name: re.compile(f"(?:{option}){_REST}")
    for names, option in (
        ("curl wget", rf"\s(?:-[A-Za-z]{{0,8}}u|--user|--proxy-user|-U|-a|--auth)[ =]{{0,8}}{_USER}"),
        ("http https", rf"\s(?:-a|--auth){_GAP}{_USER}"),
        ("sshpass", r"\s-p[ =]{0,8}"),
        ("mysql mariadb mysqldump mysqladmin mysqlimport", r"\s-p(?=\S)"),
        ("docker podman nerdctl buildah helm oras az", rf"\slogin\s[^\n]{{0,160}}?-(?:p|-password){_GAP}"),
        ("mongo mongosh mongodump mongorestore snowsql psexec useradd rdesktop", rf"\s(?:-p|--password){_GAP}"),
        ("twine", rf"\supload\s[^\n]{{0,160}}?-(?:p|-password){_GAP}"),
        ("redis-cli valkey-cli", rf"\s(?:-a|--pass){_GAP}"),
        ("7z 7za rar unrar", r"\s-p(?=\S)"),
        ("zip unzip sqlcmd bcp isql tsql mosquitto_pub mosquitto_sub ipmitool", r"\s-P[ =]{0,8}"),
        ("ldapsearch ldapmodify ldapadd ldapwhoami ldappasswd ldapdelete", r"\s-w[ =]{0,8}"),
        ("openssl", rf"\s-(?:k|K|pass(?:in|out)?){_GAP}(?:pass:)?"),
        ("htpasswd", r"\s-(?:\w*n\w*b\w*|\w*b\w*n\w*|\w*b\w*\s{1,8}\S{1,80})\s{1,8}\S{1,80}\s{1,8}"),
        ("smbclient rpcclient", r"\s-U[ =]{0,8}[^\s%]{1,80}%"),
        ("lftp", r"\s-u\s{1,8}[^,\s]{1,80},"),
        ("net", r"\s(?:use\s[^\n]{0,120}?\\\\[^\s\\]{1,80}\\\S{1,80}|user\s{1,8}\w{1,40})\s{1,8}(?=[^\s/*])"),
        ("rabbitmqctl", r"\s(?:add_user|change_password|authenticate_user)\s{1,8}[^\s-]\S{0,80}\s{1,8}"),
        ("xfreerdp wfreerdp xfreerdp3", r"\s/p:"),
        ("cmdkey", r"\s/pass:"),
        ("plink pscp psftp", rf"\s-pw{_GAP}"),
        ("snmpwalk snmpget snmpset snmpbulkwalk", r"\s-[AXc][ =]{0,8}"),
    )
    for name in names.split()
}  # fmt: skip
#: Programs that are called with words in the same place.
_SURE_ONLY = word_set(
    "7z 7za rar unrar zip unzip openssl net mongo psexec useradd az http https rdesktop tabcmd ncftp snmpwalk snmpget "
    "snmpset snmpbulkwalk ipmitool rabbitmqctl"
)
_KEYWORDS = tuple(f"{name}{end}" for name in _OPTIONS for end in (" ", '"', "'"))
#: Between the arguments of a list in code: `["docker", "login", …]`; a line may go on behind a backslash.
_LIST_MARKS, _CONTINUED = str.maketrans("\"',[]", "     "), re.compile(r"\\\r?\n")


def program_argument(text: str, start: int, end: int) -> Span | None:
    """Find the password in the arguments of a program, by its option for it.

    The arguments are on a command line, or in a list of strings in code.
    """
    program = text[start : end - 1].lower()
    if not starts_word(text, start):
        return None
    line = text[end - 1 : end + _LINE_CHARS]
    if text[end - 1] != " ":
        if text[end : end + 1] != ",":
            return None
        line = line.partition("]")[0].partition(")")[0].translate(_LIST_MARKS)
    if "\n" in line:
        line = _CONTINUED.sub(lambda match: " " * len(match[0]), line).partition("\n")[0]
    match = _OPTIONS[program].search(line)
    if (
        match is None
        or not unlike_reference(match)
        or (program in _SURE_ONLY and not is_sure(match["secret"]))
    ):
        return None
    begin = end - 1 + match.start("secret")
    if text[end - 1] != " " and text[begin - 1] not in "\"'":
        return None  # a variable in a list
    return begin, end - 1 + match.end("secret"), None


def argument_with_secret(arguments: Sequence[str]) -> tuple[int, int] | None:
    """Find the secret among the arguments of a program in a list: its position, and where it begins there."""
    program = arguments[0].rpartition("/")[2]
    if program.lower() not in _OPTIONS or any("\n" in word or '"' in word for word in arguments):
        return None
    command = " ".join((program, *arguments[1:]))
    span = program_argument(command, 0, len(program) + 1)
    if span is None:
        return None
    begin = 0
    for position, argument in enumerate((program, *arguments[1:])):
        if span[0] <= begin + len(argument):
            return position, span[0] - begin
        begin += len(argument) + 1
    return None


_PIPED = re.compile(
    r"(?:echo|printf)\s+(?:-\w\s+)?[\"']?(?P<secret>[^\s\"'$|<>][^\s\"'|<>]{3,256})"
    r"[\"']?\s*\|[^|\n]{0,120}$"
)
_HERE = re.compile(r"\s{0,3}<<<\s{0,3}[\"']?(?P<secret>[^\s\"'$<>][^\s\"'<>]{3,256})")


def piped(text: str, start: int, end: int) -> Span | None:
    """Find the password that `echo` writes to a program's input, or that a here-string contains."""
    lowest = max(0, start - 300)
    line = max(lowest, text.rfind("\n", lowest, start) + 1)
    echo = max(text.rfind("echo ", line, start), text.rfind("printf ", line, start))
    match = _PIPED.match(text, echo, start) if echo >= 0 else _HERE.match(text, end)
    return None if match is None or not unlike_reference(match) else (*match.span("secret"), None)


#: What stands before a token that is the user's name.
_TOKEN_USER_FORMS = {
    "curl -u 0123456789: ": r"curl\s[^\n|;&]{0,200}?(?:-u|--user)[ =]{1,3}[\"']?(?P<user>)"
    r"(?=[^\s\"':]{8,200}:[\"']?(?:\s|$))",
    "sonar.login=": r"sonar\.(?:login|token)[\"'\s:=]{1,9}",
}
COMMAND_SYNTAXES: tuple[SanitizerRule, ...] = (
    SanitizerRule(
        "command-password", "a password as a program's argument", "place",
        _KEYWORDS, locate=program_argument,
        caught=("curl -s -u admin:‹w10› https://example.com", "curl https://example.com --user 'svc:‹w12›'",
               "sshpass -p ‹w10› ssh host", "mysql -u root -p‹w10› shop", "docker login -u me -p ‹w20› registry",
               "openssl rsa -passin pass:‹w8› -in k", "7z x -p‹w10› a.7z", "unzip -P ‹w10› a.zip",
               "ldapsearch -D cn=a -w ‹w10›", "curl -sSfu jane:‹w10› https://example.com",
               "helm registry login -u=jane --password=‹w8› r.example.com",
               "['docker', 'login', '-u', 'jane', '-p', '‹w8›']",
               "ipmitool -I lanplus -H bmc -U root -P ‹w10› power on", "plink -ssh -pw ‹w10› host",
               "podman login \\\n  -u jane \\\n  -p ‹w10› quay.io",
               "https -a jane:‹a5›-‹a6›-‹a4›-‹a7› example.com/me", "rabbitmqctl change_password jane ‹w12›",
               "net use x: \\\\nas\\share ‹w9› /user:jane"),
        survives=("curl -u $USER:$PASS https://example.com", "curl -o out https://example.com:8080/x",
                 "curl -u admin https://example.com", "mysql -u root -p shop", "sshpass -p $PW ssh host",
                 "mysql -P 3306 db", "docker login -u me", "vault login userpass", "zip -r out.zip folder",
                 "mkdir -p a/b", "[\"docker\", \"run\", \"-p\", \"8080:80\"]", "docker run -p 8080:80 image",
                 "helm login page", "net user list", "rabbitmqctl add_user jane", "the https -a option",
                 "['docker', 'login', '-u', name, '-p', password]", "az login --use-device-code"),
    ),
    SanitizerRule(
        "piped-password", "a password that a script writes to a program's input", "place",
        ("--password-stdin", "sudo -s", "--passphrase-fd", "--with-token", "--pass-stdin", "passwd --stdin",
         "chpasswd"), locate=piped,
        caught=("echo ‹w10› | docker login -u x --password-stdin", "echo \"‹w10›\" | sudo -S ls",
               "gh auth login --with-token <<< ‹w20›"),
        survives=("echo $PW | docker login --password-stdin", "sudo -S ls", "cat token | gh auth login --with-token"),
    ),
    SanitizerRule(
        "config-directive", "a password after a directive of a settings file", "place",
        ("requirepass", "masterauth", "bindpw", "rootpw", "storepass", "keypass", "key-string",
         "snmp-server community", " password 0 ", " password 7 ", "rocommunity", "rwcommunity", "trapcommunity"),
        r"(?i)\s?(?:requirepass|masterauth|bindpw|rootpw|storepass|keypass|key-string|r[ow]community6?"
        r"|trapcommunity|snmp-server community|password [07])[ \t:=]{1,12}"
        r"[\"']?(?P<secret>[^\s\"'<>(){}]{2,255}[^\s\"'<>(){};,])(?=[\s\"';,]|$)",
        check=_in_directive,
        caught=("requirepass ‹w12›", "snmp-server community ‹w14› RO", "username admin password 0 ‹w10›",
               "-storepass ‹w10›", "rwcommunity ‹w12› 10.0.0.0/8", "masterauth ‹a5›-‹a6›-‹a4›-‹a7›"),
        survives=("requirepass is not set", "keypass == None", "storepass $PW"),
    ),
    SanitizerRule(
        "bundler-login", "the login of a gem server, as Bundler keeps it", "place",
        ("bundle_",),
        r"BUNDLE_[A-Z0-9_]{2,80}__[A-Z]{2,12}[\"']?\s{0,3}[=:]\s{0,3}"
        r"[\"']?(?P<secret>[^\s\"':;&$]{3,100}:[^\s\"';&$]{3,200})",
        check=unlike_reference,
        caught=("BUNDLE_GEMS__EXAMPLE__COM: ‹h8›:‹h8›", "export BUNDLE_GEMS__EXAMPLE__COM=\"jane:‹w12›\""),
        survives=("BUNDLE_PATH: vendor/bundle", "BUNDLE_MIRROR__HTTPS://RUBYGEMS__ORG/: http://localhost:9292"),
    ),
    SanitizerRule(
        "token-as-user", "a token as the user name of a request without a password", "place",
        ("curl ", "sonar.login", "sonar.token"),
        rf"(?i){either(_TOKEN_USER_FORMS)}(?P<secret>[A-Za-z0-9_.+/!@#$%^*-]{{8,200}})",
        check=lambda match: unlike_reference(match) and looks_like_token(match["secret"]), stuck=True,
        caught=("curl -u \"‹w24›:\" https://example.com", "-Dsonar.login=‹h40›", "sonar.token: \"‹w32›\""),
        survives=("curl -u \"jane:\" https://example.com", "sonar.login=admin", "curl -u $TOKEN: https://example.com"),
    ),
)  # fmt: skip
#: Rule under which a program's argument is counted.
COMMAND_PASSWORD = next(rule for rule in COMMAND_SYNTAXES if rule.id == "command-password")


# Calls and statements.


def _key(match: re.Match[str]) -> bool:
    secret = match["secret"]
    return password(match) and ALGORITHM.match(secret) is None and not secret.startswith("-----")


def _prompted(match: re.Match[str]) -> bool:
    return "assword" in match.string[max(0, match.start() - 120) : match.end() + 40] and sure_password(match)


#: A text without blanks.
_LITERAL = r"(?P<q>[\"'])(?P<secret>[^\"'\s]{4,200})(?P=q)"
#: A name or a text.
_ARGUMENT = r"(?:[\w.$@*\[\]]{1,60}|[bu]?\"[^\"\n]{0,120}\"|[bu]?'[^'\n]{0,120}')"
_LAST_ARGUMENT = re.compile(
    rf"\s{{0,9}}(?:{_ARGUMENT}\s{{0,3}},\s{{0,9}}){{1,4}}[bu]?{_LITERAL}\s{{0,3}}[,)]"
)


def last_argument(text: str, _start: int, end: int) -> Span | None:
    """Find the last text among the arguments of a call that takes a secret after other arguments."""
    match = _LAST_ARGUMENT.match(text, end)
    if match is None or is_path_or_url(match["secret"]) or not sure_password(match):
        return None
    return (*match.span("secret"), None)


_INPUT = re.compile(r"[^<>]{0,600}")
_INPUT_OF = re.compile(r"(?i)\btype\s?=\s?[\"']?password|\b(?:name|id)\s?=\s?[\"']?([\w.\[\]-]{1,64})")
_INPUT_VALUE = re.compile(r"(?i)\bvalue\s?=\s?([\"'])(?P<secret>[^\"'<>]{3,256})\1")


def input_value(text: str, _start: int, end: int) -> Span | None:
    """Find the value of a form's field for a password, in any order of its attributes."""
    field = _INPUT.match(text, end)
    value = _INPUT_VALUE.search(text, end, field.end()) if field else None
    if field is None or value is None:
        return None
    for attribute in _INPUT_OF.finditer(text, end, field.end()):
        name = attribute[1] or "password"
        level = secrecy_of(name)
        if level > Secrecy.WEAK and hides(level, name, value["secret"], QUOTED):
            return (*value.span("secret"), None)
    return None


_INSERT = re.compile(r"(?i)insert\s+into\s+[\w.\"`\[\]]{1,80}\s*\((?P<columns>[^()]{3,600})\)\s*values?\s*$")
_VALUES_OPEN = re.compile(r"[sS]?\s*\(")
#: One of the values.
_VALUE_FORMS = {
    "'hunter2'": r"'(?P<text>(?:[^'\\]|''|\\.){0,400})'",
    '"hunter2"': r"\"(?P<other>[^\"]{0,400})\"",
    "now()": r"[^,()']{0,100}(?:\([^()]{0,100}\))?",
}
_VALUE = re.compile(rf"\s*{either(_VALUE_FORMS)}\s*(?:,|\))")


def inserted(text: str, start: int, end: int) -> Span | None:
    """Find the password among the values of `INSERT INTO users (name, password) VALUES (…)`."""
    behind = _VALUES_OPEN.match(text, end)
    statement = None if behind is None else _INSERT.search(text[max(0, start - 700) : start + 5])
    if behind is None or statement is None:
        return None
    wanted = {Secrecy.PASSWORD, Secrecy.SECRET, Secrecy.TOKEN, Secrecy.PHRASE, Secrecy.HASHED}
    position = behind.end()
    for column in statement["columns"].split(","):
        value = _VALUE.match(text, position)
        if value is None:
            return None
        level, content = secrecy_of(column.strip(' \n\t"`[]')), value["text"] or value["other"]
        if content and level in wanted and hides(level, column, content, QUOTED):
            return (*value.span("text" if value["text"] else "other"), None)
        position = value.end()
    return None


#: Calls that connect or log in, up to the argument that is the password.
_CONNECTING_FORMS = {
    'connect("host", "root",': r"(?:connect|mysqli)\(\s{0,9}[\w.\"':/@-]{1,100}\s{0,9},"
    r"\s{0,9}[\w.\"'@-]{1,80}\s{0,9},",
    "pdo($dsn, $user,": r"pdo\(\s{0,9}(?:[\"'][^\"'\n]{1,200}[\"']|[$\w]{1,40})\s{0,9},"
    r"\s{0,9}[$\w.\"'@-]{1,80}\s{0,9},",
    'getconnection(url, "sa",': r"getconnection\(\s{0,9}[^,()\n]{1,200},\s{0,9}[^,()\n]{1,80},",
    "login(user,": r"(?:login|authenticate|(?:username|password|ps|network|aws)*credentials?)"
    r"\(\s{0,9}[\w.\"'@$-]{1,100}\s{0,9},",
}
#: Calls that sign or encrypt, up to the argument that is the key.
_CRYPTO_FORMS = {
    "jwt.sign(payload,": r"jwt\.(?:sign|encode|decode|verify)\((?:[^\"'\n,(){}]|\{[^{}\n]{0,200}\}){1,120},",
    "pgp_sym_encrypt(data,": r"(?:pgp_sym_|aes_)(?:en|de)crypt\([^,'\n]{1,100},",
    "hmac.new(": r"(?:hmac|aes)\.new\(",
    "Fernet(": r"fernet\(",
}
CODE_SYNTAXES: tuple[SanitizerRule, ...] = (
    SanitizerRule(
        "login-call", "the password in a call that logs in", "place",
        ("login(", "log_in(", "sign_in(", "signin(", "logon(", "auth(", "basicauth(", "httpbasicauth(",
         "basic_auth(", "httpdigestauth(", "authenticate("),
        r"(?i)(?:log_?in|sign_?in|logon|auth|(?:http)?basicauth|basic_auth|httpdigestauth|authenticate)"
        r"\(\s{0,9}(?:user=)?[bu]?[\"'][^\"'\n]{1,100}[\"']\s{0,9},\s{0,9}(?:pass(?:word|wd)?=)?"
        rf"[bu]?{_LITERAL}",
        check=password, costly=True,
        caught=("server.login('me@example.com', '‹w10›')", "login(\"admin\", \"‹a8›\")",
               "client.auth('reporter', '‹w10›')", "api.sign_in('me@example.com', '‹a9›')"),
        survives=("login('email', 'password')", "login(user, password)", "authenticate('next', 'new_password')"),
    ),
    SanitizerRule(
        "login-call-positional", "a password with a digit or symbol as the last argument of a login", "place",
        ("login(", "connect(", "getconnection(", "credential(", "pscredential(", "networkcredential(",
         "credentials(", "awscredentials(", "mysqli(", "authenticate(", "pdo("),
        rf"(?i){either(_CONNECTING_FORMS)}\s{{0,9}}[bu]?{_LITERAL}", check=sure_password,
        caught=("pymysql.connect(\"h\", \"root\", \"‹w10›\", \"db\")", "server.login(user, '‹w10›')",
               "DriverManager.getConnection(url, \"sa\", \"‹w10›\")", "new PSCredential(\"u\", \"‹w10›\")",
               "new PDO('pgsql:host=h;dbname=d', $user, '‹w10›')"),
        survives=("signal.connect('a', 'b', 'clicked')", "login(request, 'home')", "connect(host, port, 'utf-8')",
                 "getConnection(url, user, password)"),
    ),
    SanitizerRule(
        "secret-argument", "the last text argument of a call whose name ends in `password` or `credential`", "place",
        ("credential(", "credentials(", "password(", "passwd(", "passphrase(", "password_hash(", "passwordhash(",
         "password_verify(", "verifypassword("), locate=last_argument,
        caught=("store.set_password('mail', 'jane', '‹w12›')",
               "new ClientCertificateCredential(tenant, id, \"‹w20›\")", "verify_password(hashed, '‹w9›')",
               "bcrypt.checkPassword(stored, \"‹a5›-‹a6›-‹a4›-‹a7›\")"),
        survives=("set_password('mail', 'jane', value)", "reset_password(user, 'accounts/reset.html')",
                 "check_password(raw, 'pbkdf2_sha256')", "validate_password(form, field, 'new_password2')"),
    ),
    SanitizerRule(
        "expect-send", "a password that a script sends to a prompt", "place",
        ("send \"",),
        r"send\s(?P<q>[\"'])(?P<secret>[^\"'\\\s$]{4,200})(?:\\[rn])*(?P=q)",
        check=_prompted,
        caught=("expect \"Password:\"\nsend \"‹w12›\\r\"",),
        survives=("expect \"login:\"\nsend \"jane99\\r\"", "send \"exit\\r\""),
    ),
    SanitizerRule(
        "crypto-call", "the key of a call that signs or encrypts", "place",
        ("jwt.sign(", "jwt.encode(", "jwt.decode(", "jwt.verify(", "hmac.new(", "fernet(", "aes.new(",
         "pgp_sym_encrypt(", "pgp_sym_decrypt(", "aes_encrypt(", "aes_decrypt("),
        rf"(?i){either(_CRYPTO_FORMS)}\s{{0,9}}[bu]?(?P<q>[\"'`])(?P<secret>[^\"'`\n]{{4,256}})(?P=q)",
        check=_key,
        caught=("jwt.sign(payload, \"‹w16›\")", "jwt.encode({'a': 1}, '‹a10›', algorithm='HS256')",
               "Fernet(b\"‹b43›=\")", "hmac.new(b'‹w16›', message)"),
        survives=("jwt.sign(payload, secret)", "hmac.new(key, b'message')", "jwt.decode(token, 'secret')"),
    ),
    SanitizerRule(
        "input-value", "the value of a form field for a secret", "place",
        ("<input",), locate=input_value,
        caught=("<input value=\"‹w12›\" name=\"password\">", "<input type=\"password\" id=\"x\" value=\"‹w12›\" />"),
        survives=("<input type=\"text\" name=\"city\" value=\"‹w12›\">", "<input type=\"password\" name=\"p\">"),
    ),
    SanitizerRule(
        "secure-string", "a text that a script converts to a secure string", "place",
        ("securestring",),
        r"(?i)SecureString\s{1,3}(?:-String\s{1,3})?\\?[\"'](?P<secret>[^\"'\\\n$]{4,256})\\?[\"']",
        check=unlike_reference,
        caught=("ConvertTo-SecureString \"‹w12›\" -AsPlainText -Force",),
        survives=("ConvertTo-SecureString $plain", "SecureString \"\""),
    ),
    SanitizerRule(
        "sql-insert", "a password among the values of an INSERT statement", "place",
        ("value",), locate=inserted,
        caught=("INSERT INTO users (name, password) VALUES ('bob', '‹w10›')",
               "insert into t (id, api_key) values (1, '‹w24›')"),
        survives=("INSERT INTO users (name, city) VALUES ('bob', '‹w10›')",
                 "INSERT INTO users (name, password) VALUES (?, ?)", "the values (a, b)"),
    ),
)  # fmt: skip
