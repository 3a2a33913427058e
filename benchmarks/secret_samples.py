"""Secrets of seventeen kinds, and harmless lines.

A seeded generator makes the secrets; the lines are from the standard library.

`samples` returns (text, secret) pairs: after cleaning, the text must not contain the secret. A secret of several parts
counts as revealed if any of its parts is left.
"""

from __future__ import annotations

import base64
import html
import random
import string
import sysconfig
from collections.abc import Callable, Iterator
from pathlib import Path

PER_KIND = 48
_ALNUM = string.ascii_letters + string.digits
Sample = tuple[str, tuple[str, ...]]

#: Formats from the vendors' own pages: prefix, alphabet, size.
_VENDORS = (
    ("sk-admin-", _ALNUM, 60), ("sk-ant-api03-", _ALNUM, 93), ("gsk_", _ALNUM, 52), ("cfut_", _ALNUM, 40), ("lin_api_", _ALNUM, 40),
    ("ntn_", _ALNUM, 46), ("figd_", _ALNUM, 40), ("re_", _ALNUM, 32), ("ghu_", _ALNUM, 36), ("glpat-", _ALNUM, 20), ("dop_v1_", "0123456789abcdef", 64),
    ("pat-na1-", "0123456789abcdef", 32), ("phx_", _ALNUM, 43), ("phc_", _ALNUM, 43), ("sq0csp-", _ALNUM, 43), ("shpat_", "0123456789abcdef", 32),
    ("tfp_", _ALNUM, 44), ("flyv1_", _ALNUM, 60), ("key-", "0123456789abcdef", 32), ("fio-u-", _ALNUM, 64), ("apify_api_", _ALNUM, 36), ("sk_", "0123456789abcdef", 48),
    ("hf_", string.ascii_letters, 34), ("nvapi-", _ALNUM, 64), ("sgp_", "0123456789abcdef", 40), ("ops_", _ALNUM, 80), ("ap_", _ALNUM, 40), ("tvly-dev-", _ALNUM, 32),
    ("fal_", _ALNUM, 40), ("sk-lf-", "0123456789abcdef", 36), ("AIza", _ALNUM, 35), ("xai-", _ALNUM, 80), ("co_", _ALNUM, 40), ("llx-", _ALNUM, 48), ("ATATT3xFfGF0", _ALNUM, 180),
    ("EAAG", _ALNUM, 120), ("b2_", _ALNUM, 40), ("bkua_", _ALNUM, 40), ("depot_project_", "0123456789abcdef", 48), ("dckr_pat_", _ALNUM, 27), ("sntryu_", "0123456789abcdef", 64),
    ("xoxe-1-", _ALNUM, 140), ("vercel_blob_rw_", _ALNUM, 44), ("cal_live_", "0123456789abcdef", 32), ("rnd_", _ALNUM, 32), ("dp.st.dev.", _ALNUM, 43), ("prefect_", _ALNUM, 36),
    ("tskey-auth-", _ALNUM, 34), ("tskey-api-", _ALNUM, 34), ("sl.", _ALNUM, 130), ("secret_", _ALNUM, 43), ("gtma_", _ALNUM, 40), ("ghs_", _ALNUM, 36),
)  # fmt: skip
_WORDS = [
    "correct",
    "horse",
    "battery",
    "staple",
    "river",
    "stone",
    "yellow",
    "winter",
    "falcon",
    "garden",
    "copper",
    "lantern",
    "maple",
    "thunder",
    "pocket",
    "violin",
    "orange",
    "castle",
    "meadow",
    "silver",
    "anchor",
    "planet",
    "window",
    "coffee",
]


class Source(random.Random):
    """Random texts that look like secrets."""

    def token(self, size: int, alphabet: str = _ALNUM) -> str:
        """Make a text of that size with at least one digit and one letter, if the alphabet has both."""
        while True:
            made = "".join(self.choices(alphabet, k=size))
            if any(c.isdigit() for c in made) or not any(c.isdigit() for c in alphabet):
                return made

    def base64(self, size_bytes: int) -> str:
        """Make random bytes in base64."""
        return base64.b64encode(self.randbytes(size_bytes)).decode()

    def url64(self, size_bytes: int) -> str:
        """Make random bytes in URL-safe base64, without padding."""
        return base64.urlsafe_b64encode(self.randbytes(size_bytes)).decode().rstrip("=")

    def phrase(self, most: int = 5) -> str:
        """Make some words."""
        return " ".join(self.sample(_WORDS, self.randint(3, most)))


