"""Processes that can end between two looks at them."""

from __future__ import annotations

from collections.abc import Iterable

import psutil


def has_ended(process: psutil.Process | int) -> bool:
    """Return whether a process has ended, also while its parent has not asked for its code yet (a zombie)."""
    try:
        if isinstance(process, int):
            process = psutil.Process(process)
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def running(processes: Iterable[psutil.Process]) -> list[psutil.Process]:
    """Return those that have not ended."""
    return [process for process in processes if not has_ended(process)]


def command_of(process: psutil.Process) -> str:
    """Return the command of a process in one line, empty when it has ended."""
    try:
        return " ".join(process.cmdline())
    except psutil.NoSuchProcess:
        return ""


def found_below(words: str, pid: int | None = None) -> list[psutil.Process]:
    """Return what runs below a process (this one by default) with these words in its command."""
    return [one for one in psutil.Process(pid).children(recursive=True) if words in command_of(one)]
