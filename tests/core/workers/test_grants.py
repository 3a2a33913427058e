"""Grants of packages and paths."""

from __future__ import annotations

import glob
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas
import pytest

from healkit import Config, Healkit
from healkit.core.contracts.execution import Grants
from healkit.core.workers import packages
from healkit.core.workers.sandbox import check_grants, private_base
from healkit.core.workers.tiers import probe
from healkit.errors import ConfigError

#: Each tier with one of the modes.
MODES = {"namespaces": "worker", "landlock": "subprocess"}


@pytest.fixture(params=["namespaces", pytest.param("landlock", marks=pytest.mark.slow)])
def restricted(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Healkit]:
    """Return a Healkit at one tier, which must be there."""
    assert probe(request.param).holds, probe(request.param).problem
    with Healkit(
        tmp_path / "healkit.db", config=Config(isolation=request.param, start_timeout_s=60)
    ) as opened:
        yield opened


PROBE = """
import importlib

def probe(modules: list, files: list) -> dict:
    found = {}
    for name in modules:
        try:
            found[name] = importlib.import_module(name).__name__
        except Exception as error:
            found[name] = type(error).__name__
    for path in files:
        try:
            open(path).read(1)
            found[path] = "read"
        except OSError:
            found[path] = "denied"
    return found
"""


def probed(
    healkit: Healkit, modules: list[str], files: Sequence[str] = (), **options: object
) -> dict[str, str]:
    execution = healkit.execute("probe", arguments={"modules": modules, "files": list(files)}, **options)
    assert execution.failure is None, execution.failure.traceback
    return execution.value


@pytest.mark.slow
@pytest.mark.requirement("WORK-2")
def test_a_tool_sees_the_packages_it_is_granted_and_what_those_need(restricted: Healkit) -> None:
    mode = MODES[restricted.config.isolation]
    restricted.vault.add("probe", PROBE, grants={"packages": ["jsonschema"]})
    found = probed(restricted, ["jsonschema", "rpds", "pandas", "sqlmodel", "sqlite3", "IPython"], mode=mode)
    assert found["jsonschema"] == "jsonschema"
    assert found["rpds"] == "rpds"
    assert found["pandas"] == found["sqlmodel"] == "ModuleNotFoundError"
    assert found["sqlite3"] == "sqlite3"
    assert found["IPython"] == "IPython"
    assert restricted.executions()[0].grants == Grants(packages=("jsonschema",))


@pytest.mark.slow
@pytest.mark.requirement("WORK-2")
def test_the_files_of_a_hidden_package_cannot_be_read(restricted: Healkit) -> None:
    hidden = [pandas.__file__, str(Path(pandas.__file__).parent / "core" / "frame.py")]
    # The interpreter that a virtual environment was made from has packages too, inside its standard library.
    base = sysconfig.get_path("purelib", vars={"base": sys.base_prefix})
    hidden += glob.glob(f"{base}/*/__init__.py")[:1]
    restricted.vault.add("probe", PROBE, grants={"packages": []})
    assert {probed(restricted, [], hidden)[path] for path in hidden} == {"denied"}
    restricted.vault.set_grants("probe", packages=None)
    assert probed(restricted, [], [pandas.__file__])[pandas.__file__] == "read"


@pytest.mark.requirement("WORK-2")
def test_a_package_that_is_not_installed_is_refused_with_what_was_perhaps_meant(healkit: Healkit) -> None:
    for name, said in (
        ("pandsa", r"not installed\. Did you mean 'pandas'"),
        ("IPython.core", "not installed"),
        ("zmq", "names a module, not a package. It comes with 'pyzmq'"),
        ("not a name", "is not a package's name"),
    ):
        with pytest.raises(ConfigError, match=said):
            healkit.vault.add("probe", PROBE, grants={"packages": [name]})
    assert healkit.vault.add("probe", PROBE, grants={"packages": "JSONSchema"}).grants.packages == (
        "JSONSchema",
    )


