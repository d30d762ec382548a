"""Backups of a pod: one file of encrypted parts, which the key of the pod's vault opens and no other.

The key is not in it. A part is encrypted on its way from the host, so that nothing of it lies readable on a disk.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from podwright.clients.reasons import last_line
from podwright.files.whole import make_private, whole_file
from podwright.spec.problems import refuse

if TYPE_CHECKING:
    from podwright.clients.ssh import Feed

INDEX = "index"
# Left out, gpg's agent would first measure how often this machine can do it: on a busy one that takes very long. The
# key is random, and needs no more.
_CIPHER = ("--s2k-count=1024000", "--cipher-algo=AES256", "--symmetric")
_PIECE = 1 << 20
Save = Callable[[BinaryIO], None]
"""Writes a part."""


@dataclass(frozen=True)
class BackupResult:
    """A backup that was written."""

    file: Path
    bytes: int
    digest: str
    parts: Sequence[str]

    def as_json(self) -> dict[str, Any]:
        """Return what `pod backup --json` prints."""
        return {"file": str(self.file), "bytes": self.bytes, "digest": self.digest, "parts": list(self.parts)}


def write_backup(out: Path, pod: str, parts: Mapping[str, Save], key: Path) -> BackupResult:
    """Write a backup, whole or not at all."""
    with _work_folder(out.absolute().parent) as folder:
        known = {}
        for name, save in parts.items():
            known[name] = _encrypted(folder, name, save, key)
        index = {"pod": pod, "at": datetime.now(UTC).isoformat(timespec="seconds"), "parts": known}
        _encrypted(folder, INDEX, lambda to: _write(to, json.dumps(index).encode()), key)
        with whole_file(out.absolute(), 0o600) as file, tarfile.open(fileobj=file, mode="w|") as archive:
            for name in (INDEX, *parts):
                archive.add(folder / name, name)
    return BackupResult(out, out.stat().st_size, _digest(out), list(parts))


class Backup:
    """A backup that was opened: its parts are as they were written, and ours to read."""

    def __init__(self, folder: Path, key: Path, index: Mapping[str, Any]) -> None:
        self._folder, self._key = folder, key
        self.pod: str = index["pod"]
        self.at: str = index["at"]
        self.parts: list[str] = list(index["parts"])

    def feed(self, name: str) -> Feed:
        """Return what writes a part."""

        def feed(to: BinaryIO) -> None:
            # gpg writes there itself, behind what is still held back.
            to.flush()
            with (self._folder / name).open("rb") as file:
                _gpg(["--decrypt"], self._key, lambda given: shutil.copyfileobj(file, given, _PIECE), to)

        return feed

    def read(self, name: str) -> bytes:
        """Return a small part."""
        with tempfile.TemporaryFile() as text:
            self.feed(name)(cast(BinaryIO, text))
            text.seek(0)
            return text.read()


@contextmanager
def opened_backup(file: Path, key: Path) -> Iterator[Backup]:
    """Give a backup with all its parts; one that was cut or changed is refused, and one of another key."""
    with _work_folder(file.absolute().parent) as folder:
        names = _unpacked(file, folder)
        if INDEX not in names:
            raise refuse(f"{file} is not a backup", hint="`podwright pod backup` writes one")
        with tempfile.TemporaryFile() as text:
            with (folder / INDEX).open("rb") as sealed:
                _gpg(["--decrypt"], key, lambda to: shutil.copyfileobj(sealed, to), cast(BinaryIO, text), str(file))
            text.seek(0)
            index = json.loads(text.read())
        for name, digest in index["parts"].items():
            if name not in names or _digest(folder / name) != digest:
                raise refuse(f"{file}: {name} is not as it was written", hint="use another copy of the backup")
        yield Backup(folder, key, index)


def _unpacked(file: Path, folder: Path) -> set[str]:
    """Write the members into a folder, by their bare names alone; return these."""
    names: set[str] = set()
    try:
        with tarfile.open(file, mode="r|") as archive:
            for member in archive:
                source = archive.extractfile(member)
                if source is None or not member.name.isidentifier():
                    raise refuse(f"{file} is not a backup: it has {member.name!r}")
                with (folder / member.name).open("xb") as to:
                    shutil.copyfileobj(source, to, _PIECE)
                names.add(member.name)
    except (OSError, tarfile.TarError) as error:
        raise refuse(f"{file}: {getattr(error, 'strerror', None) or error}", hint="use another copy of it") from None
    return names


@contextmanager
def _work_folder(beside: Path) -> Iterator[Path]:
    if not beside.is_dir():
        raise refuse(f"{beside} is not a folder", hint="name a file in one that is there")
    with tempfile.TemporaryDirectory(prefix=".podwright-backup-", dir=beside) as place:
        yield Path(place)


def _encrypted(folder: Path, name: str, save: Save, key: Path) -> str:
    with (folder / name).open("xb") as to:
        _gpg(list(_CIPHER), key, save, to)
    return _digest(folder / name)


def _gpg(words: list[str], key: Path, save: Save, to: BinaryIO, what: str = "the backup") -> None:
    """Have gpg read what `save` writes; it asks nobody, and keeps nothing."""
    if not key.exists():
        raise refuse(f"the vault's key {key} is not there", hint="set PODWRIGHT_VAULT_KEY_FILE to the file that has it")
    with tempfile.TemporaryDirectory(prefix="podwright-gpg-") as home, tempfile.TemporaryFile() as said:
        make_private(Path(home))
        asked = ["--batch", "--quiet", "--no-tty", "--pinentry-mode=loopback", f"--passphrase-file={key}"]
        command = ["gpg", f"--homedir={home}", *asked, *words]
        try:
            process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=to, stderr=said)
        except FileNotFoundError:
            raise refuse("gpg is not on this machine", hint="apt-get install gnupg") from None
        try:
            with cast(BinaryIO, process.stdin) as given:
                save(given)
        except BrokenPipeError:
            """Its own words say why."""
        except BaseException:
            process.kill()
            process.wait()
            raise
        code = process.wait()
        subprocess.run(["gpgconf", f"--homedir={home}", "--kill", "all"], capture_output=True, check=False)
        said.seek(0)
        if code:
            reason = last_line(said.read().decode("utf-8", "replace"), f"gpg ended with {code}")
            raise refuse(f"{what}: {reason}", hint=f"is {key} the key that it was written with?")


def _write(to: BinaryIO, data: bytes) -> None:
    to.write(data)


def _digest(file: Path) -> str:
    with file.open("rb") as stream:
        return f"sha256:{hashlib.file_digest(stream, 'sha256').hexdigest()}"
