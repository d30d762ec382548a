"""How Slurm's commands are reached: on this machine, or through one multiplexed OpenSSH connection.

With `login:` the user's own keys and configuration are used, nothing of ours is installed there, and a connection that
dropped is opened again. Values that must not be seen travel on standard input.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import shlex
import shutil
import socket
import stat
import string
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import BinaryIO, Protocol, cast

from podwright.clients.reasons import last_line
from podwright.spec.problems import Refusal, refuse

SSH_FAILED = 255
CONNECT_S = 15
TRIES = 3
PAUSE_S = 0.5
PERSIST_S = 120
MARK = "== podwright"
"""What a login's profile prints comes before this line and is not ours."""
REMOTE = f"""\
while IFS= read -r line && [ -n "$line" ]; do
    value=$(printf '%b.' "${{line#*=}}")
    export "${{line%%=*}}=${{value%.}}"
done
unset line value
echo '{MARK}'
exec "$@"
"""
"""Takes variables from standard input, then starts the command. The dot saves newlines at a value's end."""
Feed = Callable[[BinaryIO], None]
"""Writes what a command is given on standard input; it may be asked to once more where a connection broke."""
LETTERS = frozenset(string.ascii_letters.encode() + string.digits.encode())


@dataclass(frozen=True)
class Answer:
    """What a command left: its exit code, its output and what it said on stderr."""

    code: int
    out: bytes
    err: str

    @property
    def text(self) -> str:
        """Return the output as text."""
        return self.out.decode("utf-8", "replace")


class Reach(Protocol):
    """A way to run commands where Slurm's commands are."""

    is_here: bool

    def call(self, argv: Sequence[str], stdin: bytes | Feed = b"", env: Mapping[str, str] | None = None) -> Answer:
        """Run a command where Slurm's commands are; refuse when that place cannot be reached."""

    def terminal(self, argv: Sequence[str]) -> list[str]:
        """Return the command to run here that gives a person a terminal on `argv` there."""

    def connect(self, host: str, port: int) -> socket.socket:
        """Return a connection to a port of a host, as it is reached from where Slurm's commands are."""


class Here:
    """Slurm's commands are on this machine."""

    is_here = True

    def call(self, argv: Sequence[str], stdin: bytes | Feed = b"", env: Mapping[str, str] | None = None) -> Answer:
        environ = {**os.environ, **(env or {})}
        try:
            done = _exchange(argv, b"", stdin, environ)
        except FileNotFoundError:
            hint = "apt-get install slurm-client, or name the host that has it with `login:` of the scheduler"
            raise refuse(f"{argv[0]} is not on this machine", hint=hint, exit_code=3) from None
        return Answer(done.returncode, done.stdout, done.stderr.decode("utf-8", "replace"))

    def terminal(self, argv: Sequence[str]) -> list[str]:
        return list(argv)

    def connect(self, host: str, port: int) -> socket.socket:
        return socket.create_connection((host, port), CONNECT_S)


def reach_to(login: str | None, config: str | None) -> Reach:
    """Return the way to a login node, or to this machine where none is named."""
    if not login:
        return Here()
    return Ssh(login, config)


