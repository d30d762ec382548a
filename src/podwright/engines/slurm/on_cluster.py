"""Prints the runs that lie in a user's folder on a cluster, a line of JSON for each; the cluster's own Python runs it.

Any rank may have written there: plain files of the user's own alone are read, by no link, and none that is too long.
"""

from __future__ import annotations

import json
import os
import stat
import sys
from typing import Any

MAX_BYTES = 4 << 20
MAX_PRINTED = 64 << 20
SHORT_BYTES = 65536


def read_plain(path: str, limit: int = SHORT_BYTES) -> bytes:
    """Return a plain file of this user's; nothing where something else is there."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return b""
    status = os.fstat(file)
    if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid() or status.st_size >= limit:
        os.close(file)
        return b""
    with os.fdopen(file, "rb") as opened:
        return opened.read(limit)


def fields_of(data: bytes) -> dict[str, Any]:
    """Return a JSON object; nothing for any other text."""
    try:
        row = json.loads(data.decode())
    except (ValueError, RecursionError):
        return {}
    return row if isinstance(row, dict) else {}


def row_of(run: str, name: str) -> dict[str, Any] | None:
    """Return what is known of a run here; None where no client of ours has left word."""
    asked = fields_of(read_plain(os.path.join(run, "run.json"), MAX_BYTES))
    if not asked:
        return None
    try:
        owner = os.readlink(os.path.join(run, "owner"))[:100]
    except OSError:
        owner = ""
    site = fields_of(read_plain(os.path.join(run, "job", "site.json")))
    ended = fields_of(read_plain(os.path.join(run, "lease", "ended"))).get("state")
    cancelled = os.path.lexists(os.path.join(run, "cancelled"))
    return {"id": name, "asked": asked, "site": site, "owner": owner, "ended": ended, "cancelled": cancelled}


def names_in(folder: str) -> list[str]:
    """Return the runs that are there, those that changed last first."""
    found = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if not entry.name.startswith(".") and entry.is_dir(follow_symlinks=False):
                found.append((-entry.stat(follow_symlinks=False).st_mtime, entry.name))
    return [name for _, name in sorted(found)]


def main(folder: str, *wanted: str) -> None:
    """Print all runs but points of others, or those that are wanted; the first line says where they lie."""
    try:
        runs = os.path.join(os.path.realpath(folder), "runs")
        names = list(wanted) or names_in(runs)
    except OSError:
        return
    print(json.dumps({"folder": os.path.dirname(runs)}))
    printed = 0
    for name in names:
        row = row_of(os.path.join(runs, name), name)
        if row is None or (not wanted and row["asked"].get("parent")):
            continue
        line = json.dumps(row)
        printed += len(line)
        if printed > MAX_PRINTED:
            return
        print(line)


if __name__ == "__main__":
    main(*sys.argv[1:])
