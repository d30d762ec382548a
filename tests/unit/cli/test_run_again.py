"""`run` without a file, of a program, like another run, from its checkpoint, and with somebody to tell at the end."""

from __future__ import annotations

import json
import shlex
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from podwright import Session
from podwright.cli.main import main
from podwright.launch import find

COUNT = 'n=$(cat "$0" 2>/dev/null || echo 0); echo $((n + 1)) > "$0"; echo seen $n'
"""A program that goes on from its checkpoint: it counts how often it was started."""
Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home, and a folder to work in, with a workload that is called as the default one."""
    monkeypatch.setenv("PODWRIGHT_HOME", str(tmp_path / "home"))
    folder = tmp_path / "work"
    folder.mkdir()
    text = {"name": "count", "command": ["sh", "-c", COUNT, "{checkpoint}/n"], "grace": "1s"}
    (folder / "workload.yaml").write_text(json.dumps(text))
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def call(capfd: pytest.CaptureFixture[str]) -> Call:
    """Runs a command line; gives its exit code, stdout and stderr."""

    def run(*args: str) -> tuple[int, str, str]:
        code = main(list(args))
        captured = capfd.readouterr()
        return code, captured.out, captured.err

    return run


def started(call: Call, *words: str) -> str:
    code, out, err = call("run", *words, "--json")
    assert code == 0, err
    return str(json.loads(out)["id"])


@pytest.mark.usefixtures("work")
def test_a_run_like_another_begins_anew_and_a_resumed_one_goes_on(call: Call) -> None:
    first = started(call)
    assert call("logs", first)[1] == "seen 0\n"
    again = started(call, "--like", first)
    assert again != first
    assert call("logs", again)[1] == "seen 0\n"
    resumed = started(call, "--resume", first)
    assert call("logs", resumed)[1] == "seen 1\n"
    # What a resumed run wrote is where it found it, also for the next.
    assert call("logs", started(call, "--resume", resumed))[1] == "seen 2\n"


def test_the_end_is_told(work: Path, call: Call) -> None:
    note = work / "note.json"
    said = f'echo "$PODWRIGHT_RUN $PODWRIGHT_STATE $PODWRIGHT_REPORT" > {note}; cat > {note}.part'
    run_id = started(call, "--notify", shlex.join(["sh", "-c", said]))
    deadline = time.monotonic() + 60
    part = Path(f"{note}.part")
    while not (part.exists() and part.read_text().endswith("}")):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    document = json.loads(part.read_text())
    assert (document["id"], document["state"]) == (run_id, "succeeded")
    assert note.read_text() == f"{run_id} succeeded {document['folder']}/report.html\n"


class Hook(BaseHTTPRequestHandler):
    """Takes what is posted; under /moved it sends the sender elsewhere."""

    got: list[tuple[str, bytes]]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.got.append((self.path, body))
        self.send_response(302 if self.path.endswith("moved") else 204)
        self.send_header("Location", "/elsewhere")
        self.end_headers()

    def do_GET(self) -> None:
        self.got.append((self.path, b""))

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def hook() -> Iterator[tuple[str, list[tuple[str, bytes]]]]:
    """A server on the loopback: its address, and what it got."""
    got: list[tuple[str, bytes]] = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("OwnHook", (Hook,), {"got": got}))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}", got
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(("path", "log"), [("s3cret", ""), ("s3cret/moved", "the webhook answered 302\n")])
def test_the_webhook_of_the_home_is_told_and_its_address_is_nowhere(
    work: Path, call: Call, hook: tuple[str, list[tuple[str, bytes]]], path: str, log: str
) -> None:
    address, got = hook
    home = work.parent / "home"
    home.mkdir(mode=0o700)
    (home / "settings.yaml").write_text(f"webhook: {address}/{path}\n")
    code, out, err = call("run")
    assert (code, out) == (2, "")
    assert err.startswith(
        f"{home}/settings.yaml: can be read by others, and its address is a secret\n\nhint: `chmod 600"
    )
    (home / "settings.yaml").chmod(0o600)
    run_id = started(call)
    notes = home / "runs" / run_id / "notify.log"
    deadline = time.monotonic() + 60
    while not got or notes.read_text() != log:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    [(asked, body)] = got
    document = json.loads(body)
    assert (asked, document["text"], document["state"]) == (f"/{path}", f"{run_id} succeeded", "succeeded")
    kept = [file.read_bytes() for file in (home / "runs").rglob("*") if file.is_file()]
    assert not any(b"s3cret" in content for content in kept)


@pytest.mark.parametrize(
    "address", ["http://example.org/s3cret", "ftp://example.org/s3cret", "s3cret", "http://[s3cret"]
)
def test_an_address_that_cannot_be_is_refused_without_repeating_it(work: Path, call: Call, address: str) -> None:
    home = work.parent / "home"
    home.mkdir(mode=0o700)
    (home / "settings.yaml").write_text(f"webhook: {address}\n")
    (home / "settings.yaml").chmod(0o600)
    code, out, err = call("run")
    assert (code, out) == (2, "")
    assert err.startswith(f"{home}/settings.yaml:1:10: webhook: is no https address\n")
    assert "s3cret" not in err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("train.py",), "train.py is a program, not a workload\n\nhint: `podwright init train.py` writes"),
        (("--like", "x", "--on", "adas"), "--like: goes without WORKLOAD, --on, --set,"),
        (("--like", "x", "--resume", "y"), "--resume: goes without --like"),
        (("--notify", "'"), "--notify: cannot be split into words: no closing quotation"),
        (("--notify", ""), "--notify: names no command"),
        (("--notify", "echo done > file"), "--notify: `>` is a shell's, and none runs the command"),
        (("--like", "nowhere"), "there is no run"),
    ],
)
def test_what_cannot_be(work: Path, call: Call, words: tuple[str, ...], message: str) -> None:
    (work / "train.py").write_text("print(1)\n")
    code, out, err = call("run", *words)
    assert (code, out) == (2, "")
    assert err.startswith(message)


def test_without_a_file_one_is_wanted(work: Path, call: Call) -> None:
    (work / "workload.yaml").unlink()
    hint = "name the file, or let `podwright init SCRIPT` write one for your program"
    assert call("run") == (2, "", f"there is no workload.yaml here\n\nhint: {hint}\n")


def test_a_report_goes_where_it_is_wanted(work: Path, call: Call) -> None:
    first = started(call)
    code, out, _ = call("report", first, "--out", "shown.html")
    assert (code, out) == (0, f"{work / 'shown.html'}\n")
    assert (work / "shown.html").read_text().startswith("<!doctype html>")
    assert call("report", first, "--out", str(work / "no" / "such.html"))[0] == 2


def test_a_run_keeps_its_environment_and_one_like_it_says_what_is_another_now(work: Path, call: Call) -> None:
    python = work.parent / "env" / "bin" / "python3"
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)
    packages = work.parent / "env" / "lib" / "python3.11" / "site-packages"
    (packages / "numpy-2.1.0.dist-info").mkdir(parents=True)
    (work / "workload.yaml").write_text(json.dumps({"name": "kept", "command": [str(python), "-c", "print(1)"]}))
    first = started(call)
    environment = json.loads(call("show", first, "--json")[1])["environment"]
    assert environment["packages"] == {"numpy": "2.1.0"}
    assert (environment["modules"], environment["others"], environment["image"]) == ([], [], None)
    (packages / "numpy-2.1.0.dist-info").rename(packages / "numpy-2.3.0.dist-info")
    code, _, err = call("run", "--like", first)
    assert code == 0, err
    assert "differs   numpy 2.1.0, now 2.3.0\n" in err
    rows = json.loads(call("diff", first, "last", "--json")[1])["differences"]
    assert {"kind": "environment", "name": "numpy", "a": "2.1.0", "b": "2.3.0"} in rows


FLAKY = "import os\nif os.environ['PODWRIGHT_ATTEMPT'] == '1':\n    raise OSError('disk went away')"


def test_why_a_run_was_tried_again_is_said_by_its_exception(work: Path, call: Call) -> None:
    (work / "workload.yaml").write_text(
        json.dumps({"name": "flaky", "retries": 1, "command": [sys.executable, "-c", FLAKY]})
    )
    code, _, err = call("run")
    assert code == 0, err
    assert "OSError: disk went away" in next(line for line in err.splitlines() if line.startswith("retry"))
    (retry,) = json.loads(call("show", "last", "--json")[1])["retries"]
    assert (retry["attempt"], retry["rank"], retry["exception"]) == (2, 0, "OSError: disk went away")
    assert "exited with 1: OSError: disk went away" in call("show", "last")[1]


def test_nothing_is_resumed_from_no_checkpoint(work: Path, call: Call) -> None:
    (work / "workload.yaml").write_text(json.dumps({"name": "plain", "command": ["true"]}))
    first = started(call)
    code, _, err = call("run", "--resume", first)
    assert code == 2
    assert f"{first} left no checkpoint" in err
    assert f"podwright run --like {first}" in err


MISSING = "def train():\n    import not_installed_here\ntrain()\n"


def test_a_module_that_is_missing_is_told_with_where_it_was_looked_for_and_the_owners_paths(
    work: Path, call: Call
) -> None:
    (work / "code").mkdir()
    (work / "code" / "train.py").write_text(MISSING)
    (work / "workload.yaml").write_text(
        json.dumps({"name": "missing", "code": "code", "command": [sys.executable, "train.py"]})
    )
    code, _, err = call("run")
    assert code == 1
    shown = call("show", "last")[1].replace("\n          ", " ")
    assert f'File "{work}/code/train.py", line 2, in train' in shown
    assert "code-" not in shown
    assert f"not_installed_here was looked for in {sys.prefix} (Python 3." in shown
    assert "not_installed_here was looked for" in err.replace("\n          ", " ")
    assert f"{work}/code/train.py" in find(Session.open(), "last").report().read_text()
