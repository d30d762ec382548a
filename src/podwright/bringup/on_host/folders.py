"""Opens folders as root without being led by whoever owns one on the way; both programs carry it in themselves.

Root's own links are followed. Below a folder that others may change no link is, and what is done there is done as the
user whose it is: where root is nobody, as on NFS, that is the only way, and what the user may not do stays undone.
"""

from __future__ import annotations

import errno
import os
import pwd
import stat
from contextlib import contextmanager
from typing import Dict, Iterator, List, Optional, Tuple

Owner = Tuple[int, int]
# By its place alone: root may not read a user's folder on NFS, and need not.
FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
MOST_LINKS = 40


class LeftAlone(Exception):
    """What cannot be done where others than root have a say: the place, whose it is, and why."""

    def __init__(self, place: str, owner: str, why: str, is_missing: bool = False) -> None:
        super().__init__("%s %s" % (place, why))
        self.entry: Dict[str, str] = {"place": place, "owner": owner, "why": why}
        self.is_missing = is_missing


class Folder:
    """An open folder."""

    def __init__(self, path: str, descriptor: int, above: Optional[Folder]) -> None:
        self.path, self.descriptor = path, descriptor
        status = os.fstat(descriptor)
        self.owner: Owner = (status.st_uid, status.st_gid)
        is_ours = status.st_uid in (0, os.geteuid())
        # Whether another than root, or than who runs this, may have put it there, and whether he may change it. In a
        # folder such as /tmp nobody moves what is not his own.
        self.is_planted: bool = above is not None and above.is_shared and not (above.is_sticky and is_ours)
        group_may = bool(status.st_mode & stat.S_IWGRP) and status.st_gid != 0
        self.is_shared: bool = self.is_planted or not is_ours or group_may or bool(status.st_mode & stat.S_IWOTH)
        self.is_sticky: bool = not self.is_planted and is_ours and bool(status.st_mode & stat.S_ISVTX)

    def place(self, name: str) -> str:
        """Return the path of what has this name here."""
        return os.path.join(self.path, name)

    def status(self, name: str) -> Optional[os.stat_result]:
        """Return what has this name here, itself and not where it leads; None where nothing has."""
        try:
            return os.stat(name, dir_fd=self.descriptor, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def refuse_link(self, name: str) -> None:
        """Leave alone what others may have laid here to lead us elsewhere."""
        found = self.status(name) if self.is_shared else None
        if found is not None and stat.S_ISLNK(found.st_mode):
            who = user(self.owner[0])
            whose = "a folder of %s's" % who if self.owner[0] else "a folder that others may write to"
            raise LeftAlone(self.place(name), who if self.owner[0] else user(found.st_uid), "is a link in %s" % whose)

    def enter(self, name: str, make: bool) -> Folder:
        """Return a folder of this one; make it where it is wanted and not there."""
        if make and self.status(name) is None:
            os.mkdir(name, 0o755, dir_fd=self.descriptor)
        return Folder(self.place(name), os.open(name, FOLDER, dir_fd=self.descriptor), self)


@contextmanager
def acting_as(folder: Folder, owner: Optional[Owner]) -> Iterator[None]:
    """Be an owner, or that of the folder, where others than root have a say; what fails there is left alone."""
    if not folder.is_shared:
        yield
        return
    uid, gid = owner or folder.owner
    before = os.geteuid(), os.getegid(), os.getgroups()
    changes = before[0] == 0 and uid != 0
    try:
        if changes:
            os.setgroups([gid])
            os.setegid(gid)
            os.seteuid(uid)
        yield
    except OSError as error:
        why = "does not let %s in: %s" % (user(uid), error.strerror)
        raise LeftAlone(folder.path, user(folder.owner[0]), why, error.errno == errno.ENOENT)
    finally:
        if changes:
            os.seteuid(before[0])
            os.setegid(before[1])
            os.setgroups(before[2])


@contextmanager
def opened(path: str, owner: Optional[Owner] = None, make: bool = False) -> Iterator[Folder]:
    """Give the folder at a path; the missing ones are made, as the owner where others than root have a say."""
    open_now: List[int] = []
    try:
        yield _walk(path, owner, make, open_now)
    finally:
        for descriptor in open_now:
            os.close(descriptor)


def _walk(path: str, owner: Optional[Owner], make: bool, open_now: List[int]) -> Folder:
    """Go down from the root, one name after the other."""
    ways, links = _names(path), 0
    here = _root(open_now)
    while ways:
        name = ways.pop(0)
        with acting_as(here, owner):
            here.refuse_link(name)
            found = here.status(name)
            if found is not None and stat.S_ISLNK(found.st_mode):
                links += 1
                if links > MOST_LINKS:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
                target = os.readlink(name, dir_fd=here.descriptor)
                ways, here = _names(os.path.normpath(here.place(target))) + ways, _root(open_now)
                continue
            here = here.enter(name, make)
        open_now.append(here.descriptor)
    return here


def _names(path: str) -> List[str]:
    return [name for name in path.split("/") if name]


def _root(open_now: List[int]) -> Folder:
    descriptor = os.open("/", FOLDER)
    open_now.append(descriptor)
    return Folder("/", descriptor, None)


def user(uid: int) -> str:
    """Return how a user is called; by the number where nobody has given a name."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return "user %d" % uid
