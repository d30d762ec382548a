"""Gives a host folders and files, or services, all of a step at once; says what it did as a line of JSON.

It is sent to hosts as it is, as `apply_step.py files` or `apply_step.py services`, and gets what is wanted on standard
input: standard library only, Python 3.8. A file is put in place whole or not at all, after its owner's own check.
"""

from __future__ import annotations

import grp
import hashlib
import json
import os
import pwd
import shlex
import subprocess
import sys
from typing import Any, Callable, Dict, List

from podwright.bringup.on_host.folders import Folder, LeftAlone, Owner, acting_as, opened, user

TOO_LONG_S = 300


def give_files(wanted: Dict[str, Any]) -> Dict[str, Any]:
    """Make the folders and write the files; return their paths, and what users have in the way.

    What was written is kept in a record, where one is named: whoever watches the host sees by it what is edited later.
    """
    given: List[str] = []
    written: Dict[str, Dict[str, str]] = {}
    left: Dict[str, Dict[str, str]] = {}
    texts = [(folder, None) for folder in wanted["folders"]] + [(file, text) for file, text in wanted["files"]]
    for entry, text in texts:
        try:
            if text is None:
                make_folder(entry)
            else:
                write(entry, text)
                written[entry["path"]] = as_written(entry, text)
            given.append(entry["path"])
        except LeftAlone as alone:
            left.setdefault(alone.entry["place"], alone.entry)
        except OSError as error:
            raise SystemExit("%s: %s" % (entry["path"], error.strerror))
    if wanted.get("record"):
        remember(wanted["record"], written)
    return {"given": given, "left": list(left.values())}


def as_written(file: Dict[str, Any], text: str) -> Dict[str, str]:
    """Return how a file is when it was just written."""
    rights = {name: file[name] for name in ("mode", "owner", "group")}
    return {"digest": hashlib.sha256(text.encode()).hexdigest(), **rights}


def remember(record: Dict[str, Any], written: Dict[str, Dict[str, str]]) -> None:
    """Keep how these files were written, beside those of earlier times."""
    try:
        with open(record["path"]) as stream:
            known = json.load(stream)
    except (OSError, ValueError):
        known = {}
    write(record, json.dumps({**known, **written}, indent=1, sort_keys=True) + "\n")


def make_folder(wanted: Dict[str, Any]) -> None:
    """Make a folder, and give it its rights."""
    owner = owner_of(wanted)
    with opened(wanted["path"], owner, make=True) as folder:
        uid = folder.owner[0]
        # Whoever may rename here could have put any folder of anybody's in this place.
        if folder.is_planted and uid != owner[0]:
            raise LeftAlone(folder.path, user(uid), "is %s's" % user(uid))
        with acting_as(folder, owner):
            set_rights(folder.descriptor, owner, wanted["mode"])


def write(file: Dict[str, Any], text: str) -> None:
    """Write a file beside its place, have it checked, and put it there in one step."""
    owner = owner_of(file)
    above, name = os.path.split(file["path"])
    with opened(above, owner, make=True) as folder:
        part = "%s.podwright-%d" % (name, os.getpid())
        try:
            with acting_as(folder, owner):
                folder.refuse_link(name)
                write_part(folder, part, owner, file["mode"], text)
            if file.get("check"):
                run(shlex.split(file["check"] % folder.place(part)), "%s is not taken by its owner" % file["path"])
            with acting_as(folder, owner):
                os.rename(part, name, src_dir_fd=folder.descriptor, dst_dir_fd=folder.descriptor)
        finally:
            with acting_as(folder, owner):
                if folder.status(part) is not None:
                    os.unlink(part, dir_fd=folder.descriptor)


def write_part(folder: Folder, name: str, owner: Owner, mode: str, text: str) -> None:
    """Write a new file to the disk; until it is whole it is nobody else's to read."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    descriptor = os.open(name, flags, 0o600, dir_fd=folder.descriptor)
    with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(descriptor)
        set_rights(descriptor, owner, mode)


def owner_of(wanted: Dict[str, Any]) -> Owner:
    """Return owner and group by their numbers; one that the host does not have is named."""
    try:
        return pwd.getpwnam(wanted["owner"]).pw_uid, grp.getgrnam(wanted["group"]).gr_gid
    except KeyError as error:
        raise SystemExit("%s: %s" % (wanted["path"], error.args[0]))


def set_rights(descriptor: int, owner: Owner, mode: str) -> None:
    """Give what is open its owner, its group and its mode, whatever its name leads to meanwhile."""
    status = os.fstat(descriptor)
    # A folder is not open for reading: the kernel knows it by this name.
    place = "/proc/self/fd/%d" % descriptor
    if (status.st_uid, status.st_gid) != owner:
        os.chown(place, *owner)
    os.chmod(place, int(mode, 8))


def give_services(wanted: Dict[str, Any]) -> List[str]:
    """Start again what has new files, then all that does not run; keep what they were started with, and return them."""
    order: List[str] = wanted["services"]
    # What a step names first the others need; what it does not name is done at once.
    restarts = sorted(wanted["restarts"], key=lambda name: order.index(name) if name in order else -1)
    run(["systemctl", "daemon-reload"], "systemd")
    for name in restarts:
        run(["systemctl", "restart", name], name)
    for name in wanted["starts"]:
        run(["systemctl", "enable", "--quiet", "--now", name], name)
    for name in wanted["services"]:
        if subprocess.call(["systemctl", "is-active", "--quiet", name]):
            raise SystemExit("%s does not run: %s" % (name, last_words(name)))
    if wanted["started_with"]:
        mark = {"path": wanted["mark"], "mode": "0644", "owner": "root", "group": "root"}
        write(mark, json.dumps(wanted["started_with"]))
    return restarts + list(wanted["starts"])


def run(command: List[str], what: str) -> None:
    """Run a program; one that fails ends everything with its last line, or the service's own."""
    options: Dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    try:
        done = subprocess.run(command, timeout=TOO_LONG_S, **options)
    except subprocess.TimeoutExpired:
        raise SystemExit("%s: %s did not end within %d s" % (what, " ".join(command[:2]), TOO_LONG_S))
    if done.returncode:
        lines = done.stdout.decode("utf-8", "replace").strip().splitlines() or ["it ended with %d" % done.returncode]
        if command[0] == "systemctl":
            raise SystemExit("%s does not run: %s" % (what, last_words(what) or lines[-1]))
        raise SystemExit("%s: %s" % (what, lines[-1]))


def last_words(service: str) -> str:
    """Return the last line that a service itself wrote to the journal, else the last that systemd wrote of it."""
    unit = service if "." in service else "%s.service" % service
    for whose in ("_SYSTEMD_UNIT=%s" % unit, "--unit=%s" % unit):
        command = ["journalctl", whose, "--boot", "--lines=1", "--output=cat", "--quiet", "--no-pager"]
        line = subprocess.run(command, stdout=subprocess.PIPE).stdout.decode("utf-8", "replace").strip()
        if line:
            return line
    return ""


if __name__ == "__main__":
    verbs: Dict[str, Callable[[Dict[str, Any]], Any]] = {"files": give_files, "services": give_services}
    json.dump(verbs[sys.argv[1]](json.load(sys.stdin)), sys.stdout)
