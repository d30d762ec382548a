"""What a host is given at once: files that are whole or absent, and who is named when one cannot be written."""

from __future__ import annotations

import getpass
import grp
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from podwright.bringup.apply.sent import sent
from podwright.bringup.on_host import apply_step, inspect_host
from podwright.bringup.plan.host import GIVEN
from podwright.telemetry.exporter import written


def rights(path: Path, mode: str = "0644", **more: Any) -> dict[str, Any]:
    own = {"owner": getpass.getuser(), "group": grp.getgrgid(os.getgid()).gr_name}
    return {"path": str(path), "mode": mode, **own, **more}


def given(folders: list[dict[str, Any]], files: list[tuple[dict[str, Any], str]]) -> subprocess.CompletedProcess[str]:
    """Runs the program as a host does."""
    command = [sys.executable, "-c", sent("apply_step.py"), "files"]
    wanted = json.dumps({"folders": folders, "files": files})
    return subprocess.run(command, input=wanted, capture_output=True, text=True, check=False)


def test_folders_and_files_are_as_wanted_and_a_look_says_so(tmp_path: Path) -> None:
    folder, file = tmp_path / "etc", tmp_path / "etc" / "a.conf"
    done = given([rights(folder, "0700")], [(rights(file, "0640"), "text\n")])
    assert (done.returncode, json.loads(done.stdout)) == (0, {"given": [str(folder), str(file)], "left": []}), (
        done.stderr
    )
    digest = "sha256 is looked at below"
    wanted = {str(folder): {"digest": "", **{k: v for k, v in rights(folder, "0700").items() if k != "path"}}}
    assert inspect_host.differing(wanted) == []
    assert inspect_host.differing({str(file): {**wanted[str(folder)], "digest": digest}}) == [str(file)]
    assert (file.read_text(), oct(file.stat().st_mode & 0o777)) == ("text\n", "0o640")


def test_how_files_were_written_is_kept_beside_what_was_known(tmp_path: Path) -> None:
    record, old, new = tmp_path / "given.json", tmp_path / "old.conf", tmp_path / "new.conf"
    for file in (old, new):
        wanted = {"folders": [], "files": [(rights(file, "0640"), f"{file.name}\n")], "record": rights(record, "0600")}
        assert apply_step.give_files(wanted)["given"] == [str(file)]
    kept = json.loads(record.read_text())
    assert list(kept) == [str(new), str(old)]
    assert kept == {path: inspect_host.file_at(path, False) for path in kept}
    assert record.stat().st_mode & 0o777 == 0o600
    assert GIVEN == written.GIVEN, "the exporter looks there"


def test_a_file_that_its_owner_does_not_take_leaves_the_old_one(tmp_path: Path) -> None:
    file = tmp_path / "a.conf"
    file.write_text("old\n")
    check = "/bin/sh -c 'echo line 1 is wrong; grep -q good %s'"
    done = given([], [(rights(file, check=check), "bad\n")])
    assert done.returncode == 1
    assert done.stderr.strip() == f"{file} is not taken by its owner: line 1 is wrong"
    assert [path.name for path in tmp_path.iterdir()] == ["a.conf"]
    assert file.read_text() == "old\n"
    assert given([], [(rights(file, check=check), "good\n")]).returncode == 0


@pytest.mark.parametrize("field", ["owner", "group"])
def test_an_owner_that_is_not_there_is_named(tmp_path: Path, field: str) -> None:
    done = given([], [(rights(tmp_path / "a", **{field: "nobody-at-all"}), "x")])
    assert done.returncode == 1
    assert "nobody-at-all" in done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("service", "said"), [("a.mount", "mount.nfs: no such folder"), ("b", "b.service: Consumed 1.953s CPU time.")]
)
def test_a_service_that_does_not_start_is_told_by_its_own_last_line(tmp_path: Path, service: str, said: str) -> None:
    """With stand-ins for both programs, as no systemd runs here: `a.mount` said something, of `b` only systemd did."""
    journal = """case $1 in
_SYSTEMD_UNIT=a.mount) echo mount.nfs: no such folder ;;
--unit=*) echo "${1#--unit=}: Consumed 1.953s CPU time." ;;
esac"""
    for name, text in {"systemctl": '[ "$1" != restart ]', "journalctl": journal}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    command = [sys.executable, "-c", sent("apply_step.py"), "services"]
    wanted = json.dumps({"services": [service], "restarts": [service], "starts": [], "started_with": {}})
    environ = {**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(command, env=environ, input=wanted, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.strip()) == (1, f"{service} does not run: {said}")


def test_who_holds_the_lock_of_packages_is_named(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    hold = f"import fcntl; f = open('{lock}', 'w'); fcntl.lockf(f, 2); print('held', flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", hold], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        holders = inspect_host.lock_holder([str(lock)])
        holder.communicate(b"\n")
    assert holders.startswith(f"{lock} is held by process {holder.pid} ({sys.executable}")
    assert inspect_host.lock_holder([str(lock), str(tmp_path / "none")]) == ""


def test_lists_from_before_their_sources_are_old(tmp_path: Path) -> None:
    lists, source = tmp_path / "lists", tmp_path / "a.sources"
    lists.mkdir()
    source.touch()
    os.utime(source, (1, 1))
    assert inspect_host.age_of(str(lists), [str(source)]) < 3600
    os.utime(source, (2**31, 2**31))
    assert inspect_host.age_of(str(lists), [str(source)]) > 10**9
    assert inspect_host.age_of(str(tmp_path / "none"), []) > 10**9


def test_a_secret_is_nobody_elses_while_it_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    modes: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda file: modes.append(os.fstat(file).st_mode & 0o777))
    before = os.umask(0)
    try:
        apply_step.write(rights(tmp_path / "key", "0644"), "secret\n")
    finally:
        os.umask(before)
    assert modes == [0o600]
