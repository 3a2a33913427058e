"""Settings of JupyterLab's editor, in a kernel.

JupyterLab's extension calls `load` where the setting *load healkit in every notebook* is on: once a kernel is
connected, after each restart, and when a setting changes. It passes only what the person has set; the rest stays as the
kernel's environment and configuration have it.
"""

from __future__ import annotations

import json
import os

from IPython import get_ipython


def load(settings: str) -> None:
    """Load healkit, and apply the settings, an object as JSON.

    explain: how far failures are explained. cards: whether cards are shown. panels: whether live panels are. advisors:
    who is asked for a fix; for what is opened from now on, like each variable that healkit reads.
    """
    shell = get_ipython()
    shell.extension_manager.load_extension("healkit")
    magics = shell.magics_manager.registry["HealkitMagics"]
    given = json.loads(settings)
    if "explain" in given:
        magics.explain = given["explain"]
    if "cards" in given:
        magics.cards = given["cards"]
    if "panels" in given:
        os.environ["HEALKIT_PANELS"] = "1" if given["panels"] else "0"
    if "advisors" in given:
        os.environ["HEALKIT_HEAL_ADVISORS"] = ",".join(given["advisors"])
