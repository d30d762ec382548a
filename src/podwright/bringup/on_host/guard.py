"""Keeps a way back while the way in changes: what a second connection does not confirm goes back by itself.

It is sent to hosts as it is, as `guard.py hold` before files are changed and `guard.py confirm` by another connection
after that; standard library only, Python 3.8. systemd holds the clock, so that nothing of ours need live on.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from typing import Any, Callable, Dict, List

FOLDER = "/var/lib/podwright-guard"
UNIT = "podwright-guard"
INDEX = "kept.json"


def hold(wanted: Dict[str, Any], folder: str = FOLDER) -> List[str]:
    """Keep what these files are, and write what puts them back; return the command that does.

    What an earlier call kept and nobody confirmed is the last that is known to work: it stays.
    """
    os.makedirs(folder, mode=0o700, exist_ok=True)
    kept = kept_in(folder)
    for path in wanted["paths"]:
        if path not in kept:
            kept[path] = keep(path, os.path.join(folder, str(len(kept))))
    with open(os.path.join(folder, INDEX), "w") as stream:
        json.dump(kept, stream)
    lines = []
    for path, copy in kept.items():
        words = ["cp", "--preserve=all", copy, path] if copy else ["rm", "-f", path]
        lines.append(joined(words))
    lines += [joined(["systemctl", "restart", name]) for name in wanted["services"]]
    lines.append(joined(["rm", "-rf", folder]))
    script = os.path.join(folder, "restore.sh")
    with open(script, "w") as stream:
        stream.write("\n".join(lines) + "\n")
    return ["/bin/sh", script]


def kept_in(folder: str) -> Dict[str, str]:
    """Return the files that are kept there, each with its copy; empty of one that was not there."""
    try:
        with open(os.path.join(folder, INDEX)) as stream:
            kept: Dict[str, str] = json.load(stream)
            return kept
    except (OSError, ValueError):
        return {}


def keep(path: str, copy: str) -> str:
    """Keep a file with its rights; return its copy, or nothing where there is none."""
    if not os.path.lexists(path):
        return ""
    shutil.copy2(path, copy)
    status = os.stat(path)
    os.chown(copy, status.st_uid, status.st_gid)
    return copy


def joined(words: List[str]) -> str:
    """Return a line of shell."""
    return " ".join(map(shlex.quote, words))


def begin(wanted: Dict[str, Any]) -> None:
    """Hold, and start the clock; one that runs already starts again."""
    command = hold(wanted)
    stop()
    after = "--on-active=%ds" % wanted["after_s"]
    words = ["systemd-run", "--quiet", "--unit=" + UNIT, after, "--timer-property=AccuracySec=1s", *command]
    subprocess.run(words, check=True)


def stop() -> None:
    """Stop the clock, where one runs."""
    quiet: Dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    subprocess.call(["systemctl", "stop", UNIT + ".timer"], **quiet)
    subprocess.call(["systemctl", "reset-failed", UNIT + ".service"], **quiet)


def confirm(wanted: Dict[str, Any], folder: str = FOLDER) -> None:
    """Let what was changed stay; where it went back meanwhile, say so."""
    stop()
    if not os.path.exists(os.path.join(folder, "restore.sh")):
        raise SystemExit("the way in was put back as it was: nobody got in by the new one in time")
    shutil.rmtree(folder)


if __name__ == "__main__":
    verbs: Dict[str, Callable[[Dict[str, Any]], None]] = {"hold": begin, "confirm": confirm}
    verbs[sys.argv[1]](json.load(sys.stdin))
