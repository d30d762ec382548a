"""Gives a host folders and files, or services, all of a step at once; says what it did as a line of JSON.

It is sent to hosts as it is, as `apply_step.py files` or `apply_step.py services`, and gets what is wanted on standard
input: standard library only, Python 3.8. A file is put in place whole or not at all, after its owner's own check.
"""

from __future__ import annotations

import grp
import json
import os
import pwd
import shlex
import subprocess
import sys
from typing import Any, Dict, List

TOO_LONG_S = 300


def give_files(wanted: Dict[str, Any]) -> List[str]:
    """Make the folders and write the files; return their paths."""
    for folder in wanted["folders"]:
        os.makedirs(folder["path"], exist_ok=True)
        set_rights(folder["path"], folder)
    for file, text in wanted["files"]:
        write(file, text)
    return [entry["path"] for entry in wanted["folders"]] + [file["path"] for file, _ in wanted["files"]]


def write(file: Dict[str, Any], text: str) -> None:
    """Write a file beside its place, have it checked, and put it there in one step."""
    os.makedirs(os.path.dirname(file["path"]), exist_ok=True)
    part = "%s.podwright-%d" % (file["path"], os.getpid())
    try:
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        set_rights(part, file)
        if file.get("check"):
            run(shlex.split(file["check"] % part), "%s is not taken by its owner" % file["path"])
        os.rename(part, file["path"])
    except OSError as error:
        raise SystemExit("%s: %s" % (file["path"], error.strerror))
    finally:
        if os.path.exists(part):
            os.unlink(part)


def set_rights(path: str, wanted: Dict[str, Any]) -> None:
    """Give a path its owner, its group and its mode; one that the host does not have is named."""
    try:
        os.chown(path, pwd.getpwnam(wanted["owner"]).pw_uid, grp.getgrnam(wanted["group"]).gr_gid)
    except KeyError as error:
        raise SystemExit("%s: %s" % (wanted["path"], error.args[0]))
    os.chmod(path, int(wanted["mode"], 8))


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
    verbs = {"files": give_files, "services": give_services}
    json.dump(verbs[sys.argv[1]](json.load(sys.stdin)), sys.stdout)
