"""Trials on an executor's workers."""

from __future__ import annotations

import multiprocessing.spawn
import os
import pickle
import signal
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import msgspec
import pytest
from trial_server_samples import children_of_trial_servers
from trusted import trusted_copy
from waiting import wait_until

from healkit import Config, Healkit
from healkit.core.workers.sandbox import bubblewrap_path
from healkit.errors import IsolationUnavailable, WorkerNotRestricted
from healkit.parts.trials.messages import TrialDone
from healkit.parts.trials.shares import Parcel, run_share
from healkit.parts.trials.trials import Trial

DOUBLE = "def double(n):\n    return n * 2\n"
SLOW = "import time\ndef slow(n):\n    time.sleep(0.05)\n    return n\n"


def doubles(count: int) -> list[tuple[str, dict[str, Any]]]:
    return [(DOUBLE, {"n": n}) for n in range(count)]


class OnTheSpot(Executor):
    """Runs what it is given where it is given it, and keeps what it was given."""

    def __init__(self, answer: Callable[[bytes], Any] = run_share) -> None:
        self.answer = answer
        self.given: list[bytes] = []

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **_: Any) -> Future[Any]:
        self.given.append(pickle.dumps((function, arguments)))
        future: Future[Any] = Future()
        future.set_result(self.answer(*arguments))
        return future


def test_the_types_of_a_result_come_back_from_a_worker_elsewhere(healkit: Healkit) -> None:
    """H7: a trial on an executor said nothing of types that JSON has not: a set was a list."""
    codes = ["def f():\n    return {1}\n", "def f():\n    return [(1, 2)]\n", "def f():\n    return [1]\n"]
    trials = [Trial(code, {}, "f") for code in codes]
    here = healkit.trials(trials)
    away = healkit.trials(trials, executor=OnTheSpot())
    assert [result.outline for result in here] == ["set", "list[tuple]", ""]
    assert [(result.value, result.outline) for result in away] == [
        (result.value, result.outline) for result in here
    ]


@pytest.mark.requirement("SCALE-2")
def test_a_worker_is_sent_what_its_trials_need_and_nothing_else(tmp_path: Path, empty_database: Path) -> None:
    config = Config(heal_model_url="https://model.example", sync_token="a-token-of-mine", start_timeout_s=30)
    executor = OnTheSpot()
    with Healkit(trusted_copy(empty_database, tmp_path / "mine.db"), config=config) as healkit:
        results = healkit.trials(doubles(9), executor=executor, parallel=1)
    assert [result.value for result in results] == [2 * n for n in range(9)]
    sent = b"".join(executor.given)
    for mine in (b"a-token-of-mine", b"model.example", b"mine.db", str(tmp_path).encode()):
        assert mine not in sent
    function, (payload,) = pickle.loads(executor.given[0])
    assert function is run_share
    assert set(msgspec.json.decode(payload)["settings"]) == {
        "isolation", "scratch_mb", "preload", "start_timeout_s"
    }  # fmt: skip


def reply(refusal: dict[str, str] | None = None, **results: Any) -> bytes:
    return msgspec.json.encode({"results": {"type": "results"} | results, "refusal": refusal})


def trial(
    claim: bytes | None = None, duration_ms: float = 1.0, printed: str = "", **fields: Any
) -> dict[str, Any]:
    """Return the end of a trial as a worker of an executor tells it."""
    claim = msgspec.json.encode({"type": "execution_complete"} | fields) if claim is None else claim
    return msgspec.to_builtins(TrialDone(0, claim, printed.encode(), duration_ms=duration_ms))


def failure(code: str) -> dict[str, str]:
    return {"code": code, "ename": "E", "evalue": "e", "traceback": "E: e"}


