"""Thread that learns from traces while nothing else happens.

It is small, because every host has one; it loads the modules for its work only when it first works.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from healkit.errors import HealkitError

if TYPE_CHECKING:
    from healkit.parts.learn.consumer import Consumer


class ConsumerThread:
    """Thread that runs a consumer while nothing else happens, from the first `notify` to `close`."""

    #: How long no execution has ended before it works, and how long it waits for that at most, in seconds.
    IDLE_S, LATEST_S = 3.0, 60.0
    #: How long closing waits for the batch in progress, in seconds.
    _END_S = 5.0

    def __init__(self, consumer: Callable[[], Consumer]) -> None:
        self._consumer = consumer
        self._news, self._closing = threading.Event(), threading.Event()
        #: Set by who cannot wait until nothing else happens; `_turns` counts how often it has worked since.
        self._hurried, self._worked, self._turns = threading.Event(), threading.Condition(), 0
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None
        self._pid = os.getpid()
        #: What was wrong the last time; empty where nothing was.
        self.problem = ""

    def notify(self) -> None:
        """Report that an execution has ended; called after its transaction, cheap, never raises."""
        self._news.set()
        if self._thread is None and os.getpid() == self._pid:
            with self._starting:
                if self._thread is None and not self._closing.is_set():
                    self._thread = threading.Thread(target=self._serve, name="healkit-learning", daemon=True)
                    self._thread.start()

    def hurry(self, wait_s: float) -> None:
        """Learn at once, and wait until that is over or the time is up; never raises."""
        seen = self._turns
        self._hurried.set()
        self.notify()
        if self._thread is not None and os.getpid() == self._pid:
            with self._worked:
                self._worked.wait_for(lambda: self._turns > seen and not self._hurried.is_set(), wait_s)

    def close(self) -> None:
        """End it after the batch in progress; the next process does the rest. Safe to call twice."""
        self._closing.set()
        self._hurried.set()
        self._news.set()
        if os.getpid() == self._pid:
            with self._starting:  # one that is being started can be waited for
                thread, self._thread = self._thread, None
            if thread is not None:
                thread.join(self._END_S)

    def _serve(self) -> None:
        while not self._closing.is_set():
            self._news.wait()
            for _ in range(int(self.LATEST_S / self.IDLE_S)):
                self._news.clear()
                if self._hurried.wait(self.IDLE_S) or not self._news.is_set():
                    break
            if self._closing.is_set():
                return
            self._hurried.clear()
            try:
                self._consumer().catch_up(stop=self._closing.is_set)
                self.problem = ""
            except Exception as error:  # noqa: BLE001 - a full or busy database: the next news tries again
                message = (
                    error.message if isinstance(error, HealkitError) else f"{type(error).__name__}: {error}"
                )
                self.problem = f"Learning from new traces failed: {message}"
            with self._worked:
                self._turns += 1
                self._worked.notify_all()
