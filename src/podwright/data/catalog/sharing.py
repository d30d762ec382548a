"""Files of a generation for others than its owner: each describes what one audience may see, and only it may open it.

Whoever can open a DuckDB file reads all of it. So the folders of a dataset are sorted by who may list them, which every
folder on the way decides: its owner, group and mode, or its list of access. For each such audience there is a file of
its own, with bitmaps, facets and trigrams of its own rows, behind folders that let the same people pass as those on the
way; the kernel then decides as it would in the tree. Folders and files belong to root, who publishes, and to the group
of what they stand for; its owner passes by a list of access, so that no reader can write what another reads.
"""

from __future__ import annotations

import json
import os
import stat
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from podwright.data.catalog import schema
from podwright.data.catalog.files import FILE, SHARED, SHARED_FORMAT, literal, meta_of, put_rows, seal
from podwright.data.query import bitmaps
from podwright.data.tree.known_layouts import layout_of
from podwright.data.tree.walk_folders import ACL
from podwright.files.whole import write_whole
from podwright.spec.problems import refuse

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

ROWS = "rows.duckdb"
_BLOCK = 16384
"""DuckDB's smallest: there may be a file for each user, most with few rows."""
_GATE = "in"
_READ, _ENTER = 4, 1
_OWN = {_READ: 4, _ENTER: 7}
"""What the publisher may do himself where others may read a file, or enter a folder."""
_OWNER, _USER, _GROUP, _MASK, _OTHERS = 1, 2, 4, 16, 32
"""Kinds of entries of a list of access."""
_NO_ID = 0xFFFFFFFF
_ENTRY = struct.Struct("<HHI")
_HEADER = struct.Struct("<I")


@dataclass(frozen=True, order=True, slots=True)
class Gate:
    """Who passes one folder: a bit each for its owner, its group and all others, or its list of access."""

    uid: int
    gid: int
    bits: int
    acl: bytes = b""

    @property
    def is_open(self) -> bool:
        """Say whether everybody passes."""
        return self.bits == 0o111 and not self.acl


def gate_of(status: tuple[int, int, int], acl: bytes | None, need: int) -> Gate:
    """Return the gate of a folder with this user, group and mode, for those who need these rights of it."""
    uid, gid, mode = status
    bits = 0
    for shift in (6, 3, 0):
        if (mode >> shift) & need == need:
            bits |= 1 << shift
    return Gate(uid, gid, bits, _only_enter(acl, need) if acl else b"")


def _only_enter(acl: bytes, need: int) -> bytes:
    """Return a list of access that lets the same people pass and gives them no other right."""
    entries = bytearray(acl[: _HEADER.size])
    for tag, rights, number in _ENTRY.iter_unpack(acl[_HEADER.size :]):
        entries += _ENTRY.pack(tag, _ENTER * (rights & need == need), number)
    return bytes(entries)


Audience = frozenset[Gate]


def share(draft: Path) -> None:
    """Write the files for others beside the owner's file of a generation that is not published yet."""
    import duckdb

    with duckdb.connect(":memory:") as connection:
        connection.execute("SET enable_progress_bar = false")
        connection.execute(f"ATTACH '{literal(draft / FILE)}' AS own (READ_ONLY)")
        root = bytes.fromhex(meta_of(connection, "own.")["root_bytes"])
        allowed = audiences(connection, root)
        _number_folders(connection, allowed)
        note_guarded(connection, root)
        rows, base, first = [], 0, 0
        for number, audience in enumerate(dict.fromkeys(allowed.values())):
            path = _place(draft / str(number), audience)
            files, folders = _write(connection, path, number, (base, first), _readers(audience))
            base, first = base + files, first + folders
            _let_pass(draft / str(number), path, audience)
            rows.append({"path": str(path.relative_to(draft)), **_sealed(path)})
    draft.chmod(0o755)
    document = {"format": SHARED_FORMAT, "files": rows}
    write_whole(draft / SHARED, json.dumps(document).encode(), mode=0o644)


def _sealed(path: Path) -> dict[str, int]:
    with path.open("rb") as file:
        return seal(file.fileno())


def audiences(connection: DuckDBPyConnection, root: bytes) -> dict[int, Audience]:
    """Return who may list each folder: whoever passes all that lie above the root, and can list all from there on."""
    above = _above(root)
    query = "SELECT id, coalesce(raw, encode(path)), uid, gid, mode, acl FROM own.directory ORDER BY path"
    by_path: dict[bytes, Audience] = {}
    audiences: dict[int, Audience] = {}
    for number, name, uid, gid, mode, acl in connection.execute(query).fetchall():
        parent = name[: name.rstrip(b"/").rfind(b"/") + 1]
        gates = by_path[parent] if name else above
        gate = gate_of((uid, gid, mode), acl, _READ | _ENTER)
        by_path[name] = gates if gate.is_open else gates | {gate}
        audiences[number] = by_path[name]
    return audiences


