"""The loader that travels with a run against those that people use, one epoch shuffled, raw bytes and decoded images.

    python benchmarks/loader.py [--pairs 7] [--json OUT] [--images 2000]

It runs in an environment of its own with torch, torchvision, webdataset, mosaicml-streaming and litdata; of ours it
takes the one file pilot/loader.py. All arms read the same PNG files, in the form that each wants them: folders, tar
shards, or its own shards. Tar shards are as staging leaves them: nobody may write to them. One process reads: what is
compared is the reader, not how processes are started.
"""

from __future__ import annotations

import importlib.util
import io
import os
import random
import shutil
import tarfile
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from time import perf_counter
from types import ModuleType
from typing import Any

from measure import alternate, compare, conclude, machine, parser, start

LOADER = Path(__file__).parent.parent / "src" / "podwright" / "pilot" / "loader.py"
SHARD = 500
GOAL = 1.0
Arm = Any
"""A function: whether to decode -> batches."""


def ours() -> ModuleType:
    """Load the one file, as ranks do under the name `podwright_data`."""
    spec = importlib.util.spec_from_file_location("podwright_data", LOADER)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def write(folder: Path, count: int) -> None:
    """Write the images in the form of every arm."""
    from PIL import Image

    noise = random.Random(1)
    images = []
    for number in range(count):
        image = Image.effect_noise((96, 96), noise.uniform(20, 80)).convert("RGB")
        path = folder / "images" / f"class{number % 10}" / f"{number:06}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        image.save(path)
        images.append((number % 10, path))
    for first in range(0, count, SHARD):
        (folder / "shards").mkdir(exist_ok=True)
        shard = folder / "shards" / f"train-{first // SHARD:06}.tar"
        with tarfile.open(shard, "w") as archive:
            for label, path in images[first : first + SHARD]:
                _add(archive, f"{path.stem}.png", path.read_bytes())
                _add(archive, f"{path.stem}.cls", str(label).encode())
        shard.chmod(0o444)
    _write_streaming(folder / "streaming", images)
    _write_litdata(folder / "litdata", images)


def _add(archive: tarfile.TarFile, name: str, data: bytes) -> None:
    info = tarfile.TarInfo(name)
    info.size = len(data)
    archive.addfile(info, io.BytesIO(data))


def _write_streaming(folder: Path, images: list[tuple[int, Path]]) -> None:
    from streaming import MDSWriter

    with MDSWriter(out=str(folder), columns={"image": "bytes", "label": "int"}) as writer:
        for label, path in images:
            writer.write({"image": path.read_bytes(), "label": label})


def _write_litdata(folder: Path, images: list[tuple[int, Path]]) -> None:
    from litdata.streaming.cache import Cache

    folder.mkdir()
    cache = Cache(str(folder), chunk_bytes="16MB")
    for number, (label, path) in enumerate(images):
        cache[number] = {"image": path.read_bytes(), "label": label}
    cache.done()
    cache.merge()


def pixels(data: bytes) -> int:
    """Decode an image and look at it."""
    from PIL import Image

    with Image.open(io.BytesIO(data)) as image:
        return len(image.convert("RGB").tobytes())


def look(data: bytes, decode: bool) -> int:
    """Return what an image is worth: its bytes, or its pixels."""
    return pixels(data) if decode else len(data)


class Readers:
    """A method for each arm, which goes through one epoch and yields batches with a number for each image."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._ours = folder, ours()

    def folder(self, decode: bool) -> Iterator[Any]:
        """Ours, over folders."""
        read = self._ours.SampleFolder(str(self._folder / "images"), lambda sample: look(sample["file"], decode))
        return iter(self._ours.Loader(read, 32, seed=1))

    def shards(self, decode: bool) -> Iterator[Any]:
        """Ours, over tar shards."""
        read = self._ours.SampleFolder(str(self._folder / "shards"), lambda sample: look(sample["png"], decode))
        return iter(self._ours.Loader(read, 32, seed=1))

    def torchvision(self, decode: bool) -> Iterator[Any]:
        """Folders of torchvision."""
        from torch.utils.data import DataLoader
        from torchvision.datasets import ImageFolder

        read = ImageFolder(str(self._folder / "images"), loader=lambda path: look(Path(path).read_bytes(), decode))
        return (images for images, _ in DataLoader(read, batch_size=32, shuffle=True))

    def webdataset(self, decode: bool) -> Iterator[Any]:
        """The same tar shards, in a stream."""
        import webdataset as wds

        shards = sorted(map(str, (self._folder / "shards").glob("*.tar")))
        read = wds.WebDataset(shards, shardshuffle=len(shards)).shuffle(1000)
        return iter(wds.WebLoader(read.map(lambda sample: look(sample["png"], decode)), batch_size=32))

    def streaming(self, decode: bool) -> Iterator[Any]:
        """Shards of MosaicML."""
        from streaming import StreamingDataset
        from torch.utils.data import DataLoader

        read = StreamingDataset(local=str(self._folder / "streaming"), shuffle=True, batch_size=32)
        return iter(DataLoader(read, batch_size=32, collate_fn=lambda rows: [look(r["image"], decode) for r in rows]))

    def litdata(self, decode: bool) -> Iterator[Any]:
        """Chunks of LitData."""
        from litdata import StreamingDataLoader, StreamingDataset

        def collate(rows: list[dict[str, Any]]) -> list[int]:
            return [look(row["image"], decode) for row in rows]

        read = StreamingDataset(str(self._folder / "litdata"), shuffle=True)
        return iter(StreamingDataLoader(read, batch_size=32, collate_fn=collate))


ARMS = ("folder", "shards", "torchvision", "webdataset", "streaming", "litdata")


def epoch(arm: Arm, decode: bool, count: int) -> float:
    """Return the seconds of one epoch, opening included; every image must come."""
    began = perf_counter()
    seen = sum(len(batch) for batch in arm(decode))
    took = perf_counter() - began
    if seen != count:
        raise SystemExit(f"{arm.__name__}: {seen} images came, not {count}")
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
        readers = Readers(folder)
        for kind, decode in (("raw", False), ("decoded", True)):
            timed = {name: partial(epoch, getattr(readers, name), decode, asked.images) for name in ARMS}
            seconds = alternate(timed, asked.pairs)
            raw[kind] = seconds
            rows.append(compare(f"{kind}: folder / torchvision", seconds["folder"], seconds["torchvision"], GOAL))
            for other in ("webdataset", "streaming", "litdata"):
                rows.append(compare(f"{kind}: shards / {other}", seconds["shards"], seconds[other], GOAL))
        shutil.rmtree(folder / "cache", ignore_errors=True)
    conclude("loader", rows, raw, facts, asked.json)
    return 0


if __name__ == "__main__":
    start(main)
