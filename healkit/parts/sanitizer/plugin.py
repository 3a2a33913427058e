"""What the sanitiser hooks into.

It cleans what is shown, kept and sent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from healkit.hooks import hookimpl

if TYPE_CHECKING:
    from healkit.config import Config
    from healkit.parts.sanitizer.sanitizer import Sanitizer


@hookimpl
def sanitizer(config: Config) -> Sanitizer:
    """Return the sanitiser; its tables are read with the first record that needs it."""
    from healkit.parts.sanitizer.sanitizer import configured

    return configured(config)
