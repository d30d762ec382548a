"""Sends the files of a job to the cluster, and removes them there.

They go as one tar through one connection, without what is large and there already.
"""

from __future__ import annotations

import hashlib
import os
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from podwright.clients.reasons import last_line
from podwright.clients.ssh import Feed, Reach
from podwright.engines.parts import clear_command, clear_input, cleared
from podwright.runs import RunFolder
from podwright.spec.problems import refuse

LARGE_BYTES = 64 * 1024
COPY_BYTES = 4 << 20
"""Of a stored file that every run gets a copy of: a larger one is linked, and the pilot checks its digest."""
IS_WHOLE = """\
is_whole() {
    [ -f "$2" ] && [ ! -L "$2" ] && [ "$(sha256sum <"$2")" = "$1  -" ]
}
"""
KNOWN = f"""\
{IS_WHOLE}
umask 077
mkdir -p "$1/runs" "$1/code" && cd "$1/code" && shift || exit 1
for name; do is_whole "$name" "$name" && echo "$name"; done
exit 0
"""
UNPACK = f"""\
{IS_WHOLE}
umask 077
cd "$1" && tar -xf - && shift || exit 1
while [ $# -gt 0 ]; do
    mkdir -p "$(dirname "$3")" && rm -f "$3" || exit 1
    [ "$1" = link ] && ln "code/$2" "$3" 2>/dev/null || cp "code/$2" "$3" || exit 1
    is_whole "$2" "$3" || {{ echo "$3 was changed while it was sent" >&2; exit 1; }}
    shift 3
done
"""


def pack(reach: Reach, folder: str, runs: Sequence[Path]) -> None:
    """Send the job files and tokens of these runs into `folder`/runs; large files are kept by digest and sent once.

    What was asked goes with them: by it another home finds the run. What is kept there can be
    written by the user's runs: only what is still as its name says is taken, and a run gets a copy of its own.
    """
    files: dict[Path, str] = {}
    for run in runs:
        files |= {path: f"runs/{run.name}/{path.relative_to(run).as_posix()}" for path in _files(run)}
    large = {path: _digest(path) for path in files if path.stat().st_size > LARGE_BYTES}
    known = set(_ask(reach, [KNOWN, "podwright", folder, *sorted(set(large.values()))]).split())
    sent: dict[str, Path] = {}
    placed: list[str] = []
    for path, name in files.items():
        if path not in large:
            sent[name] = path
            continue
        digest = large[path]
        if digest not in known:
            sent[f"code/{digest}"] = path
        way = "copy"
        if path.stat().st_size > COPY_BYTES:
            way = "link"
        placed += [way, digest, name]

    def feed(out: BinaryIO) -> None:
        with tarfile.open(fileobj=out, mode="w|", format=tarfile.PAX_FORMAT) as archive:
            for name, path in sent.items():
                _add(archive, name, path)

    _ask(reach, [UNPACK, "podwright", folder, *placed], feed)


def remove_run(reach: Reach, path: str) -> None:
    """Remove the folder of a run."""
    _remove(reach, ["rm", "-rf", "--", path])


def clear_part(reach: Reach, root: str, folders: Sequence[RunFolder], name: str, remove: bool) -> dict[str, int]:
    """Return the bytes of a part of the runs' folders, by run, and remove it where that is asked."""
    return cleared(_remove(reach, clear_command(root, name, remove), clear_input(folders)), folders)


def _remove(reach: Reach, command: Sequence[str], stdin: bytes = b"") -> bytes:
    answer = reach.call(command, stdin)
    if answer.code:
        reason = last_line(answer.err or answer.text, f"exit code {answer.code}")
        raise refuse(f"its folder on the cluster cannot be removed: {reason}", exit_code=3)
    return answer.out


def _files(run: Path) -> Iterator[Path]:
    yield from sorted(path for path in (run / "job").iterdir() if path.is_file())
    yield from (run / name for name in ("token", "run.json") if (run / name).exists())


def _add(archive: tarfile.TarFile, name: str, path: Path) -> None:
    info = tarfile.TarInfo(name)
    info.mode = 0o600
    if path.suffix == ".sh":
        info.mode = 0o700
    elif name.startswith("code/"):
        info.mode = 0o400
    with path.open("rb") as file:
        info.size = os.fstat(file.fileno()).st_size
        archive.addfile(info, file)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _ask(reach: Reach, script: Sequence[str], stdin: bytes | Feed = b"") -> str:
    answer = reach.call(["sh", "-c", *script], stdin)
    if answer.code:
        raise refuse(f"the run's files cannot be sent: {last_line(answer.err, str(answer.code))}", exit_code=3)
    return answer.text
