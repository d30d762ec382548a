"""The guard of a lab that was asked for by a process and shall not outlive it, such as a test run.

`lab up` leaves a lab that stays until it is taken down. A test run that is killed cannot take anything down, so a small
program of its own waits for the end of whoever asked, and takes the lab down then.
"""

from __future__ import annotations

import os
import select
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from podwright.lab import processes
from podwright.lab.folder import locked
from podwright.lab.machines import end
from podwright.spec.problems import Refusal, refuse

_MARK = "guard"
_LOOK_S = 1.0


@contextmanager
def working_on(folder: Path, ends_with: int | None) -> Iterator[None]:
    """Make a lab's folder and be the one who works on it; the lab ends with a process, where its number is given."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o755)
    with locked(folder):
        if ends_with is not None:
            start(folder, ends_with)
        yield


def start(folder: Path, pid: int, farewell: Sequence[str] = ()) -> None:
    """Start the guard that ends the lab in a folder when a process has ended; one guard for each lab.

    `farewell` is a command that is to be run before. When this returns the guard is at work: what is started from here
    on is never left behind.
    """
    if processes.marked(folder / _MARK) is not None:
        return
    asker = processes.born(pid)
    if asker is None:
        raise refuse(f"the lab shall end with process {pid}, which has ended already")
    program = f"from {__name__} import main; main()"
    command = [sys.executable, "-P", "-c", program, str(folder), f"{pid} {asker}", shlex.join(farewell)]
    done = subprocess.run(
        command, cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False
    )
    if done.returncode:
        reason = done.stderr.decode(errors="replace").strip()[-200:]
        raise refuse(f"the guard of the lab did not start: {reason}", hint="without it the lab would be left behind")


def main() -> None:
    """Take `FOLDER 'PID START' 'COMMAND'`; the process that was called ends as soon as the guard is at work.

    The guard is nobody's child and in a session of its own: what ends whoever asked does not end it too.
    """
    folder, mark, farewell = Path(sys.argv[1]), sys.argv[2], shlex.split(sys.argv[3])
    pid, asker = map(int, mark.split())
    descriptor = _open(pid, asker)
    guard = os.fork()
    if guard:
        (folder / _MARK).write_text(f"{guard} {processes.born(guard)}")
        os._exit(0)
    os.setsid()
    _forget_standard_files()
    if descriptor is not None and not _ended(descriptor, folder):
        return
    if farewell:
        subprocess.run(farewell, stdin=subprocess.DEVNULL, check=False)
    _end(folder)


def _open(pid: int, asker: int) -> int | None:
    """Open a process to be waited for; None where it has ended, and another may have its number."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return None
    if processes.born(pid) != asker:
        os.close(descriptor)
        return None
    return descriptor


def _forget_standard_files() -> None:
    """Let go of whatever the caller reads, which would else wait for the end of the guard."""
    with Path(os.devnull).open("r+b") as nothing:
        for number in (0, 1, 2):
            os.dup2(nothing.fileno(), number)


def _ended(descriptor: int, folder: Path) -> bool:
    """Wait for the end of the process, or of the lab; says whether it was the process."""
    while folder.exists():
        if select.select([descriptor], [], [], _LOOK_S)[0]:
            return True
    return False


def _end(folder: Path) -> None:
    """End the lab as soon as no other command works on it: that one could start something behind our back."""
    try:
        with locked(folder):
            end(folder)
    except Refusal:
        return
