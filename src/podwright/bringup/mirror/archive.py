"""The archive of a mirror: a tar with an index of every file's digest, written whole and checked whole.

Images lie in it as an OCI layout has them: manifests and blobs under their own digests, and a list of names.
"""

from __future__ import annotations

import hashlib
import json
import tarfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any

from podwright.bringup.apply.signing import is_signed, sign
from podwright.files.whole import add_to_tar, whole_path
from podwright.spec.problems import refuse

INDEX, SIGNATURE, KEY = "index.json", "index.json.asc", "key.asc"
BLOBS = "blobs/sha256"
_FORM = 2
_PIECE = 1 << 20
_INDEX_BYTES = 256 << 20


@dataclass(frozen=True)
class ArchiveFile:
    """A file of the archive as its index has it."""

    path: str
    size: int
    digest: str


@dataclass(frozen=True)
class ArchiveIndex:
    """What the archive says that it has; images by name, each with the digest of its manifest."""

    pod: str
    files: tuple[ArchiveFile, ...] = ()
    images: Mapping[str, str] = field(default_factory=dict)

    def text(self) -> str:
        """Return it as the archive's first file."""
        document = {"form": _FORM, "pod": self.pod, "images": dict(self.images)}
        return json.dumps({**document, "files": [asdict(file) for file in self.files]}, indent=1) + "\n"


@dataclass(frozen=True)
class ArchiveCheck:
    """What a look through an archive gave."""

    files: int
    bytes: int
    bad: tuple[dict[str, str], ...]
    is_known: bool = True
    """Whether its key is that of a vault here; else it was held against the one that the archive itself names."""

    def as_json(self) -> dict[str, Any]:
        """Return the form that `--json` prints."""
        return {"files": self.files, "bytes": self.bytes, "bad": list(self.bad)}


def write_archive(
    file: Path, pod: str, folder: Path, images: Mapping[str, str], keys: Mapping[str, str]
) -> ArchiveIndex:
    """Write all files below a folder, before them their index and who signed it; it appears only when it is whole."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    entries = tuple(_entry(path, folder) for path in paths)
    index = ArchiveIndex(pod, entries, images)
    with whole_path(file) as part, tarfile.open(part, "w", format=tarfile.PAX_FORMAT) as archive:
        add_to_tar(archive, INDEX, index.text().encode())
        add_to_tar(archive, SIGNATURE, sign(keys["archive_key"], index.text()).encode())
        add_to_tar(archive, KEY, keys["archive_public"].encode())
        for path, entry in zip(paths, entries, strict=True):
            member = tarfile.TarInfo(entry.path)
            member.size, member.mode = entry.size, 0o644
            with path.open("rb") as stream:
                archive.addfile(member, stream)
    return index


def _entry(path: Path, folder: Path) -> ArchiveFile:
    with path.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    return ArchiveFile(str(path.relative_to(folder)), path.stat().st_size, digest)


@dataclass(frozen=True)
class SignedIndex:
    """An archive's index with who signed it, before anybody has looked whether that is true."""

    index: ArchiveIndex
    text: str
    signature: str
    key: str

    def is_of(self, key: str | None) -> bool:
        """Return whether it is signed by a key; where none is known, by the one that the archive itself names."""
        return is_signed(key or self.key, self.signature, self.text)


def read_index(archive: tarfile.TarFile, name: str) -> SignedIndex:
    """Return the index of an archive; refuse what is none of ours, and what nobody has signed."""
    text = _first(archive, INDEX)
    if text is None:
        raise refuse(f"{name} is no archive of a mirror", hint="`podwright mirror make` writes them")
    try:
        document = json.loads(text)
        files = tuple(ArchiveFile(**entry) for entry in document["files"])
        index = ArchiveIndex(str(document["pod"]), files, dict(document["images"]))
    except (ValueError, KeyError, TypeError):
        raise refuse(f"{name}: its index cannot be read", hint="bring it over again") from None
    signature, key = _first(archive, SIGNATURE), _first(archive, KEY)
    if signature is None or key is None:
        hint = f"`podwright mirror make {index.pod} --out {name}` writes one that is"
        raise refuse(f"{name} is not signed: an earlier release wrote it", hint=hint)
    return SignedIndex(index, text, signature, key)


