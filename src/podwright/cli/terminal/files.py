"""Files in a place that the user named: what keeps them from being written is the user's to mend, and is said."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from podwright.spec.problems import refuse


@contextmanager
def in_words(target: Path) -> Iterator[None]:
    """Report an error of writing by the file that it is about."""
    try:
        yield
    except OSError as error:
        path, reason = error.filename or target, (error.strerror or str(error)).lower()
        raise refuse(f"{path} cannot be written: {reason}", hint="name another place") from None


def write_files(files: Mapping[str, str | bytes], folder: Path) -> list[Path]:
    """Write the files again, and return where each is; what else lies in the folder stays."""
    paths = [folder / name for name in files]
    with in_words(folder):
        for path, text in zip(paths, files.values(), strict=True):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode() if isinstance(text, str) else text)
    return paths
