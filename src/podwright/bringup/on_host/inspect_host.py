"""Looks at a host and says what is there and what works: files, packages, services. Changes nothing.

It is sent to hosts as it is and gets its question on standard input: standard library only, Python 3.8.
"""

from __future__ import annotations

import base64
import fcntl
import glob
import grp
import hashlib
import json
import os
import pwd
import stat
import struct
import subprocess
import sys
import time
from typing import Any, Callable, Dict, List, Optional, Sequence

from podwright.bringup.on_host.folders import Folder, LeftAlone, acting_as, opened
from podwright.bringup.on_host.workings import answered, firmware, mark_in

MAX_SHOWN = 65536
MAX_BYTES = 64 << 20
LISTS = "/var/lib/apt/lists"
SOURCES = "/etc/apt/sources.list.d/*"
LOCKS = ("/var/lib/dpkg/lock-frontend", "/var/lib/dpkg/lock", "/var/lib/apt/lists/lock")
FLOCK = "hhqqi4x"
ADAPTERS = "/sys/class/infiniband"
SYSTEMCTL = ("systemctl", "show", "--property=Id,Names,ActiveState,UnitFileState,LoadState")


def look(asked: Dict[str, Any]) -> Dict[str, Any]:
    """Return what a host has of what it is asked for."""
    shown = set(asked.get("show", ()))
    paths = [*asked.get("files", ()), *asked.get("folders", ())]
    installed = packages(asked.get("packages", ()))
    return {
        "files": {path: file_at(path, path in shown) for path in paths},
        "differing": differing(asked.get("wanted", {})),
        "accounts": accounts(asked.get("accounts", {})),
        "packages": installed,
        "lacking": lacking(installed, asked.get("releases", {})),
        "broken": said(["dpkg", "--audit"]).strip() != "",
        "services": services(asked.get("services", ())),
        "mark": mark_in(asked.get("mark", "")),
        "lists_s": age_of(LISTS, glob.glob(SOURCES)),
        "lock": lock_holder(),
        "gpus": len(glob.glob("/dev/nvidia[0-9]*")),
        "links": {name: link(name) for name in asked.get("links", ())},
        "firmware": firmware(),
        "answers": answered(asked.get("questions", [])),
    }


def file_at(path: str, shown: bool) -> Dict[str, str] | None:
    """Return a file's digest, mode and owner, or who has something in the way; None where there is nothing."""
    above, name = os.path.split(path)
    try:
        with opened(above) as folder, acting_as(folder, None):
            folder.refuse_link(name)
            status = folder.status(name)
            return None if status is None else entry_of(folder, name, status, shown)
    except LeftAlone as alone:
        if alone.is_missing:
            return None
        return {"digest": "", "mode": "", "owner": "", "group": "", "left": alone.entry["why"], **place_of(alone)}
    except OSError:
        return None


def place_of(alone: LeftAlone) -> Dict[str, str]:
    """Return what is in the way, and whose it is."""
    return {"place": alone.entry["place"], "user": alone.entry["owner"]}


def entry_of(folder: Folder, name: str, status: os.stat_result, shown: bool) -> Dict[str, str]:
    """Return digest, mode and owner of what is there."""
    entry = {
        "digest": "",
        "mode": "%04o" % stat.S_IMODE(status.st_mode),
        "owner": name_of(pwd.getpwuid, status.st_uid),
        "group": name_of(grp.getgrgid, status.st_gid),
    }
    if stat.S_ISREG(status.st_mode):
        content = content_of(folder, name)
        entry["digest"] = "too large to be ours" if content is None else hashlib.sha256(content).hexdigest()
        if shown and content is not None and len(content) <= MAX_SHOWN:
            entry["content"] = base64.b64encode(content).decode()
    elif not stat.S_ISDIR(status.st_mode):
        entry["digest"] = "no plain file"
    return entry


def content_of(folder: Folder, name: str) -> Optional[bytes]:
    """Return what stands in a file; None of one that is larger than any of ours, or is a pipe meanwhile."""
    descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder.descriptor)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        content = file.read(MAX_BYTES + 1)
    return content if len(content) <= MAX_BYTES else None


