"""Collector over HTTP: good, bad and half requests."""

from __future__ import annotations

import contextlib
import gzip
import json
import re
import socket
import sys
from typing import Any

import httpx
import pytest
from collector_samples import CAPABILITY, TOKEN, Collecting, collecting, read_all, task, trace
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families
from waiting import wait_until

TRACE_4 = pytest.mark.requirement("TRACE-4")
SLOW_OK = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]


def error(answer: httpx.Response) -> dict[str, Any]:
    """Return a refusal's error; assert that it names no path of the server and no token."""
    assert answer.headers["Content-Type"] == "application/json"
    for secret in (TOKEN, "healkit.db", "/tmp", "site-packages", "Traceback"):
        assert secret not in answer.text
    found: dict[str, Any] = answer.json()["error"]
    assert found["message"]
    return found


@pytest.mark.slow
@TRACE_4
def test_a_batch_is_read_back_as_sent(collector: Collecting) -> None:
    parent = trace(taskResults=[task()], decisions=[{"nodeId": "n", "outcome": "yes", "condition": "x > 1"}])
    child = trace(parentId=parent["id"], success=False, error="ZeroDivisionError: division by zero")
    answer = collector.post(parent, child)
    assert (answer.status_code, answer.json()) == (200, {"received": 2, "stored": 2, "errors": []})
    back = collector.client.get(f"/api/traces/{parent['id']}").json()
    assert {name: back[name] for name in parent} == parent
    assert (back["children"], back["parentStored"], back["toolId"]) == ([child["id"]], False, None)
    assert collector.client.get(f"/api/traces/{child['id']}").json()["parentStored"] is True


def test_both_forms_of_a_batch_and_gzip_are_accepted(collector: Collecting) -> None:
    packed = gzip.compress(json.dumps({"traces": [trace(), trace()]}).encode())
    headers = {"Content-Type": "application/json; charset=utf-8", "Content-Encoding": "gzip"}
    answer = collector.client.post("/api/traces", content=packed, headers=headers)
    assert answer.json() == {"received": 2, "stored": 2, "errors": []}
    assert collector.post().json() == {"received": 0, "stored": 0, "errors": []}


@TRACE_4
def test_one_bad_trace_does_not_cost_the_others(collector: Collecting) -> None:
    good, wrong = trace(), trace(durationMs=-1)
    answer = collector.post(
        wrong, good, 7, {**trace(), "id": "../../etc/passwd"}, trace(durationMs="NaN")
    ).json()
    assert (answer["received"], answer["stored"]) == (5, 1)
    assert [(fault["index"], fault["id"], fault["retryable"]) for fault in answer["errors"][:3]] == [
        (0, wrong["id"], False), (2, None, False), (3, None, False),
    ]  # fmt: skip
    assert "durationMs" in answer["errors"][0]["message"]
    assert collector.client.get(f"/api/traces/{good['id']}").status_code == 200
    assert collector.client.get(f"/api/traces/{wrong['id']}").status_code == 404


@TRACE_4
def test_other_content_of_a_known_id_is_a_conflict(
    collector: Collecting,
) -> None:
    first = trace()
    assert collector.post(first, first).json()["stored"] == 2
    assert collector.post(first).json()["stored"] == 1
    fault = collector.post({**first, "success": False}).json()["errors"][0]
    assert (fault["id"], fault["code"], fault["retryable"]) == (first["id"], "TRACE_CONFLICT", False)
    fuller = {**first, "taskResults": [task()]}
    assert collector.post(fuller).json()["stored"] == 1
    assert collector.post(first).json()["stored"] == 1
    assert len(collector.client.get(f"/api/traces/{first['id']}").json()["taskResults"]) == 1
    assert list(read_all(collector.client)).count(first["id"]) == 1


@TRACE_4
@pytest.mark.parametrize("late", ["the true ending", "the finding"])
def test_the_true_outcome_replaces_host_died(collector: Collecting, late: str) -> None:
    true = trace()
    found = {**true, "success": False, "error": "HostDied", "metadata": {"errorCode": "HOST_DIED"}}
    for account in (found, true) if late == "the true ending" else (true, found):
        assert collector.post(account).json()["errors"] == []
    assert collector.client.get(f"/api/traces/{true['id']}").json()["success"] is True


