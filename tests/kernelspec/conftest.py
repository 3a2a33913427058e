"""The restricted kernel, installed where only the test's Jupyter finds it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from kernelspec_samples import Notebook, leftovers_of

from healkit.workers import kernelspec
from healkit.workers.probe import probe


@pytest.fixture(autouse=True)
def _own_jupyter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Folders of the test's own for all that Jupyter keeps."""
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "prefix" / "share" / "jupyter"))
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "runtime"))
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("JUPYTER_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.setenv("JUPYTER_PLATFORM_DIRS", "1")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))


@pytest.fixture
def install(tmp_path: Path) -> Callable[..., str]:
    """Install the kernel with these grants; returns its name."""

    def install(**grants: object) -> str:
        spec = kernelspec.kernel_json(kernelspec.DEFAULT_DISPLAY_NAME, grants)
        folder = kernelspec.kernels_folder(prefix=str(tmp_path / "prefix"))
        return kernelspec.install(spec, kernelspec.DEFAULT_NAME, folder).name

    return install


@pytest.fixture(params=["namespaces", "landlock"])
def tier(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Each tier that this machine can build, in turn."""
    if not probe(request.param).holds:
        pytest.skip(f"this machine cannot build the {request.param} tier")
    monkeypatch.setenv("HEALKIT_ISOLATION", request.param)
    return str(request.param)


@pytest.fixture
def start(install: Callable[..., str], tmp_path: Path) -> Iterator[Callable[..., Notebook]]:
    """Start the kernel with these grants; at the test's end it is shut down, and must leave nothing."""
    opened: list[Notebook] = []

    def start(**grants: object) -> Notebook:
        folder = tmp_path / "notebooks"
        folder.mkdir(exist_ok=True)
        opened.append(Notebook(install(**grants), folder))
        return opened[-1]

    yield start
    for notebook in opened:
        notebook.close()
        assert leftovers_of(notebook.root) == []
