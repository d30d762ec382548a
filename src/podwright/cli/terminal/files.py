"""Files in a place that the user named: what keeps them from being written is the user's to mend, and is said."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def in_words(place: Path) -> Iterator[None]:
    """Tell an error of writing by the file that it is about."""
    from podwright.spec.problems import refuse

    try:
        yield
    except OSError as error:
        path, why = error.filename or place, (error.strerror or str(error)).lower()
        raise refuse(f"{path} cannot be written: {why}", hint="name another place") from None


def write_files(files: Mapping[str, str], folder: Path) -> list[Path]:
    """Write the files anew, and return where each is; what else lies in the folder stays."""
    paths = [folder / name for name in files]
    with in_words(folder):
        for path, text in zip(paths, files.values(), strict=True):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    return paths
