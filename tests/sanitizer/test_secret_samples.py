"""Share of secrets that are gone, by kind.

Also the share of harmless lines that are changed.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

from healkit.sanitizer.sanitizer import Sanitizer

TRACE_2 = pytest.mark.requirement("TRACE-2")
SANITIZER = Sanitizer()


def loaded() -> Any:
    """Load the samples of the benchmark, which is no package."""
    path = Path(__file__).parents[2] / "benchmarks" / "secret_samples.py"
    spec = importlib.util.spec_from_file_location("secret_samples", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["secret_samples"] = module
    spec.loader.exec_module(module)
    return module


SAMPLES = loaded()


@TRACE_2
@pytest.mark.parametrize("seed", [14, 15, 16])
@pytest.mark.parametrize("kind", SAMPLES.KINDS)
def test_nine_secrets_of_ten_are_gone_of_each_kind(kind: str, seed: int) -> None:
    """Audit R11."""
    found = SAMPLES.samples(kind, seed)
    cleaned = [(SANITIZER.text(text).value, secrets) for text, secrets in found]
    left = [text for text, secrets in cleaned if any(secret in text for secret in secrets)]
    assert len(found) >= 40
    assert len(left) <= len(found) / 10, left[:3]


@TRACE_2
def test_harmless_lines_stay() -> None:
    """Audit R11."""
    lines = list(SAMPLES.harmless_lines())
    changed = [line for line in lines if SANITIZER.text(line).value != line]
    assert len(lines) >= 2000
    assert len(changed) <= 0.03 * len(lines), changed


@TRACE_2
def test_secrets_of_new_kinds_are_found_in_nested_data() -> None:
    """Audit R11."""
    key = "q7Zt-Xc9_Lw2Rk5Vb8Nm1Pd4Fg6Hj3Ks0Ay2Ue9Io5Q"
    public = "w4Bm-Td7_Rk1Zx8Qn5Vc2Lp9Gs6Hf3Jy0Ea4Uo7Iw1K"
    value = {
        "jwk": {"kty": "EC", "x": public, "d": key},
        "password": list(b"Tr0ub4dor&3"),
        "token": list(range(10)),
        "passphrase": "correct horse battery staple",
        "secret": "river stone yellow winter",
        "api_key": "falcon-copper",
        "label": "summer river stone hill",
        "d": public,
    }
    cleaned = SANITIZER.clean(value).value
    assert cleaned["jwk"] == {"kty": "EC", "x": public, "d": "[REDACTED:secret-name]"}
    assert cleaned["password"] == ["[REDACTED:secret-name]"]
    for name in ("passphrase", "secret", "api_key"):
        assert cleaned[name] == "[REDACTED:secret-name]"
    for name in ("token", "label", "d"):
        assert cleaned[name] == value[name]


@TRACE_2
@pytest.mark.parametrize(
    "line",
    [
        'password: "Please enter the new password"',
        'token = "identifier"',
        "token: 'keyword'",
        'api_key = "your-key"',
        'secret = "the name of the secret"',
        "tokens = [101, 2003, 2003, 1037, 3231, 102, 1, 2, 3]",
        "token = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]",
        "each user is identified by number",
        "mode = args.mode or 'default'",
    ],
)
def test_what_only_resembles_the_new_kinds_stays(line: str) -> None:
    """Audit R11."""
    assert SANITIZER.text(line).value == line


@TRACE_2
@pytest.mark.parametrize(
    "text",
    [
        'user, password = "jane", "{}"',
        'password: str = Field(default="{}")',
        'variable "db_password" {{\n  type = string\n  default = "{}"\n}}',
        'let api_key = String::from("{}");',
        'public string Password {{ get; set; }} = "{}";',
        'request.setApiKey("{}")',
        "passwords = {{'jane': '{}'}}",
        "password=[{}]",
        "Enter the password:\n{}\n",
        '<entry key="password">{}</entry>',
        "<key>ApiKey</key>\n<string>{}</string>",
        "&lt;password&gt;{}&lt;/password&gt;",
        "**api_key**: `{}`",
        "read PASSWORD <<< '{}'",
        "mot de passe : {}",
        "hasło: {}",
        "a temporary password is generated for root@localhost: {}",
    ],
)
def test_a_secret_is_found_in_further_syntaxes(text: str) -> None:
    """Audit R11."""
    assert "Tr0ub4dor77x" not in SANITIZER.text(text.format("Tr0ub4dor77x")).value


@TRACE_2
@pytest.mark.parametrize(
    "text",
    [
        "the password is required.",
        "the password is weak",
        'os.getenv("DB_PASSWORD", "")',
        'sizes = get("password"), [1, 2, 3, 4, 5, 6, 7, 8, 9]',
        "user, password = credentials",
        'password("Confirm")',
        'value = config.get("username", "postgres")',
        "Password:\nusername: jane",
    ],
)
def test_what_only_resembles_the_further_syntaxes_stays(text: str) -> None:
    """Audit R11."""
    assert SANITIZER.text(text).value == text


@TRACE_2
@pytest.mark.parametrize("size", [80, 510, 511, 512, 3000, 4095, 6000])
@pytest.mark.parametrize(
    "text",
    [
        "<password>{}</password><user>jane</user>",
        "&lt;password&gt;{}&lt;/password&gt;&lt;user&gt;jane&lt;/user&gt;",
        '"password": "{}", "user": "jane"',
        '{{\\"password\\":\\"{}\\",\\"user\\":\\"jane\\"}}',
        "password=`{}`+user(`jane`)",
        "password=“{}”user=jane",
        "&quot;password&quot;:&quot;{}&quot;,&quot;user&quot;:&quot;jane&quot;",
        "?access_token={}&user=jane",
        "password={};user=jane",
    ],
)
def test_what_follows_a_long_value_stays(text: str, size: int) -> None:
    """Audit R11: a value of 511 characters took what followed its closing quote or tag along."""
    secret = ("xK9dd02mQ7" * 600)[:size]
    cleaned = SANITIZER.text(text.format(secret)).value
    assert "xK9dd02mQ7" not in cleaned
    assert cleaned.endswith(text.partition("{}")[2].format())


@TRACE_2
def test_the_element_behind_a_closing_tag_is_no_value_of_it() -> None:
    """Audit R11: `</password><user>jane</user>` lost jane."""
    for text in (
        "<password></password><user>jane99</user>",
        "<db-password/><user>jane99</user>",
        "<a:password>Tr0ub4dor77x</a:password><a:user>jane99</a:user>",
        "<password>Tr0ub4dor77x</password>\n  <user>jane99</user>",
    ):
        cleaned = SANITIZER.text(text).value
        assert "jane99" in cleaned
        assert "Tr0ub4dor77x" not in cleaned


@TRACE_2
@pytest.mark.parametrize(
    "text",
    [
        "noreply@github.com",
        "From: MAILER-DAEMON@mx.corp.io",
        "python-dev@lists.python.org",
        "users-unsubscribe@apache.org",
        "ssh -p 2222 deploy@build.corp.io uptime",
        "$ scp -r out jane@build.corp.io:",
        "pkg@2.0.0-rc.next",
    ],
)
def test_an_address_that_no_person_has_stays(text: str) -> None:
    """Audit R11: all harmless files that were changed were changed for addresses."""
    assert SANITIZER.text(text).value == text
    assert "[EMAIL]" in SANITIZER.text(f"{text}, and jane.doe@corp.io").value


@TRACE_2
@pytest.mark.parametrize(
    "text",
    [
        "Copyright (c) 2001-2007, Jane Doe <jane.doe@corp.io>",
        "Copyright: 2020 Jane Doe <jane.doe@corp.io>\n           1994 Joe B. Roe, Corp <joe@corp.io>",
        " -- Jane Doe <jane.doe@corp.io>  Fri,  1 Apr 2005 13:13:48 -0500",
        "2019-12-11  Jane Doe  <jane.doe@corp.io>\n\n\t* src/a.c: Fix a leak.",
        "Metadata-Version: 2.4\nAuthor-email: Jane Doe <jane.doe@corp.io>, joe@corp.io\nName: x",
    ],
)
def test_an_address_that_its_owner_published_stays(text: str) -> None:
    """Audit R11: one harmless file of nine was changed, each for an address, mostly in such lines."""
    assert SANITIZER.text(text).value == text
    beside = SANITIZER.text(f"{text}\ncustomer: Jane Doe <jane.doe@corp.io>").value
    assert beside == f"{text}\ncustomer: Jane Doe <[EMAIL]>"
