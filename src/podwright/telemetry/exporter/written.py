"""Files that are not as a bring-up wrote them: somebody edited them, gave them other rights, or took them away.

Only those of the system: homes are their users' own, and the exporter does not see them.
"""

from __future__ import annotations

import grp
import hashlib
import json
import os
import pwd
import stat
from typing import Any, Callable, Dict, List

from ...pilot.sensors.proc import Scope
from ...pilot.system.plain_files import read_text, read_whole
from ..page import MetricSample

GIVEN = "/var/lib/podwright-given.json"
_MAX_TOLD = 50
_UNSEEN = ("/home/", "/root/", "/run/user/")


def written_samples(scope: Scope) -> List[MetricSample]:
    """Return how many files were written, and those that differ now; a ValueError for a record that is none."""
    text = read_text(scope.path(GIVEN))
    record: Dict[str, Dict[str, Any]] = json.loads(text) if text else {}
    paths = [path for path in sorted(record) if not path.startswith(_UNSEEN)]
    found = {path: difference(scope.path(path), record[path]) for path in paths}
    differing = [(path, how) for path, how in found.items() if how]
    told = [
        MetricSample("podwright_host_file_differs", (("file", path), ("how", how)), 1.0)
        for path, how in differing[:_MAX_TOLD]
    ]
    count = [MetricSample("podwright_host_files", (), float(len(paths)))] if paths else []
    return [*count, *told]


def difference(path: str, wanted: Dict[str, Any]) -> str:
    """Return how a file differs from how it was written; nothing of one that does not."""
    try:
        status = os.lstat(path)
    except OSError:
        return "missing"
    if not stat.S_ISREG(status.st_mode) or hashlib.sha256(read_whole(path)).hexdigest() != wanted["digest"]:
        return "edited"
    rights = ("%04o" % stat.S_IMODE(status.st_mode), _user(status.st_uid), _group(status.st_gid))
    return "" if rights == (wanted["mode"], wanted["owner"], wanted["group"]) else "other rights"


def _user(number: int) -> str:
    return _named(lambda: pwd.getpwuid(number).pw_name, number)


def _group(number: int) -> str:
    return _named(lambda: grp.getgrgid(number).gr_name, number)


def _named(name: Callable[[], str], number: int) -> str:
    try:
        return name()
    except KeyError:
        return str(number)
