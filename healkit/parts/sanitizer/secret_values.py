"""Values behind a secret's name: secrets, words, code.

After a secret's name comes a secret, or the name of one (`password=password`), a type (`token: str`), a template
(`${TOKEN}`), a call (`getpass()`), a path, or prose. The form distinguishes them. There is no list of allowed example
values, and no test of entropy, which takes hashes for secrets and weak passwords for prose.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from healkit.core.secrets.secret_names import Secrecy, secrecy_of, word_set, words_in_name


def either(forms: Mapping[str, str]) -> str:
    """Join patterns, each written after its example, into one that matches any of them."""
    return f"(?:{'|'.join(forms.values())})"


#: An identifier of so many words is more than another name of the secret: `my_secret_password`.
_MANY_WORDS = 3
#: Where a value was found; the three differ in how surely its surroundings say that it is one.
QUOTED, BARE, STRUCTURED = "quoted", "bare", "structured"

#: How a password's hash is written: an example → its pattern.
_HASH_FORMS = {
    "$6$salt$hash0123456": r"\{?\$?[\w-]*\}?\$[\w=,./+$-]{10,}",
    "5f4dcc3b5aa765d61d8327deb882cf99": r"(?:0x)?[0-9A-Fa-f]{32,128}",
    "pbkdf2:600000$hash0123456789abcdef": r"\w+(?::\d+)?\$\S{20,}",
    "{SSHA}hash0123456789abcdef": r"\{\w+\}\S{16,}",
}
_HASH = re.compile(f"{either(_HASH_FORMS)}$")
#: Names of classes that hold or describe a secret: `Ed25519PrivateKey`, `ReadableBuffer`.
_CLASS = re.compile(
    r"[A-Z]\w{2,}(?:Keys?|Tokens?|Types?|Buffer|Str|Bytes|Error|Exception"
    r"|Provider|Class|Base|Like|Model|Field|Schema|Params?)$"
)
_COOKIE_PAIR = re.compile(r"[\w.-]+=(?!=)[^\s;,=]{3,}")
_DIGIT_OR_SYMBOL = re.compile(r"[\d!@#$%^&*?~+=/\\|<>]")
_NOT_A_VALUE = word_set(
    "string str text bytes bytea byte int integer float double bool boolean number object array list dict map "
    "any unknown uuid none null nil undefined void true false yes no on off ok optional required default "
    "empty unset missing present invalid valid expired hidden redacted masked removed revoked disabled "
    "enabled anonymous public basic bearer digest oauth oauth2 openid jwt saml ldap kerberos ntlm cookie "
    "cookies header query body form session same-origin include omit auto manual interactive prompt keyring "
    "vault env environment file stdin varchar char nvarchar charfield textfield forbidden denied failed "
    "success error nan n/a na tbd unauthorized authenticated self this not was is the a an field input"
)


_SECRET_WORDS = word_set(
    "password passwords passwd pwd pass pw passphrase secret secrets token tokens key keys credential "
    "credentials creds auth authorization cookie cookies bearer webhook dsn"
)


def hides(level: Secrecy, name: str, value: str, where: str, *, loose: bool = False) -> bool:
    """Return True if `value`, found after `name` of that level, must be hidden.

    loose: Bare, and between spaces or before a comma, like variables in code.
    """
    value = value.strip()
    if where == STRUCTURED and value[:1] in {"'", '"'} and value[-1:] == value[:1]:
        value = value[1:-1].strip()  # the `repr` of a variable
    if where == STRUCTURED and (level in _ANY_VALUE or (level in _ANY_WORD and not _SAYS_LITTLE.match(name))):
        return _NO_DATA.fullmatch(value) is None
    if where == BARE and value.isdigit() and level in _NUMBERS_TOO:
        return len(value) >= (_DIGITS_LEAST if level is Secrecy.TOKEN and not _OWNED.match(name) else 4)
    if len(value) < 3 and (loose or level is not Secrecy.PASSWORD or not value.isalnum()):
        return False
    if is_reference(value):
        return False
    folded = value.lower()
    if folded in _NOT_A_VALUE or is_placeholder(value):
        return False
    if level is Secrecy.PIN:
        return value.isdigit() and 3 + (name.lower() in {"pin", "otp"}) <= len(value) <= 12
    if level is Secrecy.HASHED:
        return _HASH.match(value) is not None
    if level in {Secrecy.LOCATOR, Secrecy.WEBHOOK}:
        return _address_hides(value, webhook=level is Secrecy.WEBHOOK)
    if level is Secrecy.HEADER:
        return _header_hides(value, where)
    if is_path_or_url(value) or (where == BARE and is_code(value) and (loose or not _dotted_token(value))):
        return False
    if where == BARE and value.isidentifier():
        few = loose or len(words_in_name(value)) < _MANY_WORDS
        if _CLASS.match(value) or (few and names_a_secret(value, loose=loose)):
            return False
    if level in {Secrecy.PASSWORD, Secrecy.PHRASE}:
        return _password_hides(level, name, value, where, loose=loose)
    if level is Secrecy.SECRET:
        return _secret_hides(name, value, where, loose=loose)
    if level is Secrecy.TOKEN:
        if name.lower() == "pass":
            return _outcome_or_password(value)
        if (
            _OWNED.match(name)
            and (_outcome_or_password(value) or (value.isalpha() and not loose and not names_a_secret(value)))
            and not (ALGORITHM.match(value) or DOTTED.match(value))
        ):
            return True
        if where != BARE and value.isdigit():
            return len(value) >= _DIGITS_LEAST
        return (
            is_generated(value)
            or looks_like_token(value)
            or (
                where != BARE
                and name.lower().endswith(("token", "tokens"))
                and (_is_plain_word(value) or (" " in value and _is_no_sentence(value.split())))
            )
        )
    least = (12 if name.isupper() else 16) if name.lower().endswith("key") else 8
    return len(value) >= least and looks_like_token(value) and not DOTTED.match(value)


#: In data, any text behind such a name is hidden, whatever it looks like.
_ANY_VALUE = frozenset({Secrecy.PASSWORD, Secrecy.SECRET, Secrecy.PHRASE})
_NUMBERS_TOO = _ANY_VALUE | {Secrecy.TOKEN}
#: In data, behind such a name too, unless the name alone says nothing: `auth` may be a scheme, `pass` a count.
_ANY_WORD = frozenset({Secrecy.TOKEN, Secrecy.HEADER})
#: Texts that are not a value in data: nothing, a type's name, a whole template, a text that is already hidden or
#: masked.
_NO_DATA_FORMS = {
    "": "",
    "null": "none|null|nil|nan|undefined|true|false|required|optional",
    "string": "str(?:ing)?|bytes|int(?:eger)?|float|bool(?:ean)?|number|object|array|list|dict|any|secretstr",
    "${TOKEN}": r"\$\{[^{}]*\}|\$(?-i:[A-Z_][A-Z0-9_]*)",
    "{{ token }}": r"\$?\{\{[^{}]*\}\}|\{[\w.]*\}",
    "<token>": r"<[^<>]*>",
    "%(token)s": r"%\(\w+\)s|%s",
    "****": r"[*.•…]+|x{3,}|-+|\?",
    "vault:secret/db": r"(?:vault:|arn:|op://|ENC\[|!vault).*",
    "Bearer [REDACTED:jwt]": r"(?:[a-z-]{2,20} )?\[(?:REDACTED:[\w-]+|TRUNCATED|[A-Z]+)\](?: … \[TRUNCATED\].*)?",
}
_NO_DATA = re.compile(f"(?i){either(_NO_DATA_FORMS)}", re.DOTALL)
_SAYS_LITTLE = re.compile(r"(?i)(?:auth|cookies?|pass)$")
_DIGITS_LEAST = 6
#: Tokens that belong to a user or a program: words and digits are a value here.
_OWNED = re.compile(
    r"(?i).*(?:access|auth|api|private|refresh|bearer|secret|session|bot"
    r"|github|gitlab|slack|npm|deploy)[\W_]?token$"
)


def _dotted_token(value: str) -> bool:
    """Distinguish `a0.gLdMS7Xir`, a password with a dot in it, from `settings.password`."""
    return (
        DOTTED.match(value) is not None
        and not value.endswith(")")
        and any(map(looks_like_token, value.split(".")))
    )


def _outcome_or_password(value: str) -> bool:
    """Distinguish `pass: Secret99` from `pass: 12`, which counts tests."""
    return len(value) >= 6 and re.fullmatch(r"(?=\D*\d)(?=[\d\W]*[^\W\d])\S+", value) is not None


def _password_hides(level: Secrecy, name: str, value: str, where: str, *, loose: bool) -> bool:
    if " " in value or "\n" in value:
        return _spaced_hides(level, value, where)
    if value.isdigit():
        return len(value) >= 4
    if _same_name(name, value):
        return False
    return not (where == BARE and loose) or (
        (_has_digit_or_symbol(value) and len(value) >= 6) or is_generated(value)
    )


def _secret_hides(name: str, value: str, where: str, *, loose: bool) -> bool:
    if value.isdigit():
        return len(value) >= 4
    if " " in value:
        return where != BARE and (is_phrase(value) or _ends_in_token(value))
    if NUMERIC.match(value) or ALGORITHM.match(value) or _same_name(name, value):
        return False
    if looks_like_token(value):
        return True
    if loose:
        return False
    if name.isupper() and where == BARE and len(value) >= 6 and not value.isupper():
        return not names_a_secret(value)
    if where != BARE and name.lower().endswith(("key", "keys")) and not _has_digit_or_symbol(value):
        return _is_plain_word(value) or (
            len(value) >= 20 and where != BARE and "_" not in value and "." not in value
        )
    if where == BARE and value.isalpha() and not value.islower():
        return False
    return name.isupper() or not names_a_secret(value, loose=False)


def _spaced_hides(level: Secrecy, value: str, where: str) -> bool:
    """Accept a phrase of words; hide a password with a space unless it reads like a sentence about passwords."""
    words = value.split()
    if level is Secrecy.PHRASE:
        return 2 <= len(words) <= 30 and not _talks(value)
    if where != BARE and (is_phrase(value) or (len(words) >= _MANY_WORDS and _is_no_sentence(words))):
        return True
    return (
        where != BARE
        and len(words) <= _WORDS_MAX
        and "\n" not in value
        and not _talks(value)
        and (_has_digit_or_symbol(value.replace(" ", "")) or _is_no_sentence(words))
    )


_WORDS_MAX = 8


def _is_no_sentence(words: list[str]) -> bool:
    """Accept words in small letters with no grammar between them: a title begins with a capital."""
    return all(
        word.islower() and word.isalpha() and len(word) >= 2 for word in words
    ) and _GRAMMAR.isdisjoint(set(words) - _SECRET_WORDS)


def _ends_in_token(value: str) -> bool:
    """Accept words followed by a random part, as credential stores write them."""
    last = value.rstrip("}").rpartition(" ")[2]
    return len(last) >= _TOKEN_LEAST and looks_like_token(last) and not is_path_or_url(last)


_TOKEN_LEAST = 16


def is_line(value: str, *, alone: bool) -> bool:
    """Return True for the rest of a settings line that is a password as a whole: words without grammar.

    alone: Only if nothing but words of a phrase follows, as after a colon.
    """
    words = value.split()
    return is_phrase(value) or (
        not alone
        and 1 < len(words) <= _WORDS_MAX
        and all(map(_LINE_WORD.fullmatch, words[1:]))
        and _GRAMMAR.isdisjoint(map(str.lower, words))
        and not _talks(value)
    )


def _is_joined(words: list[str]) -> bool:
    """Accept three or more plain words, joined by dashes, that are not about a secret."""
    return (
        len(words) >= _MANY_WORDS
        and all(map(_PHRASE_WORD.match, words))
        and all(
            vocabulary.isdisjoint(words) for vocabulary in (_GRAMMAR, _TERMS, _SECRET_WORDS, _NOT_A_VALUE)
        )
    )


_LINE_WORD = re.compile(r"[^\W\d_]{1,24}[!?]?")


def is_phrase(value: str) -> bool:
    """Accept three to eight plain words with no grammar between them: `correct horse battery staple`."""
    words = value.split(" ")
    return 3 <= len(words) <= 8 and all(map(_PHRASE_WORD.match, words)) and _GRAMMAR.isdisjoint(words)


def is_generated(value: str) -> bool:
    """Accept four to eight plain words joined by dashes, as password generators make them."""
    words = value.split("-")
    return 4 <= len(words) <= 8 and _is_joined(words)


_PHRASE_WORD = re.compile(r"[a-z]{3,14}$")
#: Words of sentences and labels; a phrase that was made by chance or by a generator does not contain them.
_GRAMMAR = word_set(
    "the and for are was with must not has have had can cannot may will should your you our their this that these "
    "from into when where which what who how why use used using set get enter please type choose select missing "
    "invalid wrong required optional value values field name user users login account password passwords secret "
    "secrets token key keys string text all any only new old reset change changed confirm confirmation again same "
    "different too short long least most than more less does did don but its each one two file files default empty "
    "none see per via error failed access authentication server client policy needs need"
)


def _is_plain_word(value: str) -> bool:
    """Accept a few words, also with digits, that are not part of a grammar, a protocol or a placeholder."""
    parts = value.lower().rstrip("0123456789!").split("-")
    return (
        _PLAIN_WORD.match(value) is not None
        and ALGORITHM.match(value) is None
        and not any(
            part in words for part in parts for words in (_TERMS, _NOT_A_VALUE, _GRAMMAR, _SECRET_WORDS)
        )
        and not names_a_secret(value)
    )


_PLAIN_WORD = re.compile(r"(?=.{5,})[A-Za-z]?[a-z]{2,23}(?:-[a-z]{2,16}){0,5}\d{0,4}!?$")
#: What programs call their tokens, and what documentation puts in their place.
_TERMS = word_set(
    "identifier ident keyword operator number newline indent dedent comment literal punctuation symbol delimiter "
    "whitespace eof eol start end begin comma colon semicolon plus minus star slash equal equals equality less greater "
    "word space dot paren lparen rparen lbrace rbrace bracket brace fake dummy example sample test testing mock some "
    "your foo bar baz foobar abc abcd xyz hello world class return import def function variable assign encoding name "
    "expr statement block unknown special refresh access id default simple custom primary foreign public api app client"
)


def spells_bytes(numbers: str, level: Secrecy) -> bool:
    """Return True for numbers that are a secret's bytes; after a token's name, those of printable characters."""
    if "'" in numbers:
        return True
    values = [int(number, 0) for number in re.findall(r"0x[0-9A-Fa-f]+|[1-9]\d*|0", numbers)]
    return (
        "-" not in numbers
        and all(number < 256 for number in values)
        and (level is not Secrecy.TOKEN or all(32 < number < 127 for number in values))
    )


def _talks(value: str) -> bool:
    return value.rstrip()[-1:] in {".", ":", "?", "…"} or any(
        secrecy_of(word) in {Secrecy.PASSWORD, Secrecy.SECRET, Secrecy.PHRASE}
        for word in re.findall(r"\w+", value)[:40]
    )


def _has_digit_or_symbol(value: str) -> bool:
    return _DIGIT_OR_SYMBOL.search(value) is not None


def _same_name(name: str, value: str) -> bool:
    """Return True for a field's name as its value: `password="password"`, `{"api_key": "apiKey"}`."""
    folded = value.lower()
    first = folded.lstrip("_-. ")[:1]
    if first not in name.lower():
        return False
    words = words_in_name(name)
    return folded == "".join(words[-1:]) or words == words_in_name(value)


