"""Counts label images, or images by the folders that they lie in, on all cores.

It also travels to nodes that count a share (label_rank.py), where nothing else of ours is.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from itertools import islice
from threading import Lock

from PIL import Image

from podwright.data.labels.images import OF_UNKNOWN_COLOURS, Counted, LabelClass, LabelFile
from podwright.data.labels.pixels import ColourTable

MAX_PIXELS = 1 << 26
"""Of a label image: larger ones are not decoded, as a few kilobytes may be a picture of any size."""
_LARGE_PIXELS = 1 << 24
_one_large = Lock()
"""Large images are decoded one at a time: many at once would take all memory."""
_TOO_LARGE = f"has more than {MAX_PIXELS:,} pixels"
BROKEN = (OSError, SyntaxError, ValueError, Image.DecompressionBombError, Image.DecompressionBombWarning)
"""What Pillow raises for files that are no image, or not all of one."""
_AT_ONCE = 256


def open_image(file: LabelFile) -> AbstractContextManager[Image.Image]:
    """Open an image of this machine; what it holds is read when it is decoded."""
    return Image.open(file.path)


OpenImage = Callable[[LabelFile], AbstractContextManager[Image.Image]]


def count_images(
    files: Sequence[LabelFile], classes: Sequence[LabelClass], threads: int, opened: OpenImage = open_image
) -> Iterator[Counted]:
    """Yield the pixels of each class in label images, in their order; decoding takes all cores."""
    table = ColourTable(classes)

    def count(file: LabelFile) -> Counted:
        with opened(file) as image:
            pixels = image.width * image.height
            if pixels > MAX_PIXELS:
                raise ValueError(_TOO_LARGE)
            with _one_large if pixels > _LARGE_PIXELS else nullcontext():
                counts = table.count(image).tolist()
        if counts[-1] and not any(counts[:-1]):
            return Counted(file.id, None, counts[-1], OF_UNKNOWN_COLOURS)
        return Counted(file.id, counts[:-1], counts[-1])

    yield from on_threads(count, files, threads)


def count_folders(
    files: Sequence[LabelFile], classes: Sequence[LabelClass], threads: int, opened: OpenImage = open_image
) -> Iterator[Counted]:
    """Yield the pixels of images whose folder tells the class of them all; only headers are read."""
    indices = {label.name: index for index, label in enumerate(classes)}

    def count(file: LabelFile) -> Counted:
        with opened(file) as image:
            pixels = image.width * image.height
        counts = [0] * len(classes)
        counts[indices[file.label]] = pixels
        return Counted(file.id, counts)

    yield from on_threads(count, files, threads)


def on_threads(count: Callable[[LabelFile], Counted], files: Iterable[LabelFile], threads: int) -> Iterator[Counted]:
    """Count on threads, since Pillow and NumPy let go of Python's lock; a file that is broken says why."""

    def safely(file: LabelFile) -> Counted:
        try:
            return count(file)
        except BROKEN as error:
            is_read = not (isinstance(error, OSError) and error.errno)
            return Counted(file.id, None, why=why_broken(error), is_read=is_read)

    # Pillow says it of what is not decoded here, in words of its own.
    warnings.filterwarnings("ignore", category=Image.DecompressionBombWarning)
    waiting = iter(files)
    with ThreadPoolExecutor(threads) as pool:
        # In portions: a pool takes all that it is given at once, and there may be millions.
        while portion := list(islice(waiting, _AT_ONCE)):
            yield from pool.map(safely, portion)


def why_broken(error: BaseException) -> str:
    """Return in words why a file is no image, or cannot be read."""
    if isinstance(error, OSError) and error.errno:
        return (error.strerror or os.strerror(error.errno)).lower()
    if isinstance(error, Image.DecompressionBombError | Image.DecompressionBombWarning):
        return _TOO_LARGE
    text = str(error).splitlines() or [type(error).__name__]
    if "cannot identify image file" in text[0]:
        return "is no image"
    return text[0]
