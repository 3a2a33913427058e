"""What the reports add to a `Healkit`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from healkit.hooks import hookimpl

if TYPE_CHECKING:
    from healkit.parts.doctor.records import DoctorReport, Status
    from healkit.services import Services


@hookimpl
def attributes() -> Mapping[str, Callable[[Services], Any]]:
    """`status()` and `doctor()`."""
    return {"status": _status, "doctor": _doctor}


def _status(services: Services) -> Callable[[], Status]:
    def status() -> Status:
        """Report where the database is, its content, the isolation tier in use, and problems, as a `Status`.

        Example:
        >>> status = hk.status()
        >>> status.tools >= 2, status.problem
        (True, '')
        """
        from healkit.parts.doctor.doctor import status_of

        return status_of(services)

    return status


def _doctor(services: Services) -> Callable[[], DoctorReport]:
    def doctor() -> DoctorReport:
        """Test what this machine can enforce, and report it as a `DoctorReport`: its `tier`, and its `checks`.

        Example:
        >>> report = hk.doctor()
        >>> [(check.name, check.ok) for check in report.checks if check.name == "python"]
        [('python', True)]
        """
        from healkit.parts.doctor.doctor import examine

        return examine(services.config)

    return doctor


@hookimpl
def shown(services: Services) -> Any:
    """Return the status as a card."""
    from healkit.parts.doctor import cards
    from healkit.parts.doctor.doctor import status_of

    return cards.status_card(status_of(services))
