"""Why another program failed: its own reason, and not what it says after it."""

from __future__ import annotations

import io
import subprocess
import tarfile
from pathlib import Path

import pytest

from podwright.clients.reasons import last_line


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no answer"),
        ("one\ntwo\n", "two"),
        (
            "tar: a: Cannot write: No space left on device\ntar: Error is not recoverable: exiting now\n",
            "No space left",
        ),
        ("tar: Error is not recoverable: exiting now\n", "tar: Error is not recoverable"),
    ],
)
def test_the_line_that_says_why(text: str, words: str) -> None:
    assert words in last_line(text, "no answer")


def test_what_tar_itself_says(tmp_path: Path) -> None:
    """A file lies where a folder is to be."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("there/inside"))
    (tmp_path / "there").touch()
    done = subprocess.run(["tar", "-xf", "-"], cwd=tmp_path, input=data.getvalue(), capture_output=True)
    assert "there/inside: Cannot open" in last_line(done.stderr.decode(), "no answer")
