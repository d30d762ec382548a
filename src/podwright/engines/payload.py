"""What travels with a run: the pilot as one zip file, and a snapshot of the user's code as one tar file."""

from __future__ import annotations

import ast
import errno
import hashlib
import importlib.util
import io
import marshal
import os
import sys
import tarfile
import zipfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from io import BufferedIOBase
from pathlib import Path
from tempfile import TemporaryFile

from podwright.engines.code_files import NO_MORE, AlsoTravels, files_that_travel
from podwright.files.whole import add_to_tar, write_whole
from podwright.spec.problems import refuse

STUB = """\
#!/bin/sh
# Starts the pilot of one node with the first Python that is new enough; its order lies beside this file or is named,
# and so is the pilot where a copy of it is held that nobody can write.
job=$(CDPATH= cd -- "${0%/*}" && pwd)

# A program whose name says its version need not be started to find that out.
new_enough() {
    case $(readlink -f "$(command -v "$1")" 2>/dev/null) in
        */python3.[89] | */python3.[1-9][0-9]) return 0 ;;
    esac
    "$1" -S -E -c 'import sys; sys.exit(sys.version_info < (3, 8))' 2>/dev/null
}
for python in "${PODWRIGHT_PYTHON:-python3}" python3.13 python3.12 python3.11 python3.10 python3.9 python3.8 python3; do
    if new_enough "$python"; then
        exec "$python" -I -S "${PODWRIGHT_PILOT:-$job/pilot.pyz}" node "${1:-$job/order.json}"
    fi
done
echo "podwright: no Python 3.8 or newer on $(hostname); tried ${PODWRIGHT_PYTHON:-python3}, python3.13 to python3.8" >&2
echo "hint: install python3, or name one with \\`python:\\` of the scheduler in the pod file" >&2
exit 69
"""
LIMIT_BYTES = 1 << 30
MEMORY_BYTES = 8 << 20
"""Of a snapshot in memory; a larger one lies in a file without a name, which goes with this process."""
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
PILOT = Path(__file__).parent.parent / "pilot"
EPOCH = (1980, 1, 1, 0, 0, 0)
UNCHECKED = (1).to_bytes(4, "little")
"""Bytecode that is valid by the hash it was made with; nobody looks for its source."""
UNSHARED = 2
"""The format whose bytes do not depend on what else this process has in memory."""


@cache
def pilot_zip(compiled: bool = True) -> bytes:
    """Return the pilot, the same bytes each time: it is compared, hashed and stored by content.

    A zip's sources are compiled at every start, which takes longer than all else a pilot does before its ranks. So the
    bytecode of this Python lies beside them; any other Python passes it over.
    """
    if not compiled:
        return _packed(compiled=False)
    source = _source_digest()
    cached = Path(importlib.util.cache_from_source(str(PILOT / "pilot.py"))).with_suffix(".pyz")
    with suppress(OSError):
        content = cached.read_bytes()
        if content.endswith(source):
            return content
    content = _packed(compiled=True, comment=source)
    if not sys.dont_write_bytecode:
        with suppress(OSError):  # as where Python itself may not keep its bytecode
            cached.parent.mkdir(parents=True, exist_ok=True)
            write_whole(cached, content, mode=0o644)
    return content


def _source_digest() -> bytes:
    """Return the digest of all that the pilot is made of: the rules here, its modules, what this Python compiles to."""
    digest = hashlib.sha256(importlib.util.MAGIC_NUMBER)
    for name, content in {"": Path(__file__).read_bytes(), **_pilot_sources()}.items():
        digest.update(f"{name} {len(content)}\n".encode() + content)
    return digest.hexdigest().encode()


def _pilot_sources() -> dict[str, bytes]:
    """Return every module of the pilot by its path below the package."""
    return {path.relative_to(PILOT).as_posix(): path.read_bytes() for path in sorted(PILOT.rglob("*.py"))}


def _packed(compiled: bool, comment: bytes = b"") -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.comment = comment
        sources = {name: _without_docstrings(source) for name, source in _pilot_sources().items()}
        main = sources.pop("__main__.py")
        _add(archive, "__main__.py", main)
        if compiled:
            _add(archive, "__main__.pyc", bytecode(main, "__main__.py"))
            _add(archive, "modules", _modules(sources))
        for name, source in sources.items():
            _add(archive, f"pilot/{name}", source)
    return buffer.getvalue()