@TRACE_4
@pytest.mark.parametrize(
    ("header", "status", "code"),
    [
        (None, 401, "TOKEN_MISSING"),
        ("Bearer wrong", 403, "TOKEN_WRONG"),
        (f"Bearer {TOKEN}x", 403, "TOKEN_WRONG"),
        (f"Basic {TOKEN}", 403, "TOKEN_WRONG"),
        ("Bearer", 403, "TOKEN_WRONG"),
        (f"token {TOKEN}", 200, ""),
        (f"bearer  {TOKEN}", 200, ""),
    ],
)
def test_only_the_token_opens_the_collector(
    collector: Collecting, header: str | None, status: int, code: str
) -> None:
    headers = {} if header is None else {"Authorization": header}
    with httpx.Client(base_url=collector.url, headers=headers) as client:
        one = trace()
        for answer in (
            client.post("/api/traces", json=[one]),
            client.get("/api/traces"),
            client.get("/api/metrics"),
        ):
            assert answer.status_code == status
            assert status == 200 or error(answer)["code"] == code
            assert ("WWW-Authenticate" in answer.headers) == (status == 401)
        assert client.get("/api/traces", params={"token": TOKEN}).status_code == status
        assert client.get("/api/health").json() == {"status": "ok"}
    found = collector.client.get(f"/api/traces/{one['id']}").status_code
    assert found == (200 if status == 200 else 404)


@TRACE_4
@pytest.mark.parametrize("packed", [False, True])
def test_a_body_beyond_the_limit_is_refused(collector: Collecting, packed: bool) -> None:
    body = b"[" + b" " * 6_000_000 + b"]"
    headers = {"Content-Encoding": "gzip"} if packed else {}
    answer = collector.client.post(
        "/api/traces", content=gzip.compress(body, mtime=0) if packed else body, headers=headers
    )
    assert (answer.status_code, error(answer)["code"]) == (413, "BODY_TOO_LARGE")
    chunks = (body[n : n + 65536] for n in range(0, len(body), 65536))
    answer = collector.client.post("/api/traces", content=chunks)
    assert (answer.status_code, error(answer)["code"]) == (413, "BODY_TOO_LARGE")
    assert collector.post(trace()).status_code == 200


@pytest.mark.slow
@TRACE_4
def test_more_than_a_hundred_traces_at_once_are_refused(collector: Collecting) -> None:
    answer = collector.post(*[trace() for _ in range(101)])
    assert (answer.status_code, error(answer)["code"]) == (413, "BATCH_TOO_LARGE")
    for many in (b"1," * 2_000_000 + b"1", b"NaN," * 1_000_000 + b"1"):
        answer = collector.client.post("/api/traces", content=b"[" + many + b"]")
        assert error(answer)["code"] == "BATCH_TOO_LARGE"  # to look at each of them would take minutes
    assert collector.post(*[trace() for _ in range(100)]).json()["stored"] == 100


@pytest.mark.parametrize(
    ("body", "headers", "status", "said"),
    [
        (
            b'[{"a": 1,}]',
            {},
            400,
            "column 9" if sys.version_info >= (3, 13) else "column 10",
        ),  # comma, bracket
        (b"", {}, 400, "line 1"),
        (b"{}", {}, 400, "traces"),
        (b'"text"', {}, 400, "list of traces"),
        (b'{"traces": {}}', {}, 400, "array"),
        (b"[\xff]", {}, 400, "byte 1"),
        (b"[" * 100_000, {}, 400, "deep"),
        (b"[NaN, " + b"9" * 5000 + b"]", {}, 400, "digits"),
        (b"a=1", {"Content-Type": "application/x-www-form-urlencoded"}, 400, "form"),
        (b"[]", {"Content-Type": "application/json; charset=latin-1"}, 400, "latin-1"),
        (b"[]", {"Content-Encoding": "br"}, 415, "br"),
        (b"[]", {"Content-Encoding": "gzip"}, 400, "gzip"),
        (gzip.compress(b"[]", mtime=0)[:-4], {"Content-Encoding": "gzip"}, 400, "is cut off"),
    ],
)
def test_an_invalid_batch_is_refused_with_the_place_of_the_error(
    collector: Collecting, body: bytes, headers: dict[str, str], status: int, said: str
) -> None:
    answer = collector.client.post("/api/traces", content=body, headers=headers)
    assert answer.status_code == status
    assert said in error(answer)["message"]


def test_nan_and_lone_surrogates_are_accepted(collector: Collecting) -> None:
    odd = trace(metadata={"nan": float("nan"), "inf": float("inf"), "half": "a\ud800b"})
    body = json.dumps([trace(), odd]).encode()
    assert collector.client.post("/api/traces", content=body).json()["stored"] == 2
    kept = collector.client.get(f"/api/traces/{odd['id']}").json()["metadata"]
    assert kept == {"nan": "NaN", "inf": "Infinity", "half": "a\\ud800b"}