def names_a_secret(value: str, *, loose: bool = False) -> bool:
    """Return True for an identifier such as `new_password`, `token2` or, in code, `secret_value`."""
    letters = value.rstrip("0123456789")
    if any(map(str.isdigit, letters)):
        return False
    digits = len(value) - len(letters)
    return digits <= (2 if loose else 1) and any(
        word in _SECRET_WORDS and (len(word) > 3 or "_" in value) for word in words_in_name(value)
    )


def _address_hides(value: str, *, webhook: bool) -> bool:
    """Return True for a DSN with a key or a password in it, or a webhook with a token in its path."""
    if URL.match(value) is None:
        return re.search(r"(?i)(?:password|pwd|key|secret|token)\s*=\s*[^;\s]{3,}", value) is not None
    rest = value.partition("://")[2]
    host, _, path = rest.partition("/")
    if "@" in host:
        userinfo = host.rpartition("@")[0]
        return bool(userinfo.partition(":")[2]) or looks_like_token(userinfo)
    return webhook and any(len(part) >= 8 and looks_like_token(part) for part in re.split(r"[/?&=]", path))


def _header_hides(value: str, where: str) -> bool:
    if where == BARE and is_code(value):
        return False
    scheme, _, rest = value.partition(" ")
    if not rest:
        return _COOKIE_PAIR.search(value) is not None or looks_like_token(value)
    if is_reference(rest.strip()):
        return False
    return (
        _COOKIE_PAIR.search(value) is not None
        or looks_like_token(rest.strip())
        or (scheme.lower() in {"bearer", "basic"} and len(rest) >= 16 and " " not in rest)
    )