def _above(root: bytes) -> Audience:
    gates = set()
    folder = os.path.dirname(root)  # noqa: PTH120 - paths are bytes
    while True:
        status = os.stat(folder)  # noqa: PTH116
        gates.add(gate_of((status.st_uid, status.st_gid, status.st_mode), _acl_of(folder), _ENTER))
        if folder == b"/":
            break
        folder = os.path.dirname(folder)  # noqa: PTH120
    return frozenset(gate for gate in gates if not gate.is_open)


def _acl_of(path: bytes) -> bytes | None:
    try:
        return os.getxattr(path, ACL)
    except OSError:
        return None


def _number_folders(connection: DuckDBPyConnection, audiences: dict[int, Audience]) -> None:
    numbers = {audience: number for number, audience in enumerate(dict.fromkeys(audiences.values()))}
    pairs = {"id": list(audiences), "audience": [numbers[audience] for audience in audiences.values()]}
    put_rows(connection, "CREATE TEMP TABLE belongs AS", pa.table(pairs))


def note_guarded(connection: DuckDBPyConnection, root: bytes) -> None:
    """Note the files that have a list of access, of those of whose content something is known."""
    described = ["SELECT id FROM own.file WHERE sha256 IS NOT NULL", "SELECT file FROM own.tag"]
    if connection.execute("SELECT count(*) FROM own.class").fetchone() != (0,):
        described.append("SELECT file FROM own.label")
    query = f"""SELECT f.id, {schema.PATH_BYTES} FROM own.file f JOIN own.directory d ON d.id = f.dir
        WHERE f.id IN ({" UNION ".join(described)})"""
    rows = connection.execute(query).fetchall()
    guarded = [number for number, path in rows if _acl_of(root + b"/" + path)]
    put_rows(connection, "CREATE TEMP TABLE guarded AS", pa.table({"id": pa.array(guarded, pa.int64())}))


def _place(folder: Path, audience: Audience) -> Path:
    """Make a folder for each gate, one in the other, and return where the file of the audience lies."""
    folder.mkdir(mode=0o700)
    for _ in audience:
        folder = folder / _GATE
        folder.mkdir(mode=0o700)
    return folder / ROWS


def _readers(audience: Audience) -> list[tuple[int, int, int]]:
    """Return the gates without lists of access, as (user, group, bits)."""
    return [(gate.uid, gate.gid, gate.bits) for gate in audience if not gate.acl]


def _write(
    connection: DuckDBPyConnection,
    path: Path,
    number: int,
    bases: tuple[int, int],
    passed: list[tuple[int, int, int]],
) -> tuple[int, int]:
    """Write what one audience may see into a file of its own; return how many files and folders it describes."""
    import duckdb

    meta = meta_of(connection, "own.")
    layout = layout_of(meta["dataset"], meta["layout"])
    connection.execute(f"ATTACH '{literal(path)}' AS theirs (BLOCK_SIZE {_BLOCK})")
    for statement in _copies(number, *bases, passed):
        connection.execute(statement)
    classes = [name for (name,) in connection.execute("SELECT name FROM theirs.class ORDER BY place").fetchall()]
    if classes:
        connection.execute(_LABELS)
    row = connection.execute("SELECT (SELECT count(*) FROM theirs.file), (SELECT count(*) FROM theirs.directory)")
    files, folders = row.fetchone() or (0, 0)
    connection.execute("DROP TABLE chosen")
    connection.execute("DETACH theirs")
    with duckdb.connect(str(path)) as inside:
        inside.execute("SET enable_progress_bar = false")
        bitmaps.build(inside, layout, len(classes))
    return files, folders


