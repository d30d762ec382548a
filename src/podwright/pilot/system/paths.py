"""Where things are on one node of a run."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
import time
from contextlib import suppress
from typing import Callable, Optional

from ..protocol import WORKDIR, Order, record_name
from .node_identity import NodeIdentity


class Paths:
    """Where things are on this node, from the order's relative paths."""

    def __init__(self, order: Order, order_file: str, identity: NodeIdentity) -> None:
        self.job = os.path.dirname(os.path.abspath(order_file))
        self.folder = os.path.normpath(os.path.join(self.job, order.folder))
        self.yield_mark = os.path.join(self.folder, f"yield.{identity.restart}")
        self.cancel_marks = [os.path.join(self.folder, "cancelled")]
        if order.parent:
            self.cancel_marks.append(os.path.normpath(os.path.join(self.job, order.parent, "cancelled")))
        record = record_name(identity.node, identity.restart)
        self.removed: Optional[str] = None
        if order.scratch:
            self.scratch = scratch_of(self.job, order.scratch, identity.node)
        else:
            # Of this restart alone: an old copy that ends late must not take the new one's folder with it.
            self.scratch = self.removed = os.path.join(own_scratch(order.run), record)
        base = self.scratch
        self.lease: Optional[str] = None
        if order.shared:
            base = self.folder
            self.lease = os.path.join(self.folder, "lease")
        self.record = os.path.join(base, "record", record)
        self.checkpoint = os.path.normpath(os.path.join(base, order.checkpoint))
        self.cache = cache_folder(order, self.job)
        self.code = os.path.join(self.scratch, "work")
        if order.code:
            self.code = os.path.join(self.scratch, f"code-{order.code['sha256'][:12]}")
        self.workdir = os.path.join(self.folder, *WORKDIR.split("/"))

    def is_cancelled(self) -> bool:
        """Return whether a user cancelled the run, or all runs of its parent."""
        return any(map(os.path.exists, self.cancel_marks))

    def make(self) -> None:
        """Create the folders that this node itself writes to."""
        make_private(self.record)
        make_private(self.scratch)

    def make_checkpoint(self) -> None:
        """Create the checkpoint folder, or say in words why not.

        It may lie anywhere: the folders above it are the user's, with the user's umask.
        """
        try:
            os.makedirs(self.checkpoint, mode=0o700, exist_ok=True)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise OSError(f"the checkpoint folder {self.checkpoint} cannot be made: {reason.lower()}") from None

    def clear(self) -> None:
        """Remove the node's own scratch folder, and the folders above it once they are empty."""
        if self.removed is None:
            return
        shutil.rmtree(self.removed, ignore_errors=True)
        run_folder = os.path.dirname(self.removed)
        with suppress(OSError):
            os.rmdir(run_folder)
            os.rmdir(os.path.dirname(run_folder))


class FolderWatch:
    """Knows a run whose folder was removed or emptied by hand: nobody can find it any more, nor end it.

    That is believed after a while, and only where the folder above can be read: a disk that is away comes back.
    """

    def __init__(self, folder: str, gone_s: Optional[float], clock: Callable[[], float] = time.monotonic) -> None:
        self._folder, self._gone_s, self._clock = folder, gone_s, clock
        self._since: Optional[float] = None

    def is_gone(self) -> bool:
        """Look, and return whether it was gone at every look for long enough."""
        if self._gone_s is None or not self._is_missing():
            self._since = None
            return False
        now = self._clock()
        if self._since is None:
            self._since = now
        return now - self._since >= self._gone_s

    def _is_missing(self) -> bool:
        try:
            os.stat(os.path.join(self._folder, "run.json"))
        except (FileNotFoundError, NotADirectoryError):
            with suppress(OSError):
                os.listdir(os.path.dirname(self._folder))
                return True
        except OSError:
            pass
        return False


def cache_folder(order: Order, job: str) -> str:
    """Return where this node keeps data that outlives runs."""
    path = os.path.expandvars(str((order.cache or {}).get("path") or ""))
    return os.path.normpath(os.path.join(job, path)) if path else os.path.join(own_home(), "cache")


def make_private(path: str) -> None:
    """Make a folder for this user alone; those above it that are missing have their parent's rights for the group.

    The umask is the user's and stays so for the ranks. A volume claim may be its group's too, a run's folder is not.
    """
    above = os.path.dirname(path)
    if not os.path.isdir(above):
        _make_as_parent(above)
    os.makedirs(path, mode=0o700, exist_ok=True)


def _make_as_parent(path: str) -> None:
    above = os.path.dirname(path)
    if not os.path.isdir(above):
        _make_as_parent(above)
    group = stat.S_IMODE(os.stat(above).st_mode) & stat.S_IRWXG
    # Nodes of a run make the same folders at the same time.
    with suppress(FileExistsError):
        os.mkdir(path, 0o700 | group)


def scratch_of(job: str, scratch: str, node: int) -> str:
    """Return the folder of one node below the run's scratch folder, which is relative to the job's."""
    return os.path.join(os.path.normpath(os.path.join(job, scratch)), f"n{node}")


def own_scratch(run: str) -> str:
    """Return a run's folder in the node's temporary one."""
    return os.path.join(own_home(), run)


def own_home() -> str:
    """Return a folder in the node's temporary one, under a name of this user's that nobody else can have taken."""
    home = os.path.join(tempfile.gettempdir(), f"podwright-{os.getuid()}")
    os.makedirs(home, mode=0o700, exist_ok=True)
    # Not followed: a link that another user laid here would lead out of what this user owns.
    facts = os.lstat(home)
    ours = facts.st_uid == os.getuid() and stat.S_ISDIR(facts.st_mode)
    if not ours or facts.st_mode & 0o022:
        home = tempfile.mkdtemp(prefix="podwright-")
    return home