# Shapes of texts, whatever name they stand behind: references, paths, code, words, tokens.


#: How a stand-in is written: an example → its pattern.
_REFERENCE_FORMS = {
    "${TOKEN}": r"\$\{[^}]*\}?.*",
    "$(cat token)": r"\$\(.*|\$\$.*",
    "$TOKEN": r"\$[A-Za-z_][\w:.]*$",
    "{{ token }}": r"\{\{.*|\{%.*|\{[^{}]{0,120}\}$|#\{.*\}$",
    "<token>": r"<[^<>]*>?$|\[[A-Za-z_ -]+\]$",
    "@token@": r"@[\w.]+@$|@\w+\(.*",
    "%(token)s": r"%\(?[\w]*\)?[srdxif]$|%[A-Za-z_]+%$",
    ":token": r":\w+$|\?$",
    "!vault token": r"!(?:vault|Ref|Sub|GetAtt|ImportValue|reference|secret|env_var|Join|Select)\b.*",
    "op://vault/token": r"ENC\[.*|vault:.*|arn:.*|op://.*",
    "#ff8800": r"#[0-9A-Fa-f]{3,8}$",
    "****": r"[*.•_#=~+?-]+$|[xX]{3,}$|…",
}
_REFERENCE = re.compile(either(_REFERENCE_FORMS), re.DOTALL)
#: A text in braces with blanks in it, such as Jenkins writes: no template.
_BRACED = re.compile(r"\{[^{}]*\s[^{}]*\}$")


