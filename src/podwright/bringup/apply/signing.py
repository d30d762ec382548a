"""Keys that sign what hosts install, in the form that apt reads; by gpg, in a folder that only this user sees."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from podwright.spec.problems import refuse

_SIGNER = ("--pinentry-mode=loopback", "--passphrase", "")


def new_key(pod: str) -> dict[str, str]:
    """Return a new key of a pod's archives, and the public one that hosts trust."""
    with _keyring() as folder:
        _gpg(folder, [*_SIGNER, "--quick-generate-key", f"Packages of {pod}", "ed25519", "sign", "never"])
        return {
            "archive_key": _gpg(folder, [*_SIGNER, "--armor", "--export-secret-keys"]),
            "archive_public": _gpg(folder, ["--armor", "--export"]),
        }


def sign(key: str, text: str, inline: bool = False) -> str:
    """Return the signature of a text, or the text with it as apt's InRelease has it."""
    with _keyring() as folder:
        _gpg(folder, [*_SIGNER, "--import"], key)
        return _gpg(folder, [*_SIGNER, "--armor", "--clear-sign" if inline else "--detach-sign"], text)


def is_signed(public: str, signature: str, text: str) -> bool:
    """Return whether a signature of a text is of this key."""
    with _keyring() as folder:
        (folder / "public").write_text(public)
        (folder / "signature").write_text(signature)
        (folder / "text").write_text(text)
        for verb in (["--import", "public"], ["--verify", "signature", "text"]):
            if _run(folder, verb).returncode:
                return False
    return True


@contextmanager
def _keyring() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="podwright-gpg-") as place:
        try:
            yield Path(place)
        finally:
            _started(["gpgconf", f"--homedir={place}", "--kill", "all"], place, "")


def _gpg(folder: Path, arguments: list[str], given: str = "") -> str:
    done = _run(folder, arguments, given)
    if done.returncode:
        raise refuse(f"gpg: {done.stderr.strip()[-200:]}")
    return done.stdout


def _run(folder: Path, arguments: list[str], given: str = "") -> subprocess.CompletedProcess[str]:
    return _started(["gpg", f"--homedir={folder}", "--batch", "--quiet", *arguments], str(folder), given)


def _started(command: list[str], folder: str, given: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            command, cwd=folder, input=given, umask=0o077, capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        raise refuse(f"{command[0]} is not on this machine", hint="apt-get install gnupg") from None
