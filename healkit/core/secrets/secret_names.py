"""Names of secrets, judged word by word.

`author`, `max_tokens`, `primary_key` and `password_policy` only resemble a secret's name; `dbPassword`, `X-Api-Key` and
`CLIENT_SECRET_2` name a secret. So a name is split into words (snake, camel, kebab, dots, spaces). The last meaningful
word decides, together with the word before it if one word says too little (`key`).

The kind of name determines what the value must look like: a password may be any text, but a token has a typical form.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from enum import IntEnum
from functools import lru_cache
from types import FunctionType, ModuleType
from typing import Any

_WORDS = re.compile(r"[A-Z]{2,}(?=[A-Z][a-z]|[^A-Za-z]|$)|[A-Z]?[a-z]+|[A-Z]+|\d+|[^\W\d_a-zA-Z]+")


#: Words of a name with non-ASCII letters, which is not split at capitals.
_FOREIGN_WORDS = re.compile(r"[^\W\d_]+|\d+")


class Secrecy(IntEnum):
    """Kinds of names, by what they reveal about their value."""

    NONE = 0
    WEAK = 1  #: contains a secret's word among others; only unmistakable values are hidden
    TOKEN = 2  #: tokens, cookies, `auth`: often words of a grammar, so the value must look like a token
    SECRET = 3  #: secrets and keys
    PASSWORD = 4  #: any value
    PHRASE = 5  #: several words
    PIN = 6  #: a few digits
    HASHED = 7  #: a password's hash
    LOCATOR = 8  #: an address that may hold a secret
    WEBHOOK = 9  #: an address that is itself a secret
    HEADER = 10  #: Authorization and cookies: the whole value
    QUERY = 11  #: a secret only as a parameter of a URL


def word_set(words: str) -> frozenset[str]:
    """Split a text into a set of words; a list of quoted words would take three times the space."""
    return frozenset(words.split())


_PASSWORD = word_set(
    "password passwords pasword paswd psswd pssword passwd passwds pwd pwds psw pswd passwort kennwort passw "
    "passcode passphrase contraseña contrasena senha pw psk userpass dbpass rootpass adminpass mypass sshpass "
    "smtppass mdp пароль 密码 パスワード hasło hasla wachtwoord lösenord losenord parola salasana şifre sifre 비밀번호 "
    "passe motdepasse"
)
_PHRASE = word_set("passphrase mnemonic")
_ACCOUNTS = word_set(
    "db database user smtp mail email imap pop ftp sftp ssh mysql postgres pg pgsql redis mongo rabbitmq ldap "
    "root admin login auth proxy sudo wifi vpn api basic http https account my server service jdbc oracle sa "
    "keystore truststore key store default become ansible sudo minio bind net ssl sa"
)
_SECRET = word_set("secret secrets secrete credential credentials cred creds")
_TOKEN = word_set(
    "token bearer jwt auth oauth sas csrf xsrf apitoken authtoken accesstoken refreshtoken bearertoken"
)
_KEY_OWNERS = word_set(
    "api access private secret auth authentication authorization signing signature encryption encrypt "
    "decryption crypto cipher master account shared sharedaccess service session subscription storage deploy "
    "deployment license licence app application admin hmac aes rsa fernet jwt webhook consumer client ssh gpg "
    "pgp tls ssl root ingest ingestion instrumentation security token symmetric wrapping rest functions "
    "function host integration write rw bot developer dev live test sandbox prod production user project org "
    "openai anthropic stripe twilio sendgrid mailgun mailchimp azure aws gcp google firebase algolia datadog "
    "dd newrelic mistral cohere groq xai gemini deepseek perplexity together replicate huggingface hf "
    "pinecone weaviate qdrant supabase github gitlab bitbucket slack discord telegram notion airtable hubspot "
    "intercom heroku cloudflare fastly netlify vercel digitalocean linode square paypal braintree razorpay "
    "plaid shopify mapbox maps openweather weather alchemy infura etherscan coinbase binance kraken sentry "
    "rollbar bugsnag segment amplitude mixpanel posthog okta auth0 dropbox box trello asana jira atlassian "
    "zendesk freshdesk launchdarkly circleci travis codecov snyk sonar npm pypi nuget rubygems steam twitch "
    "youtube twitter facebook linkedin instagram reddit nasa tmdb omdb newsapi rapidapi serp serpapi tavily "
    "langsmith langchain wandb elastic elasticsearch meilisearch typesense cosmos cosmosdb postmark mandrill "
    "brevo sendinblue pushover pagerduty opsgenie grafana dynatrace splunk honeycomb databricks snowflake "
    "activation recovery preshared psk"
)
#: Words before `key` that make it a key in data, not a secret.
_DATA_KEYS = word_set(
    "cache primary foreign public publishable partition sort row range object s3 dict group routing "
    "idempotency hash index unique lookup map composite natural surrogate message kafka redis shard item "
    "record entity config setting translation i18n locale feature flag event state job task arrow hot home "
    "end enter escape esc shift control ctrl alt meta tab delete f answer order issue parent child node tree "
    "search query registry attribute tag label column table json yaml metadata header storage signature "
    "content file path lock memo dedup dedupe etag fingerprint version secondary alternate candidate any each"
)
_GLUED = {
    "apikey": "api key", "apikeys": "api key", "accesskey": "access key", "secretkey": "secret key",
    "authkey": "auth key", "privatekey": "private key", "privkey": "private key", "sessionkey": "session key",
    "signingkey": "signing key", "encryptionkey": "encryption key", "masterkey": "master key",
    "accountkey": "account key", "sharedkey": "shared key", "sharedaccesskey": "shared key",
    "sharedaccesssignature": "secret", "secretaccesskey": "secret key", "appkey": "app key", "sshkey": "ssh key",
    "licensekey": "license key", "apisecret": "api secret", "clientsecret": "client secret",
    "appsecret": "app secret", "sharedsecret": "shared secret", "secrettoken": "secret token",
    "sessiontoken": "session token", "csrftoken": "csrf token", "xsrftoken": "csrf token",
    "usertoken": "user token", "bottoken": "bot token", "connectionstring": "connection string",
    "connstr": "connection string", "connstring": "connection string", "databaseurl": "database url",
    "webhookurl": "webhook url", "setcookie": "set cookie", "sessionid": "session token",
    "csrfmiddlewaretoken": "csrf token", "authenticitytoken": "csrf token", "phpsessid": "session token",
    "jsessionid": "session token", "sessid": "session token", "awssecretkey": "secret key",
    "presharedkey": "preshared key", "pgpass": "pg pass", "mypass": "db pass", "kpassword": "password",
}  # fmt: skip
#: Last words of a name that is about a secret, but is not one: `token_count`, `password_policy`,
#: `secrets.py`.
_ABOUT = word_set(
    "name names id ids uuid arn type types kind count counts counter length len size sizes limit limits max "
    "min minimum maximum index idx url uri urls uris path paths file files filename dir directory folder "
    "field fields label labels placeholder hint hints policy policies strength expiry expires expire "
    "expiration expired ttl age timeout date time datetime at on in by for of to format pattern patterns "
    "regex regexp re validator validators validation valid rule rules required enabled disabled visible "
    "visibility reset change changed changes prompt prompts help title message messages msg error errors "
    "exception exceptions warning class classes cls func fn function functions callback handler handlers hook "
    "manager provider providers generator factory backend service services helper helpers util utils method "
    "methods mode scheme schema schemas version versions algorithm algorithms algo alg hasher hashers hashing "
    "encoder encoding input inputs output outputs form forms view views page pages usage used budget price "
    "prices cost costs per rate ratio total totals sum estimate ref refs reference references status state "
    "info metadata meta config settings options option opts params param parameter parameters header headers "
    "prefix suffix separator sep delimiter position positions pos offset offsets start end begin stream "
    "streams list map mapping dict array vocab vocabulary embedding embeddings mask bucket source target "
    "scope scopes audience issuer exists attempts attempt retries rotation rotate rotated var variable "
    "variables score scores holder item items table column columns row rows model models loader reader writer "
    "parser lexer tokenizer plugin module package library lib test tests spec example examples sample samples "
    "docs doc documentation endpoint endpoints location server client port region engine store interval "
    "window frequency period history log logs event events flow grant grants request requests response "
    "responses challenge code codes entropy complexity confirmed match matches matched mismatch checker check "
    "checks required py js ts jsx tsx json yml yaml toml ini cfg conf txt md rst html htm css csv xml go rb "
    "java c h cpp rs sh log pem crt cer der pub png svg get set has is pop items keys values update strip "
    "lower upper split replace encode decode startswith endswith append join read write load dump dumps loads "
    "open close next peek done kind text lineno line lines span literal pos_ tag tags"
)
#: Last words that do not change the kind of a name: `password2`, `client_secret_prod`, `SECRET_KEY_BASE`.
_NEUTRAL = word_set(
    "value values val prod production dev development staging stage live old new current default raw plain "
    "plaintext cleartext clear base b64 base64 hex bytes str confirm confirmation confirmed repeat again "
    "verify equals main primary secondary backup override v root admin user db local remote master slave"
)
#: Words before `token` that make it a token of a grammar, a model or a cursor, not a secret.
_NO_TOKEN = word_set(
    "max min num n count total no next prev previous first last start end eos bos pad unk sep cls mask stop "
    "special input output prompt completion cached reasoning word sub subword text string number operator op "
    "keyword comment whitespace newline indent dedent lexer parser current page continuation pagination "
    "cursor sync resume expected unexpected unknown public name identifier ident punctuation html xml css "
    "tree image img audio video vocab left right open close eof decoder encoder added extra lookahead peek "
    "consume get accept syntax each per skip pagetoken nextpage cancellation cancel"
)
_QUESTIONS = word_set(
    "is has have show hide forgot forgotten reset change require requires required update invalid wrong "
    "incorrect enable disable allow min max num validate check verify no without need needs missing bad get "
    "set ask prompt toggle"
)
#: Ordinary words that end in `pass`; any other such word in capitals is a program's password: `MAILPASS`.
_NO_PASS = word_set("pass bypass compass encompass overpass surpass trespass underpass multipass singlepass")
_KEY_PAIRS = {("api", "key"), ("access", "key"), ("secret", "key"), ("private", "key")}
_NO_SECRET = word_set("santa public open top")
_ADDRESS_TAILS = word_set("url uri string dsn")
_PINS = word_set("cvv cvv2 cvc cvc2 csc cvn")
_PIN_OWNERS = word_set(
    "card user atm sim security access login account bank device my your the code customer"
)
_COOKIES = word_set("cookie cookies")
_QUERY = word_set("sig signature hmac")

#: Keywords of the rule `secret-name`; every name above contains one of them.
NAME_KEYWORDS = (
    "password", "passwd", "pwd", "psw", "passwort", "kennwort", "passcode", "passphrase", "contraseña",
    "contrasena", "senha", "pass", "pw", "psk", "mdp", "пароль", "密码", "パスワード", "secret", "credential", "cred",
    "creds", "token", "bearer", "jwt", "auth", "authorization", "pat", "otp", "sas", "key", "cookie", "connection",
    "connstr", "connstring", "dsn", "webhook", "pin", "cvv", "cvc", "csc", "sig", "signature", "mnemonic", "phrase",
    "hasło", "hasla", "wachtwoord", "lösenord", "losenord", "parola", "salasana", "şifre", "sifre", "비밀번호", "passe",
    "pswd", "passw", "pasw", "pssw", "csrf", "xsrf", "auth_code", "authorization_code", "grant_code", "device_code",
    "pin code", "verification code", "security code", "access code", "one-time code", "verification_code",
    "recovery", "backup_code",
    "backupcode", "security_answer", "securityanswer", "secret_answer",
    "sessionid", "phpsessid", "jsessionid", "sessid",
)  # fmt: skip


def words_in_name(name: str) -> list[str]:
    """Split a name into lower-case words: `X-Api-Key2` gives `['x', 'api', 'key', '2']`.

    Words such as `apikey` are split too.
    """
    words: list[str] = []
    for word in (_WORDS if name.isascii() else _FOREIGN_WORDS).findall(name):
        folded = word.lower()
        if folded in _GLUED:
            words += _GLUED[folded].split()
        else:
            words.append(folded)
    return words


@lru_cache(maxsize=16_384)
def secrecy_of(name: str) -> Secrecy:
    """Judge a name by its last 80 characters."""
    words = words_in_name(name[-80:])
    if not words:
        return Secrecy.NONE
    if name.isupper() and name.endswith("PASS") and words[-1] not in _NO_PASS:
        return Secrecy.PASSWORD
    special = _special(words)
    if special is not None:
        return special
    core = list(words)
    while len(core) > 1 and (core[-1].isdigit() or core[-1] in _NEUTRAL) and not _plain(core):
        core.pop()
    level = _plain(core)
    if core[-1] == "key" and not level and len(core) > 1 and core[-2] not in _DATA_KEYS:
        return Secrecy.WEAK  # FRAMEIT_KEY, old_key
    if level:
        return Secrecy.WEAK if _QUESTIONS.intersection(core[:-1]) and level is not Secrecy.PIN else level
    if core[-1] in _ABOUT or core[-1] in _NO_TOKEN:
        return Secrecy.NONE
    middle = any(word in _PASSWORD or word in _SECRET for word in core[:-1]) or any(
        pair in _KEY_PAIRS for pair in itertools.pairwise(core)
    )
    return Secrecy.WEAK if middle else Secrecy.NONE


def _special(words: list[str]) -> Secrecy | None:
    """Judge names whose last word is misleading: a webhook's URL, a password's hash."""
    last = words[-1]
    before = words[-2] if len(words) > 1 else ""
    if last in _QUERY:
        return Secrecy.SECRET if before == "access" else Secrecy.QUERY
    if "webhook" in words and (last in {"webhook", "webhooks"} or last in _ADDRESS_TAILS):
        return Secrecy.WEBHOOK
    if last == "dsn" or (
        last in _ADDRESS_TAILS and before in {"connection", "conn", "database", "db", "redis", "broker"}
    ):
        return Secrecy.LOCATOR
    if last in {"hash", "digest", "hashed", "encrypted"} and before in _PASSWORD:
        return Secrecy.HASHED
    if last == "authorization" or last in _COOKIES:
        return Secrecy.HEADER
    if last in {"code", "codes"} and before in {"recovery", "backup"}:
        return Secrecy.SECRET
    if last == "code" and before in {"verification", "security", "access", "time", "otp"}:
        return Secrecy.PIN
    if last == "code" and before in {"auth", "authorization", "grant", "device"}:
        return Secrecy.TOKEN
    if last in {"otp", "totp"} or words == ["pin"]:
        return Secrecy.PIN
    if last == "answer" and before in {"security", "secret"}:
        return Secrecy.PASSWORD
    if last == "data" and before == "key":
        return _plain(words[:-1])  # `client-key-data`
    if words[:4] == ["fs", "azure", "account", "key"]:
        return Secrecy.SECRET
    if last == "seed" and before in {"totp", "otp", "mfa", "wallet"}:
        return Secrecy.SECRET
    if last == "word" and before == "pass":
        return Secrecy.PASSWORD
    if last == "phrase" and before in {"seed", "recovery", "backup", "secret", "pass"}:
        return Secrecy.PHRASE
    return None


def _plain(words: list[str]) -> Secrecy:
    """Judge a name by its last word and the word before it."""
    last = words[-1]
    before = words[-2] if len(words) > 1 else ""
    if last in _PHRASE:
        return Secrecy.PHRASE
    if last in _PASSWORD or last.endswith(("password", "passwd", "userpwd")):
        return Secrecy.PASSWORD
    if last == "pass":
        return Secrecy.PASSWORD if before in _ACCOUNTS else Secrecy.TOKEN if not before else Secrecy.NONE
    if last in _SECRET:
        return Secrecy.NONE if before in _NO_SECRET else Secrecy.SECRET
    if last in {"key", "keys"}:
        return Secrecy.SECRET if before in _KEY_OWNERS else Secrecy.NONE
    if last in _TOKEN:
        return Secrecy.NONE if before in _NO_TOKEN else Secrecy.TOKEN
    if last == "pat":
        return Secrecy.TOKEN if before in _KEY_OWNERS else Secrecy.NONE
    if last == "tokens":
        return Secrecy.TOKEN if before in {"access", "refresh", "api", "auth", "bearer"} else Secrecy.NONE
    if last in _PINS or (last == "pin" and before in _PIN_OWNERS) or (last == "code" and before == "pin"):
        return Secrecy.PIN
    return Secrecy.NONE


# Variables with such names, at a failure.

#: Maximum number of items of a dict or an object to check; maximum and minimum length of a secret, in
#: characters.
_ITEMS_MAX, _VALUE_MAX_CHARS, _VALUE_MIN_CHARS = 200, 4096, 3


def named_secrets(spaces: Iterable[Mapping[str, Any]], shown: str = "") -> Iterator[tuple[str, str]]:
    """Yield the texts with a secret's name among these variables, and in the dicts and objects that they contain.

    shown: Yield only values that occur in this text; if it is empty, all. It runs no code of a value's class.
    """
    for space in spaces:
        for name, value in list(space.items()):
            if type(value) is str:
                yield from _named([(name, value)], "", shown)
            elif not isinstance(value, type | FunctionType | ModuleType):
                try:
                    attributes = value if type(value) is dict else object.__getattribute__(value, "__dict__")
                except (AttributeError, TypeError):
                    continue
                if type(attributes) is dict:
                    yield from _named(itertools.islice(attributes.items(), _ITEMS_MAX), f"{name}.", shown)


def _named(items: Iterable[tuple[Any, Any]], prefix: str, shown: str) -> Iterator[tuple[str, str]]:
    for name, value in items:
        short = type(value) is str and _VALUE_MIN_CHARS <= len(value) <= _VALUE_MAX_CHARS
        secret = short and type(name) is str and secrecy_of(name) is not Secrecy.NONE
        if secret and (not shown or value in shown):
            yield f"{prefix}{name}", value
