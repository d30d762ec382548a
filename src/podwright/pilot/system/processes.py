"""Process trees: who belongs to a rank, and how all of it is ended."""

from __future__ import annotations

import os
import resource
import signal
import time
from contextlib import suppress
from typing import Any, Dict, List, Optional, Set, Tuple

from .numbers import whole_number


def stat_fields(pid: int) -> List[bytes]:
    """Return the fields of /proc/PID/stat from the state on, the third: the name before it may hold blanks itself."""
    with open(f"/proc/{pid}/stat", "rb") as file:
        return file.read().rpartition(b")")[2].split()


def _parents() -> Dict[int, Tuple[int, str]]:
    """Return pid -> (parent, state) of every process there is."""
    parents: Dict[int, Tuple[int, str]] = {}
    for name in os.listdir("/proc"):
        pid = whole_number(name)
        if pid is None:
            continue
        try:
            fields = stat_fields(pid)
            parents[pid] = (int(fields[1]), fields[0].decode())
        except (OSError, IndexError, ValueError):
            continue
    return parents


def descendants(root: int) -> Set[int]:
    """Return all living processes beneath `root`, zombies left out."""
    parents = _parents()
    children: Dict[int, List[int]] = {}
    for pid, (parent, _) in parents.items():
        children.setdefault(parent, []).append(pid)
    beneath: Set[int] = set()
    queue = [root]
    while queue:
        for child in children.get(queue.pop(), []):
            if child not in beneath:
                beneath.add(child)
                queue.append(child)
    return {pid for pid in beneath if parents[pid][1] != "Z"}


def kill_tree(root: int, spare: Optional[Set[int]] = None, patience_s: float = 5.0) -> Set[int]:
    """Kill everything beneath `root` by SIGKILL, again until nothing is left; return what would not die.

    `spare` names processes that stay, with all that is beneath them.
    """
    if root == os.getpid() and not _has_children():
        return set()
    deadline = time.monotonic() + patience_s
    while True:
        left = descendants(root)
        for pid in spare or ():
            left -= descendants(pid) | {pid}
        if not left or time.monotonic() > deadline:
            return left
        for pid in left:
            send(pid, signal.SIGKILL)
        time.sleep(0.01)


def _has_children() -> bool:
    """Return whether this process has any child, ended ones too: who adopts orphans has nothing beneath it without.

    One question, where a look at all processes of a machine takes longer the more runs it has.
    """
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def start(command: List[str], **options: Any) -> int:
    """Start a process in a session of its own; return its id. The loop reaps it, never `subprocess`."""
    import subprocess  # a rank's tree is looked at without it

    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True, **options)
    child.returncode = 0
    return child.pid


def send(pid: int, number: int) -> None:
    """Send a signal to a process that may be gone by now."""
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        pass


def abort(root: int) -> bool:
    """End the Python processes of a rank by SIGABRT: with PYTHONFAULTHANDLER they print where each thread is.

    Of a Python only itself: its workers are many and say little. Return whether there is any.
    """
    pids = [root] if _is_python(root) else [pid for pid in descendants(root) if _is_python(pid)]
    for pid in pids:
        _leave_no_core(pid)
        send(pid, signal.SIGABRT)
        send(pid, signal.SIGCONT)  # one that is stopped would not hear the first
    return bool(pids)


def _is_python(pid: int) -> bool:
    try:
        return os.path.basename(os.readlink(f"/proc/{pid}/exe")).startswith("python")
    except OSError:
        return False


def _leave_no_core(pid: int) -> None:
    """Keep the end of a process from writing its memory to disk; 1 also stops those that are piped to a program."""
    with suppress(OSError, ValueError):
        hard = resource.prlimit(pid, resource.RLIMIT_CORE)[1]
        resource.prlimit(pid, resource.RLIMIT_CORE, (0 if hard == 0 else 1, hard))


def reap() -> List[Tuple[int, int]]:
    """Return (pid, wait status) of every child that has ended, adopted ones too."""
    ended: List[Tuple[int, int]] = []
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended
        if pid == 0:
            return ended
        ended.append((pid, status))


def exit_facts(status: int) -> Tuple[int, Optional[str]]:
    """Return (exit code as a shell says it, signal name) of a wait status."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        return 128 + number, signal_name(number)
    return os.WEXITSTATUS(status), None


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
