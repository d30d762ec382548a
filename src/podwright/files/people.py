"""Users of this machine by name, and folders that only some of them may read."""

from __future__ import annotations

import errno
import grp
import os
import pwd
import struct
from collections.abc import Iterable
from pathlib import Path

ACL = "system.posix_acl_access"
_OWNER, _USER, _GROUP, _MASK, _OTHER = 0x01, 0x02, 0x04, 0x10, 0x20
_ALL, _READ, _NOTHING = 7, 5, 0
_NOBODY = 0xFFFFFFFF


def user_name(uid: int | None = None) -> str | None:
    """Return the name of an account, by default of this process; None where it has none."""
    try:
        return pwd.getpwuid(os.geteuid() if uid is None else uid).pw_name
    except KeyError:
        return None


def let_read(folder: Path, members: Iterable[str], group: str) -> None:
    """Let these users, and no others, enter a folder of one's own: by a list of access, else by a group.

    An OSError says why neither goes. A group that has others in it than these users is not taken.
    """
    names = set(members)
    try:
        os.setxattr(folder, ACL, _list_of(uids_of(names)))
    except OSError as error:
        if error.errno not in (errno.ENOTSUP, errno.ENOSYS):
            raise
        _by_group(folder, names, group)


def uids_of(names: Iterable[str]) -> list[int]:
    """Return the numbers of those who have an account here, in their order."""
    uids = set()
    for name in names:
        try:
            uids.add(pwd.getpwnam(name).pw_uid)
        except KeyError:
            continue
    return sorted(uids)


def _list_of(uids: Iterable[int]) -> bytes:
    entries = [(_OWNER, _ALL, _NOBODY), *((_USER, _READ, uid) for uid in uids)]
    entries += [(_GROUP, _NOTHING, _NOBODY), (_MASK, _READ, _NOBODY), (_OTHER, _NOTHING, _NOBODY)]
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


def _by_group(folder: Path, members: set[str], group: str) -> None:
    why = f"{folder} takes no list of access"
    try:
        known = grp.getgrnam(group)
    except KeyError:
        raise OSError(errno.ENOTSUP, f"{why}, and there is no group {group}") from None
    others = {*known.gr_mem, *_of_primary_group(known.gr_gid)} - members
    if others:
        raise OSError(errno.ENOTSUP, f"{why}, and the group {group} has others in it: {', '.join(sorted(others))}")
    try:
        os.chown(folder, -1, known.gr_gid)
    except PermissionError:
        raise OSError(errno.ENOTSUP, f"{why}, and you are not in the group {group}") from None
    folder.chmod(0o750)


def _of_primary_group(gid: int) -> set[str]:
    return {account.pw_name for account in pwd.getpwall() if account.pw_gid == gid}
