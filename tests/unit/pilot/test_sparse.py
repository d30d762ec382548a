"""Sparse files on their way: what is a hole at the source takes no room where it comes to."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podwright.data.policies import transfer
from podwright.pilot.data.cache import Cache, NoRoom
from podwright.pilot.data.manifest import StagedInput, items_of
from podwright.pilot.data.sources import SourceFile, fetch
from podwright.pilot.data.sparse import BLOCK_BYTES, end_file, write_piece
from tests.fixtures.counted import counted

SIZE = 64 << 20
MIDDLE = b"in the middle"


def sparse(path: Path) -> str:
    """A file of holes but for a few bytes in their middle; gives its SHA-256."""
    with path.open("wb") as file:
        file.seek(SIZE // 2)
        file.write(MIDDLE)
        file.truncate(SIZE)
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def taken(path: Path) -> int:
    return path.stat().st_blocks * 512


lengths = st.integers(0, 3 * BLOCK_BYTES)


@given(st.lists(st.tuples(st.sampled_from([b"\0", b"x"]), lengths), max_size=8))
def test_what_is_written_is_what_came(parts: Sequence[tuple[bytes, int]]) -> None:
    pieces = [letter * length for letter, length in parts]
    with tempfile.TemporaryFile() as file:
        for piece in pieces:
            write_piece(file, piece)
        end_file(file)
        file.seek(0)
        assert file.read() == b"".join(pieces)


@pytest.mark.parametrize("scheme", ["file", "http"])
def test_holes_of_a_source_take_no_room(tmp_path: Path, scheme: str) -> None:
    source, copy = tmp_path / "source.bin", tmp_path / "copy.bin"
    sha256 = sparse(source)
    with counted(tmp_path) as server, copy.open("w+b") as file:
        address = {"file": source.as_uri(), "http": f"{server.address}/source.bin"}[scheme]
        assert fetch(SourceFile(address, SIZE), {}, {}, file) == sha256
    assert copy.stat().st_size == SIZE
    assert taken(copy) < SIZE // 16
    with copy.open("rb") as file:
        assert hashlib.file_digest(file, "sha256").hexdigest() == sha256


def test_a_policy_copies_holes_as_holes(tmp_path: Path) -> None:
    source, copy = tmp_path / "source.bin", tmp_path / "copy.bin"
    sha256, facts = sparse(source), source.stat()
    assert transfer.copy(bytes(source), bytes(copy), facts.st_size, facts.st_mtime_ns) == sha256
    assert taken(copy) < SIZE // 16


def test_the_bound_of_a_cache_is_of_what_its_contents_take(tmp_path: Path) -> None:
    """A content of holes takes next to nothing, and evicting it would give as little; what is to come counts whole."""
    source, cache = tmp_path / "source.bin", Cache(str(tmp_path / "cache"), SIZE + (1 << 20), reserve_bytes=0)
    row = {"path": "a.bin", "size": SIZE, "sha256": sparse(source), "etag": None, "source": source.as_uri()}
    (item,) = items_of([StagedInput("frames", {}, [row])])
    cache.make()
    cache.note_origins([item])
    with cache.incoming("toy", item) as arriving:
        arriving.sha256 = fetch(item.file, {}, {}, arriving.file)
    assert cache.make_room(SIZE, {}, {item.key}) == 0
    with pytest.raises(NoRoom, match=r"\d+ bytes are missing"):
        cache.make_room(SIZE + (1 << 20), {}, {item.key})