def _copies(number: int, base: int, first: int, passed: list[tuple[int, int, int]]) -> Iterator[str]:
    yield f"""CREATE TABLE theirs.directory AS
        SELECT d.* REPLACE (row_number() OVER (ORDER BY d.id) - 1 + {first} AS id), d.id AS old_id
        FROM own.directory d JOIN belongs b ON b.id = d.id WHERE b.audience = {number} ORDER BY d.id"""
    # Checksums, labels and tags tell of what is in a file: they go only where all of the audience may read it.
    yield f"""CREATE TEMP TABLE chosen AS
        SELECT f.id AS old_id, row_number() OVER (ORDER BY f.id) - 1 + {base} AS id, d.id AS dir,
            {may_read(passed)} AS readable
        FROM own.file f JOIN theirs.directory d ON d.old_id = f.dir"""
    yield """CREATE TABLE theirs.file AS
        SELECT f.* REPLACE (c.id AS id, c.dir AS dir, CASE WHEN c.readable THEN f.sha256 END AS sha256)
        FROM own.file f JOIN chosen c ON c.old_id = f.id ORDER BY c.id"""
    yield "ALTER TABLE theirs.directory DROP COLUMN old_id"
    yield "CREATE TABLE theirs.class AS SELECT * FROM own.class"
    yield """CREATE TABLE theirs.tag AS
        SELECT c.id AS file, t.name, t.value FROM own.tag t JOIN chosen c ON c.old_id = t.file WHERE c.readable"""
    yield "CREATE TABLE theirs.meta AS SELECT * FROM own.meta WHERE key <> 'unread'"


_LABELS = """CREATE TABLE theirs.label AS SELECT l.* REPLACE (c.id AS file)
    FROM own.label l JOIN chosen c ON c.old_id = l.file WHERE c.readable ORDER BY c.id"""


def may_read(passed: list[tuple[int, int, int]]) -> str:
    """Return the SQL of whether everybody in an audience may read a file.

    That is so where all may, or where a gate on the way has the file's own user and group and lets no more people in.
    """
    tests = ["f.mode & 292 = 292"]
    for uid, gid, bits in passed:
        tests.append(f"(f.uid = {uid} AND f.gid = {gid} AND (f.mode >> 2) & {bits} = {bits})")
    return f"(f.id NOT IN (SELECT id FROM guarded) AND ({' OR '.join(tests)}))"


def _let_pass(folder: Path, path: Path, audience: Audience) -> None:
    """Let the audience pass each folder and read the file, as it passes what they stand for; the innermost first."""
    gates = sorted(audience)
    path.chmod(0o444)
    if gates:
        _guard(path, gates[-1], _READ)
    for depth in range(len(gates), 0, -1):
        _guard(folder.joinpath(*[_GATE] * depth), gates[depth - 1], _ENTER)
    folder.chmod(stat.S_IRWXU | 0o011)


def _guard(path: Path, gate: Gate, right: int) -> None:
    """Give those who pass a gate this right, and nobody the right to write or to change who has it."""
    os.chown(path, os.geteuid(), gate.gid)
    path.chmod(_OWN[right] << 6 | sum(right << shift for shift in (3, 0) if gate.bits >> shift & 1))
    if gate.uid == os.geteuid() and not gate.acl:
        return
    try:
        os.setxattr(path, ACL, _packed(_entries(gate), right))
    except OSError as error:
        message = f"this file system keeps no lists of access, so no catalog for many can lie on it ({error.strerror})"
        raise refuse(message, hint="put PODWRIGHT_CATALOG on one that does", file=str(path), exit_code=1) from None


Entries = dict[tuple[int, int], bool]
"""Of a list of access: who passes, by kind of entry and number of the user or group."""


def _entries(gate: Gate) -> Entries:
    """Return who passes a gate, with its owner among the users that are named."""
    listed: Entries = {(_OWNER, _NO_ID): bool(gate.bits & 0o100), (_GROUP, _NO_ID): bool(gate.bits & 0o010)}
    listed[_OTHERS, _NO_ID] = bool(gate.bits & 0o001)
    if gate.acl:
        rows = list(_ENTRY.iter_unpack(gate.acl[_HEADER.size :]))
        listed = {(kind, number): bool(rights) for kind, rights, number in rows}
    # What the mask keeps from the others it must not keep from the owner, who is one of them from here on.
    masked = listed.pop((_MASK, _NO_ID), True)
    entries = {key: passes and (masked or key[0] in (_OWNER, _OTHERS)) for key, passes in listed.items()}
    owner = entries.pop((_OWNER, _NO_ID))
    return {**entries, (_USER, gate.uid): owner}


def _packed(entries: Entries, right: int) -> bytes:
    """Return a list of access in the order that the kernel wants; whoever owns the file does as he likes."""
    full = {(_OWNER, _NO_ID): _OWN[right], (_MASK, _NO_ID): right}
    rights = {key: right * passes for key, passes in entries.items()} | full
    rows = b"".join(_ENTRY.pack(kind, rights[kind, number], number) for kind, number in sorted(rights))
    return _HEADER.pack(2) + rows
