"""Panel of a map: its progress, and a Stop button.

The map runs in a separate thread, so the user's kernel remains free. A map that was stopped, or whose kernel has ended,
can continue later: the panel shows the call.
"""

from __future__ import annotations

import html
import threading
from typing import Any

import ipywidgets
import traitlets

from healkit.app import Healkit
from healkit.core.rendering.document import Card
from healkit.core.rendering.to_html import html_of
from healkit.core.runtime.background import Stop
from healkit.errors import HealkitError
from healkit.parts.maps.report import MapProgress, MapReport


class MapPanel(ipywidgets.VBox):
    """Map of a tool that starts at once; `report` is its result, None until it has ended.

    tool, inputs, options: As in `hk.map`. Raises `ToolNotFound` and other errors of `hk.map`.
    """

    report: MapReport | None = traitlets.Any(None, allow_none=True)

    def __init__(self, healkit: Healkit, tool: str, inputs: Any, **options: Any) -> None:
        healkit.vault.active(tool, options.get("persona", "default"))
        self._bar = ipywidgets.FloatProgress(max=1.0, bar_style="info")
        self._words = ipywidgets.HTML(f"{html.escape(tool)}: begins")
        self._button = ipywidgets.Button(description="Stop", tooltip="End the map; it can go on later")
        self._button.on_click(lambda _: self.stop())
        super().__init__([ipywidgets.HBox([self._bar, self._button]), self._words])
        self._stop = Stop()
        self._thread = threading.Thread(
            target=self._run, args=(healkit, tool, inputs, options), name="healkit-map", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """Stop it; finished executions are in the log."""
        self._button.disabled = True
        self._stop.ask()

    def wait(self, timeout_s: float | None = None) -> MapReport | None:
        """Wait for its end, and return the report; None if it has not ended by then."""
        self._thread.join(timeout_s)
        return self.report

    def _run(self, healkit: Healkit, tool: str, inputs: Any, options: dict[str, Any]) -> None:
        try:
            with self._stop.heard():
                self.report = healkit.map(tool, inputs, progress=self._show, **options)
            self._words.value = self.report._repr_html_()
            self._bar.bar_style = "success" if self.report.ok else "danger"
        except HealkitError as error:
            self._words.value = html_of(Card(error.message, "✗", "bad", parts=(error.hint,)))
            self._bar.bar_style = "danger"
        except Exception as error:  # noqa: BLE001 - a user's generator may raise anything
            self._words.value = html_of(
                Card(f"The inputs raised {type(error).__name__}: {error}", "✗", "bad")
            )
            self._bar.bar_style = "danger"
        finally:
            self._button.disabled = True

    def _show(self, progress: MapProgress) -> None:
        """Show the progress; called regularly."""
        self._words.value = html.escape(str(progress))
        if progress.total:
            self._bar.value = progress.done / progress.total
