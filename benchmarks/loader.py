"""The loader that travels with a run against those that people use, one epoch shuffled, raw bytes and decoded images.

    python benchmarks/loader.py [--pairs 7] [--json OUT] [--images 2000]

It runs in an environment of its own with torch, torchvision, webdataset, mosaicml-streaming and litdata;
of ours it takes what ranks import, pilot/data/loader. All arms read the same PNG files, in the
form that each wants them: folders, tar shards, or its own shards. Tar shards are as staging leaves them: nobody may
write to them. As the others' shards have an index that was written with them, these have one of wds2idx's form; `bare`
has none.


All arms do the same work: every sample of the epoch comes once, in batches of 32 that are lists, from files that are
opened anew, and every byte of it is looked at: LitData gives views of memory, in which nothing is read before that.
`shards` gives views too, `copies` and `bare` bytes. One process reads: what is compared is the reader, not how
processes are started.
"""

from __future__ import annotations

import importlib.util
import io
import os
import random
import shutil
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from pathlib import Path
from time import perf_counter, process_time
from types import ModuleType
from typing import Any

import litdata
import numpy as np
import streaming
import webdataset as wds
from litdata.streaming.cache import Cache
from PIL import Image
from torch.utils.data import DataLoader
from torchvision.datasets import ImageFolder

from measure import alternate, compare, conclude, machine, parser, start

LOADER = Path(__file__).parent.parent / "src" / "podwright" / "pilot" / "data" / "loader" / "__init__.py"
SHARD = 500
GOAL = 1.0
Arm = Any
"""A function: whether to decode -> batches."""