#: Replies that are none: both trials are lost.
NO_REPLY: dict[str, Any] = {
    "no bytes": None,
    "a pickle": pickle.dumps({"trials": []}),
    "nothing done": reply(),
    "too many": reply(trials=[trial()] * 9),
    "letters": reply(letters=["."]),
    "no trial": reply(trials=["bm9uZQ=="]),
    "endless time": reply(trials=[trial()]).replace(b"1.0", b"1e999"),
    "large": b'{"results":{"trials":["' + b"A" * 60_000_000 + b'"]}}',
}
#: Claims that break a limit: the trial has failed, by its fault.
NO_CLAIM = {
    "no message": trial(b"none"),
    "a value over its limit": trial(value="x" * 6_000_000),
    "a value of many elements": trial(value=[[]] * 500_000),
    "deep": trial(b'{"type":"execution_complete","value":' + b"[" * 900 + b"]" * 900 + b"}"),
    "a long outline": trial(outline="set" * 1000),
}


@pytest.mark.requirement("SCALE-2")
def test_a_forged_reply_is_rejected(tmp_path: Path, empty_database: Path) -> None:
    database = trusted_copy(empty_database, tmp_path / "healkit.db")
    with Healkit(database, config=Config(result_max_bytes=1_000_000)) as healkit:
        for kind, answer in NO_REPLY.items():
            results = healkit.trials(doubles(2), executor=OnTheSpot(lambda _, a=answer: a), parallel=1)
            assert [result.lost for result in results] == [True, True], kind
            assert "cannot be used" in results[0].failure.evalue, kind
            assert len(results[0].failure.evalue) < 1000
        rows = healkit.log.query(limit=100).rows
        assert {(row.status, row.error_code) for row in rows} == {("FAILURE", "WORKER_LOST")}
        assert len(rows) == 2 * len(NO_REPLY)
        for kind, end in NO_CLAIM.items():
            answer = reply(trials=[end] * 2)
            results = healkit.trials(doubles(2), executor=OnTheSpot(lambda _, a=answer: a), parallel=1)
            codes = [result.failure and result.failure.code for result in results]
            assert codes == ["TOOL_PROTOCOL"] * 2, kind


@pytest.mark.requirement("SCALE-2")
def test_what_a_worker_claims_is_cut_to_its_bounds(healkit: Healkit) -> None:
    said = failure("ALL_WELL") | {"traceback": "x" * 300_000, "near": ["n"] * 1000}
    end = trial(failure=said, duration_ms=1e12, took_s=1e12, printed="x" * 9000)
    lost = msgspec.to_builtins(TrialDone(ending="lost", detail="y" * 300_000))
    answer = reply(trials=[end, lost])
    result, other = healkit.trials(doubles(2), executor=OnTheSpot(lambda _: answer), parallel=1)
    assert result.failure.code == "TOOL_EXCEPTION"
    assert len(result.failure.traceback) == 200_000
    assert len(result.failure.near) < 20
    assert 0 <= result.took_s <= result.duration_ms / 1000 < 60
    assert len(result.printed) == 4000
    assert other.lost
    assert len(other.failure.evalue) <= 1000


@pytest.mark.requirement("SCALE-2")
@pytest.mark.parametrize("kind", [IsolationUnavailable, WorkerNotRestricted])
def test_a_refusal_is_raised_and_on_record_with_its_reason(healkit: Healkit, kind: type[Exception]) -> None:
    done = [trial(value=0)]
    refusal = {"code": kind.code, "message": "its kernel is too old", "host": "node7"}
    answers = iter([reply(refusal, trials=done)])
    with pytest.raises(kind, match=r"'node7'.*its kernel is too old"):
        healkit.trials(doubles(3), executor=OnTheSpot(lambda _: next(answers)), parallel=1)
    ends = sorted((row.status, row.error_code or "") for row in healkit.log.query().rows)
    assert ends == [("FAILURE", kind.code), ("FAILURE", kind.code), ("SUCCESS", "")]


