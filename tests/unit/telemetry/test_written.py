"""Files that are not as a bring-up wrote them: edited, with other rights, or gone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from podwright.bringup.on_host import inspect_host
from podwright.pilot.sensors.proc import Scope
from podwright.telemetry.exporter.written import GIVEN, written_samples


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "etc").mkdir()
    (tmp_path / GIVEN.lstrip("/")).parent.mkdir(parents=True)
    return tmp_path


def keep(root: Path, *paths: str) -> None:
    """Keep how these files are now, as a bring-up does."""
    record = {}
    for path in paths:
        file = root / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{path}\n")
        record[path] = inspect_host.file_at(str(file), False)
    (root / GIVEN.lstrip("/")).write_text(json.dumps(record))


def told(root: Path) -> list[tuple[str, ...]]:
    samples = written_samples(Scope(root=str(root), environ={}))
    return [(sample.name, *(value for _, value in sample.labels), f"{sample.value:g}") for sample in samples]


def test_files_that_are_as_they_were_written_are_counted(root: Path) -> None:
    keep(root, "/etc/a.conf", "/etc/b.conf", "/home/ada/.ssh/authorized_keys")
    assert told(root) == [("podwright_host_files", "2")]


def test_each_file_that_differs_is_named_with_how(root: Path) -> None:
    keep(root, "/etc/edited", "/etc/gone", "/etc/link", "/etc/other", "/etc/same", "/root/not-seen")
    (root / "etc/edited").write_text("by hand\n")
    (root / "etc/gone").unlink()
    (root / "etc/link").unlink()
    (root / "etc/link").symlink_to(root / "etc/same")
    (root / "etc/other").chmod(0o600)
    (root / "root/not-seen").unlink()
    assert told(root) == [
        ("podwright_host_files", "5"),
        ("podwright_host_file_differs", "/etc/edited", "edited", "1"),
        ("podwright_host_file_differs", "/etc/gone", "missing", "1"),
        ("podwright_host_file_differs", "/etc/link", "edited", "1"),
        ("podwright_host_file_differs", "/etc/other", "other rights", "1"),
    ]


def test_a_host_whose_files_nobody_wrote_has_nothing_to_tell(root: Path) -> None:
    assert told(root) == []


def test_a_damaged_record_is_a_sensor_that_fails(root: Path) -> None:
    (root / GIVEN.lstrip("/")).write_text("{")
    with pytest.raises(ValueError, match="Expecting property name"):
        told(root)
