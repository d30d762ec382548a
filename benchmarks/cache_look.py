"""What it costs to look at a node's cache before a run has it, as a share of bringing the data there.

    python benchmarks/cache_look.py [--pairs 5] [--json OUT] [--files 100] [--size 1000000]

`stage` reads files of a local folder into an empty cache, each checked by its SHA-256, as a pilot does. `look` is the
next run of the same data: each content is held against what the cache wrote down, linked into the run's folder, and
written down again. `read` is that with `--verify`: every byte is read and compared.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from catalog_rows import clocked
from measure import Row, alternate, compare, conclude, machine, parser, start
from podwright.pilot.data.cache import Cache
from podwright.pilot.data.manifest import Content
from podwright.pilot.data.sources import SourceFile, fetch

Arms = dict[str, Callable[[], float]]


def contents(folder: Path, files: int, size: int) -> list[Content]:
    """Write files of random bytes, and return them as a manifest has them."""
    made = []
    for number in range(files):
        path, data = folder / f"{number:06d}.bin", os.urandom(size)
        path.write_bytes(data)
        digest = hashlib.sha256(data).hexdigest()
        made.append(Content(digest, SourceFile(path.as_uri(), size), digest, {}, [("frames", path.name.encode())]))
    return made


def bring(folder: Path, items: Sequence[Content], numbers: Any) -> None:
    """Fill a cache that nothing is in yet."""
    cache = Cache(str(folder / f"cold{next(numbers)}"), None, 0)
    cache.make()
    for item in items:
        with cache.incoming("run", item) as arriving:
            arriving.sha256 = fetch(item.file, item.site, {}, arriving.file)


def look(cache: Cache, items: Sequence[Content], numbers: Any) -> None:
    """Give a run of its own all that a cache has."""
    run = f"run{next(numbers)}"
    if not all(cache.take(run, item) for item in items):
        raise SystemExit("the cache lacks what it had")


def arms(folder: Path, items: Sequence[Content]) -> Arms:
    """Return what is timed; the cache that is looked at is filled before."""
    numbers = count()
    bring(folder, items, iter([0]))
    warm, read = (Cache(str(folder / "cold0"), None, 0, verify=verify) for verify in (False, True))
    next(numbers)
    works = {
        "stage": partial(bring, folder, items, numbers),
        "look": partial(look, warm, items, numbers),
        "read": partial(look, read, items, numbers),
    }
    return {name: partial(clocked, work) for name, work in works.items()}


def main() -> int:
    """Time the three in turn."""
    options = parser("Looking at a cache against filling it.", 5)
    options.add_argument("--files", type=int, default=100)
    options.add_argument("--size", type=int, default=1_000_000)
    asked = options.parse_args()
    facts = machine()
    with tempfile.TemporaryDirectory(prefix="podwright-look-") as name:
        folder = Path(name)
        (folder / "source").mkdir()
        items = contents(folder / "source", asked.files, asked.size)
        taken = alternate(arms(folder, items), asked.pairs)
    what = f"{asked.files} files of {asked.size:,} bytes"
    rows: list[Row] = [
        compare(f"looking at {what} / staging", taken["look"], taken["stage"]),
        compare("reading all of it again / staging", taken["read"], taken["stage"]),
    ]
    conclude("cache_look", rows, {"seconds": taken}, facts, asked.json)
    return 0


if __name__ == "__main__":
    start(main)