def _vendor(source: Source, number: int) -> Sample:
    prefix, alphabet, size = _VENDORS[number % len(_VENDORS)]
    body = source.token(size, alphabet)
    form = source.choice(("{}", "using {} now", "export X={}", '{{"v": "{}"}}', "curl -H 'X: {}'", "[{}]"))
    return form.format(prefix + body), (body,)


def _jwk(source: Source, number: int) -> Sample:
    kind = number % 3
    n, d = source.url64(256), source.url64(256)
    if kind == 0:
        parts = {name: source.url64(128) for name in ("p", "q", "dp", "dq", "qi")}
        more = ", ".join(f'"{name}": "{value}"' for name, value in parts.items())
        return f'{{"kty": "RSA", "n": "{n}", "e": "AQAB", "d": "{d}", {more}}}', (d, *parts.values())
    if kind == 1:
        d = source.url64(32)
        return f"{{'kty':'EC','crv':'P-256','x':'{source.url64(32)}','y':'{source.url64(32)}','d':'{d}'}}", (
            d,
        )
    k = source.url64(32)
    return f'{{"keys":[{{"kty":"oct","kid":"{number}","k":"{k}","alg":"HS256"}}]}}', (k,)


def _pem(source: Source, number: int) -> Sample:
    lines = [source.base64(48) for _ in range(6)]
    kind = source.choice(("RSA ", "", "EC ", "OPENSSH "))
    block = [f"-----BEGIN {kind}PRIVATE KEY-----", *lines, f"-----END {kind}PRIVATE KEY-----"]
    prefix = ("> ", "2025-01-01T10:00:00Z app | ", "# ", "[web] ", "+", "    12 | ", "// ", "INFO:root:")[
        number % 8
    ]
    if number % 3 == 0:
        return repr(block), tuple(lines)
    if number % 3 == 1:
        return "[\n" + ",\n".join(f'  "{line}"' for line in block) + "\n]", tuple(lines)
    return "\n".join(prefix + line for line in block), tuple(lines)


def _sql(source: Source, number: int) -> Sample:
    secret = source.token(source.randint(8, 16))
    forms = ("ALTER USER app IDENTIFIED BY {}", "CREATE USER app IDENTIFIED BY {};", "grant all on *.* to x identified by {}", 'alter user a identified by "{}"', "CREATE USER a IDENTIFIED BY {} DEFAULT TABLESPACE users", "SET PASSWORD FOR 'a'@'%' = '{}'")  # fmt: skip
    return forms[number % len(forms)].format(secret), (secret,)


def _default(source: Source, number: int) -> Sample:
    secret = source.choice((source.token(16), source.token(24), f"Pa55-{source.token(8)}"))
    forms = ('password = os.getenv("DB_PASSWORD") or "{}"', "token = os.environ.get('API_TOKEN', '{}')", 'key = os.getenv("API_KEY", "{}")', "const secret = process.env.CLIENT_SECRET || '{}'", 'api_key = config.get("api_key") or "{}"', "secret = ENV.fetch('SECRET', '{}')", 'password := getEnv("DB_PASSWORD", "{}")', "pwd = args.password if args.password else '{}'", "const apiKey = process.env.API_KEY ?? \"{}\"", "os.environ.setdefault('SECRET_KEY', '{}')")  # fmt: skip
    return forms[number % len(forms)].format(secret), (secret,)


def _escaped(source: Source, number: int) -> Sample:
    secret = source.token(source.randint(12, 28))
    name = source.choice(("password", "api_key", "client_secret", "access_token"))
    forms = ('{{"{}": "{}"}}', '"{}":"{}"', "{}='{}'", '<input name="{}" value="{}">')
    text = html.escape(forms[number % 4].format(name, secret))
    return (text if number % 2 else text.replace("&#x27;", "&#39;").replace("&quot;", "&#34;")), (secret,)


