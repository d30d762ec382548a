"""Files of a run's own making are read without trust."""

from __future__ import annotations

from pathlib import Path

import pytest

from podwright.files.untrusted import read_untrusted
from tests.fixtures.hostile import NO_PLAIN_FILES, TOO_LARGE


def test_a_plain_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "a").write_bytes(b"1")
    assert read_untrusted(tmp_path, "results/a") == b"1"
    with pytest.raises(FileNotFoundError):
        read_untrusted(tmp_path, "results/b")


@pytest.mark.parametrize("kind", NO_PLAIN_FILES)
def test_what_is_no_plain_file_is_not_opened(tmp_path: Path, kind: str) -> None:
    NO_PLAIN_FILES[kind](tmp_path / "a")
    with pytest.raises(OSError, match=f"{kind}, no plain file"):
        read_untrusted(tmp_path, "a")


def test_a_device_is_not_opened() -> None:
    with pytest.raises(OSError, match="a device, no plain file"):
        read_untrusted(Path("/dev"), "zero")


def test_a_file_beyond_the_bound_is_not_read(tmp_path: Path) -> None:
    TOO_LARGE["larger than 16 MiB"](tmp_path / "a")
    with pytest.raises(OSError, match="larger than 16 MiB"):
        read_untrusted(tmp_path, "a")


def test_a_folder_that_is_a_link_leads_nowhere(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "a").write_bytes(b"private")
    run = tmp_path / "run"
    run.mkdir()
    (run / "results").symlink_to(tmp_path / "outside")
    with pytest.raises(OSError, match="Not a directory"):
        read_untrusted(run, "results/a")