@pytest.mark.requirement("SCALE-2")
def test_an_executor_that_shuts_down_leaves_the_rest_lost_and_not_run(healkit: Healkit) -> None:
    executor = ThreadPoolExecutor(1)
    given: list[Future[Any]] = []

    class Ending(Executor):
        def submit(self, function: Callable[..., Any], /, *arguments: Any, **_: Any) -> Future[Any]:
            if given:  # the first share must be running: one that waits would be cancelled too
                wait_until(lambda: given[0].running() or given[0].done())
                executor.shutdown(cancel_futures=True)
            given.append(executor.submit(function, *arguments))
            return given[-1]

    results = healkit.trials(doubles(20), executor=Ending(), parallel=1)
    done = [result for result in results if result.ok]
    assert [result.value for result in done] == [2 * n for n in range(8)]
    lost = [result.failure for result in results[8:]]
    assert {reason.code for reason in lost} == {"WORKER_LOST"}
    assert all("was not run" in reason.evalue and "after shutdown" in reason.evalue for reason in lost)
    assert healkit.log.count() == 20


@pytest.mark.slow
@pytest.mark.requirement("SCALE-2")
def test_a_machine_that_restricts_less_is_refused_and_runs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without user namespaces, a process has the landlock tier only; the host asks for namespaces."""
    weak = tmp_path / "python"
    weak.write_text(
        f'#!/bin/sh\nexec {bubblewrap_path()} --dev-bind / / --unshare-user --disable-userns -- {sys.executable} "$@"\n'
    )
    weak.chmod(0o755)
    monkeypatch.setattr(sys.modules["__main__"], "__spec__", None, raising=False)
    before = multiprocessing.spawn.get_executable()
    multiprocessing.set_executable(str(weak))
    try:
        with (
            Healkit(tmp_path / "x.db", config=Config(isolation="namespaces", start_timeout_s=30)) as healkit,
            ProcessPoolExecutor(1, mp_context=get_context("spawn")) as executor,
        ):
            with pytest.raises(
                IsolationUnavailable, match=r"cannot restrict trials as this machine does \(namespaces\): .+"
            ):
                healkit.trials(doubles(3), executor=executor)
            rows = healkit.log.query().rows
            assert [(row.status, row.error_code) for row in rows] == [
                ("FAILURE", "ISOLATION_UNAVAILABLE")
            ] * 3
            assert healkit.log.count(status="RUNNING") == 0
    finally:
        multiprocessing.set_executable(before)


@pytest.mark.requirement("SCALE-2")
@pytest.mark.parametrize("away", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_ctrl_c_ends_trials_and_their_rows_say_so(healkit: Healkit, away: bool) -> None:
    endless = Trial("def f():\n    while True:\n        pass\n", {}, "f", timeout_s=2.0)
    executor = ThreadPoolExecutor(1)

    def interrupt() -> None:
        wait_until(children_of_trial_servers)
        os.kill(os.getpid(), signal.SIGINT)

    presser = threading.Thread(target=interrupt)
    presser.start()
    with pytest.raises(KeyboardInterrupt):
        healkit.trials([endless] * 40, parallel=1, executor=executor if away else None)
    presser.join()
    rows = healkit.log.query(limit=100).rows
    assert [row.error_code for row in rows] == ["TOOL_KILLED"] * 40
    executor.shutdown(cancel_futures=True)  # waits for the share that runs: one trial's time, not forty
    assert healkit.log.count(status="RUNNING") == 0


@pytest.mark.slow
@pytest.mark.requirement("SCALE-2")
def test_a_share_ends_after_a_second_and_its_rest_goes_out_again(healkit: Healkit) -> None:
    parcels: list[Parcel] = []

    def answer(payload: bytes) -> bytes:
        parcels.append(msgspec.json.decode(payload, type=Parcel))
        return run_share(payload)

    slow = SLOW.replace("0.05", "0.4")
    results = healkit.trials([(slow, {"n": n}) for n in range(6)], executor=OnTheSpot(answer), parallel=1)
    assert [result.value for result in results] == list(range(6))
    assert [len(parcel.share.trials) for parcel in parcels][:2] in ([6, 3], [6, 4], [6, 5])
    assert len({parcel.key for parcel in parcels}) == len(parcels)
