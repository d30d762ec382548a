"""The ordinary user of a lab: who called sudo, or one who exists nowhere but in the lab."""

from __future__ import annotations

import pwd
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from podwright.pilot.protocol import whole_number

FIRST_UID = 20001
_SHELL = "/bin/bash"  # which reads the .profile of the lab; not every user's own shell does
_NO_PASSWORD = "*"  # unlike `!` this does not lock the account: sshd lets a key in


@dataclass(frozen=True)
class LabUser:
    """An account as the lab's machines know it."""

    name: str
    uid: int
    gid: int


def lab_user(environ: Mapping[str, str]) -> LabUser:
    """Return the user who called sudo, else `pod` with the first uid from 20001 on that nobody has."""
    uid = environ.get("SUDO_UID", "0")
    if whole_number(uid):
        try:
            entry = pwd.getpwuid(int(uid))
        except KeyError:
            return LabUser(environ.get("SUDO_USER", "pod"), int(uid), int(environ.get("SUDO_GID", uid)))
        return LabUser(entry.pw_name, entry.pw_uid, entry.pw_gid)
    taken = {entry.pw_uid for entry in pwd.getpwall()}
    free = next(number for number in range(FIRST_UID, FIRST_UID + len(taken) + 1) if number not in taken)
    return LabUser("pod", free, free)


def account_files(user: LabUser, home: Path, passwd: str, group: str) -> dict[str, str]:
    """Return passwd, group and shadow of the lab: the machine's accounts and this one, and nobody's password."""
    others = _without(passwd.splitlines(), user.name)
    line = f"{user.name}:x:{user.uid}:{user.gid}:Lab user:{home}:{_SHELL}"
    groups = group.splitlines()
    if not any(entry.split(":")[2:3] == [str(user.gid)] for entry in groups):
        groups = [*_without(groups, user.name), f"{user.name}:x:{user.gid}:"]
    names = [entry.split(":")[0] for entry in [*others, line]]
    return {
        "passwd": _text([*others, line]),
        "group": _text(groups),
        "shadow": _text(f"{name}:{_NO_PASSWORD}:19000:0:99999:7:::" for name in names),
    }


def _without(lines: Iterable[str], name: str) -> list[str]:
    return [line for line in lines if line and line.split(":")[0] != name]


def _text(lines: Iterable[str]) -> str:
    return "\n".join([*lines, ""])