def _holds_token(value: str) -> bool:
    return _BRACED.match(value) is not None and any(
        len(word) >= _TOKEN_LEAST and looks_like_token(word) for word in value.strip("{}").split()
    )


#: What a replacement begins with.
HIDDEN = "[REDACTED:"
_ELIDED = re.compile(r"\*{3}|\.{3}|…|•{3}|\[REDACTED|\[TRUNCATED|\[(?:EMAIL|PHONE|SSN|CARD|IBAN)\]")
_MAY_ELIDE = re.compile(r"[*.…•\[]")
NUMERIC = re.compile(r"^[-+]?[\d.,:/ TZ_+-]*%?$")
_PATH = re.compile(r"^(?:~|\.{1,2}|[A-Za-z]:)?(?:[/\\][\w.@ {}$-]*){1,30}$|^[\w.-]+(?:/[\w.-]+){2,}$|^file:")
URL = re.compile(r"^[A-Za-z][\w+.-]*://\S*$")
DOTTED = re.compile(r"^[^\W\d]\w*(?:\??\.[^\W\d]\w*)+(?:\(.*|\[.*)?;?$")
_CALL = re.compile(r"^(?:await\s|new\s|&|\*)?[^\W\d][\w.:]*(?:\(|\[|<|\{|->|::)")
#: Names of algorithms and encodings: `sha256`, `aes-256-gcm`, `hmac-sha1`.
_ALGORITHM_BEFORE = (
    "hmac|rsa|ec|pbkdf2|with|aes|gcm|cbc|aws4|scram|ssh|nistp|oauth|openid|django|bcrypt|http|tls|v"
)
_ALGORITHM_NAME = (
    "sha|md|aes|rsa|hmac|pbkdf|argon|ecdsa|secp|curve|x|ed|base|utf|utf-|latin|iso|oauth"
    "|rs|es|ps|hs|ecdh|cp|gpt"
)
ALGORITHM = re.compile(
    rf"(?i)^(?:(?:{_ALGORITHM_BEFORE})?[-_:]?(?:{_ALGORITHM_NAME})[-_]?\d{{1,5}}\w?[-_]?)+"
    r"(?:[-_]?(?:gcm|cbc|sha\d+|sha|id|k1|sha-\d+|pub))*$"
)
_WORDY_PART = re.compile(r"^(?:[^\W\d_]{1,24}\d{0,3}|\d{1,4})$")
_SPLIT = re.compile(r"[-_/.: ,+@|]+")


