"""Tells somebody that a run has ended: runs a command of the user's, whether or not a client still looks.

    python -m podwright.launch.notify HOME RUN WORD...

The command gets the run's document on its standard input, and PODWRIGHT_RUN and PODWRIGHT_STATE in its environment.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from podwright.spec.problems import refuse

if TYPE_CHECKING:
    from podwright.launch.run import Run

LOG = "notify.log"


def command_of(text: str) -> list[str]:
    """Split a command as a shell would; none runs it."""
    try:
        command = shlex.split(text)
    except ValueError as error:
        raise refuse(f"cannot be split into words: {str(error).lower()}", field="--notify") from None
    if not command:
        raise refuse("names no command", "write it like `--notify 'mail -s done me@example.org'`", field="--notify")
    return command


def when_ended(run: Run, command: Sequence[str]) -> None:
    """Leave a process that waits for the end of a run and then runs a command; what that says goes to notify.log."""
    folder = run.folder.path
    waiter = [sys.executable, "-m", "podwright.launch.notify", str(folder.parent.parent), run.id, *command]
    log = os.open(folder / LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        waiting = subprocess.Popen(waiter, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        threading.Thread(target=waiting.wait, daemon=True).start()  # it outlives us, or we outlive it
    finally:
        os.close(log)


def main(home: str, run_id: str, *command: str) -> int:
    """Wait, then tell."""
    from podwright.launch import Session, find

    with Session.open(Path(home)) as session:
        record = find(session, run_id).wait()
    env = {**os.environ, "PODWRIGHT_RUN": record.id, "PODWRIGHT_STATE": record.state}
    return subprocess.run(command, input=json.dumps(record.as_json()).encode(), env=env, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
