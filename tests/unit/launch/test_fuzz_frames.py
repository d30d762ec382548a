"""Frames whose checksum is right and whose content is not: whoever holds a container may send them."""

from __future__ import annotations

import base64
import json
import random
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from podwright.engines.frames import assemble
from podwright.pilot.protocol import FRAME_LIMIT_BYTES, SEPARATOR, frame_crc
from podwright.runs import Home
from tests.fixtures.bad_runs import BAD, add_run, bad_home, good_rows
from tests.unit.launch.test_fuzz import JUNK, check, seeds

__all__ = ["bad_home"]

MAX_BYTES = 2 << 20
"""More than the greatest offset here that a node may send, and one piece; all others are far beyond."""


def sealed(place: str, head: bytes, data: bytes) -> bytes:
    """A frame as a pilot would send it, with a right checksum, whatever is in it."""
    payload = base64.b64encode(zlib.compress(head + b"\n" + data, 9)).decode()
    return f"{SEPARATOR}pw1 {place} {frame_crc(place, payload):08x} {payload}".encode("utf-8", "surrogatepass")


NAMES = (
    "n0.r0/events.jsonl",
    "n0.r0/metrics.jsonl",
    "n0.r0/merged.log",
    "n0.r0/../../../run.json",
    "../run.json",
    "/tmp/x",
    "n².r0/events.jsonl",
    f"n{'9' * 400}.r0/events.jsonl",
    "n0.r0",
    "n0.r0/",
    "n0.r0/events.jsonl/x",
    "n0.r0/a\0b",
    "n0.r0/" + "x" * 5000,
    "run.json",
    "",
)
OFFSETS = (0, 1, -1, 10**6, 2**40, 2**63, 10**400, "0", "²", None, [], 1.5, True)
PLACES = ("0 0.0 0", "0 0.0 1", "9 7.3 5", "-1 0.0 0", "² 0.0 0", "0 0 0", "0 0.0", f"{10**30} 0.0 0", "0 0.0 0 0")
CONTENT: tuple[Callable[[random.Random], bytes], ...] = (
    lambda chance: chance.choice(JUNK) + b"\n",
    lambda chance: b'{"t":1,"k":"go","e":[0,0],"n":0,"q":0}\n',
    lambda chance: b'{"t":1,"k":"end","e":[9,9],"n":0,"q":0,"state":"succeeded"}\n',
    lambda chance: bytes(chance.randrange(256) for _ in range(200)),
    lambda chance: b"x" * chance.choice((0, 60_000, 10_000_000)),
    lambda chance: b"\n" * 5000,
)


def heads(chance: random.Random) -> bytes:
    """The line before the piece: where it goes."""
    row: dict[str, Any] = {"f": chance.choice(NAMES), "o": chance.choice(OFFSETS)}
    if chance.randrange(8) == 0:
        row.pop(chance.choice(sorted(row)))
    if chance.randrange(8) == 0:
        return chance.choice(JUNK)
    return json.dumps(row).encode()


def hostile(chance: random.Random) -> bytes:
    """A few frames; the first of most goes where an honest one would."""
    lines = [sealed(PLACES[0], b'{"f": "n0.r0/events.jsonl", "o": 0}', chance.choice(CONTENT)(chance))]
    for _ in range(chance.randrange(1, 4)):
        lines.append(sealed(chance.choice(PLACES), heads(chance), chance.choice(CONTENT)(chance)))
    return b"\n".join(lines) + b"\n"


def outside(home: Home) -> dict[str, bytes]:
    """All files of the home that frames have no business with, but for those of the index."""
    kept = {}
    for path in sorted(home.path.rglob("*")):
        name = str(path.relative_to(home.path))
        if path.is_file() and "/record/" not in name and "index" not in name:
            kept[name] = path.read_bytes()
    return kept


def test_frames_with_a_right_checksum_write_nowhere_else_and_no_more_than_they_may(
    bad_home: Home, tmp_path: Path
) -> None:
    folder = add_run(bad_home, BAD)
    rows = good_rows()
    before = outside(bad_home)
    for number, (name, chance) in enumerate(seeds(range(200))):
        log = tmp_path / "n0.r0.log"
        log.write_bytes(hostile(chance))
        assemble([log], folder / "record")
        record = folder / "record"
        sizes = [path.stat().st_size for path in record.rglob("*") if path.is_file()]
        assert max(sizes) < MAX_BYTES, "no offset is beyond what a node may send"
        assert {path.name for path in record.iterdir()} <= {"n0.r0", "n9.r7"}
        assert outside(bad_home) == before
        if number % 20 == 0:
            check(bad_home, rows, chance, f"frames {name}")
            before = outside(bad_home)


@pytest.mark.parametrize("piece", [b"x" * 10_000_000, b"\n" * 10_000_000])
def test_a_frame_that_inflates_is_no_frame(bad_home: Home, tmp_path: Path, piece: bytes) -> None:
    folder = add_run(bad_home, BAD)
    events = folder / "record" / "n0.r0" / "events.jsonl"
    before = events.read_bytes()
    line = sealed(PLACES[0], b'{"f": "n0.r0/events.jsonl", "o": 0}', piece)
    log = tmp_path / "n0.r0.log"
    log.write_bytes(line + b"\n")
    assert len(line) > FRAME_LIMIT_BYTES
    assemble([log], folder / "record")
    assert events.read_bytes() == before
