"""`healkit kernelspec`: where the kernel spec goes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_samples import Done, call


def kernelspec(*words: str) -> Done:
    """Run the command as a user does."""
    return call("kernelspec", *words)


@pytest.mark.requirement("WORK-2")
def test_install_writes_the_grants_and_says_what_they_are(tmp_path: Path) -> None:
    prefix = str(tmp_path / "prefix")
    words = ("--read", ".", "--read", "/usr", "--write", "out/", "--memory", "500", "--cpu", "60")
    done = kernelspec("install", "--prefix", prefix, *words)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "Python 3 (restricted) installed as healkit-restricted",
        "  read  the notebook's folder, /usr",
        "  write  out beside the notebook",
        "  memory_mb  500",
        "  cpu_s  60",
    ]
    file = tmp_path / "prefix/share/jupyter/kernels/healkit-restricted/kernel.json"
    spec = json.loads(file.read_text())
    assert spec["interrupt_mode"] == "message"
    assert spec["metadata"]["kernel_provisioner"] == {
        "provisioner_name": "healkit-restricted",
        "config": {"read": [".", "/usr"], "write": ["out"], "memory_mb": 500, "cpu_s": 60},
    }


def test_the_installed_kernel_has_an_icon_of_its_own(tmp_path: Path) -> None:
    """U8: launchers showed a bare "P" for the restricted kernel."""
    prefix = str(tmp_path / "prefix")
    assert kernelspec("install", "--prefix", prefix).returncode == 0
    folder = tmp_path / "prefix/share/jupyter/kernels/healkit-restricted"
    assert (folder / "logo-svg.svg").read_text().startswith("<svg")
    for size in (32, 64):
        header = (folder / f"logo-{size}x{size}.png").read_bytes()[:24]
        assert header[:8] == b"\x89PNG\r\n\x1a\n"
        assert header[16:24] == size.to_bytes(4, "big") * 2


def test_install_again_replaces_the_grants_and_remove_takes_it_away(tmp_path: Path) -> None:
    where = ("--user", "--name", "careful", "--json")
    kernelspec("install", *where, "--display-name", "Careful", "--read", ".")
    installed = json.loads(kernelspec("install", *where).stdout)
    assert installed["grants"] == {}
    assert Path(installed["path"]).is_relative_to(tmp_path / "data")
    assert json.loads(kernelspec("remove", "--name", "careful", "--json").stdout)["path"] == installed["path"]
    assert not Path(installed["path"]).exists()
    again = kernelspec("remove", *where)
    assert again.returncode == 2
    assert json.loads(again.stdout)["error"]["code"] == "USAGE_INVALID"


def test_install_warns_of_a_place_where_jupyter_does_not_look(tmp_path: Path) -> None:
    done = kernelspec("install", "--prefix", str(tmp_path / "elsewhere"))
    assert done.returncode == 0
    assert f"add {tmp_path / 'elsewhere/share/jupyter'} to JUPYTER_PATH" in done.stderr


@pytest.mark.parametrize("verb", ["install", "remove"])
def test_another_kernel_is_left_alone(tmp_path: Path, verb: str) -> None:
    other = tmp_path / "data/kernels/julia/kernel.json"
    other.parent.mkdir(parents=True)
    other.write_text('{"argv": [], "metadata": {}}')
    done = kernelspec(verb, "--user", "--name", "julia")
    assert done.returncode == 2
    assert "is not healkit's" in done.stderr.replace("it is not", "is not")
    assert other.exists()


@pytest.mark.parametrize(
    "words", [("--user", "--sys-prefix"), ("--name", "../up"), ("--name", ".."), ("--memory", "0")]
)
def test_a_call_that_cannot_be_meant_is_refused(words: tuple[str, ...]) -> None:
    assert kernelspec("install", *words).returncode == 2
