"""Answers what works on a host, and what is there that no plan has; `inspect_host.py` carries it in itself.

A question is a kind with its arguments; the answer is plain data, judged where it was asked from. Nothing is changed.
"""

from __future__ import annotations

import glob
import grp
import json
import os
import pwd
import re
import ssl
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable, Dict, List

AT_ONCE = 8
PATIENCE_S = 30
MOST_CHARACTERS = 65536
FIRST_PERSON, NOBODY = 1000, 65534
NO_SHELLS = ("nologin", "false", "sync")
UNITS = "/etc/systemd/system"
LISTENING = re.compile(r"^LISTEN\s+\S+\s+\S+\s+(\S+):(\d+)\s+\S+(?:\s+users:\(\(\"[^\"]*\",pid=(\d+))?")


def answered(questions: List[List[Any]]) -> List[Any]:
    """Return the answer to each question, several at once; one that cannot be given says why."""
    with ThreadPoolExecutor(max_workers=AT_ONCE) as threads:
        return list(threads.map(answer_to, questions))


def answer_to(question: List[Any]) -> Any:
    """Return one answer; what goes wrong in it holds no other up."""
    kind, arguments = question
    try:
        return KINDS[kind](**arguments)
    except (OSError, ValueError, KeyError) as error:
        return {"error": "%s: %s" % (type(error).__name__, error)}


def run_program(argv: List[str], stdin: str = "") -> Dict[str, Any]:
    """Return how a program that only looks ended, and what it said."""
    options: Dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "timeout": PATIENCE_S}
    environment = {**os.environ, "LC_ALL": "C"}
    try:
        done = subprocess.run(argv, input=stdin.encode(), env=environment, **options)
    except subprocess.TimeoutExpired:
        return {"code": 124, "out": "", "err": "it did not end within %d s" % PATIENCE_S}
    except OSError as error:
        return {"code": 127, "out": "", "err": "%s: %s" % (argv[0], error.strerror)}
    out, err = (text.decode("utf-8", "replace")[:MOST_CHARACTERS] for text in (done.stdout, done.stderr))
    return {"code": done.returncode, "out": out, "err": err}


def people(names: List[str]) -> Dict[str, Any]:
    """Return each account that is there: number, group, home, shell, further groups, and the day when it ends."""
    ends = last_days()
    found = {}
    for entry in pwd.getpwall():
        if entry.pw_name in names:
            groups = sorted(group.gr_name for group in grp.getgrall() if entry.pw_name in group.gr_mem)
            found[entry.pw_name] = {
                "uid": entry.pw_uid,
                "gid": entry.pw_gid,
                "home": entry.pw_dir,
                "shell": entry.pw_shell,
                "groups": groups,
                "last_day": ends.get(entry.pw_name, ""),
            }
    return found


def last_days(shadow: str = "/etc/shadow") -> Dict[str, str]:
    """Return the day, counted from 1970, after which an account is closed, where it has one."""
    try:
        with open(shadow) as file:
            rows = [line.rstrip("\n").split(":") for line in file]
    except OSError:
        return {}
    return {row[0]: row[7] for row in rows if len(row) > 7 and row[7]}


def marks(paths: List[str]) -> Dict[str, Any]:
    """Return what services were last started with, by the marks of each step."""
    return {path: mark_in(path) for path in paths}


def mounts(table: str = "/proc/self/mounts") -> Dict[str, List[str]]:
    """Return source, kind and options of what is mounted, by its place; of several the last, which one sees."""
    with open(table) as file:
        rows = [line.split() for line in file]
    return {unescaped(row[1]): [unescaped(row[0]), row[2], row[3]] for row in rows}


