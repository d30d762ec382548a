"""Tells somebody that a run has ended, whether or not a client still looks: by a command of the user's, by a webhook.

    python -m podwright.launch.notify HOME RUN [WORD...]

The command is run by no shell. It gets the run's document on its standard input, and PODWRIGHT_RUN, PODWRIGHT_STATE and
PODWRIGHT_REPORT in its environment; the last is where `podwright report` writes the page.
The webhook of the home's settings gets the same document, with a sentence under `text` as chats show it. Its address is
a secret: it is read here, stands on no command line and in no log.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from podwright.clients.http_client import ErrorAnswer, HttpClient, Unreached, request_of
from podwright.launch.finding import find
from podwright.launch.session import Session
from podwright.launch.settings import read_settings
from podwright.spec.problems import refuse

if TYPE_CHECKING:
    from podwright.launch.run import Run

OF_A_SHELL = frozenset(("|", "||", "&", "&&", ";", "<", ">", ">>"))
LOG = "notify.log"
PATIENCE_S = 20.0


def command_of(text: str) -> list[str]:
    """Split a command as a shell would; none runs it."""
    try:
        command = shlex.split(text)
    except ValueError as error:
        raise refuse(f"cannot be split into words: {str(error).lower()}", field="--notify") from None
    if of_a_shell := next(filter(OF_A_SHELL.__contains__, command), None):
        hint = """`--notify 'sh -c "..."'` asks for one"""
        raise refuse(f"`{of_a_shell}` is a shell's, and none runs the command", hint, field="--notify")
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
    """Wait, then report."""
    with Session.open(Path(home)) as session:
        run = find(session, run_id)
        record = run.wait()
    document = record.as_json()
    said = tell_webhook(read_settings(Path(home)).webhook, document)
    if said:
        print(said, flush=True)
    if not command:
        return int(bool(said))
    report = str(run.folder.path / "report.html")
    told = {"PODWRIGHT_RUN": record.id, "PODWRIGHT_STATE": record.state, "PODWRIGHT_REPORT": report}
    env = {**os.environ, **told}
    return subprocess.run(command, input=json.dumps(document).encode(), env=env, check=False).returncode


def tell_webhook(address: str | None, document: Mapping[str, Any]) -> str:
    """Post a run's document; return what went wrong, in words that do not name the address."""
    if address is None:
        return ""
    reason = f": {document['reason']}" if document.get("reason") else ""
    body = {"text": f"{document['id']} {document['state']}{reason}", **document}
    try:
        request = request_of(address, "POST", json.dumps(body).encode(), {"Content-Type": "application/json"})
        # The record goes to the address that was named, and to no other.
        with HttpClient("refused", PATIENCE_S).open(request):
            return ""
    except ErrorAnswer as error:
        return f"the webhook answered {error.status}"
    except Unreached as error:
        return f"the webhook could not be told: {error.kind}"
    except ValueError as error:
        return f"the webhook could not be told: {type(error).__name__}"


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