class Ssh:
    """Slurm's commands are on `login`."""

    is_here = False

    def __init__(self, login: str, config: str | None = None) -> None:
        self._login, self._config = login, config
        self._mark = hashlib.sha256(f"{login}\n{config}".encode()).hexdigest()[:8]

    def call(self, argv: Sequence[str], stdin: bytes | Feed = b"", env: Mapping[str, str] | None = None) -> Answer:
        """Run a command on the login node.

        It is tried again when the connection breaks before the command was started: the mark is its sign. After that
        only its answer counts, since nobody knows how far it came.
        """
        head = "".join(f"{name}={_escaped(value)}\n" for name, value in (env or {}).items()).encode() + b"\n"
        command = [*self._ssh(), "-T", "--", self._login, _remote(argv)]
        for turn in range(TRIES):
            done = _exchange(command, head, stdin)
            _, mark, out = done.stdout.partition(f"{MARK}\n".encode())
            if mark and done.returncode != SSH_FAILED:
                return Answer(done.returncode, out, done.stderr.decode("utf-8", "replace"))
            if mark:
                raise self._refusal("the connection broke", done.stderr)
            time.sleep(PAUSE_S * turn)
        raise self._refusal("it cannot be reached", done.stderr)

    def fetch(self, argv: Sequence[str], to: BinaryIO) -> Answer:
        """Run a command on the login node, and write what it prints; it is started once."""
        command = [*self._ssh(), "-T", "--", self._login, _remote(argv)]
        with tempfile.TemporaryFile() as said:
            with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said) as process:
                given, out = cast(BinaryIO, process.stdin), cast(BinaryIO, process.stdout)
                with suppress(BrokenPipeError), given:
                    given.write(b"\n")
                while (line := out.readline()) and line != f"{MARK}\n".encode():
                    """What a profile prints is not ours."""
                shutil.copyfileobj(out, to, 1 << 20)
            said.seek(0)
            err = said.read()
        if process.returncode == SSH_FAILED:
            raise self._refusal("it cannot be reached" if not line else "the connection broke", err)
        return Answer(process.returncode, b"", err.decode("utf-8", "replace"))

    def _refusal(self, message: str, err: bytes) -> Refusal:
        reason = last_line(err.decode("utf-8", "replace"), "no answer")
        hint = f"try `ssh {self._login}`; it must work without Podwright"
        return refuse(f"{self._login}: {message}: {reason}", hint=hint, exit_code=3)

    def terminal(self, argv: Sequence[str]) -> list[str]:
        return [*self._ssh(), "-t", "--", self._login, f"exec sh -lc {shlex.quote('exec ' + shlex.join(argv))}"]

    def connect(self, host: str, port: int) -> socket.socket:
        """Return a connection through the login node. Where nobody listens it ends without a word."""
        ours, theirs = socket.socketpair()
        command = [*self._ssh(), "-W", f"{host}:{port}", "--", self._login]
        with theirs:
            line = subprocess.Popen(command, stdin=theirs.fileno(), stdout=theirs.fileno(), stderr=subprocess.DEVNULL)
        threading.Thread(target=line.wait, daemon=True).start()
        return ours

    def _ssh(self) -> list[str]:
        """Return ssh with its options, for one connection that all commands share."""
        # A person may be asked once for a second factor; a script is not.
        has_person = sys.stdin is not None and sys.stdin.isatty()
        options = {
            "ControlMaster": "auto",
            "ControlPath": str(sockets() / f"{self._mark}-%C"),
            "ControlPersist": str(PERSIST_S),
            "BatchMode": "no" if has_person else "yes",
            "ServerAliveInterval": "15",
            "ServerAliveCountMax": "3",
            "ConnectTimeout": str(CONNECT_S),
            "LogLevel": "ERROR",
        }
        command = ["ssh"]
        if self._config:
            command += ["-F", self._config]
        for name, value in options.items():
            command += ["-o", f"{name}={value}"]
        return command


def _exchange(
    command: Sequence[str], head: bytes, stdin: bytes | Feed, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run a command and return what it left; what it is given need not fit in memory."""
    if isinstance(stdin, bytes):
        return subprocess.run(list(command), input=head + stdin, env=env, capture_output=True, check=False)
    pipe = subprocess.PIPE
    process = subprocess.Popen(list(command), stdin=pipe, stdout=pipe, stderr=pipe, env=env)
    with process, ThreadPoolExecutor(1) as feeder:
        given, process.stdin = process.stdin, None
        fed = feeder.submit(_feed, cast(BinaryIO, given), head, stdin)
        try:
            out, err = process.communicate()
        except BaseException:
            process.kill()
            raise
    fed.result()
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def _feed(given: BinaryIO, head: bytes, feed: Feed) -> None:
    """Write to a command that may end before it has read all: what it says then is the reason."""
    with suppress(BrokenPipeError), given:
        given.write(head)
        feed(given)


def _escaped(value: str) -> str:
    """Return a value as letters, digits and octal escapes: whatever it holds, it is one line for `printf %b`.

    That is built into sh, so no other process of the login node sees the value among its arguments.
    """
    return "".join(chr(byte) if byte in LETTERS else f"\\0{byte:03o}" for byte in os.fsencode(value))


def _remote(argv: Sequence[str]) -> str:
    """Return one line for whatever shell the user has there: a login shell of sh, so that its profile counts."""
    return "exec sh -lc " + shlex.join([REMOTE, "podwright", *argv])


def sockets() -> Path:
    """Return this user's folder of control sockets, a short path: a socket's name may have a hundred bytes only.

    Where somebody else has taken its name, this process has a folder of its own: then later commands connect anew.
    """
    base = Path(os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir())
    folder = base / f"podwright-ssh-{os.getuid()}"
    with suppress(OSError):
        folder.mkdir(mode=0o700, exist_ok=True)
    with suppress(OSError):
        status = folder.lstat()
        if stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not status.st_mode & 0o077:
            return folder
    return _own_sockets()


@cache
def _own_sockets() -> Path:
    own = Path(tempfile.mkdtemp(prefix="podwright-ssh-"))
    atexit.register(shutil.rmtree, own, ignore_errors=True)
    return own
