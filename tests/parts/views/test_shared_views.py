"""Views in a place that several machines have in common."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

from healkit import Config, Healkit
from healkit.errors import ConfigError, ViewChanged, ViewError, ViewGone
from healkit.parts.views.shared_files import SharedFiles

pytestmark = pytest.mark.requirement("SCALE-1", "DATA-7")

FRAME = pd.DataFrame({"a": range(500), "t": [f"row {i}" for i in range(500)]})
TOTAL = "def total(df):\n    return int(df['a'].sum())\n"


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """URL of a bucket on a server that speaks S3 over HTTP."""
    import boto3
    from moto.server import ThreadedMotoServer

    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        name = f"team-{uuid.uuid4().hex}"
        boto3.client("s3", endpoint_url=f"http://{host}:{port}", region_name="us-east-1").create_bucket(
            Bucket=name
        )
        yield f"s3://{name}/views?endpoint_override={host}:{port}&scheme=http&region=us-east-1"
    finally:
        server.stop()


@pytest.fixture(params=["folder", pytest.param("bucket", marks=pytest.mark.slow)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """URL of a shared place: a folder that is mounted, or a bucket."""
    if request.param == "bucket":
        return str(request.getfixturevalue("bucket"))
    return str(tmp_path / "mounted")


def opened(url: str) -> tuple[Any, str]:
    """Return the file system of a place, and the folder in it."""
    shared = SharedFiles(url)
    return shared._fs, shared._root


def names_in(url: str) -> list[str]:
    fs, root = opened(url)
    if not fs.exists(root):  # a bucket has no empty folders
        return []
    return sorted(name for path in fs.ls(root, detail=False) if (name := path.rpartition("/")[2]))


def forget(healkit: Healkit) -> Path:
    """Leave this machine without its files, as another one is."""
    folder: Path = healkit.view_keeper.views.folder
    shutil.rmtree(folder)
    return folder


def test_what_one_machine_keeps_another_has(place: str, tmp_path: Path) -> None:
    with Healkit(tmp_path / "team.db", config=Config(views_url=place)) as healkit:
        view = healkit.views.put(FRAME, name="orders")
        assert view.file is not None
        assert names_in(place) == [view.file.name]
        healkit.vault.add("total", TOTAL)
        execution = healkit.execute("total", arguments={"df": FRAME})
    with Healkit(tmp_path / "team.db", config=Config(views_url=place)) as healkit:
        folder = forget(healkit)
        assert_frame_equal(healkit.views.to_pandas("orders"), FRAME)
        assert [file.name for file in folder.iterdir()] == [view.file.name]
        forget(healkit)
        assert execution.log_id is not None
        assert healkit.rerun(execution.log_id).value == execution.value


def test_it_is_removed_and_evicted_there_too(place: str, tmp_path: Path) -> None:
    with Healkit(tmp_path / "team.db", config=Config(views_url=place)) as healkit:
        healkit.views.put(FRAME, name="orders")
        assert names_in(place)
        healkit.views.remove("orders")
        assert not names_in(place)


def test_other_data_under_its_name_is_refused(place: str, tmp_path: Path) -> None:
    with Healkit(tmp_path / "team.db", config=Config(views_url=place)) as healkit:
        view = healkit.views.put(FRAME, name="orders")
        assert view.file is not None
        other = healkit.views.put(FRAME * 2, name="other")
        assert other.file is not None
        fs, root = opened(place)
        fs.pipe_file(f"{root}/{view.file.name}", other.file.read_bytes())
        forget(healkit)
        with pytest.raises(ViewChanged):
            healkit.views.to_pandas("orders")


def test_a_file_that_is_nowhere_is_said_to_be_gone(place: str, tmp_path: Path) -> None:
    with Healkit(tmp_path / "team.db", config=Config(views_url=place)) as healkit:
        view = healkit.views.put(FRAME, name="orders")
        assert view.file is not None
        fs, root = opened(place)
        fs.rm_file(f"{root}/{view.file.name}")
        forget(healkit)
        with pytest.raises(ViewGone):
            healkit.views.to_pandas("orders")


@pytest.mark.slow
def test_a_bucket_that_cannot_be_reached_costs_no_execution(bucket: str, tmp_path: Path) -> None:
    with Healkit(tmp_path / "team.db", config=Config(views_url=bucket)) as healkit:
        healkit.views.put(FRAME, name="orders")
        healkit.vault.add("total", TOTAL)
    name = bucket.partition("?")[0]
    away = f"{name}?endpoint_override=127.0.0.1:9&scheme=http&region=us-east-1"
    with Healkit(tmp_path / "team.db", config=Config(views_url=away)) as healkit:
        forget(healkit)
        with pytest.raises(ViewGone, match="shared place"):
            healkit.views.to_pandas("orders")
        with pytest.raises(ViewError, match="can be written"):
            healkit.views.put(FRAME * 3, name="more")
        assert healkit.execute("total", arguments={"df": FRAME}).ok


def test_a_url_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    config = Config(views_url="nowhere://x")
    with Healkit(tmp_path / "team.db", config=config) as healkit, pytest.raises(ConfigError, match="nowhere"):
        healkit.views.put(FRAME, name="orders")


def test_retention_clears_the_shared_place(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEALKIT_VIEWS_URL", place)
    with Healkit(tmp_path / "team.db") as healkit:
        healkit.vault.add("total", TOTAL)
        healkit.execute("total", arguments={"df": FRAME})
        healkit.views.list()  # waits until it is kept
        assert names_in(place)
        healkit.vault.add("one", "def one():\n    return 1\n")
        healkit.execute("one")
        healkit.log.prune(keep=0)
        found: list[Any] = names_in(place)
    assert not found
