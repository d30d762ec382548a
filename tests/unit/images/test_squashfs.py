"""What Enroot reads of an image: the three files of its format, from the image's own settings."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from podwright.images.squashfs import enroot_files, export
from podwright.spec import Refusal


def test_the_environment_is_a_line_for_each_variable() -> None:
    files = enroot_files({"Env": ["PATH=/usr/bin:/bin", "GREETING=hello there", "2BAD=x"]})
    assert files["etc/environment"] == "PATH=/usr/bin:/bin\nGREETING=hello there\n"
    assert files["etc/fstab"] == ""


@pytest.mark.parametrize(
    ("config", "words", "said"),
    [
        ({}, ["echo", "a b"], "a b\n"),
        ({"Cmd": ["echo", "by default"]}, [], "by default\n"),
        ({"Entrypoint": ["echo", "it's"], "Cmd": ["lost"]}, ["kept"], "it's kept\n"),
        ({"WorkingDir": "/usr"}, ["pwd"], "/usr\n"),
        ({"WorkingDir": "/no such folder"}, ["pwd"], "/\n"),
    ],
)
def test_the_script_starts_what_the_image_would(
    config: dict[str, object], words: list[str], said: str, tmp_path: Path
) -> None:
    script = tmp_path / "rc"
    script.write_text(enroot_files(config)["etc/rc"])
    done = subprocess.run(["/bin/sh", str(script), *words], capture_output=True, text=True, check=True)
    assert done.stdout == said


def test_without_the_program_that_packs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Refusal, match="a squashfs file is written with podman, which is not there"):
        export("localhost/toy:1", tmp_path / "toy.sqsh")
    assert list(tmp_path.iterdir()) == []
