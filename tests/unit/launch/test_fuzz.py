"""Any byte or line of any file of a run, any frame and any answer of a mirror may be wrong: only that run suffers."""

from __future__ import annotations

import io
import json
import os
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from podwright.engines.frames import assemble
from podwright.engines.mirror import Mirror, Trees
from podwright.pilot.carry import mirror as far
from podwright.pilot.protocol import Frame, encode_frame
from podwright.runs import Home, RunFolder
from tests.fixtures.bad_runs import BAD, add_run, bad_home, call, good_rows
from tests.fixtures.damage import bounded

__all__ = ["bad_home"]

ENDS = (0, 1, 2, 3, 4)
"""Exit codes with words; 70 is a fault of ours."""
JUNK: tuple[bytes, ...] = (
    b"",
    b"null",
    b"-1",
    b"1e999",
    b"NaN",
    b"99999999999999999999999",
    '"²"'.encode(),
    b'"\\ud800"',
    b"[]",
    b"{}",
    b"true",
    b'{"k":"go"}',
    b"\xff\xfe",
    b"\0",
    b"[" * 5000,
)
COMMANDS = (
    *(("show", BAD), ("logs", BAD), ("ps",), ("rebuild",), ("wait", BAD, "--timeout", "0s"), ("cancel", BAD)),
    *(("report", BAD), ("top", "--once"), ("report", BAD, "good-2222")),
)
SERIES = "rank0.series.jsonl"
LARGE_BYTES = 1 << 40
PARTS, PART = 50, 500
"""The parts of a night, and how often each damages a folder, and a carrier: 50,000 times in all."""

Change = Callable[[bytes, random.Random], bytes]


def change_byte(data: bytes, chance: random.Random) -> bytes:
    """Return the data with one byte changed, left out or put in."""
    place = chance.randrange(len(data) + 1)
    new = bytes([chance.randrange(256)]) * chance.randrange(2)
    return data[:place] + new + data[place + chance.randrange(2) :]


def change_line(data: bytes, chance: random.Random) -> bytes:
    """Return the data with one line changed, left out, doubled or moved."""
    lines = data.split(b"\n")
    place = chance.randrange(len(lines))
    lines[place : place + chance.randrange(2)] = chance.choice(
        [[], [chance.choice(JUNK)], lines[place : place + 1] * 2]
    )
    return b"\n".join(lines)


def change_value(data: bytes, chance: random.Random) -> bytes:
    """Return the data with one JSON value in one line in place of another."""
    lines = data.split(b"\n")
    place = chance.randrange(len(lines))
    head, colon, rest = lines[place].partition(b": ")
    for _ in range(chance.randrange(rest.count(b": ") + 1)):
        more, colon, rest = rest.partition(b": ")
        head += b": " + more
    _, comma, tail = rest.partition(b", ")
    lines[place] = head + colon + chance.choice(JUNK) + comma + tail
    return b"\n".join(lines)


def cut(data: bytes, chance: random.Random) -> bytes:
    """Return the beginning of the data."""
    return data[: chance.randrange(len(data) + 1)]


CHANGES: tuple[Change, ...] = (change_byte, change_line, change_value, change_value, cut)


def damage(folder: Path, chance: random.Random) -> str:
    """Change something in a run's folder; return what, for whoever reads a failure."""
    paths = (path for path in folder.rglob("*") if path.is_file() and path.stat().st_size < LARGE_BYTES)
    path = chance.choice(sorted(paths))
    name = str(path.relative_to(folder))
    kind = chance.randrange(13)
    if kind == 3:
        os.truncate(path, LARGE_BYTES)
        return f"{name}: a terabyte of nothing"
    if kind > 2:
        change = chance.choice(CHANGES)
        path.write_bytes(change(path.read_bytes(), chance))
        return f"{name}: {change.__name__}"
    path.unlink()
    if kind == 0:
        path.mkdir()
    if kind == 1:
        os.mkfifo(path)
    return f"{name}: {('a folder', 'a pipe', 'gone')[kind]}"


