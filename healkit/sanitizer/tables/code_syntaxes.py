"""Calls, commands and statements with secrets in them."""

from __future__ import annotations

import re

from healkit.sanitizer.rule import SanitizerRule, Span
from healkit.sanitizer.secret_names import Secrecy, secrecy_of
from healkit.sanitizer.secret_values import QUOTED, hides
from healkit.sanitizer.tables.command_syntaxes import password, sure_password, unlike_reference
from healkit.sanitizer.value_shapes import ALGORITHM, is_path_or_url, looks_like_token


def _key(match: re.Match[str]) -> bool:
    found = match["secret"]
    return password(match) and ALGORITHM.match(found) is None and not found.startswith("-----")


_OF_PASSWORD = re.compile(r"(?i)pass(?:wor[dt]|phrase|code|wd)?\b|pwd\b|passwd|secret|api[_-]?key|token")


def _typed(match: re.Match[str]) -> bool:
    """Require a password's field before it on the line, or as the first argument."""
    line = match.string[max(0, match.start() - 120) : match.start("secret")].rpartition("\n")[2]
    return _OF_PASSWORD.search(line) is not None and password(match)


_DRIVER = re.compile(
    r"(?i)(?:mysql\w*|pg|psycopg2?|oracledb|cx_oracle|pymssql|(?:ftp|smtp|imap|server|mail|client)\w*)[.]$|[gG]et$|DriverManager\.$"
)


def _positional(match: re.Match[str]) -> bool:
    """Require a digit or a symbol, unless the call is a database's or a server's."""
    before = match.string[max(0, match.start() - 24) : match.start()]
    return sure_password(match) or (_DRIVER.search(before) is not None and password(match))


def _token(match: re.Match[str]) -> bool:
    found = match["secret"]
    return looks_like_token(found) and not is_path_or_url(found) and password(match)


def _prompted(match: re.Match[str]) -> bool:
    return "assword" in match.string[max(0, match.start() - 120) : match.end() + 40] and sure_password(match)


_ARGUMENT = r"(?:[\w.$@*\[\]]{1,60}|[bu]?\"[^\"\n]{0,120}\"|[bu]?'[^'\n]{0,120}')"
_LAST_ARGUMENT = re.compile(
    rf"\s{{0,9}}(?:{_ARGUMENT}\s{{0,3}},\s{{0,9}}){{1,4}}(?:\w{{1,30}}\s?[=:]\s?)?[bu]?(?P<q>[\"'])(?P<secret>[^\"'\s]{{4,200}})(?P=q)\s{{0,3}}[,)]"
)


def last_argument(text: str, _start: int, end: int) -> Span | None:
    """Find the last text among the arguments of a call that takes a secret behind others."""
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
    for found in _INPUT_OF.finditer(text, end, field.end()):
        name = found[1] or "password"
        level = secrecy_of(name)
        if level > Secrecy.WEAK and hides(level, name, value["secret"], QUOTED):
            return (*value.span("secret"), None)
    return None


_INSERT = re.compile(r"(?i)insert\s+into\s+[\w.\"`\[\]]{1,80}\s*\((?P<columns>[^()]{3,600})\)\s*values?\s*$")
_VALUES_OPEN = re.compile(r"[sS]?\s*\(")
_VALUE = re.compile(
    r"\s*(?:'(?P<text>(?:[^'\\]|''|\\.){0,400})'|\"(?P<other>[^\"]{0,400})\"|[^,()']{0,100}(?:\([^()]{0,100}\))?)\s*(?:,|\))"
)


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
        level, found = secrecy_of(column.strip(' \n\t"`[]')), value["text"] or value["other"]
        if found and level in wanted and hides(level, column, found, QUOTED):
            return (*value.span("text" if value["text"] else "other"), None)
        position = value.end()
    return None