@pytest.mark.requirement("TRACE-2")
def test_secrets_are_redacted_before_storage_and_counted_for_prometheus(tmp_path) -> None:
    token, mail = "ghp_" + "b7Q2" * 9, "ada@lovelace.example.org"
    one = trace(
        success=False,
        error=f"PermissionError: {token} is not allowed",
        taskResults=[task(args={"password": "tr0ub4dor&3", "n": 1}, result=f"mail {mail}")],
        decisions=[{"nodeId": "n", "outcome": token, "condition": f"user == {mail}"}],
        metadata={"api_key": "correct-horse-battery", "author": "Ada", "arguments": {"text": "x" * 30_000}},
    )
    with collecting(tmp_path / "h.db") as server:
        assert server.post(one, one, trace(durationMs=-1)).json()["stored"] == 2
        stored = server.client.get(f"/api/traces/{one['id']}").text
        counted = server.client.get("/api/metrics").text
    for secret in (token, mail, "tr0ub4dor", "correct-horse"):
        assert secret not in stored
        assert secret.encode() not in (tmp_path / "h.db").read_bytes()
    assert "[TRUNCATED]" in stored
    assert len(stored) < 15_000
    assert '"author":"Ada"' in stored
    assert re.search(r'healkit_collect_hidden_total{rule="[a-z-]+"} [1-9]', counted)
    samples = {
        (sample.name, tuple(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(counted)
        for sample in family.samples
    }
    for name, labels in (
        ("traces", ("stored",)), ("traces", ("known",)), ("trace_errors", ("TRACE_INVALID",)),
        ("requests", ("POST", "traces", "200")),
    ):  # fmt: skip
        assert samples[f"healkit_collect_{name}_total", labels] == 1
    assert TOKEN not in counted


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("limit=0", "limit='0'"),
        ("limit=-5", "limit"),
        ("success=maybe", "success='maybe'"),
        ("since=yesterday-ish", "yesterday-ish"),
        ("cursor=bm90aGluZw", "cursor"),
        ("cursor=%F0%9F%92%A9", "cursor"),
        ("order=asc", "order"),
    ],
)
def test_an_invalid_query_is_refused(collector: Collecting, query: str, said: str) -> None:
    answer = collector.client.get(f"/api/traces?{query}")
    assert (answer.status_code, error(answer)["code"]) == (400, "QUERY_INVALID")
    assert said in answer.text


def test_traces_are_paged_and_filtered(collector: Collecting) -> None:
    name = CAPABILITY.replace("fibonacci", "paged")
    sent = [trace(capabilityId=name, success=n % 3 > 0) for n in range(25)]
    collector.post(*sent)
    paged = read_all(collector.client, tool="paged", limit="7")
    assert list(paged) == [each["id"] for each in reversed(sent)]
    failed = read_all(collector.client, tool="paged", success="false", limit="2")
    assert set(failed) == {each["id"] for each in sent if not each["success"]}
    assert set(read_all(collector.client, tool="paged", since="1h")) == set(paged)
    assert read_all(collector.client, tool="paged", since="2099-01-01") == {}


@pytest.mark.parametrize(
    "path", ["/api/traces/../../etc/passwd", "/api/traces/..%2F..%2Fetc%2Fpasswd", "/", "/api"]
)
def test_other_addresses_are_not_found(collector: Collecting, path: str) -> None:
    host, _, port = collector.url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        lines = (
            f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\nConnection: close\r\n\r\n"
        )
        connection.sendall(lines.encode())
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
    assert b" 404 " in answer.splitlines()[0]
    assert b"root:" not in answer


def test_answers_cannot_be_rendered_as_pages(collector: Collecting) -> None:
    one = trace(error="<script>alert(1)</script>", success=False)
    collector.post(one)
    answer = collector.client.get(f"/api/traces/{one['id']}")
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    assert "Access-Control-Allow-Origin" not in answer.headers
    assert collector.client.options("/api/traces", headers={"Origin": "http://elsewhere"}).status_code == 405


@pytest.mark.slow
@TRACE_4
def test_too_frequent_requests_get_retry_after(tmp_path) -> None:
    with collecting(tmp_path / "h.db", HEALKIT_COLLECT_RATE_PER_S="1.5") as server:
        answers = [server.post(trace()) for _ in range(5)]
        assert [answer.status_code for answer in answers] == [200, 200, 200, 429, 429]
        assert error(answers[-1])["code"] == "RATE_LIMITED"
        assert int(answers[-1].headers["Retry-After"]) == 1
        # Guessing tokens is limited too, and apart from those who know it.
        with httpx.Client(base_url=server.url) as guesser:
            codes = [
                guesser.get("/api/traces", headers={"Authorization": f"Bearer {n}"}).status_code
                for n in range(5)
            ]
        assert codes == [403, 403, 403, 429, 429]


