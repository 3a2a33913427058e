"""Restricted kernel, installed for the test's Jupyter only."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from kernelspec_samples import Notebook, wait_until_nothing_is_left_of

from healkit.core.workers.tiers import probe
from healkit.parts.kernels import kernelspec


@pytest.fixture(autouse=True)
def _own_jupyter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Folders of the test's own for all that Jupyter keeps."""
    own_jupyter(tmp_path, monkeypatch)


def own_jupyter(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have Jupyter keep everything below that folder."""
    monkeypatch.setenv("JUPYTER_PATH", str(folder / "prefix" / "share" / "jupyter"))
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(folder / "runtime"))
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(folder / "data"))
    monkeypatch.setenv("JUPYTER_CONFIG_DIR", str(folder / "config"))
    monkeypatch.setenv("JUPYTER_PLATFORM_DIRS", "1")
    monkeypatch.setenv("IPYTHONDIR", str(folder / "ipython"))


def installed(prefix: Path, **grants: object) -> str:
    """Install the kernel with these grants; returns its name."""
    spec = kernelspec.kernel_json(kernelspec.DEFAULT_DISPLAY_NAME, grants)
    folder = kernelspec.kernels_folder(prefix=str(prefix))
    return kernelspec.install_kernel(spec, kernelspec.DEFAULT_NAME, folder).name


@pytest.fixture
def install(tmp_path: Path) -> Callable[..., str]:
    """Install the kernel with these grants; returns its name."""
    return lambda **grants: installed(tmp_path / "prefix", **grants)


@pytest.fixture(params=["namespaces", pytest.param("landlock", marks=pytest.mark.slow)])
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
        wait_until_nothing_is_left_of(notebook.root)


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Notebook]]:
    """Start a kernel without grants in that tier, once; at the end it is shut down, and must leave nothing."""
    opened: dict[str, Notebook] = {}

    def kernel_in(tier: str) -> Notebook:
        if tier not in opened:
            folder = tmp_path_factory.mktemp(tier)
            (folder / "notebooks").mkdir()
            with pytest.MonkeyPatch.context() as process:
                own_jupyter(folder, process)
                opened[tier] = Notebook(installed(folder / "prefix"), folder / "notebooks")
        return opened[tier]

    yield kernel_in
    for notebook in opened.values():
        notebook.close()
        wait_until_nothing_is_left_of(notebook.root)


@pytest.fixture
def without_grants(tier: str, kernels: Callable[[str], Notebook]) -> Notebook:
    """Lend a kernel without grants that tests take turns with; it has forgotten the names of those before."""
    notebook = kernels(tier)
    notebook.forget()
    return notebook
