"""Rendering: documents, and their writers for text and HTML.

A subject's module (`execution`, `listings`, `healing` and so on) builds a document; `text_of` and `html_of` write it.
The worker side never imports this package; a writer is loaded when it is first used, since an `Execution` that is never
shown needs none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from healkit.lazy import lazy_names

if TYPE_CHECKING:
    from healkit.rendering.to_html import html_of
    from healkit.rendering.to_text import text_of

_HOMES = {"html_of": "to_html", "text_of": "to_text"}

__all__ = ["html_of", "text_of"]

__getattr__ = lazy_names(__name__, _HOMES)
