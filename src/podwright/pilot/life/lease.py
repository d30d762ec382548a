"""Fencing: on a shared folder only the holder of the newest epoch may run ranks, and a run ends once.

An epoch is claimed by creating its file exclusively, which file systems (NFS included) do for one caller only. That
ends split brain after a cut network, and a second submission of the same run finds the first one's claim. The end is
claimed in the same way (`ended`): whatever starts a copy of the run after it, no rank of it starts.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from typing import Any, Dict, List, NamedTuple, Optional, Sequence

from ..protocol import Epoch, parse_line, whole_number
from ..system.plain_files import names_in, open_to_read
from .ended import final, read_ended, write_ended

STALE_S = 60.0
"""A holder touches its file every beat; one this old is taken for dead by a second submission."""

MAX_BACK = 10
"""How often a run may give its nodes back because one that had joined was gone."""


ROOM_BYTES, CLAIM_BYTES = 64 * 1024, 8 * 1024
"""Kept on the disk for the last words of a run whose folder fills up, and of that for the claim of its end."""


class LeaseClaim(NamedTuple):
    epoch: Epoch
    job: str
    copy: str
    facts: Dict[str, Any]
    age_s: float


class Leases:
    """The claims of one run, newest last. Without a shared folder (`folder` None) every claim is granted."""

    def __init__(self, folder: Optional[str], job: str, copy: str = "", cancel_marks: Sequence[str] = ()) -> None:
        self._folder = folder
        self._job, self._copy = job, copy
        self._cancel_marks = cancel_marks

    def claim(self, epoch: Epoch, facts: Dict[str, Any]) -> bool:
        """Take `epoch`; return False when another job has it or a newer one."""
        newest = self.newest()
        if newest and newest.epoch >= epoch:
            return False
        try:
            return self._folder is None or self._create(epoch, facts)
        except OSError:
            # Taken by another, or a full disk: the caller looks again.
            return False

    def _create(self, epoch: Epoch, facts: Dict[str, Any]) -> bool:
        os.makedirs(str(self._folder), mode=0o700, exist_ok=True)
        file = os.open(self._path(epoch), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        data = json.dumps({"job": self._job, "copy": self._copy, "facts": facts}).encode() + b"\n"
        try:
            if os.write(file, data) == len(data):
                return True
        except OSError:
            pass
        finally:
            os.close(file)
        # Half a claim would stand in the way of a whole one.
        os.unlink(self._path(epoch))
        return False

    def renew(self, epoch: Epoch) -> None:
        """Show that the holder of `epoch` lives."""
        if self._folder is not None:
            with suppress(OSError):  # a cut or full file system is judged by its readers, not here
                os.utime(self._path(epoch))

    def ended(self) -> Optional[str]:
        """Return how the run ended, where some copy of it has claimed the end."""
        if self._folder is None:
            return None
        return read_ended(self._folder)

    def end(self, state: str) -> str:
        """Claim the end of the run; return how it ended, which another copy may have said before.

        What is not final is claimed by nobody: the engine may start the run again.
        """
        if self._folder is None or final(state, self._cancel_marks) is None:
            return state
        return write_ended(self._folder, state, lambda: self.give_room(ROOM_BYTES - CLAIM_BYTES))

    def keep_room(self) -> None:
        """Keep some room on the disk for the last words of the run, in bytes that no file system stores in less."""
        if self._folder is None:
            return
        with suppress(OSError):  # it is full now: there is nothing to keep
            os.makedirs(self._folder, mode=0o700, exist_ok=True)
            file = os.open(self._room, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            with suppress(OSError):
                os.write(file, os.urandom(ROOM_BYTES))
            os.close(file)

    def give_room(self, left: int = 0) -> None:
        """Let others have what was kept, but for what is left."""
        with suppress(OSError):
            if left:
                os.truncate(self._room, left)
            else:
                os.unlink(self._room)

    @property
    def _room(self) -> str:
        return os.path.join(str(self._folder), "room")

    def count_back(self, restart: int) -> int:
        """Note that this start of the run gives its nodes back for a node that is gone; return how many starts have."""
        if self._folder is None:
            return 0
        try:
            os.makedirs(self._folder, mode=0o700, exist_ok=True)
            os.close(os.open(os.path.join(self._folder, f"back.{restart}"), os.O_WRONLY | os.O_CREAT, 0o600))
            return len([name for name in os.listdir(self._folder) if name.startswith("back.")])
        except OSError:
            return 0

    def newest(self) -> Optional[LeaseClaim]:
        """Return the claim of the greatest epoch, or None where there is none."""
        epochs = self._epochs()
        return self._read(epochs[-1]) if epochs else None

    def newer_than(self, epoch: Epoch, own_too: bool = False) -> Optional[LeaseClaim]:
        """Return the claim that fences `epoch`: of another job or copy, or for a leader (`own_too`) of any process.

        A leader knows its own claims at once; the other nodes of its job hear of them only with the next GO.
        """
        newest = self.newest()
        if newest is None or newest.epoch <= epoch:
            return None
        other_copy = newest.job != "" and newest.copy != self._copy
        return newest if own_too or self._is_other(newest) or other_copy else None

    def rival(self) -> Optional[LeaseClaim]:
        """Return the living holder that is not this job: the mark of a run that was submitted twice."""
        newest = self.newest()
        return newest if newest and self._is_other(newest) and newest.age_s < STALE_S else None

    def _is_other(self, claim: LeaseClaim) -> bool:
        """Return whether a claim is of another job.

        One without a job is being written just now: it may be our own, and the next look shows.
        """
        return claim.job not in ("", self._job)

    def _epochs(self) -> List[Epoch]:
        epochs = []
        for name in names_in(self._folder) if self._folder else ():
            head, _, tail = name.partition(".")
            restart, retry = whole_number(head), whole_number(tail)
            if restart is not None and retry is not None:
                epochs.append((restart, retry))
        return sorted(epochs)

    def _read(self, epoch: Epoch) -> Optional[LeaseClaim]:
        try:
            with open_to_read(self._path(epoch)) as file:
                row = parse_line(file.read()) or {}
                age_s = time.time() - os.fstat(file.fileno()).st_mtime
        except OSError:
            return None
        return LeaseClaim(epoch, str(row.get("job", "")), str(row.get("copy", "")), row.get("facts") or {}, age_s)

    def _path(self, epoch: Epoch) -> str:
        return os.path.join(str(self._folder), f"{epoch[0]:06d}.{epoch[1]:06d}")
