"""Who may write to PODWRIGHT_HOME: whoever may, can put programs there that run as this user."""

from __future__ import annotations

import pwd
import stat
from os import getuid
from pathlib import Path

from podwright.spec.problems import refuse


def check_owner(home: Path) -> None:
    """Refuse a home that another user owns or that all may write; one that is not there raises FileNotFoundError."""
    status = home.stat()
    elsewhere = "set PODWRIGHT_HOME to a folder of your own"
    if status.st_uid != getuid():
        raise refuse(f"{home} belongs to {_user(status.st_uid)}, not to you", hint=elsewhere)
    if status.st_mode & stat.S_IWOTH:
        message = f"{home} may be written by everybody: others could put programs there that run as you"
        # A folder with the sticky bit is everybody's on purpose, as /tmp is.
        if not status.st_mode & stat.S_ISVTX:
            elsewhere += f", or `chmod 700 {home}` if nobody has"
        raise refuse(message, hint=elsewhere)


def take_from_others(home: Path) -> None:
    """Take the rights of others from a home that is wider than 0700; that is said once, since it is done once."""
    status = home.stat()
    if status.st_mode & 0o077:
        try:
            home.chmod(0o700)
        except OSError:
            if status.st_mode & stat.S_IWGRP:
                raise
            return  # a home that cannot be written is still read: what lies in it has modes of its own
        done = "written by its group" if status.st_mode & stat.S_IWGRP else "entered by others"
        _say(f"{home} could be {done}; it is yours alone now (mode 0700)")


def _user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"


def _say(text: str) -> None:
    """Say it on stderr, or wherever a program that uses Podwright sends its warnings."""
    import logging

    logging.getLogger("podwright").warning(text)
