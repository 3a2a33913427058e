"""Schemas in docs/schemas: written from the code.

What the code writes fits them.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import jsonschema
import pytest
from run_samples import written

from healkit import errors
from healkit.contracts.execution import utc_now
from healkit.contracts.runs import EVENT_TYPES, SCHEMA_VERSION, error_object
from healkit.errors import RETRYABLE, catalogue, is_retryable
from healkit.tracing.reader import schemas

DOCS = Path(__file__).parents[2] / "docs" / "schemas"


@pytest.mark.requirement("RUN-1", "RUN-2", "RUN-4", "RUN-5")
@pytest.mark.parametrize("name", ["trace_event", "run_manifest", "evidence_manifest"])
def test_the_schema_in_the_docs_is_the_codes(name: str) -> None:
    """HEALKIT_REGENERATE=1 writes it anew; the diff is then reviewed."""
    file = DOCS / f"{name}.json"
    text = json.dumps(schemas()[name], indent=2, ensure_ascii=False) + "\n"
    if os.environ.get("HEALKIT_REGENERATE"):
        file.write_text(text)
    assert file.read_text() == text
    jsonschema.Draft202012Validator.check_schema(schemas()[name])


def test_the_docs_hold_exactly_the_schemas_of_the_code() -> None:
    named = {name for name in schemas() if (DOCS / f"{name}.json").exists()}
    assert named == set(schemas())


@pytest.mark.requirement("RUN-1", "RUN-2")
def test_written_files_fit_their_schemas(tmp_path: Path) -> None:
    folder = written(tmp_path)
    found = schemas()
    line_schema = jsonschema.Draft202012Validator(found["trace_event"])
    for line in (folder / "trace.jsonl").read_text().splitlines():
        line_schema.validate(json.loads(line))
    for name in ("run_manifest", "evidence_manifest"):
        jsonschema.Draft202012Validator(found[name]).validate(
            json.loads((folder / f"{name}.json").read_text())
        )


@pytest.mark.requirement("RUN-3")
def test_there_are_exactly_the_21_event_types_of_the_contract() -> None:
    assert len(EVENT_TYPES) == len(set(EVENT_TYPES)) == 26
    assert sum(name.startswith("trace.") for name in EVENT_TYPES) == 5
    enum = schemas()["trace_event"]["$defs"]["TraceEvent"]["properties"]["event_type"]["enum"]
    assert sorted(enum) == sorted(EVENT_TYPES)


@pytest.mark.requirement("RUN-4")
def test_the_catalogue_holds_every_code_that_can_occur() -> None:
    codes = set(catalogue())
    classes = [
        kind
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, errors.HealkitError)
    ]
    assert {kind.code for kind in classes} <= codes
    assert set(errors.TOOL_CODES) <= codes
    assert "POLICY_HALT" in codes
    assert codes >= RETRYABLE
    assert all(meaning for meaning in catalogue().values())
    enum = schemas()["trace_event"]["$defs"]["ErrorObject"]["properties"]["error_code"]["enum"]
    assert set(enum) == codes


@pytest.mark.requirement("RUN-4")
def test_an_error_object_takes_retryable_from_the_catalogue() -> None:
    for code in catalogue():
        error = error_object(code, "action", "m", utc_now())
        assert error.retryable is is_retryable(code)
        assert error.schema_version == SCHEMA_VERSION
    assert error_object("WORKER_LOST", "action", "m", utc_now()).retryable
    for code in ("TOOL_EXCEPTION", "TOOL_TIMEOUT", "HOST_DIED", "ARGUMENTS_INVALID", "POLICY_HALT"):
        assert not is_retryable(code), f"{code} would be the same again, or its harm would be done twice"
