"""Memory that a trial server shares with its child.

It says where the child is, and holds the results so far. The child writes what it is about to do and then the outcome,
without a system call; the trial server looks now and then, and once more when the child has ended. So a child that dies
loses no results, and one that is stuck shows by a position that does not change. What the child writes is a claim; the
trial server only passes it on.
"""

from __future__ import annotations

import mmap

from healkit.contracts.healing import LETTERS, NOT_RUN

_HEADER_BYTES = 16
_RUNNING = 1


class ResultBuffer:
    """Position (candidate, check, whether a check runs) and one letter for each candidate and check."""

    def __init__(self, candidates: int, checks: int) -> None:
        self.candidates, self.checks = candidates, checks
        size = candidates * checks
        self._memory = mmap.mmap(-1, _HEADER_BYTES + max(size, 1))
        self._view = memoryview(self._memory)
        self._header = self._view[:_HEADER_BYTES].cast("Q")
        self.letters = self._view[_HEADER_BYTES : _HEADER_BYTES + size]
        self.letters[:] = NOT_RUN.encode() * size

    @property
    def word(self) -> int:
        """Position as one number, which changes when anything happens."""
        return self._header[0]

    @property
    def place(self) -> tuple[int, int, bool]:
        """Candidate, check, and whether that check is running."""
        word = self._header[0]
        return word >> 32, (word >> 1) & 0x7FFFFFFF, bool(word & _RUNNING)

    @property
    def ready_us(self) -> int:
        """Time until the child was ready, in µs after it began; 0 before."""
        return self._header[1]

    @ready_us.setter
    def ready_us(self, value: int) -> None:
        self._header[1] = value

    def at(self, candidate: int, check: int, *, running: bool = False) -> None:
        """Put down the place, in one store."""
        self._header[0] = candidate << 32 | check << 1 | running

    def put(self, candidate: int, check: int, letter: str) -> None:
        """Put down an outcome; a letter that there is not counts as not run."""
        self.letters[candidate * self.checks + check] = ord(letter if letter in LETTERS else NOT_RUN)

    def row(self, candidate: int) -> str:
        """Return a candidate's letters so far."""
        start = candidate * self.checks
        text = bytes(self.letters[start : start + self.checks]).decode("latin-1")
        return "".join(letter if letter in LETTERS else NOT_RUN for letter in text)

    def close(self) -> None:
        """Give the memory back."""
        self.letters.release()
        self._header.release()
        self._view.release()
        self._memory.close()
