"""Version of healkit, and the folder of its package."""

from __future__ import annotations

from pathlib import Path

VERSION = "0.1.0"
#: Folder of the package `healkit`, an absolute path.
FOLDER = Path(__file__).absolute().parent