def unescaped(name: str) -> str:
    """Return a name as it is; the kernel writes blanks in it as numbers."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found.group(1), 8)), name)


def certificates(patterns: List[str]) -> Dict[str, Any]:
    """Return when certificates end, in seconds since 1970; None of one that cannot be read."""
    paths: List[str] = []
    for pattern in patterns:
        paths += sorted(glob.glob(pattern))
    return {path: end_of(path) for path in paths}


def end_of(path: str) -> Any:
    """Return when the first certificate of a file ends."""
    decode = getattr(getattr(ssl, "_ssl"), "_test_decode_cert")  # noqa: B009 (it has no public name)
    try:
        return ssl.cert_time_to_seconds(decode(path)["notAfter"])
    except (OSError, ValueError, KeyError):
        return None


def clock() -> float:
    """Return what time it is here."""
    return time.time()


def listeners() -> List[Dict[str, Any]]:
    """Return what listens beyond the host itself: address, port and the unit whose process it is."""
    rows = []
    for line in run_program(["ss", "--no-header", "--listening", "--numeric", "--tcp", "--processes"])[
        "out"
    ].splitlines():
        found = LISTENING.match(line)
        if found is None:
            continue
        address = found.group(1).strip("[]").split("%")[0]
        if not (address.startswith("127.") or address in ("::1", "::ffff:127.0.0.1")):
            rows.append({"address": address, "port": int(found.group(2)), "unit": unit_with(found.group(3))})
    return rows


def unit_with(pid: Any) -> str:
    """Return the unit that a process belongs to; nothing where it cannot be seen."""
    try:
        with open("/proc/%s/cgroup" % pid) as file:
            path = file.read().strip().rpartition(":")[2]
    except OSError:
        return ""
    units = [name for name in path.split("/") if name.endswith((".service", ".scope", ".socket"))]
    return units[0] if units and not path.startswith("/user.slice") else ""


def firmware(adapters: str = "/sys/class/infiniband", board: str = "/sys/class/dmi/id") -> Dict[str, str]:
    """Return the versions of firmware that the kernel shows."""
    places = {"BIOS": os.path.join(board, "bios_version")}
    for path in sorted(glob.glob(os.path.join(adapters, "*", "fw_ver"))):
        places[path.split("/")[-2]] = path
    versions = {}
    for name, path in places.items():
        try:
            with open(path) as file:
                versions[name] = file.read().strip()
        except OSError:
            continue
    return versions


def strangers() -> Dict[str, List[str]]:
    """Return what a person may have made beside a plan: accounts, keys, units, drop-ins, rules of sudo, holds."""
    persons = [entry for entry in pwd.getpwall() if is_person(entry)]
    root = [entry for entry in pwd.getpwall() if entry.pw_uid == 0]
    return {
        "user": [entry.pw_name for entry in persons] + [entry.pw_name for entry in root if entry.pw_name != "root"],
        "keys": [path for path in key_files([*root, *persons]) if os.path.isfile(path)],
        "unit": [path for path in glob.glob(UNITS + "/*.*") if os.path.isfile(path) and not os.path.islink(path)],
        "drop-in": sorted(glob.glob(UNITS + "/*.d/*.conf")),
        "sudo rule": [path for path in sorted(glob.glob("/etc/sudoers.d/*")) if not path.endswith("/README")],
        "held package": run_program(["apt-mark", "showhold"])["out"].split(),
    }


def is_person(entry: Any) -> bool:
    """Return whether an account is one that somebody can log in with, and no system's own."""
    number = FIRST_PERSON <= entry.pw_uid != NOBODY
    return number and not entry.pw_shell.endswith(NO_SHELLS)


def key_files(accounts: List[Any]) -> List[str]:
    """Return where accounts have their keys, each place once."""
    return list(dict.fromkeys(os.path.join(entry.pw_dir, ".ssh", "authorized_keys") for entry in accounts))


def mark_in(path: str) -> Any:
    """Return what services were last started with, as the last bring-up noted it."""
    try:
        with open(path) as file:
            return json.load(file)
    except (OSError, ValueError):
        return {}


KINDS: Dict[str, Callable[..., Any]] = {
    "certificates": certificates,
    "clock": clock,
    "listeners": listeners,
    "marks": marks,
    "mounts": mounts,
    "people": people,
    "run": run_program,
    "strangers": strangers,
}
