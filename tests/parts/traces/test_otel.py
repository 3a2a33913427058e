"""Executions as spans, as a real OTLP receiver gets them."""

from __future__ import annotations

import gzip
import http.server
import json
import queue
import re
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from healkit import Healkit
from healkit.config import Config
from healkit.core.contracts.execution import new_trace_id, utc_now
from healkit.core.secrets.cleaner import Verbatim
from healkit.parts.sanitizer.sanitizer import Sanitizer
from healkit.parts.traces import otel
from healkit.parts.traces.contract import BranchDecision, ExecutionTrace, TaskResult
from healkit.parts.traces.otel import OtelExporter

WAIT_S = 30.0


class Receiver(http.server.ThreadingHTTPServer):
    """Takes what OTLP/HTTP sends to /v1/traces, and keeps the spans."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Take)
        self.requests: queue.Queue[ExportTraceServiceRequest] = queue.Queue()
        self.may_answer = threading.Event()
        self.may_answer.set()

    def spans(self, count: int) -> dict[str, Any]:
        """Wait for so many; by name, with their resource and scope beside them."""
        found: dict[str, Any] = {}
        deadline = time.monotonic() + WAIT_S
        while len(found) < count:
            request = self.requests.get(timeout=max(0.1, deadline - time.monotonic()))
            for resource in request.resource_spans:
                for scope in resource.scope_spans:
                    for span in scope.spans:
                        assert span.name not in found
                        found[span.name] = (span, scope, resource)
        return found


class _Take(http.server.BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        assert isinstance(self.server, Receiver)
        body = self.rfile.read(int(self.headers["Content-Length"]))
        assert self.path == "/v1/traces"
        assert self.headers["Content-Type"] == "application/x-protobuf"
        body = gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body
        assert self.server.may_answer.wait(WAIT_S)
        self.server.requests.put(ExportTraceServiceRequest.FromString(body))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    """Run a receiver at the place that the environment names."""
    with Receiver() as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
        monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "20")
        yield server
        server.shutdown()


def trace(**changes: Any) -> ExecutionTrace:
    """Make a finished execution with one good call and two bad ones."""
    now = utc_now()
    values: dict[str, Any] = {
        "id": new_trace_id(), "parent_id": None, "capability_id": "local.default.default.weather.0123456789ab",
        "success": True, "error": None, "duration_ms": 12.5, "timestamp": now,
        "task_results": [TaskResult("t1", "vault:fetch", {"city": "Kyiv"}, "rain", 2.5, True, now)],
        "decisions": [BranchDecision("cache", "miss", "key not in cache")],
        "metadata": {"persona": "default", "revision": 3, "arguments": {"city": "Kyiv"}, "result": 11},
    }  # fmt: skip
    return ExecutionTrace(**{**values, **changes})


def attributes(span: Any) -> dict[str, Any]:
    """Return a span's attributes as plain values."""
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in span.attributes}


def arrived(receiver: Receiver) -> list[Any]:
    """Return the spans that have arrived."""
    requests = [receiver.requests.get() for _ in range(receiver.requests.qsize())]
    return [
        span
        for request in requests
        for resource in request.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]


def exported(receiver: Receiver, *traces: ExecutionTrace, raw: bool = False, **config: Any) -> dict[str, Any]:
    """Export these traces; return what the receiver gets of them."""
    settings = Config(otel=True, **config)
    exporter = OtelExporter(settings, lambda: Sanitizer.from_config(settings) if raw else Verbatim())
    try:
        for each in traces:
            exporter.export(each)
        return receiver.spans(sum(1 + len(each.task_results) for each in traces))
    finally:
        exporter.close()


def test_an_execution_becomes_a_span_and_its_calls_become_child_spans(
    receiver: Receiver,
) -> None:
    now = utc_now()
    bad = [
        TaskResult("t2", "github:search", {}, "CALL_TIMEOUT: no answer", 5.0, False, now),
        TaskResult("t3", "host:ask", {}, None, None, False, now),
    ]
    one = trace()
    one = msgspec.structs.replace(one, task_results=[*one.task_results, *bad])
    spans = exported(receiver, one)
    span, scope, resource = spans["execute_tool weather"]
    assert attributes(span) == {
        "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "weather", "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": one.id, "healkit.capability_id": one.capability_id, "healkit.persona": "default",
        "healkit.revision": 3,
    }  # fmt: skip
    assert span.trace_id == uuid.UUID(one.id).bytes
    assert span.span_id == uuid.UUID(one.id).bytes[8:]
    assert (span.parent_span_id, span.status.code) == (b"", 0)
    assert span.end_time_unix_nano - span.start_time_unix_nano == 12_500_000
    assert span.start_time_unix_nano == round(one.timestamp.timestamp() * 1e6) * 1000
    assert scope.scope.name == "healkit"
    assert scope.schema_url == "https://opentelemetry.io/schemas/1.41.0"
    assert "healkit" in attributes(resource.resource).values()
    assert [event.name for event in span.events] == ["healkit.decision"]
    assert {(s.trace_id, s.parent_span_id) for n, (s, *_) in spans.items() if n != span.name} == {
        (span.trace_id, span.span_id)
    }
    kinds = {name: attributes(each)["gen_ai.tool.type"] for name, (each, *_) in spans.items()}
    assert kinds["execute_tool search"] == "extension"
    assert attributes(spans["execute_tool search"][0])["error.type"] == "CALL_TIMEOUT"
    assert attributes(spans["execute_tool ask"][0])["error.type"] == "unanswered"
    assert "error.type" not in attributes(spans["execute_tool fetch"][0])


