"""Share of secrets that are gone, by kind, and of harmless lines that are changed."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

from healkit.sanitizer import Sanitizer

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
    value = {
        "jwk": {"kty": "EC", "x": key, "d": key},
        "password": list(b"Tr0ub4dor&3"),
        "token": list(range(10)),
        "passphrase": "correct horse battery staple",
        "secret": "river stone yellow winter",
        "api_key": "falcon-copper",
        "label": "river stone yellow winter",
        "d": key,
    }
    cleaned = SANITIZER.clean(value).value
    assert cleaned["jwk"] == {"kty": "EC", "x": key, "d": "[REDACTED:secret-name]"}
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