def is_reference(value: str) -> bool:
    """Return True for a placeholder: a template, a variable, or an already hidden text."""
    return (_REFERENCE.match(value) is not None and not _holds_token(value)) or (
        _MAY_ELIDE.search(value) is not None and _ELIDED.search(value) is not None
    )


#: Words of a text that says what belongs in its place: `your-api-key-here`.
_YOUR = "your|my|the|an?|some|example|test|dummy|fake|sample|placeholder|default|new|old|real|insert|enter"
_OWNER = "your|own|api|access|auth|client|secret|app|user|db|example|test|fake|bot|github|openai|aws|private|service"
_THING = "token|key|password|passwd|pass|passphrase|secret|credentials?|value|string|here|example"
_PUT = "your|here|me|in|the|own|api|access|auth|secret|token|key|password|value"
_PLACEHOLDER_FORMS = {
    "todo": "todo|fixme|tbd|redacted|placeholder|dummy|sample|foobar|foo|bar|baz|lorem|ipsum",
    "replace-me": rf"(?:replace|insert|put|add|enter|fill|set)[-_ ]?(?:me|it|this|with)?(?:[-_ ]?(?:{_PUT})){{0,5}}",
    "your-api-key": rf"(?:{_YOUR})(?:[-_ ]?(?:{_OWNER})){{0,4}}[-_ ]?(?:{_THING})"
    r"(?:[-_ ]?(?:here|value|example|goes[-_ ]here))?",
}
_PLACEHOLDER = re.compile(f"(?i){either(_PLACEHOLDER_FORMS)}")