def _bytes(source: Source, number: int) -> Sample:
    raw = source.token(24).encode()
    name = source.choice(("password", "secret_key", "api_key", "private_key", "token"))
    listed = ", ".join(map(str, raw))
    hexed = ", ".join(f"0x{byte:02x}" for byte in raw)
    forms = (f"{name} = bytes([{listed}])", f"{name} = [{listed}]", f'{{"{name}": [{listed}]}}', f"byte[] {name} = {{{hexed}}};", f"{name} = bytearray([{hexed}])", f"{name}: Buffer.from([{listed}])")  # fmt: skip
    form = forms[number % len(forms)]
    return form, (hexed if "0x" in form else listed,)


def _stuck(source: Source, number: int) -> Sample:
    prefix, size = (("ghp_", 36), ("AKIA", 16), ("sk_live_", 24), ("glpat-", 20), ("xoxb-12345678901-", 24), ("hf_", 34), ("npm_", 36), ("AIza", 35))[number % 8]  # fmt: skip
    alphabet = string.ascii_uppercase + "234567" if prefix == "AKIA" else _ALNUM
    body = source.token(size, alphabet)
    stuck = source.choice(("key_{}", "backup_{}", "x{}", "token{}", "my_{}", "v2_{}"))
    return stuck.format(prefix + body), (body,)


def _words(source: Source, number: int) -> Sample:
    secret = source.phrase()
    name = source.choice(("password", "passphrase", "secret"))
    forms = ('{{"{}": "{}"}}', '{} = "{}"', "{}: '{}'", '{}="{}"')
    return forms[number % 4].format(name, secret), (secret,)


def _plain(source: Source, number: int) -> Sample:
    secret = source.choice((f"{source.choice(_WORDS)}{source.choice(_WORDS)}", f"{source.choice(_WORDS)}-{source.choice(_WORDS)}", source.choice([word for word in _WORDS if len(word) > 5])))  # fmt: skip
    name = source.choice(("token", "api_key", "access_token", "apiKey"))
    forms = ('{{"{}": "{}"}}', '{} = "{}"', "{}: '{}'", "client({}='{}')")
    return forms[number % 4].format(name, secret), (secret,)


def _named(source: Source, number: int) -> Sample:
    secret = source.token(source.randint(10, 32))
    name = source.choice(("password", "DB_PASSWORD", "client_secret", "apiKey", "access_token", "X-Api-Key"))
    forms = ('{}="{}"', "{}: {}", '{{"{}": "{}"}}', "--{} {}", "{}={}")
    return forms[number % 5].format(name, secret), (secret,)


def _url(source: Source, number: int) -> Sample:
    secret = source.token(source.randint(8, 20))
    scheme = source.choice(("postgresql", "redis", "amqp", "mysql", "mongodb+srv", "https", "sftp"))
    forms = ("{}://app:{}@db.example:5432/x", "url = '{}://root:{}@h/0'", "connect {}://u:{}@host failed")
    return forms[number % 3].format(scheme, secret), (secret,)


def _header(source: Source, number: int) -> Sample:
    secret = source.token(source.randint(20, 44))
    forms = ("Authorization: Bearer {}", "{{'Authorization': 'Token {}'}}", "Cookie: sid={}; theme=dark", "curl -H 'X-Auth-Token: {}' u", "Proxy-Authorization: Basic {}=")  # fmt: skip
    return forms[number % 5].format(secret), (secret,)


def _generated(source: Source, number: int) -> Sample:
    secret = "-".join(
        source.sample([word for word in _WORDS if word not in {"correct", "window"}], 4 + number % 3)
    )
    forms = (
        "password = {}",
        "//npm.example/:_authToken={}",
        "tool sync --token {} --all",
        "curl -u jane:{} u",
        "if '{}' == token:",
        "requirepass {}",
        "the password is {}.",
        "SET PASSWORD FOR 'a'@'h' = PASSWORD('{}')",
        "https -a jane:{} u",
        "SECRET_KEY={}",
    )
    return forms[number % len(forms)].format(secret), (secret,)