@pytest.mark.slow
def test_slow_and_lost_clients_are_dropped(tmp_path) -> None:
    with collecting(tmp_path / "h.db", HEALKIT_COLLECT_TIMEOUT_S="0.5") as server:
        host, _, port = server.url.removeprefix("http://").partition(":")
        head = f"POST /api/traces HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\nContent-Length: 100\r\n\r\n["
        with socket.create_connection((host, int(port)), timeout=30) as slow:
            slow.sendall(head.encode())
            with socket.create_connection((host, int(port)), timeout=30) as gone:
                gone.sendall(head.encode())
            assert slow.recv(1000) == b""
        alone = "requests_in_flight 1.0"  # the one that asks
        wait_until(lambda: alone in server.client.get("/api/metrics").text)
        assert 'route="traces",status="499"} 2.0' in server.client.get("/api/metrics").text
        assert server.post(trace()).json()["stored"] == 1


@pytest.mark.slow
def test_clients_with_slow_bodies_do_not_block_other_clients(tmp_path) -> None:
    """S8: 64 bodies that arrived slowly, with the token or to `/api/health` without it, gave all others 503."""
    # What is held must not be given up while a busy machine is still opening the rest of it.
    settings = {"TIMEOUT_S": "600", "MAX_BYTES": "2000", "RATE_PER_S": "10000"}
    patient = collecting(
        tmp_path / "h.db", **{f"HEALKIT_COLLECT_{name}": value for name, value in settings.items()}
    )
    with patient as server, contextlib.ExitStack() as held:
        host, _, port = server.url.removeprefix("http://").partition(":")

        def hold(count: int, header: str, sent: str = "[", path: str = "traces") -> None:
            head = f"POST /api/{path} HTTP/1.1\r\nHost: x\r\n{header}Content-Length: 2000\r\n\r\n{sent}"
            for _ in range(count):
                connection = held.enter_context(socket.create_connection((host, int(port)), timeout=30))
                connection.sendall(head.encode())

        def under_way(count: int) -> bool:
            return f"requests_in_flight {count + 1}.0" in server.client.get("/api/metrics").text

        token = f"Authorization: Bearer {TOKEN}\r\n"
        hold(70, "")
        hold(70, "", path="health")
        hold(70, token)
        wait_until(lambda: under_way(210))
        assert server.post(trace()).json()["stored"] == 1
        # Memory is what is bounded: 64 bodies of the largest size, in whatever pieces.
        hold(63, token, sent="[" * 1999)

        def is_full() -> bool:
            hold(1, token, sent="[" * 100)  # what there is room for, whichever of the large ones are refused
            return bool(server.post(trace()).status_code == 503)

        wait_until(is_full)
        answer = server.post(trace())
        assert (error(answer)["code"], answer.headers["Retry-After"]) == ("OVERLOADED", "1")


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.text(st.characters(categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=12,
)
mangled = st.builds(
    lambda changes, gone: {name: value for name, value in {**trace(), **changes}.items() if name not in gone},
    st.dictionaries(st.sampled_from([*trace(), "more"]), values, max_size=4),
    st.sets(st.sampled_from(list(trace())), max_size=2),
)
bodies = st.one_of(
    st.binary(max_size=400),
    values.map(lambda value: json.dumps(value).encode()),
    st.lists(mangled | values, max_size=5).map(lambda items: json.dumps(items).encode()),
    st.builds(
        lambda items, cut: json.dumps({"traces": items}).encode()[: -cut or None],
        st.lists(mangled, max_size=3),
        st.integers(0, 3),
    ),
)


@pytest.mark.slow
@settings(max_examples=150, suppress_health_check=SLOW_OK)
@given(body=bodies, kind=st.sampled_from(["application/json", "text/html", ""]), packed=st.booleans())
def test_no_body_makes_the_collector_fail(
    collector: Collecting, body: bytes, kind: str, packed: bool
) -> None:
    headers = {"Content-Type": kind, **({"Content-Encoding": "gzip"} if packed else {})}
    content = gzip.compress(body, mtime=0) if packed else body
    answer = collector.client.post("/api/traces", content=content, headers=headers)
    assert answer.status_code in {200, 400}
    if answer.status_code == 200:
        told = answer.json()
        assert told["received"] == told["stored"] + len(told["errors"])
        assert all(fault["code"] and fault["message"] for fault in told["errors"])
    else:
        error(answer)
