"""Leases: on a shared folder only the holder of the newest epoch may run ranks."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from podwright.pilot.life.lease import STALE_S, Leases

CLAIMANT = """
import sys
from podwright.pilot.life.lease import Leases
leases = Leases(sys.argv[1], sys.argv[2])
for line in sys.stdin:
    print(int(leases.claim((0, int(line)), {})), flush=True)
"""


def test_two_processes_at_once_and_one_wins_each_epoch(tmp_path: Path) -> None:
    command = [sys.executable, "-c", CLAIMANT, str(tmp_path / "lease")]
    pipe = subprocess.PIPE
    rivals = [subprocess.Popen([*command, job], stdin=pipe, stdout=pipe, text=True) for job in "ab"]
    wins = []
    for epoch in range(200):
        for rival in rivals:
            assert rival.stdin is not None
            rival.stdin.write(f"{epoch}\n")
            rival.stdin.flush()
        wins.append([int(rival.stdout.readline()) for rival in rivals if rival.stdout is not None])
    for rival in rivals:
        rival.communicate()
    assert [sum(row) for row in wins] == [1] * 200
    assert len(list((tmp_path / "lease").iterdir())) == 200


def test_a_claim_is_read_as_it_was_made(tmp_path: Path) -> None:
    leases = Leases(str(tmp_path / "lease"), "a")
    assert leases.newest() is None
    assert leases.claim((0, 1), {"spent": 1})
    newest = leases.newest()
    assert newest is not None
    assert (newest.epoch, newest.job, newest.facts) == ((0, 1), "a", {"spent": 1})


def test_only_a_newer_epoch_can_be_claimed(tmp_path: Path) -> None:
    leases = Leases(str(tmp_path / "lease"), "a")
    assert leases.claim((1, 0), {})
    assert [leases.claim(epoch, {}) for epoch in ((0, 9), (1, 0), (1, 1), (10, 0), (9, 5))] == [
        False,
        False,
        True,
        True,
        False,
    ]


def test_a_newer_claim_of_another_job_fences_an_older_one(tmp_path: Path) -> None:
    old, new = Leases(str(tmp_path / "lease"), "old"), Leases(str(tmp_path / "lease"), "new")
    assert old.claim((0, 0), {})
    assert old.newer_than((0, 0)) is None
    assert new.claim((1, 0), {})
    fence = old.newer_than((0, 0))
    assert fence is not None
    assert (fence.epoch, fence.job) == ((1, 0), "new")
    assert new.newer_than((1, 0)) is None
    assert new.newer_than((0, 0), own_too=True) is not None, "an old leader of the same job is fenced"
    assert new.newer_than((0, 0)) is None, "a job does not fence itself: its leader claims before its nodes hear of it"


def test_a_later_copy_of_the_same_job_fences_the_older_but_is_no_rival(tmp_path: Path) -> None:
    old, new = Leases(str(tmp_path / "lease"), "77", "0"), Leases(str(tmp_path / "lease"), "77", "1")
    assert old.claim((0, 0), {})
    assert new.rival() is None, "a requeued job must not stand back before its own old self"
    assert new.claim((1, 0), {})
    assert old.newer_than((0, 0)) is not None
    assert new.newer_than((1, 0)) is None


def test_a_claim_that_is_being_written_fences_nobody(tmp_path: Path) -> None:
    (tmp_path / "000000.000001").touch()
    leases = Leases(str(tmp_path), "a")
    assert leases.newer_than((0, 0)) is None
    assert leases.rival() is None
    assert not leases.claim((0, 1), {})


def test_a_living_holder_is_a_rival_and_a_stale_one_is_not(tmp_path: Path) -> None:
    first, second = Leases(str(tmp_path / "lease"), "first"), Leases(str(tmp_path / "lease"), "second")
    assert first.claim((0, 0), {})
    assert first.rival() is None
    rival = second.rival()
    assert rival is not None
    assert rival.job == "first"
    past = time.time() - STALE_S - 5
    os.utime(tmp_path / "lease" / "000000.000000", (past, past))
    assert second.rival() is None
    first.renew((0, 0))
    assert second.rival() is not None


def test_a_full_disk_grants_no_claim_and_leaves_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    leases, write = Leases(str(tmp_path / "lease"), "a"), os.write

    def full(file: int, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    for broken in (full, lambda file, data: write(file, data[:5])):
        with monkeypatch.context() as patch:
            patch.setattr(os, "write", broken)
            assert not leases.claim((0, 0), {})
        assert list((tmp_path / "lease").iterdir()) == []
    assert leases.claim((0, 0), {})


def test_a_folder_that_cannot_be_made_grants_no_claim(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert not Leases(str(tmp_path / "file" / "lease"), "a").claim((0, 0), {})


def test_without_a_shared_folder_every_claim_is_granted() -> None:
    leases = Leases(None, "a")
    assert leases.claim((0, 0), {})
    assert leases.claim((0, 0), {})
    assert leases.newest() is leases.newer_than((0, 0)) is leases.rival() is None
    leases.renew((0, 0))


def test_foreign_and_broken_files_in_the_folder_do_no_harm(tmp_path: Path) -> None:
    for name in ("notes", "1.2.3", "a.b", ".nfs0001"):
        (tmp_path / name).write_text("x")
    leases = Leases(str(tmp_path), "a")
    assert leases.newest() is None
    (tmp_path / "000002.000000").write_bytes(b"\xff not json")
    newest = leases.newest()
    assert newest is not None
    assert (newest.epoch, newest.job, newest.facts) == ((2, 0), "", {})
    leases.renew((7, 7))


def test_a_pipe_in_place_of_a_claim_holds_nobody_up(tmp_path: Path) -> None:
    leases = Leases(str(tmp_path), "job")
    assert leases.claim((0, 0), {})
    os.mkfifo(tmp_path / "000009.000000")
    assert leases.newer_than((0, 0), own_too=True) is None