CODE_SYNTAXES: tuple[SanitizerRule, ...] = (
    SanitizerRule(
        "login-call", "the password that a login is called with", "place",
        ("login(", "log_in(", "sign_in(", "signin(", "logon(", "auth(", "basicauth(", "httpbasicauth(", "basic_auth(", "httpdigestauth(", "authenticate("),
        r"(?i)(?:log_?in|sign_?in|logon|auth|(?:http)?basicauth|basic_auth|httpdigestauth|authenticate)\(\s{0,9}(?:user(?:name)?=)?[bu]?[\"'][^\"'\n]{1,100}[\"']\s{0,9},\s{0,9}"
        r"(?:pass(?:word|wd)?=)?[bu]?(?P<q>[\"'])(?P<secret>[^\"'\s]{4,200})(?P=q)", check=password, costly=True,
        caught=("server.login('me@example.com', '‹w10›')", "login(\"admin\", \"‹a8›\")", "client.auth('reporter', '‹w10›')", "api.sign_in('me@example.com', '‹a9›')"),
        survives=("login('email', 'password')", "login(user, password)", "authenticate('next', 'new_password')"),
    ),
    SanitizerRule(
        "login-call-positional", "a password with a digit or symbol as the last argument of a login or connection", "place",
        ("login(", "connect(", "getconnection(", "credential(", "pscredential(", "networkcredential(", "credentials(", "awscredentials(", "mysqli(", "authenticate(", "usernamepassword(", "pdo("),
        r"(?i)(?:(?:connect|mysqli)\(\s{0,9}[\w.\"':/@-]{1,100}\s{0,9},\s{0,9}[\w.\"'@-]{1,80}\s{0,9},|pdo\(\s{0,9}(?:[\"'][^\"'\n]{1,200}[\"']|[$\w]{1,40})\s{0,9},\s{0,9}[$\w.\"'@-]{1,80}\s{0,9},|getconnection\(\s{0,9}[^,()\n]{1,200},\s{0,9}[^,()\n]{1,80},"
        r"|(?:login|authenticate|(?:username|password|ps|network|aws)*credentials?|usernamepassword\w{0,30})\(\s{0,9}[\w.\"'@$-]{1,100}\s{0,9},)\s{0,9}[bu]?(?P<q>[\"'])(?P<secret>[^\"'\s]{4,200})(?P=q)",
        check=_positional,
        caught=('pymysql.connect("h", "root", "‹w10›", "db")', "server.login(user, '‹w10›')", 'DriverManager.getConnection(url, "sa", "‹w10›")', 'new PSCredential("u", "‹w10›")', "new PDO('pgsql:host=h;dbname=d', $user, '‹w10›')"),
        survives=("signal.connect('a', 'b', 'clicked')", "login(request, 'home')", "connect(host, port, 'utf-8')", "getConnection(url, user, password)"),
    ),
    SanitizerRule(
        "secret-argument", "the last text that a call is given whose name ends in `password` or `credential`", "place",
        ("credential(", "credentials(", "password(", "passwd(", "passphrase(", "password_hash(", "passwordhash(", "password_verify(", "verifypassword("), locate=last_argument,
        caught=("store.set_password('mail', 'jane', '‹w12›')", 'new ClientCertificateCredential(tenant, id, "‹w20›")', "verify_password(hashed, '‹w9›')", 'bcrypt.checkPassword(stored, "‹a5›-‹a6›-‹a4›-‹a7›")'),
        survives=("set_password('mail', 'jane', value)", "reset_password(user, 'accounts/reset.html')", "check_password(raw, 'pbkdf2_sha256')", "validate_password(form, field, 'new_password2')"),
    ),
    SanitizerRule(
        "client-call", "a key that a client, a bot or a login is called with", "place",
        ("createclient(", "client(", "session(", "algoliasearch(", "set_access_token(", ".run(", "login(", "bot("),
        r"(?i)(?:(?:createclient|client|session|algoliasearch|set_access_token)\(\s{0,9}[\"'][^\"'\n]{1,120}[\"']\s{0,3},|\.run\(|login\(|bot\()\s{0,9}(?:key=|token=)?(?P<q>[\"'`])(?P<secret>[\w.:/+=!~-]{16,512})(?P=q)",
        check=_token, caught=('createClient("https://x.example", "‹w40›")', 'wandb.login(key="‹h40›")', "bot.run('‹w24›.‹w6›.‹w27›')"),
        survives=("session('profile', 'read_write_permissions')", "app.run('production_settings')", "subprocess.run('/usr/bin/env python3')", "login('accounts.views.login_page')"),
    ),
    SanitizerRule(
        "login-in-base64", "a login that is written in base64 by a call", "place", ("b64encode(", "btoa("),
        r"(?:b64encode|btoa)\(\s{0,5}[bf]?[\"'`][\w.@-]{1,60}:(?P<secret>[^\"'`\s{}]{4,200})[\"'`]", check=sure_password,
        caught=("base64.b64encode(b'jane:‹w12›')", 'btoa("jane:‹w12›")'), survives=("btoa(`${user}:${password}`)", "b64encode(b'name:value')"),
    ),
    SanitizerRule(
        "expect-send", "a password that a script sends to a prompt", "place", ("send \"", "send -- \"", "sendline("),
        r"(?:send\s(?:--\s)?|sendline\(\s?)(?P<q>[\"'])(?P<secret>[^\"'\\\s$]{4,200})(?:\\[rn])*(?P=q)", check=_prompted,
        caught=('expect "Password:"\nsend "‹w12›\\r"', "child.expect('password')\nchild.sendline('‹w12›')"), survives=('expect "login:"\nsend "jane99\\r"', 'send "exit\\r"'),
    ),
    SanitizerRule(
        "typed-password", "a password that a program types into a field", "place", ("send_keys(", "sendkeys(", ".type(", ".fill(", "set_text(", "fill_in("),
        r"(?i)[.]?(?:send_?keys|type|fill|set_text|fill_in)\(\s{0,5}(?:[\"'`][^\n]{1,80}?[\"'`]\s{0,3},\s{0,5}(?:with:\s?)?)?(?P<q>[\"'`])(?P<secret>[^\"'`\s]{4,200})(?P=q)", check=_typed,
        caught=('driver.find_element("password").send_keys("‹w10›")', "page.fill('#password', '‹w10›')", "cy.get('#password').type('‹w10›')"),
        survives=("cy.get('#name').type('Jane99')", "page.fill('#password', password)", "field.type('password')"),
    ),
    SanitizerRule(
        "crypto-call", "the key of a call that signs or encrypts", "place",
        ("jwt.sign(", "jwt.encode(", "jwt.decode(", "jwt.verify(", "createhmac(", "hmac.new(", "fernet(", "aes.new(", "createcipheriv(", "createdecipheriv(", "pgp_sym_encrypt(", "pgp_sym_decrypt(", "aes_encrypt(", "aes_decrypt("),
        r"(?i)(?:jwt\.(?:sign|encode|decode|verify)\((?:[^\"'\n,(){}]|\{[^{}\n]{0,200}\}){1,120},|create(?:hmac|(?:de)?cipheriv)\(\s?[\"'][\w-]{1,30}[\"']\s?,|(?:pgp_sym_|aes_)(?:en|de)crypt\((?:[^,'\n]|'[^'\n]{0,80}'){1,100},|(?:hmac|aes)\.new\(|fernet\()"
        r"\s{0,9}(?:key=)?[bu]?(?P<q>[\"'`])(?P<secret>[^\"'`\n]{4,256})(?P=q)", check=_key,
        caught=('jwt.sign(payload, "‹w16›")', "jwt.encode({'a': 1}, '‹a10›', algorithm='HS256')", "createHmac('sha256', '‹w16›')", 'Fernet(b"‹b43›=")', "hmac.new(b'‹w16›', message)"),
        survives=("jwt.sign(payload, secret)", "createHmac('sha256', key)", "hmac.new(key, b'message')", "jwt.decode(token, 'secret')"),
    ),
    SanitizerRule(
        "input-value", "the value of a form's field for a secret", "place", ("<input",), locate=input_value,
        caught=('<input value="‹w12›" name="password">', '<input type="password" id="x" value="‹w12›" />'), survives=('<input type="text" name="city" value="‹w12›">', '<input type="password" name="p">'),
    ),
    SanitizerRule(
        "secure-string", "a text that is made a secure string", "place", ("securestring",),
        r"(?i)SecureString\s{1,3}(?:-String\s{1,3})?\\?[\"'](?P<secret>[^\"'\\\n$]{4,256})\\?[\"']", check=unlike_reference,
        caught=('ConvertTo-SecureString "‹w12›" -AsPlainText -Force',), survives=("ConvertTo-SecureString $plain", 'SecureString ""'),
    ),
    SanitizerRule(
        "sql-insert", "a password among the values of an INSERT statement", "place", ("value",), locate=inserted,
        caught=("INSERT INTO users (name, password) VALUES ('bob', '‹w10›')", "insert into t (id, api_key) values (1, '‹w24›')"),
        survives=("INSERT INTO users (name, city) VALUES ('bob', '‹w10›')", "INSERT INTO users (name, password) VALUES (?, ?)", "the values (a, b)"),
    ),
)  # fmt: skip