@pytest.mark.requirement("WORK-2")
def test_paths_that_cannot_be_meant_are_refused(
    healkit: Healkit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "data")
    (tmp_path / "again.db").hardlink_to(tmp_path / "healkit.db")
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.chdir(tmp_path)
    for path, said in (
        ("data", f"not an absolute path. Write it in full: '{tmp_path}/data'"),
        ("~/data", "Write it in full: '/"),
        ("/", "which no tool may see"),  # it holds the database, among all else
        ("/proc/self", "a view into the system"),
        ("/dev/shm", "a view into the system"),
        (tmp_path / "nowhere", "names nothing that exists"),
        (tmp_path / "data" / ".." / "data", f"leads to '{tmp_path}/data'"),
        (tmp_path / "link", f"leads to '{tmp_path}/data'"),
        (tmp_path / "pipe", "neither a file nor a folder"),
        (tmp_path, "holds what healkit keeps its records in"),
        (tmp_path / "healkit.db", "is what healkit keeps its records in"),
        (tmp_path / "healkit.db-wal", "is what healkit keeps its records in"),
        (tmp_path / "again.db", "is what healkit keeps its records in"),
        (private_base(), "holds the folders of other workers"),
    ):
        for name in ("read", "write"):
            with pytest.raises(ConfigError) as caught:
                healkit.vault.add("probe", PROBE, grants={name: [path]})
            assert said in str(caught.value), path
    assert healkit.vault.names() == []
    healkit.vault.add("probe", PROBE, grants={"read": tmp_path / "data"})


@pytest.mark.requirement("WORK-2")
def test_a_tool_is_not_granted_to_write_the_code_it_is_restricted_by(healkit: Healkit) -> None:
    own = Path(sysconfig.get_path("purelib"))
    for folder in (own, own.parent, own / "IPython", Path(sys.prefix).resolve()):
        with pytest.raises(ConfigError, match="the code it is restricted by"):
            healkit.vault.add("probe", PROBE, grants={"write": [folder]})
    assert healkit.vault.names() == []


@pytest.mark.requirement("WORK-2")
def test_a_granted_path_that_was_exchanged_for_a_link_is_not_followed(
    restricted: Healkit, tmp_path: Path
) -> None:
    secret, folder = tmp_path / "private" / "secret.txt", tmp_path / "shared" / "inner"
    secret.parent.mkdir()
    secret.write_text("the host's")
    folder.mkdir(parents=True)
    restricted.vault.add("probe", PROBE, grants={"read": [folder]})
    folder.rmdir()
    folder.symlink_to(secret.parent)
    with pytest.raises(ConfigError, match="leads to"):
        restricted.execute("probe", arguments={"modules": [], "files": [f"{folder}/secret.txt"]})


@pytest.mark.requirement("WORK-2")
def test_a_granted_path_that_has_gone_is_the_tools_to_meet(restricted: Healkit, tmp_path: Path) -> None:
    for name in ("in", "out"):
        (tmp_path / name).mkdir()
    restricted.vault.add("probe", PROBE, grants={"read": [tmp_path / "in"], "write": [tmp_path / "out"]})
    for name in ("in", "out"):
        (tmp_path / name).rmdir()
    assert probed(restricted, [], [str(tmp_path / "in" / "x")])[str(tmp_path / "in" / "x")] == "denied"
    # Nor does it stand in the way of changing another grant.
    assert restricted.vault.set_grants("probe", memory_mb=64).grants.memory_mb == 64
    assert restricted.vault.set_grants("probe", clear=True, cpu_s=3).grants == Grants(cpu_s=3)


@pytest.mark.requirement("WORK-2", "VAULT-5")
def test_a_patch_changes_grants_along_with_the_code_or_not_at_all(healkit: Healkit, tmp_path: Path) -> None:
    healkit.vault.add("one", "def one():\n    return 1\n", grants={"memory_mb": 64})
    with pytest.raises(ConfigError):
        healkit.vault.patch("one", "def one():\n    return 2\n", grants={"read": [tmp_path / "nowhere"]})
    assert (healkit.vault.get("one").revision, healkit.vault.get("one").grants) == (1, Grants(memory_mb=64))
    entry = healkit.vault.patch("one", "def one():\n    return 2\n", grants={"cpu_s": 5})
    assert (entry.revision, entry.grants) == (2, Grants(memory_mb=64, cpu_s=5))
    same = healkit.vault.patch("one", "def one():\n    return 2\n", grants={"cpu_s": None})
    assert (same.revision, same.grants) == (2, Grants(memory_mb=64))


