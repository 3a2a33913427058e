"""All built-in rules, in the order of the documentation."""

from __future__ import annotations

from healkit.sanitizer.rule import SanitizerRule
from healkit.sanitizer.tables.cloud_tokens import CLOUD_TOKENS
from healkit.sanitizer.tables.code_syntaxes import CODE_SYNTAXES
from healkit.sanitizer.tables.code_tokens import CODE_TOKENS
from healkit.sanitizer.tables.command_syntaxes import COMMAND_SYNTAXES
from healkit.sanitizer.tables.key_syntaxes import KEY_SYNTAXES
from healkit.sanitizer.tables.other_tokens import OTHER_TOKENS
from healkit.sanitizer.tables.personal_data import PERSONAL_DATA, PhoneRules
from healkit.sanitizer.tables.secret_syntaxes import SECRET_SYNTAXES
from healkit.sanitizer.tables.service_tokens import SERVICE_TOKENS

#: Headings of the documentation's table, and the rules below each.
SECTIONS: tuple[tuple[str, tuple[SanitizerRule, ...]], ...] = (
    ("Secrets by their name or place", (*SECRET_SYNTAXES, *CODE_SYNTAXES, *COMMAND_SYNTAXES, *KEY_SYNTAXES)),
    ("Cloud, infrastructure and monitoring", CLOUD_TOKENS),
    ("Code hosts, registries, builds and models", CODE_TOKENS),
    ("Payment, messaging, commerce and office", SERVICE_TOKENS),
    ("Other services, by their prefix", OTHER_TOKENS),
    ("Personal data", PERSONAL_DATA),
)


def rules_for(phone_region: str) -> tuple[SanitizerRule, ...]:
    """Return every rule; `phone_region` (an ISO 3166 code such as `US`) says how local phone numbers are written."""
    tables = tuple(rule for _, rules in SECTIONS for rule in rules)
    return tables + PhoneRules(phone_region).rules()


def as_markdown() -> str:
    """Return the table of docs/sanitizing.md: each rule's id, what it hides, and its replacement."""
    parts: list[str] = []
    for heading, rules in SECTIONS:
        shown = rules + (PhoneRules("US").rules() if rules is PERSONAL_DATA else ())
        parts.append(f"### {heading}\n\n| counted as | what is hidden | shown as |\n| --- | --- | --- |\n")
        parts.extend(f"| `{rule.id}` | {rule.what} | `{rule.shown}` |\n" for rule in shown)
        parts.append("\n")
    return "".join(parts).rstrip() + "\n"
