"""Looks at a host and says what is there: files, packages, services. Changes nothing.

It is sent to hosts as it is and gets its question on standard input: standard library only, Python 3.8.
"""

from __future__ import annotations

import base64
import glob
import grp
import hashlib
import json
import os
import pwd
import stat
import subprocess
import sys
from typing import Any, Callable, Dict, List, Sequence

MOST_SHOWN = 65536
SYSTEMCTL = ("systemctl", "show", "--property=Id,Names,ActiveState,UnitFileState,LoadState")


def look(asked: Dict[str, Any]) -> Dict[str, Any]:
    """Return what a host has of what it is asked for."""
    shown = set(asked.get("show", ()))
    paths = [*asked.get("files", ()), *asked.get("folders", ())]
    return {
        "files": {path: file_at(path, path in shown) for path in paths},
        "packages": packages(asked.get("packages", ())),
        "broken": said(["dpkg", "--audit"]).strip() != "",
        "services": services(asked.get("services", ())),
        "mark": mark_in(asked.get("mark", "")),
        "gpus": len(glob.glob("/dev/nvidia[0-9]*")),
    }


def file_at(path: str, shown: bool) -> Dict[str, str] | None:
    """Return a file's digest, mode and owner; None where there is nothing."""
    try:
        status = os.lstat(path)
    except OSError:
        return None
    entry = {
        "digest": "",
        "mode": "%04o" % stat.S_IMODE(status.st_mode),
        "owner": name_of(pwd.getpwuid, status.st_uid),
        "group": name_of(grp.getgrgid, status.st_gid),
    }
    if stat.S_ISREG(status.st_mode):
        with open(path, "rb") as file:
            content = file.read()
        entry["digest"] = hashlib.sha256(content).hexdigest()
        if shown and len(content) <= MOST_SHOWN:
            entry["content"] = base64.b64encode(content).decode()
    elif not stat.S_ISDIR(status.st_mode):
        entry["digest"] = "no plain file"
    return entry


def name_of(lookup: Callable[[int], Any], number: int) -> str:
    """Return the name of a user or group; its number where it has none."""
    try:
        return str(lookup(number)[0])
    except KeyError:
        return str(number)


def packages(names: Sequence[str]) -> Dict[str, str | None]:
    """Return the version of each package; None where it is not whole on the disk."""
    versions: Dict[str, str | None] = dict.fromkeys(names)
    if names:
        wanted = "--showformat=${Package} ${db:Status-Status} ${Version}\\n"
        for line in said(["dpkg-query", "--show", wanted, *names]).splitlines():
            name, state, *version = line.split()
            if state == "installed":
                versions[name] = "".join(version)
    return versions


def services(names: Sequence[str]) -> Dict[str, str]:
    """Return of each service whether it runs and whether it starts with the host."""
    states = dict.fromkeys(names, "missing")
    if names:
        units = ["%s.service" % name for name in names]
        for paragraph in said([*SYSTEMCTL, *units]).split("\n\n"):
            fields = dict(line.split("=", 1) for line in paragraph.splitlines() if "=" in line)
            for unit in fields.get("Names", "").split():
                name = unit.rsplit(".", 1)[0]
                if name in states and fields.get("LoadState") == "loaded":
                    states[name] = "%s, %s" % (fields["ActiveState"], fields["UnitFileState"])
    return states


def mark_in(path: str) -> Any:
    """Return what services were last started with, as the last bring-up noted it."""
    try:
        with open(path) as file:
            return json.load(file)
    except (OSError, ValueError):
        return {}


def said(command: List[str]) -> str:
    """Return what a program printed; nothing where it is not there."""
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    except OSError:
        return ""
    return done.stdout.decode("utf-8", "replace")


if __name__ == "__main__":
    json.dump(look(json.load(sys.stdin)), sys.stdout)