def _command(source: Source, number: int) -> Sample:
    secret = source.token(source.randint(8, 16))
    forms = (
        "nerdctl login -u=jane -p={} r.example",
        "helm registry login r.example --username jane --password {}",
        '["podman", "login", "-u", "jane", "-p", "{}", "r.example"]',
        "mosquitto_sub -h b -u jane -P {} -t x",
        "rdesktop -u jane -p {} host",
        "psftp -pw {} host",
        "curl -vku jane:{} https://h",
        "subprocess.run(['mongodump', '-u', 'jane', '-p', '{}'])",
        "cmdkey /add:h /user:jane /pass:{}",
        "wfreerdp /v:h /u:jane /p:{}",
        "net user jane {} /add",
        "ipmitool -H h -U root -P {} sol activate",
        "snmpwalk -v3 -u jane -A {} h",
        "docker login \\\n  --username jane \\\n  -p {}",
        "redis-cli -h h --pass {} ping",
    )
    return forms[number % len(forms)].format(secret), (secret,)


def _argument(source: Source, number: int) -> Sample:
    secret = source.token(source.randint(8, 16))
    forms = (
        'vault.set_password("mail", "jane", "{}")',
        "UsernamePasswordCredential(tenant, client, 'jane', '{}')",
        "setopt(CURLOPT_PROXYUSERPWD, 'jane:{}')",
        "ldap.set_option(OPT_PASSWORD, '{}')",
        "verify_password(stored, '{}')",
        "db.auth('jane', '{}')",
        "new PDO($dsn, 'jane', '{}')",
        "'{}'.equals(password)",
        "if ('{}' === apiSecret)",
        "ALTER LOGIN jane WITH PASSWORD = N'{}'",
        "[('Accept', '*/*'), ('X-Auth-Token', '{}')]",
        'oracledb.connect("jane/{}@h:1521/x")',
        "sqlx.Open('mysql', 'jane:{}@tcp(h)/x')",
    )
    return forms[number % len(forms)].format(secret), (secret,)


def _apart(source: Source, number: int) -> Sample:
    first, second = source.token(source.randint(8, 16)), source.token(source.randint(8, 16))
    forms = (
        "password = '{}' + \\\n    '{}'",
        "api_key = (\n    '{}'\n    '{}'\n)",
        'const secret = "{}" +\n  "{}";',
        '$password = "{}" . "{}";',
        'Content-Disposition: form-data; name="password"\r\n\r\n{}{}\r\n--b',
        "Use the password below to log in for the first time:\n\n{}{}\n\nThen change it.",
        "*:5432:shop:jane:{}{}",
    )
    return forms[number % len(forms)].format(first, second), (first, second)


KINDS: dict[str, Callable[[Source, int], Sample]] = {
    "vendor prefixes": _vendor, "private members of JWKs": _jwk, "PEM by lines": _pem, "SQL": _sql, "defaults in code": _default,
    "HTML-escaped quotes": _escaped, "byte arrays": _bytes, "tokens stuck to a word": _stuck, "passwords of words": _words,
    "plain words under a token's name": _plain, "named": _named, "URLs": _url, "headers": _header,
    "generated phrases": _generated, "programs' options": _command, "arguments of calls": _argument, "literals in pieces and forms": _apart,
}  # fmt: skip


def samples(kind: str, seed: int = 14) -> list[Sample]:
    """Return the samples of a kind, the same ones for the same seed."""
    source = Source(f"{kind} {seed}")
    return [KINDS[kind](source, number) for number in range(PER_KIND)]


def harmless_lines(every: int = 60) -> Iterator[str]:
    """Yield every `every`-th line with words of the standard library's sources."""
    folder = Path(sysconfig.get_paths()["stdlib"])
    number = 0
    for path in sorted(folder.rglob("*.py")):
        if "site-packages" in path.parts or "test" in path.parts or "tests" in path.parts:
            continue
        for line in path.read_text(errors="replace").splitlines():
            number += 1
            if number % every == 0 and line.strip():
                yield line
