"""The memory of a node's ranks: summed up as it is, and a control group where one can be made."""

from __future__ import annotations

import mmap
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from podwright.pilot.ranks.memory_limit import MemoryGroup, MemoryLimit, proportional_bytes, resident_bytes
from podwright.pilot.sensors import cgroup

MIB = 1 << 20


@contextmanager
def taking(mib: int) -> Iterator[int]:
    """A process beneath this one that has so much memory."""
    code = f"kept = bytearray(b'x') * {mib * MIB}; print(flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        yield child.pid
        child.communicate(b"\n")


def test_more_than_the_limit_is_noticed() -> None:
    with taking(64):
        assert MemoryLimit(1 << 40, None).excess() is None
        used = MemoryLimit(32 * MIB, None).excess()
    assert used is not None
    assert used > 64 * MIB


def test_what_processes_share_counts_once() -> None:
    """Data loaders that read the same tensors, say."""
    shared = mmap.mmap(-1, 64 * MIB)
    shared.write(b"x" * (64 * MIB))
    read, write = os.pipe()
    children = []
    for _ in range(3):
        pid = os.fork()
        if not pid:
            shared.seek(0)
            shared.read()
            os.read(read, 1)
            os._exit(0)
        children.append(pid)
    try:
        deadline = time.monotonic() + 60
        while resident_bytes(children) < 3 * 64 * MIB:
            assert time.monotonic() < deadline, "they never read it"
        assert proportional_bytes([os.getpid(), *children]) < resident_bytes([os.getpid(), *children]) - 128 * MIB
    finally:
        os.write(write, b"xxx")
        for pid in children:
            os.waitpid(pid, 0)
        for end in (read, write):
            os.close(end)


def test_a_process_that_has_ended_uses_nothing() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    assert resident_bytes([child.pid]) == proportional_bytes([child.pid]) == 0


# control groups, as files


def machine(root: Path, version: int, membership: str, mount: str) -> Path:
    """A machine whose files say where this process is; gives the folder of the hierarchy."""
    proc = root / "proc" / "self"
    proc.mkdir(parents=True)
    (proc / "cgroup").write_text(membership)
    (proc / "mountinfo").write_text(mount)
    top = root / "sys" / "fs" / "cgroup"
    (top / "user" / "session").mkdir(parents=True)
    return top


V1 = ("4:memory:/user/session\n", "30 1 0:1 / /sys/fs/cgroup rw - cgroup cgroup rw,memory\n")
V2 = ("0::/user/session\n", "30 1 0:1 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n")


def test_in_version_1_a_group_goes_below_our_own(tmp_path: Path) -> None:
    top = machine(tmp_path, 1, *V1)
    assert cgroup.parents_of_own("memory", str(tmp_path)) == [(1, str(top / "user" / "session"))]


def test_in_version_2_it_goes_beside_it_where_memory_is_given(tmp_path: Path) -> None:
    top = machine(tmp_path, 2, *V2)
    assert cgroup.parents_of_own("memory", str(tmp_path)) == []
    (top / "user" / "cgroup.subtree_control").write_text("cpu memory pids\n")
    assert cgroup.parents_of_own("memory", str(tmp_path)) == [(2, str(top / "user"))]


def test_a_folder_that_is_no_group_is_left_as_it_was(tmp_path: Path) -> None:
    """Nobody makes the files in it: there is no limit to write."""
    top = machine(tmp_path, 1, *V1)
    assert MemoryGroup.make("podwright-toy-2222-n0", 64 * MIB, str(tmp_path)) is None
    assert list((top / "user" / "session").iterdir()) == []


def test_a_group_is_limited_and_tells_who_was_killed(tmp_path: Path) -> None:
    """Its files as version 2 has them; the kernel is not asked."""
    top = machine(tmp_path, 2, *V2)
    (top / "user" / "cgroup.subtree_control").write_text("memory\n")
    folder = top / "user" / "podwright-toy-2222-n0"
    folder.mkdir()
    for name in ("memory.max", "memory.swap.max", "cgroup.procs"):
        (folder / name).touch()
    (folder / "memory.events").write_text("low 0\noom 1\noom_kill 1\n")
    group = MemoryGroup.make(folder.name, 64 * MIB, str(tmp_path))
    assert group is not None
    limit = MemoryLimit(64 * MIB, group)
    limit.take(4711)
    written = {name: (folder / name).read_text() for name in ("memory.max", "memory.swap.max", "cgroup.procs")}
    assert written == {"memory.max": str(64 * MIB), "memory.swap.max": "0", "cgroup.procs": "4711"}
    assert not limit.has_killed(), "that was before"
    (folder / "memory.events").write_text("low 0\noom 3\noom_kill 2\n")
    assert [limit.has_killed(), limit.has_killed()] == [True, False]


@pytest.mark.parametrize("text", [b"", b"oom_kill_disable 0\nunder_oom 0\n"])
def test_an_old_kernel_does_not_tell_kills(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "memory.oom_control").write_bytes(text)
    assert MemoryGroup(1, str(tmp_path)).kills() == 0
