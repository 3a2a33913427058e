"""Search for the slowest texts for the sanitiser, with a seed.

Each text is a short pattern, repeated. The search begins with all keywords and examples of the rules, and with texts of
many small secrets. It also uses beginnings of the costly steps (names, separators, quotes, escapes, URLs, long runs).
Then a mutator joins, cuts and pads the worst of them, and keeps worse ones. A text is measured at 12 KB. Finally, the
worst are measured at full size, which shows whether their cost grows faster than linearly.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator

from healkit.parts.sanitizer.rule import expand
from healkit.parts.sanitizer.sanitizer import Sanitizer, rules_for

PROBE_BYTES, FULL_BYTES = 12_000, 1_000_000
_PIECES = (
    "a", "A", "1", "aB1", "é", "_", "-", ".", " ", "  ", "\t", "\n", "\\n", "\\", '"', "'", '\\"', "=", ":", ": ", " = ", "=>", "&", "?", ";", ",",
    "/", "//", "://", "@", "a@a.", "a@b.io ", "%40", "%3D", "{", "[", "(", "<", ">", "[[", "]]", "{{", "${", "$(", "|", "0x41, ", "65, ", "123-45-6789 ",
    "+1", "1-", "1 ", "01 23 45 67 ", "4111 ", "DE89", "http://a:b", "postgres://a:", "-----BEGIN RSA PRIVATE KEY-----\n", "eyJ", "eyJhbGciOiJI.",
    "password", "password=", "password ", 'password="', "password=\\", "password:\n ", "password: {", "password=a1b2c3d4 ", '"password": "a1b2c3d4", ',
    "PASSWORD=a1 ", "the password is ", "--password ", "token: ", "token=", "api key ", "api_key=z9y8x7w6v5 ", "cookie: a=bcd; ", "authorization: ", "auth=('a', ",
    "<password>", "<password ", 'name: DB_PASSWORD\n value: ', "secret", "key", "key-", "pass", "os.getenv('PASSWORD') or '", " or '", "||'", "identified by ", "bearer ", "curl -u ",
    "curl a", "mysql a ", "mysql -p", "login a ", "machine a login ", "Private-Lines: 3\nAAAA ", "LS0tLS1CRUdJTi", '{"d": "', '"kty" "d":"aaaaaaaaaaaaaaaa"', "phone ", "ssn ",
    "sk-", "sk-sk-", "sk-a1", "a_live_", "/api/webhooks/a", "$2", "q~", "ü", "\ud83d", "[REDACTED:secret-name]", "[REDACTED:",
)  # fmt: skip


def pieces() -> list[str]:
    """Return the initial patterns: own ones, all keywords, all examples of the rules."""
    source = random.Random(1)
    rules = rules_for("US")
    keywords = [keyword for rule in rules for keyword in rule.keywords]
    examples = [expand(text, source) for rule in rules for text in (*rule.caught, *rule.survives)]
    spaced = [f"{text} " for text in (*keywords, *examples)]
    return list(dict.fromkeys((*_PIECES, *keywords, *examples, *spaced)))


def mutated(source: random.Random, text: str, all_pieces: list[str]) -> str:
    """Return the text with one to three changes."""
    for _ in range(source.randint(1, 3)):
        place = source.randrange(len(text) + 1)
        other = source.choice(all_pieces)[:40]
        match source.randrange(6):
            case 0:
                text = text[:place] + other + text[place:]
            case 1:
                text = text + other
            case 2 if len(text) > 1:
                text = text[:place] + text[place + source.randint(1, 4) :]
            case 3:
                text = text[:place] + source.choice("aA1_-.=:'\"\\ \n@/&é") + text[place:]
            case 4:
                text = text * source.randint(2, 5) + other
            case _:
                text = (
                    text.upper()
                    if source.random() < 0.3
                    else text[:place] + str(source.randrange(999)) + text[place:]
                )
    return text[:400] or "a"


def seconds_per_mb(clean: Callable[[str], object], text: str, turns: int = 1) -> float:
    """Return the processor time of one text, in seconds per megabyte of its characters: the minimum of some turns."""
    times: list[float] = []
    for _ in range(turns):
        begun = time.thread_time()
        clean(text)
        times.append(time.thread_time() - begun)
    return min(times) / len(text) * 1e6


def search(seed: int, rounds: int, keep: int = 24) -> Iterator[tuple[float, str]]:
    """Yield the worst patterns found, the worst first, each with its seconds per megabyte at full size."""
    source = random.Random(seed)
    sanitizer = Sanitizer()
    sanitizer.text("password=hunter22 +49 30 901820")

    def cost(text: str) -> float:
        return seconds_per_mb(sanitizer.text, repeated(text, PROBE_BYTES), 2)

    start = pieces()
    known = {text: cost(text) for text in start}
    worst = sorted(known, key=known.__getitem__, reverse=True)[:keep]
    for _ in range(rounds):
        made = {
            mutated(source, source.choice(worst), start if source.random() < 0.5 else worst)
            for _ in range(keep)
        }
        known |= {text: cost(text) for text in made - known.keys()}
        worst = sorted({*worst, *made}, key=known.__getitem__, reverse=True)[:keep]
    full = [(seconds_per_mb(sanitizer.text, repeated(text, FULL_BYTES), 2), text) for text in worst[:8]]
    yield from sorted(full, reverse=True)


def repeated(text: str, size: int) -> str:
    """Return the pattern repeated up to that many characters."""
    return (text * (size // len(text) + 1))[:size]


def many_secrets(size: int, seed: int = 14) -> str:
    """Return small secrets that all differ, so that remembering one does not help."""
    source = random.Random(seed)
    parts: list[str] = []
    left = size
    while left > 0:
        name = source.choice(("password", "api_key", "client_secret", "token", "DB_PASS"))
        secret = expand(f"‹w{source.randint(8, 20)}›", source)
        part = source.choice(("{}={} ", '"{}": "{}", ', "{}: {}\n", "{}='{}',")).format(name, secret)
        parts.append(part)
        left -= len(part)
    return "".join(parts)[:size]