def is_placeholder(value: str) -> bool:
    """Return True for a text that only says what belongs in its place, such as `your-api-key`.

    The whole text must have one of these forms, because a real secret may contain such a word. `changeme` does not
    count: many services still have it as their password.
    """
    return (
        len(value) <= _PLACEHOLDER_MAX
        and _PLAIN.fullmatch(value) is not None
        and _PLACEHOLDER.fullmatch(value.strip("'\"` ")) is not None
    )


_PLACEHOLDER_MAX, _PLAIN = 48, re.compile(r"[A-Za-z_ '\"`-]+\d?!?")


def looks_like_token(value: str) -> bool:
    """Return True unless the value is a word, number, date, version, path or algorithm.

    A token has letters and digits in no readable order, or upper and lower case in none.
    """
    value = value[:80]
    if (
        len(value) < 6
        or " " in value
        or NUMERIC.match(value)
        or ALGORITHM.match(value)
        or value.startswith("(?")
    ):
        return False
    if not any(map(str.isalpha, value)):
        return False
    digits = sum(map(str.isdigit, value))
    parts = [part for part in _SPLIT.split(value) if part]
    if digits == 0:
        return len(value) >= 12 and _scrambled(value)
    if len(parts) == 1:
        return digits >= 3 or not _WORDY_PART.match(parts[0]) or (len(value) >= 8 and _scrambled(value))
    return not all(_WORDY_PART.match(part) for part in parts) or any(
        _scrambled(part) for part in parts if len(part) > 7
    )


def _scrambled(value: str) -> bool:
    """Return True where upper and lower case follow no spelling: neither words nor CamelCase."""
    turns = len(_TURN.findall(value))
    if turns < max(2, len(value) // 8):
        return False
    sizes = list(map(len, _CASED_WORD.findall(value)))
    short = sum(size <= 2 for size in sizes)
    return max(sizes, default=0) <= 6 and 2 * short >= len(sizes)


_TURN, _CASED_WORD = re.compile(r"[a-z](?=[A-Z])"), re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


def is_path_or_url(value: str) -> bool:
    """Return True for a URL, or for a file's path whose parts are words."""
    if "/" not in value and "\\" not in value and not value.startswith("file:"):
        return False
    if URL.match(value):
        return True
    if not _PATH.match(value):
        return False
    parts = [part for part in re.split(r"[/\\]", value) if part]
    bits = [bit for part in parts for bit in _SPLIT.split(part.strip("{}$~")) if bit]
    return all(_WORDY_PART.match(bit) and not (len(bit) > 7 and _scrambled(bit)) for bit in bits)


def is_code(value: str) -> bool:
    """Return True for a call, an index or a dotted name."""
    return _CALL.match(value) is not None or DOTTED.match(value) is not None