def differing(wanted: Dict[str, Dict[str, str]]) -> List[str]:
    """Return the paths that are not there as they should be."""
    return [path for path, entry in wanted.items() if file_at(path, False) != entry]


def accounts(wanted: Dict[str, List[Any]]) -> List[str]:
    """Return the accounts that are there with their numbers and shells."""
    there = {entry.pw_name: [entry.pw_uid, entry.pw_gid, entry.pw_shell] for entry in pwd.getpwall()}
    return [name for name, (number, shell) in wanted.items() if there.get(name) == [number, number, shell]]


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


def lacking(installed: Dict[str, str | None], releases: Dict[str, str]) -> List[str]:
    """Return the packages that are not there, and those of another release than they should be."""
    return [
        name for name, version in installed.items() if version is None or not version.startswith(releases.get(name, ""))
    ]


def services(names: Sequence[str]) -> Dict[str, str]:
    """Return of each service whether it runs and whether it starts with the host."""
    states = dict.fromkeys(names, "missing")
    if names:
        units = [unit_of(name) for name in names]
        for paragraph in said([*SYSTEMCTL, *units]).split("\n\n"):
            fields = dict(line.split("=", 1) for line in paragraph.splitlines() if "=" in line)
            for unit in fields.get("Names", "").split():
                name = unit[: -len(".service")] if unit.endswith(".service") else unit
                if name in states and fields.get("LoadState") == "loaded":
                    states[name] = "%s, %s" % (fields["ActiveState"], fields["UnitFileState"])
    return states


def unit_of(service: str) -> str:
    """Return the name that systemd has of a service; what has a kind already is taken as it is."""
    return service if service.endswith((".mount", ".timer", ".socket")) else "%s.service" % service


def age_of(lists: str, sources: Sequence[str]) -> float:
    """Return for how many seconds lists of packages have been there; those from before their sources are no good."""
    try:
        fetched = os.stat(lists).st_mtime
        if any(os.stat(path).st_mtime > fetched for path in sources):
            fetched = 0.0
    except OSError:
        fetched = 0.0
    return time.time() - fetched


def lock_holder(paths: Sequence[str] = LOCKS) -> str:
    """Return the process that holds a lock of apt or dpkg, by its number and its command; empty where none does."""
    for path in paths:
        try:
            with open(path, "rb+") as file:
                asked = struct.pack(FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
                kind, _, _, _, pid = struct.unpack(FLOCK, fcntl.fcntl(file, fcntl.F_GETLK, asked))
        except OSError:
            continue
        if kind != fcntl.F_UNLCK:
            return "%s is held by process %d (%s)" % (path, pid, command_of(pid))
    return ""


def command_of(pid: int) -> str:
    """Return the command of a process; a question mark where it cannot be seen."""
    try:
        with open("/proc/%d/cmdline" % pid, "rb") as file:
            return file.read(200).replace(b"\0", b" ").decode("utf-8", "replace").strip()
    except OSError:
        return "?"


def link(name: str, adapters: str = ADAPTERS) -> Dict[str, str] | None:
    """Return state and rate of an adapter's first port, such as `ACTIVE` and `400`; None where there is none."""
    port = os.path.join(adapters, name, "ports", "1")
    try:
        with open(os.path.join(port, "state")) as file:
            state = file.read()
        with open(os.path.join(port, "rate")) as file:
            rate = file.read()
    except OSError:
        return None
    return {"state": state.split(":")[-1].strip(), "gbps": rate.split()[0]}


def said(command: List[str]) -> str:
    """Return what a program printed; nothing where it is not there."""
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    except OSError:
        return ""
    return done.stdout.decode("utf-8", "replace")


if __name__ == "__main__":
    if sys.argv[1:] == ["lock"]:
        sys.exit(lock_holder() or 0)
    json.dump(look(json.load(sys.stdin)), sys.stdout)