def test_content_needs_opt_in_and_is_the_cleaned_payload_as_json(receiver: Receiver) -> None:
    def said(**config: Any) -> dict[str, Any]:
        found = attributes(exported(receiver, trace(task_results=[]), **config)["execute_tool weather"][0])
        return {name: value for name, value in found.items() if not name.startswith("healkit.")}

    known = {"gen_ai.tool.name", "gen_ai.tool.call.id", "gen_ai.operation.name", "gen_ai.tool.type"}
    assert set(said()) == known
    found = said(otel_content=True)
    assert set(found) == known | {"gen_ai.tool.call.arguments", "gen_ai.tool.call.result"}
    assert json.loads(found["gen_ai.tool.call.arguments"]) == {"city": "Kyiv"}
    assert found["gen_ai.tool.call.result"] == "11"


def test_a_raw_trace_is_cleaned_before_export(receiver: Receiver) -> None:
    token = "ghp_" + "b7Q2" * 9
    metadata = {
        "raw": True,
        "arguments": {"key": token},
        "errorCode": "TOOL_EXCEPTION",
        "errorType": "KeyError",
    }
    one = trace(success=False, error=f"KeyError: {token}", metadata=metadata, task_results=[])
    span, *_ = exported(receiver, one, raw=True, otel_content=True)["execute_tool weather"]
    assert token not in str(span)
    assert span.status.code == 2
    assert span.status.message.startswith("KeyError: ")
    assert attributes(span)["error.type"] == "KeyError"


def test_a_slow_or_missing_receiver_delays_no_execution(receiver: Receiver) -> None:
    receiver.may_answer.clear()
    exporter = OtelExporter(Config(), Verbatim)
    for _ in range(50):
        exporter.export(trace())
    assert receiver.requests.empty()
    receiver.may_answer.set()
    assert exporter.flush(WAIT_S)
    exporter.close()


@pytest.mark.slow
def test_without_opentelemetry_the_setting_names_the_extra_to_install(
    tmp_path: Path,
) -> None:
    program = (
        "import sys; sys.modules['opentelemetry.sdk.trace.export'] = None; sys.modules['opentelemetry'] = None;"
        "from healkit import Healkit; from healkit.config import Config;"
        "hk = Healkit(sys.argv[1]); hk.vault.add('f', 'def f(): return 1'); hk.close();"
        "\ntry: Healkit(sys.argv[1], config=Config(otel=True))\nexcept Exception as e: print(e)"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "h.db")]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert "pip install 'healkit[otel]'" in done.stdout


def test_spans_of_nested_tools_arrive_under_their_callers(receiver: Receiver, tmp_path: Path) -> None:
    config = Config(otel=True, isolation="process")
    with Healkit(tmp_path / "h.db", config=config) as hk:
        hk.vault.add("inner", "def inner(x): return 1 / x")
        hk.vault.add("middle", "def middle(x): return mcp.vault.inner(x=x)")
        hk.vault.add("outer", "def outer(x): return mcp.vault.middle(x=x)")
        execution = hk.execute("outer", arguments={"x": 0})
        assert execution.failure is not None
    found = {attributes(span)["gen_ai.tool.call.id"]: span for span in arrived(receiver)}
    root = found[execution.trace_id]
    own = {call_id: span for call_id, span in found.items() if "/" not in call_id}
    assert sorted(span.name for span in own.values()) == [
        "execute_tool inner", "execute_tool middle", "execute_tool outer",
    ]  # fmt: skip
    assert {span.trace_id for span in found.values()} == {root.trace_id}
    by_name = {span.name.split()[1]: span for span in own.values()}
    assert by_name["inner"].parent_span_id == by_name["middle"].span_id
    assert by_name["middle"].parent_span_id == root.span_id
    assert attributes(by_name["inner"])["error.type"] == "ZeroDivisionError"


@pytest.mark.slow
def test_the_page_runs_and_names_every_attribute(
    receiver: Receiver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (Path(__file__).parents[3] / "docs" / "opentelemetry.md").read_text()
    for name in otel._NAMES.values():
        assert f"`{name}`" in page, name
    (program,) = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    subprocess.run([sys.executable, "-W", "error", "-c", program], cwd=tmp_path, check=True, timeout=100)
    assert sorted(span.name for span in arrived(receiver)) == ["execute_tool half"] * 4 + [
        "execute_tool quarter"
    ]