def _modules(sources: Mapping[str, bytes]) -> bytes:
    """Return the bytecode of all modules as the pilot's `__main__` reads it."""
    codes = {}
    for file, source in sources.items():
        name = f"pilot/{file}".removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        codes[name] = marshal.dumps(compile(source, f"pilot/{file}", "exec", dont_inherit=True), UNSHARED)
    return importlib.util.MAGIC_NUMBER + marshal.dumps(codes, UNSHARED)


def _without_docstrings(source: bytes) -> bytes:
    """Return a module with its lines where they are, and without what is written there for people: it travels a lot."""
    lines = source.splitlines(keepends=True)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            last = node.end_lineno or node.lineno
            lines[node.lineno - 1 : last] = [b" " * node.col_offset + b'""\n', *[b"\n"] * (last - node.lineno)]
    return b"".join(lines)


def bytecode(source: bytes, name: str) -> bytes:
    """Return a module as this Python, and others of its version, load it without its source."""
    code = compile(source, name, "exec", dont_inherit=True)
    return importlib.util.MAGIC_NUMBER + UNCHECKED + importlib.util.source_hash(source) + marshal.dumps(code, UNSHARED)


def _add(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    info = zipfile.ZipInfo(name, EPOCH)
    info.compress_type = zipfile.ZIP_DEFLATED
    info.external_attr = 0o644 << 16
    archive.writestr(info, data)


@dataclass(frozen=True)
class Snapshot:
    """A code folder as it was: its tar, its digest, how many files."""

    tar: BufferedIOBase = field(compare=False, repr=False)
    sha256: str
    files: int


def snapshot(folder: Path | None, extra: AlsoTravels = NO_MORE, spool: Path | None = None) -> Snapshot:
    """Pack what git tracks or would add, else all but .podwrightignore, and what is `extra` beside it, or that alone.

    What is too much for memory lies in the folder `spool` meanwhile, or where temporary files do.
    """
    root, names, size = Path(), list[str](), 0
    if folder is not None:
        root = folder.resolve()
        names, size = files_that_travel(folder, root, extra)
    if size > LIMIT_BYTES:
        raise refuse(
            f"the code folder {folder} holds {size / 1e9:.1f} GB in {len(names)} files; at most 1 GiB travels",
            field="code",
            hint="list what stays behind in .gitignore or .podwrightignore, or give data as an absolute path",
        )
    tar: BufferedIOBase = io.BytesIO()
    try:
        if size > MEMORY_BYTES:
            tar = TemporaryFile(dir=spool)  # noqa: SIM115 - whoever asked for the snapshot closes it
        with tarfile.open(fileobj=tar, mode="w", format=tarfile.PAX_FORMAT) as archive:
            for name in names:
                _pack(archive, root, name)
            for name, data in sorted(extra.made.items()):
                add_to_tar(archive, name, data)
        tar.seek(0)
        return Snapshot(tar, hashlib.file_digest(tar, "sha256").hexdigest(), len(names) + len(extra.made))
    except OSError as error:
        tar.close()
        message = f"there is no room for a copy of {folder}: {(error.strerror or str(error)).lower()}"
        raise refuse(message, field="code") from None
    except BaseException:
        tar.close()
        raise


def _pack(archive: tarfile.TarFile, root: Path, name: str) -> None:
    """Add a file or a link without its times and owners: equal content must give an equal digest."""
    path = root / name
    info = tarfile.TarInfo(name)
    if path.is_symlink():
        info.type, info.linkname = tarfile.SYMTYPE, str(_link_target(root, path))
        archive.addfile(info)
        return
    try:
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            info.size, info.mode = status.st_size, 0o644
            if status.st_mode & 0o100:
                info.mode = 0o755
            archive.addfile(info, file)
    except OSError as error:
        if error.errno in NO_ROOM:
            raise
        message = f"{path} cannot be read: {(error.strerror or str(error)).lower()}"
        raise refuse(message, field="code", hint="put it in .podwrightignore if the run does not need it") from None


def _link_target(root: Path, path: Path) -> Path:
    target, end = path.readlink(), Path(os.path.realpath(path))
    if not end.is_relative_to(root):
        raise refuse(f"the link {path} leaves the code folder", field="code", hint="put it in .podwrightignore")
    # It must lead to the copy: not back to the original, nor by the name of a folder that is another one there.
    if target.is_absolute() or _steps_out(path.relative_to(root), target):
        return Path(os.path.relpath(end, path.parent))
    return target


def _steps_out(link: Path, target: Path) -> bool:
    """Return whether a relative link goes above the code folder, though it may come back."""
    depth = len(link.parent.parts)
    for part in target.parts:
        depth += -1 if part == ".." else 1
        if depth < 0:
            return True
    return False
