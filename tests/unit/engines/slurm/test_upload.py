"""What is sent to a cluster: large files once, checked before they are used again, and a copy of them for each run."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path

import pytest

from podwright.clients.ssh import reach_to
from podwright.engines.slurm.upload import COPY_BYTES, LARGE_BYTES, clear_part, pack, remove_run
from podwright.runs import RunFolder
from tests.fixtures.sshd import ssh_config

__all__ = ["ssh_config"]

PILOT = b"p" * (LARGE_BYTES + 1)
CODE = b"c" * (COPY_BYTES + 1)


def run_of(folder: Path, name: str) -> Path:
    job = folder / "home" / name / "job"
    job.mkdir(parents=True)
    (job / "pilot.pyz").write_bytes(PILOT)
    (job / "code.tar").write_bytes(CODE)
    (job / "node.sh").write_text("#!/bin/sh\n")
    (job.parent / "token").write_text("t\n")
    return job.parent


def send(folder: Path, name: str) -> Path:
    """Sends a run's files to a `cluster` that is a folder of this machine."""
    pack(reach_to(None, None), str(folder / "cluster"), [run_of(folder, name)])
    return folder / "cluster" / "runs" / name


def test_a_run_gets_all_its_files(tmp_path: Path) -> None:
    run = send(tmp_path, "toy-2222")
    sent = {str(path.relative_to(run)): path.read_bytes() for path in run.rglob("*") if path.is_file()}
    assert sent == {"token": b"t\n", "job/node.sh": b"#!/bin/sh\n", "job/pilot.pyz": PILOT, "job/code.tar": CODE}
    stored = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "cluster" / "code").iterdir()}
    assert stored == {hashlib.sha256(data).hexdigest(): 0o400 for data in (PILOT, CODE)}


def test_a_run_that_rewrites_its_pilot_changes_no_other(tmp_path: Path) -> None:
    first = send(tmp_path, "toy-2222")
    (first / "job" / "pilot.pyz").chmod(0o600)
    (first / "job" / "pilot.pyz").write_bytes(b"evil")
    assert (send(tmp_path, "toy-3333") / "job" / "pilot.pyz").read_bytes() == PILOT


@pytest.mark.parametrize("kind", ["bytes", "link", "pipe"])
def test_what_was_rewritten_in_the_store_is_sent_again(tmp_path: Path, kind: str) -> None:
    send(tmp_path, "toy-2222")
    for stored in (tmp_path / "cluster" / "code").iterdir():
        stored.unlink()
        makers = {
            "bytes": lambda stored=stored: stored.write_bytes(b"evil"),
            "link": lambda stored=stored: stored.symlink_to("/dev/zero"),
            "pipe": lambda stored=stored: os.mkfifo(stored),
        }
        makers[kind]()
    run = send(tmp_path, "toy-3333")
    assert (run / "job" / "pilot.pyz").read_bytes() == PILOT
    assert (run / "job" / "code.tar").read_bytes() == CODE


def test_a_run_may_be_sent_again(tmp_path: Path) -> None:
    send(tmp_path, "toy-2222")
    pack(reach_to(None, None), str(tmp_path / "cluster"), [tmp_path / "home" / "toy-2222"])
    assert (tmp_path / "cluster" / "runs" / "toy-2222" / "job" / "code.tar").read_bytes() == CODE


def test_over_ssh_files_come_and_a_part_of_them_goes(ssh_config: Path, tmp_path: Path) -> None:
    reach = reach_to("loop", str(ssh_config))
    pack(reach, str(tmp_path / "cluster"), [run_of(tmp_path, "toy-2222")])
    run = tmp_path / "cluster" / "runs" / "toy-2222"
    assert (run / "job" / "code.tar").read_bytes() == CODE
    (run / "checkpoints").mkdir()
    (run / "checkpoints" / "weights").write_bytes(b"x" * 50_000)
    folders = [RunFolder(tmp_path / "home" / name) for name in ("toy-2222", "toy-3333")]
    for remove in (False, True):
        sizes = clear_part(reach, str(run.parent), folders, "checkpoints", remove)
        assert list(sizes) == ["toy-2222"]
        assert sizes["toy-2222"] > 50_000
        assert (run / "checkpoints").exists() != remove
    assert clear_part(reach, str(run.parent), folders, "checkpoints", True) == {}
    remove_run(reach, str(run))
    assert not run.exists()