def renew(home: Home, chance: random.Random) -> Path:
    """Make the bad run again, as one that ended, one that did not, or one that is closed."""
    shutil.rmtree(home.runs / BAD, ignore_errors=True)
    folder = add_run(home, BAD)
    (folder / "engine.jsonl").write_text('{"t": 1700000000.0, "k": "kept", "pid": 1, "job": "x"}\n')
    events = folder / "record" / "n0.r0" / "events.jsonl"
    state = chance.randrange(3)
    if state == 0:
        events.write_text("".join(line + "\n" for line in events.read_text().splitlines()[:-1]))
    if state == 1:
        call("show", BAD)
    return folder


def check(home: Home, before: dict[str, Any], chance: random.Random, what: str) -> None:
    """Run commands over the home; all others answer as before."""
    for command in chance.sample(COMMANDS, 2):
        code, _, err = call(*command)
        assert code in ENDS, (what, command, err)
        assert "Traceback" not in err, (what, command, err)
    assert good_rows() == before, what


def seeds(numbers: range) -> Iterator[tuple[str, random.Random]]:
    """Yield sources of chance with their names; what they begin with is printed, and PODWRIGHT_SEED gives it again."""
    first = int(os.environ.get("PODWRIGHT_SEED") or random.SystemRandom().randrange(1 << 32))
    print(f"PODWRIGHT_SEED={first}")
    for number in numbers:
        yield f"{first}.{number}", random.Random(f"{first}.{number}")


def fuzz_folder(home: Home, numbers: range) -> None:
    """Damage a run's folder once for each number, in another way each time."""
    before = good_rows()
    for name, chance in seeds(numbers):
        with bounded():
            folder = renew(home, chance)
            what = ", ".join([name, *(damage(folder, chance) for _ in range(chance.randrange(1, 3)))])
            check(home, before, chance, what)
            code, _, err = call("rm", "--yes", BAD)
            assert (code, folder.exists()) == (0, False), (what, err)


def fuzz_carriers(home: Home, numbers: range, tmp_path: Path) -> None:
    """Bring a run's record once for each number by a carrier that changes what it carries."""
    before = good_rows()
    there = tmp_path / "far" / BAD
    shutil.copytree(add_run(home, BAD), there)
    (there / "results").mkdir()
    (there / "results" / "iou.json").write_text("{}")
    for number, (name, chance) in zip(numbers, seeds(numbers), strict=True):
        with bounded():
            folder = renew(home, chance)
            _carry(folder, there, number, chance)
            size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
            assert size < 1 << 20, name
            if number % 5 == 0:
                check(home, before, chance, f"carrier {name}")


def _carry(folder: Path, there: Path, number: int, chance: random.Random) -> None:
    """Bring the record by frames that were changed, or by a mirror's answers that were."""
    if number % 2:
        log = there.parent / "n0.r0.log"
        log.write_bytes(chance.choice(CHANGES)(_frames(there), chance))
        assemble([log], folder / "record")
        return
    with Mirror([RunFolder(folder)]) as mirror:
        mirror.bring(lambda asked: _answer(asked, chance), str(there.parent), Trees(["results"], 1000))


def _frames(there: Path) -> bytes:
    lines = []
    for number, name in enumerate(("events.jsonl", "metrics.jsonl", "merged.log", SERIES)):
        data = (there / "record" / "n0.r0" / name).read_bytes()
        lines.append(encode_frame(Frame(0, (0, 0), number, f"n0.r0/{name}", 0, data)) or "")
    return "\n".join(lines).encode()


def _answer(asked: dict[str, Any], chance: random.Random) -> bytes:
    out = io.BytesIO()
    far.answer(json.loads(json.dumps(asked)), out)
    return chance.choice(CHANGES)(out.getvalue(), chance)


def test_whatever_is_wrong_in_a_folder_other_runs_answer_as_before(bad_home: Home) -> None:
    fuzz_folder(bad_home, range(100))


def test_whatever_a_carrier_says_other_runs_answer_as_before(bad_home: Home, tmp_path: Path) -> None:
    fuzz_carriers(bad_home, range(100), tmp_path)


@pytest.mark.nightly
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("part", range(PARTS))
def test_by_night_whatever_is_wrong_other_runs_answer_as_before(bad_home: Home, tmp_path: Path, part: int) -> None:
    numbers = range(part * PART, (part + 1) * PART)
    fuzz_folder(bad_home, numbers)
    fuzz_carriers(bad_home, numbers, tmp_path)
