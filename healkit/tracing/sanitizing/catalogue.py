"""The whole table, in the order in which it is documented."""

from __future__ import annotations

from healkit.tracing.sanitizing.personal import PERSONAL, Phones
from healkit.tracing.sanitizing.places import PLACES
from healkit.tracing.sanitizing.rule import Rule
from healkit.tracing.sanitizing.tokens_cloud import CLOUD
from healkit.tracing.sanitizing.tokens_code import CODE
from healkit.tracing.sanitizing.tokens_services import SERVICES

#: Headings of the documentation's table, and the rules below each.
SECTIONS: tuple[tuple[str, tuple[Rule, ...]], ...] = (
    ("Secrets by their name or place", PLACES),
    ("Cloud, infrastructure and monitoring", CLOUD),
    ("Code hosts, registries, builds and models", CODE),
    ("Payment, messaging, commerce and office", SERVICES),
    ("Personal data", PERSONAL),
)


def rules_for(phone_region: str) -> tuple[Rule, ...]:
    """Every rule, phone numbers read as the region writes them (an ISO 3166 code such as `US`)."""
    tables = tuple(rule for _, rules in SECTIONS for rule in rules)
    return tables + Phones(phone_region).rules()


def as_markdown() -> str:
    """The table of docs/sanitizing.md: what each rule hides, by which name it is counted, what stands there instead."""
    parts: list[str] = []
    for heading, rules in SECTIONS:
        shown = rules + (Phones("US").rules() if rules is PERSONAL else ())
        parts.append(f"### {heading}\n\n| counted as | what is hidden | shown as |\n| --- | --- | --- |\n")
        parts.extend(f"| `{rule.id}` | {rule.what} | `{rule.shown}` |\n" for rule in shown)
        parts.append("\n")
    return "".join(parts).rstrip() + "\n"