def installed(site: Path, name: str, files: list[str], requires: Sequence[str] = ()) -> None:
    """Write a distribution as pip leaves it."""
    folder = site / f"{name}-1.0.dist-info"
    folder.mkdir(parents=True)
    needs = "".join(f"Requires-Dist: {line}\n" for line in requires)
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n{needs}")
    for file in files:
        (site / file).parent.mkdir(parents=True, exist_ok=True)
        (site / file).write_text("")
    listed = [*files, f"{folder.name}/METADATA", f"{folder.name}/RECORD", f"../../../bin/{name}"]
    (folder / "RECORD").write_text("".join(f"{file},,\n" for file in listed))


def chosen(site: Path, *names: str) -> set[str]:
    return {os.path.relpath(path, site) for path in packages.paths_of(names, (str(site),))}


@pytest.mark.requirement("WORK-2")
def test_a_folder_that_packages_share_is_opened_as_far_as_the_granted_one_goes(tmp_path: Path) -> None:
    installed(tmp_path, "space_a", ["space/a/__init__.py", "space/a/deep/x.py", "alone.py"])
    installed(tmp_path, "space_b", ["space/b/__init__.py"])
    assert chosen(tmp_path, "space-a") == {"space/a", "alone.py", "space_a-1.0.dist-info"}
    assert chosen(tmp_path, "space_A", "space.b") >= {"space", "alone.py"}
    assert chosen(tmp_path) == set()


@pytest.mark.requirement("WORK-2")
def test_what_a_package_needs_is_read_with_its_markers_and_extras(tmp_path: Path) -> None:
    needs = ["base", "fast; extra == 'speed'", "old; python_version < '3'", "gone>=2", "not a ((requirement"]
    installed(tmp_path, "top", ["top/__init__.py"], needs)
    installed(tmp_path, "base", ["base.py"], ["top"])  # a circle
    installed(tmp_path, "fast", ["fast.py"])
    installed(tmp_path, "old", ["old.py"])
    modules = {"base.py", "fast.py", "old.py", "top"}
    assert chosen(tmp_path, "top") & modules == {"base.py", "top"}
    assert chosen(tmp_path, "top[speed]") & modules == {"base.py", "fast.py", "top"}


PAGE = (Path(__file__).parents[3] / "docs" / "grants.md").read_text()


@pytest.mark.slow
@pytest.mark.requirement("WORK-2")
def test_the_page_on_grants_does_what_it_says(tmp_path: Path) -> None:
    blocks = dict(re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "HEALKIT_DB": str(tmp_path / "healkit.db")}

    def run(*words: str) -> str:
        done = subprocess.run(
            words, cwd=tmp_path, env=environment, text=True, check=False, timeout=100,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        return re.sub(rf"{re.escape(os.path.dirname(sys.executable))}/python[\d.]*", "python", done.stdout)

    assert run(sys.executable, "-W", "error", "-c", blocks["python"]) == ""
    steps = [part.partition("\n") for part in re.split(r"^\$ ", blocks["console"], flags=re.MULTILINE)[1:]]
    assert len(steps) == 3
    for command, _, shown in steps:
        assert run("bash", "-c", command) == shown


def test_one_other_folder_is_used_where_another_user_owns_the_base(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S8: 21 folders were made, one at each use, and a tool could be granted the one of the workers."""
    monkeypatch.setattr("tempfile.tempdir", tempfile.mkdtemp(prefix="hk"))
    temporary = Path(tempfile.gettempdir())
    taken = temporary / f"healkit-{os.getuid()}"
    taken.mkdir(mode=0o777)
    taken.chmod(0o777)  # what another user owns is refused by the same check as what others may write
    (temporary / f"{taken.name}-1").symlink_to(temporary)
    assert {private_base() for _ in range(20)} == {temporary / f"{taken.name}-2"}
    assert len(list(temporary.iterdir())) == 3
    with pytest.raises(ConfigError, match="holds the folders of other workers"):
        check_grants(Grants(read=[str(private_base().resolve())]))
    shutil.rmtree(temporary)