def _first(archive: tarfile.TarFile, name: str) -> str | None:
    """Return the text of the next file where it has this name."""
    try:
        member = archive.next()
    except (tarfile.TarError, OSError):
        return None
    stream = archive.extractfile(member) if member is not None and member.name == name else None
    if stream is None:
        return None
    content = stream.read(_INDEX_BYTES + 1)
    return content.decode("utf-8", "replace") if len(content) <= _INDEX_BYTES else None


def verify(file: Path, key_of: Callable[[str], str | None] = lambda pod: None) -> ArchiveCheck:
    """Look through a whole archive: every file by its digest, and every image down to its last layer.

    `key_of` returns the key that a pod's archives are signed with, where this machine knows it.
    """
    with _open(file) as archive:
        signed = read_index(archive, file.name)
        key = key_of(signed.index.pod)
        if not signed.is_of(key):
            whose = f"is not signed by the key of {signed.index.pod}"
            return ArchiveCheck(0, 0, ({"path": INDEX, "what": whose},))
        index = signed.index
        wanted = {entry.path: entry for entry in index.files}
        bad: list[dict[str, str]] = []
        seen: set[str] = set()
        small: dict[str, bytes] = {}
        for name, size, digest, content in _members(archive, file):
            seen.add(name)
            entry = wanted.get(name)
            if entry is None:
                bad.append({"path": name, "what": "is not in the index"})
            elif (size, digest) != (entry.size, entry.digest):
                bad.append({"path": name, "what": "has other bytes than the index says"})
            elif content is not None:
                small[name] = content
    bad += [{"path": path, "what": "is missing"} for path in wanted if path not in seen]
    bad += _lacking_images(index, wanted.keys() & seen, small)
    return ArchiveCheck(
        len(seen), sum(entry.size for entry in index.files if entry.path in seen), tuple(bad), key is not None
    )


def _open(file: Path) -> tarfile.TarFile:
    try:
        return tarfile.open(file, "r:")
    except (OSError, tarfile.TarError) as error:
        raise refuse(f"{file}: {error}", hint="`podwright mirror make` writes archives") from None


MANIFEST_BYTES = 4 << 20


def _members(archive: tarfile.TarFile, file: Path) -> Iterator[tuple[str, int, str, bytes | None]]:
    """Yield name, size and digest of each file, and the content of small ones, as far as the archive goes."""
    while True:
        try:
            member = archive.next()
            if member is None:
                return
            stream = archive.extractfile(member)
            if stream is not None:
                yield member.name, member.size, *_digest(stream, is_small_blob(member.name, member.size))
        except (tarfile.TarError, OSError):
            # What is not there is found missing.
            return


def is_small_blob(path: str, size: int) -> bool:
    """Return whether this may be a manifest: no other part of an image, and no package, is ever held as a whole."""
    return path.startswith(BLOBS) and size <= MANIFEST_BYTES


def _digest(stream: IO[bytes], keep: bool) -> tuple[str, bytes | None]:
    computed, pieces = hashlib.sha256(), []
    while piece := stream.read(_PIECE):
        computed.update(piece)
        if keep:
            pieces.append(piece)
    return computed.hexdigest(), b"".join(pieces) if keep else None


def _lacking_images(index: ArchiveIndex, there: Iterable[str], small: Mapping[str, bytes]) -> Iterator[dict[str, str]]:
    known = set(there)
    for name, digest in index.images.items():
        path = blob_path(digest)
        content = small.get(path)
        if path not in known or content is None:
            yield {"path": name, "what": "is missing: its manifest is not there"}
            continue
        try:
            lost = [each for each in referenced(json.loads(content)) if blob_path(each) not in known]
        except (ValueError, TypeError, KeyError, AttributeError):
            yield {"path": name, "what": "has a manifest that cannot be read"}
            continue
        if lost:
            yield {"path": name, "what": f"is missing {len(lost)} of its parts"}


def referenced(manifest: Mapping[str, Any]) -> list[str]:
    """Return the digests of all that a manifest names: other manifests, or a configuration and layers."""
    parts = [*manifest.get("manifests", []), *manifest.get("layers", [])]
    if "config" in manifest:
        parts.append(manifest["config"])
    return [part["digest"] for part in parts]


def blob_path(digest: str) -> str:
    """Return where a manifest or blob lies."""
    return f"{BLOBS}/{digest.removeprefix('sha256:')}"