def ours() -> ModuleType:
    """Load the package that ranks import as `podwright_data`."""
    beside = [str(LOADER.parent)]
    spec = importlib.util.spec_from_file_location("podwright_data", LOADER, submodule_search_locations=beside)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["podwright_data"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def write(folder: Path, count: int) -> None:
    """Write the images in the form of every arm."""
    noise = random.Random(1)
    images = []
    for number in range(count):
        image = Image.effect_noise((96, 96), noise.uniform(20, 80)).convert("RGB")
        path = folder / "images" / f"class{number % 10}" / f"{number:06}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        image.save(path)
        images.append((number % 10, path))
    for first in range(0, count, SHARD):
        _write_shard(folder, first // SHARD, images[first : first + SHARD])
    _write_streaming(folder / "streaming", images)
    _write_litdata(folder / "litdata", images)


def _write_shard(folder: Path, number: int, images: list[tuple[int, Path]]) -> None:
    """Write a tar shard, and beside one of its two places the index."""
    (folder / "shards").mkdir(exist_ok=True)
    (folder / "bare").mkdir(exist_ok=True)
    shard = folder / "shards" / f"train-{number:06}.tar"
    lines = [f"v1.2 {len(images)}\n"]
    with tarfile.open(shard, "w") as archive:
        for label, path in images:
            parts = [_add(archive, path.stem, "png", path.read_bytes())]
            parts.append(_add(archive, path.stem, "cls", str(label).encode()))
            lines.append(" ".join(parts) + "\n")
    shard.chmod(0o444)
    shard.with_suffix(".idx").write_text("".join(lines))
    (folder / "bare" / shard.name).hardlink_to(shard)


def _add(archive: tarfile.TarFile, stem: str, suffix: str, data: bytes) -> str:
    """Add a member, and return what an index says of it."""
    info = tarfile.TarInfo(f"{stem}.{suffix}")
    info.size = len(data)
    archive.addfile(info, io.BytesIO(data))
    return f"{suffix} {archive.offset - -(-len(data) // 512) * 512} {len(data)} {info.name}"


def _write_streaming(folder: Path, images: list[tuple[int, Path]]) -> None:
    with streaming.MDSWriter(out=str(folder), columns={"image": "bytes", "label": "int"}) as writer:
        for label, path in images:
            writer.write({"image": path.read_bytes(), "label": label})


def _write_litdata(folder: Path, images: list[tuple[int, Path]]) -> None:
    folder.mkdir()
    cache = Cache(str(folder), chunk_bytes="16MB")
    for number, (label, path) in enumerate(images):
        cache[number] = {"image": path.read_bytes(), "label": label}
    cache.done()
    cache.merge()


def look(data: bytes | memoryview, decode: bool) -> int:
    """Look at all of an image, at its bytes or its pixels, and return how many bytes it has."""
    if decode:
        with Image.open(io.BytesIO(data)) as image:
            image.convert("RGB").tobytes()
    else:
        np.frombuffer(data, np.uint8).max()
    return len(data)


class Readers:
    """A method for each arm, which goes through one epoch and yields batches: lists of the sizes of images."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._ours = folder, ours()

    def _read(self, name: str, decode: Callable[[Any], int]) -> Iterator[Any]:
        read = self._ours.SampleFolder(str(self._folder / name), decode)
        return iter(self._ours.Loader(read, 32, seed=1, collate_fn=list))

    def folder(self, decode: bool) -> Iterator[Any]:
        """Ours, over folders."""
        return self._read("images", lambda sample: look(sample["file"], decode))

    def shards(self, decode: bool) -> Iterator[Any]:
        """Ours, over tar shards, where they lie in memory."""
        return self._read("shards", lambda sample: look(sample.view("png"), decode))

    def copies(self, decode: bool) -> Iterator[Any]:
        """Ours, over tar shards, as bytes."""
        return self._read("shards", lambda sample: look(sample["png"], decode))

    def bare(self, decode: bool) -> Iterator[Any]:
        """Ours, over tar shards without an index, as bytes."""
        return self._read("bare", lambda sample: look(sample["png"], decode))

    def torchvision(self, decode: bool) -> Iterator[Any]:
        """Folders of torchvision."""
        read = ImageFolder(str(self._folder / "images"), loader=lambda path: look(Path(path).read_bytes(), decode))
        return iter(DataLoader(read, batch_size=32, shuffle=True, collate_fn=lambda rows: [size for size, _ in rows]))

    def webdataset(self, decode: bool) -> Iterator[Any]:
        """The same tar shards, in a stream."""
        shards = sorted(map(str, (self._folder / "shards").glob("*.tar")))
        read = wds.WebDataset(shards, shardshuffle=len(shards)).shuffle(1000)
        sizes = read.map(lambda sample: look(sample["png"], decode))
        return iter(wds.WebLoader(sizes, batch_size=32, collate_fn=list))

    def streaming(self, decode: bool) -> Iterator[Any]:
        """Shards of MosaicML."""
        read = streaming.StreamingDataset(local=str(self._folder / "streaming"), shuffle=True, batch_size=32)
        return iter(DataLoader(read, batch_size=32, collate_fn=lambda rows: [look(r["image"], decode) for r in rows]))

    def litdata(self, decode: bool) -> Iterator[Any]:
        """Chunks of LitData."""
        read = litdata.StreamingDataset(str(self._folder / "litdata"), shuffle=True)
        collate = partial(_looked_at, decode=decode)
        return iter(litdata.StreamingDataLoader(read, batch_size=32, collate_fn=collate))


def _looked_at(rows: list[dict[str, Any]], decode: bool) -> list[int]:
    return [look(row["image"], decode) for row in rows]


ARMS = ("folder", "shards", "copies", "bare", "torchvision", "webdataset", "streaming", "litdata")
GOALS = {"shards": GOAL, "copies": None, "bare": None}
"""Of each of ours over shards: the most it may take of another's time."""


def epoch(arm: Arm, decode: bool, wanted: tuple[int, int], busy: list[float]) -> float:
    """Return the seconds of one epoch, opening included; those of a processor are kept beside.

    Every image must come, with all of its bytes.
    """
    count = size = 0
    began, busy_before = perf_counter(), process_time()
    for batch in arm(decode):
        count, size = count + len(batch), size + sum(batch)
    took = perf_counter() - began
    busy.append(process_time() - busy_before)
    if (count, size) != wanted:
        raise SystemExit(f"{arm.__name__}: {count} images of {size} bytes came, not {wanted[0]} of {wanted[1]}")
    return took


def main() -> int:
    """Measure all arms in turn; what is like ours is compared with ours: folders with folders, shards with shards."""
    options = parser("The loader against others.", pairs=7)
    options.add_argument("--images", type=int, default=2000, help="how many PNG files (default: %(default)s)")
    asked = options.parse_args()
    facts, rows, raw = machine(), [], {}
    with tempfile.TemporaryDirectory(prefix="podwright-bench-") as made_in:
        folder = Path(made_in)
        os.environ["XDG_CACHE_HOME"] = os.environ["HF_HOME"] = str(folder / "cache")
        write(folder, asked.images)
        whole = sum(path.stat().st_size for path in folder.glob("images/*/*.png"))
        readers = Readers(folder)
        for kind, decode in (("raw", False), ("decoded", True)):
            busy: dict[str, list[float]] = {name: [] for name in ARMS}
            wanted = (asked.images, whole)
            timed = {name: partial(epoch, getattr(readers, name), decode, wanted, busy[name]) for name in ARMS}
            seconds = alternate(timed, asked.pairs)
            raw[kind] = {"wall": seconds, "busy": busy}
            rows.append(compare(f"{kind}: folder / torchvision", seconds["folder"], seconds["torchvision"], GOAL))
            for arm, other in product(GOALS, ("webdataset", "streaming", "litdata")):
                rows.append(compare(f"{kind}: {arm} / {other}", seconds[arm], seconds[other], GOALS[arm]))
            for arm, other in (("folder", "torchvision"), ("shards", "litdata")):
                of_both = busy[arm][-asked.pairs :], busy[other][-asked.pairs :]
                rows.append(compare(f"{kind}: {arm} / {other}, busy processor", *of_both))
        shutil.rmtree(folder / "cache", ignore_errors=True)
    conclude("loader", rows, raw, facts, asked.json)
    return 0


if __name__ == "__main__":
    start(main)
