"""Sends the files of a job to the cluster: one tar through one connection, without what is large and there already."""

from __future__ import annotations

import hashlib
import io
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from podwright.clients.reasons import last_line
from podwright.clients.ssh import Reach
from podwright.spec.problems import refuse

LARGE_BYTES = 64 * 1024
KNOWN = """\
umask 077
mkdir -p "$1/runs" "$1/code" && cd "$1/code" && shift || exit 1
for name; do [ -e "$name" ] && echo "$name"; done
exit 0
"""
UNPACK = """\
umask 077
cd "$1" && tar -xf - && shift || exit 1
while [ $# -gt 0 ]; do
    mkdir -p "$(dirname "$2")" && { ln -f "code/$1" "$2" 2>/dev/null || cp "code/$1" "$2"; } || exit 1
    shift 2
done
"""


def pack(reach: Reach, folder: str, runs: Sequence[Path]) -> None:
    """Send the job files and tokens of these runs into `folder`/runs; large files are kept by digest and sent once."""
    files: dict[Path, str] = {}
    for run in runs:
        files |= {path: f"runs/{run.name}/{path.relative_to(run).as_posix()}" for path in _files(run)}
    large = {path: _digest(path) for path in files if path.stat().st_size > LARGE_BYTES}
    known = set(_ask(reach, [KNOWN, "podwright", folder, *sorted(set(large.values()))]).split())
    buffer = io.BytesIO()
    links: list[str] = []
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path, name in files.items():
            if path not in large:
                _add(archive, name, path)
                continue
            digest = large[path]
            if digest not in known:
                known.add(digest)
                _add(archive, f"code/{digest}", path)
            links += [digest, name]
    _ask(reach, [UNPACK, "podwright", folder, *links], buffer.getvalue())


def _files(run: Path) -> Iterator[Path]:
    yield from sorted(path for path in (run / "job").iterdir() if path.is_file())
    if (run / "token").exists():
        yield run / "token"


def _add(archive: tarfile.TarFile, name: str, path: Path) -> None:
    data, info = path.read_bytes(), tarfile.TarInfo(name)
    info.size, info.mode = len(data), 0o600
    if path.suffix == ".sh":
        info.mode = 0o700
    archive.addfile(info, io.BytesIO(data))


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _ask(reach: Reach, script: Sequence[str], stdin: bytes = b"") -> str:
    answer = reach.call(["sh", "-c", *script], stdin)
    if answer.code:
        raise refuse(f"the run's files cannot be sent: {last_line(answer.err, str(answer.code))}", exit_code=3)
    return answer.text
