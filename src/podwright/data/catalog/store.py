"""Where datasets and their generations lie, and how a generation is published: one writer, many readers.

catalog/NAME/current -> g000003     a link, replaced by a rename: readers see the old generation or the new one
catalog/NAME/g000003/own.duckdb     all of it, for its owner alone
catalog/NAME/g000003/shared.json    of a catalog that others may enter: where the files for them are (see sharing.py)
catalog/NAME/tags/                  the tags of all generations (see tag_journal.py)
catalog/NAME/lock                   held by the one writer
"""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from podwright.data.catalog.files import FILE, SHARED, SHARED_FORMAT, Opened, check_files, open_files
from podwright.data.catalog.history import Keep, PastGeneration, past_to_keep, read_generation, write_facts
from podwright.files.locks import only
from podwright.files.whole import make_private, whole_path
from podwright.spec.nearest import did_you_mean
from podwright.spec.problems import Refusal, refuse, short

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from podwright.data.catalog.tag_journal import TagJournal

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")
_GENERATION = re.compile(r"g(\d{6,})")
_TRIES, _SURE = 10, 2
"""How often a generation is opened that may be replaced meanwhile, and from which time on it is taken for damaged."""


def check_name(name: str, field: str = "--name") -> str:
    """Return a name of a dataset or a selection, or refuse it."""
    if not _NAME.fullmatch(name):
        hint = "a name has lower-case letters, digits, dots and dashes, 63 at most"
        raise refuse(f'"{short(name)}" is no name', hint=hint, field=field)
    return name


def open_store(home: Path) -> Store:
    """Return the datasets of a home; those of PODWRIGHT_CATALOG where that names a folder, which many may share."""
    path = os.environ.get("PODWRIGHT_CATALOG")
    if path and "://" in path:
        hint = "a database is named on the command line: `podwright data find DATASET --catalog POD`"
        raise refuse("an address is no folder", hint=hint, field="PODWRIGHT_CATALOG")  # unseen: it may hold a password
    return Store(home, Path(path).expanduser().absolute() if path else None)


class Store:
    """The datasets of one home. Constructing it touches nothing."""

    def __init__(self, home: Path, catalog: Path | None = None) -> None:
        self.home = home
        self.path = catalog or home / "catalog"
        self.selections = home / "selections"
        self.keeps: Callable[[], Keep] = Keep
        """How much of the history stays."""

    def datasets(self) -> list[str]:
        """Return the names of what has been scanned."""
        if not self.path.is_dir():
            return []
        return sorted(path.name for path in self.path.iterdir() if _is_published(path))

    def selection_names(self) -> list[str]:
        """Return the names of the selections."""
        if not self.selections.is_dir():
            return []
        return sorted(path.name for path in self.selections.iterdir() if _NAME.fullmatch(path.name))

    def unknown(self, name: str, names: list[str], what: str, hint: str) -> Refusal:
        """Return the refusal of a name that there is not, with the nearest."""
        return refuse(f'there is no {what} "{short(name)}"', hint=did_you_mean(name, names, hint))

    def generation(self, dataset: str) -> int:
        """Return the number of the generation that is published; 0 when there is none."""
        try:
            target = (self.path / dataset / "current").readlink()
        except OSError:
            return 0
        match = _GENERATION.fullmatch(target.name)
        return int(match[1]) if match else 0

    def file(self, dataset: str, generation: int) -> Path:
        """Return the path of a generation's file."""
        return self.path / dataset / f"g{generation:06d}" / FILE

    def connect(self, dataset: str) -> Opened:
        """Open the published generation for reading; a new one that is published meanwhile is taken instead."""
        import duckdb

        if not _NAME.fullmatch(dataset) or dataset not in self.datasets():
            hint = f"podwright data scan PATH --name {dataset if _NAME.fullmatch(dataset) else 'NAME'}"
            raise self.unknown(dataset, self.datasets(), "dataset", hint)
        for attempt in range(_TRIES):
            path = self.file(dataset, self.generation(dataset))
            try:
                return open_files(check_files(path.parent))
            except (duckdb.Error, OSError) as error:
                if path.parent.exists() and attempt >= _SURE:
                    raise damaged(dataset, error) from None
        raise refuse(f"{dataset} has no generation that can be read", hint=f"podwright data scan PATH --name {dataset}")

    @property
    def shared(self) -> bool:
        """Say whether others may enter the catalog's folder: then a generation has files for them too."""
        try:
            return os.geteuid() == 0 and bool(self.path.stat().st_mode & 0o011)
        except OSError:
            return False

    def is_shared_as_now(self, dataset: str) -> bool:
        """Say whether a published generation has for others what this version gives them."""
        if not self.shared:
            return True
        try:
            document = json.loads((self.file(dataset, self.generation(dataset)).parent / SHARED).read_bytes())
        except (OSError, ValueError):
            return False
        return bool(document.get("format") == SHARED_FORMAT)

    @contextmanager
    def writing(self, dataset: str) -> Iterator[Path]:
        """Be the one writer of a dataset within the block; yield an empty folder for the next generation.

        What a writer that was killed has left is removed first.
        """
        folder = self.path / dataset
        self._make_folder(folder)
        if self.shared:
            folder.chmod(0o755)
        with only(folder / "lock", _being_written(dataset)):
            self._sweep(folder)
            draft = folder / f".g{self.generation(dataset) + 1:06d}.part"
            draft.mkdir(mode=0o700)
            try:
                with disk_words(draft):
                    yield draft
            finally:
                shutil.rmtree(draft, ignore_errors=True)

    def _make_folder(self, folder: Path) -> None:
        try:
            make_private(folder)
        except PermissionError:
            folder = self.path
        if not os.access(folder, os.W_OK):
            owner = folder.owner()
            message = f"this catalog is one that only {owner} writes"
            raise refuse(message, hint=f"ask {owner}, or unset PODWRIGHT_CATALOG", file=str(self.path), exit_code=1)

    @contextmanager
    def building(self, draft: Path) -> Iterator[DuckDBPyConnection]:
        """Open the file of a generation that is not published yet."""
        import duckdb

        with duckdb.connect(str(draft / FILE)) as connection:
            connection.execute(_NO_BAR)
            connection.execute(_NO_SYNC)
            yield connection

    @contextmanager
    def amending(self, dataset: str, draft: Path) -> Iterator[DuckDBPyConnection]:
        """Open a copy of the published generation for changes; it is published behind the block."""
        shutil.copyfile(self.file(dataset, self.generation(dataset)), draft / FILE)
        with self.building(draft) as connection:
            yield connection
        self.publish(dataset, draft)

    def publish(self, dataset: str, draft: Path, facts: Mapping[str, Any] | None = None) -> None:
        """Make what lies in this folder the generation that readers see.

        `facts`: what a scan found. Without them it adds to the generation there is, and takes its place in the history.
        """
        generation = self.generation(dataset) + 1
        folder = self.path / dataset
        write_facts(draft, self.file(dataset, generation - 1).parent, facts)
        (draft / FILE).chmod(0o600)
        if self.shared:
            # Lazily: pyarrow and NumPy are slow to import, and most commands only read.
            from podwright.data.catalog.sharing import share

            share(draft)
        for path, _, names in os.walk(draft):
            for name in names:
                _sync(Path(path, name))
            _sync(Path(path))
        final = folder / f"g{generation:06d}"
        draft.rename(final)
        with whole_path(folder / "current") as link:
            link.symlink_to(final.name)
        _sync(folder)
        self._sweep(folder)

    def forget(self, dataset: str) -> None:
        """Remove all that is known of a dataset; its files stay."""
        folder = self.path / dataset
        with only(folder / "lock", _being_written(dataset)):
            (folder / "current").unlink(missing_ok=True)
            shutil.rmtree(folder)

    def history(self, dataset: str) -> list[PastGeneration]:
        """Return the generations that are there, the newest first, which is the one that readers see."""
        current, folder = self.generation(dataset), self.path / dataset
        numbers = [int(match[1]) for path in folder.iterdir() if (match := _GENERATION.fullmatch(path.name))]
        return [
            read_generation(folder / f"g{number:06d}", number)
            for number in sorted(numbers, reverse=True)
            if number <= current
        ]

    def tag_journal(self, dataset: str) -> TagJournal:
        """Return the journal of a dataset's tags, as of the published generation."""
        from podwright.data.catalog.tag_journal import TagJournal

        return TagJournal(self.path / dataset, self.generation(dataset))

    def _sweep(self, folder: Path) -> None:
        """Remove what nobody can reach: parts of killed writers, and generations beyond those of the history."""
        # Lazily: pyarrow is slow to import, and most commands only read.
        from podwright.data.catalog.tag_journal import sweep

        sweep(folder, self.generation(folder.name))
        history = self.history(folder.name)
        kept = {past.generation for past in past_to_keep(history, self.keeps())} if history else set()
        for path in folder.iterdir():
            match = _GENERATION.fullmatch(path.name)
            if path.name.endswith(".part") and path.is_symlink():
                path.unlink()
            elif path.name.endswith(".part") or (match and int(match[1]) not in kept):
                shutil.rmtree(path, ignore_errors=True)


_NO_BAR = "SET enable_progress_bar = false"
_NO_SYNC = "SET fsync_mode = 'NONE'"
"""What is not published yet need not outlive a crash; publishing waits for the disk, once."""


@contextmanager
def disk_words(path: Path) -> Iterator[None]:
    """Turn DuckDB's words about a full disk into the operating system's error, which commands explain."""
    import duckdb

    try:
        yield
    except duckdb.Error as error:
        text = str(error)
        for code in (errno.ENOSPC, errno.EDQUOT, errno.EROFS):
            if os.strerror(code) in text:
                raise OSError(code, os.strerror(code), str(path)) from None
        raise


def _is_published(folder: Path) -> bool:
    try:
        return (folder / "current").is_symlink()
    except PermissionError:
        return False


def _being_written(dataset: str) -> Refusal:
    return refuse(f"{dataset} is being written by another command", hint="wait for it to end", exit_code=1)


def damaged(dataset: str, error: Exception) -> Refusal:
    """Return the refusal of a generation whose content is not what a scan makes."""
    first = str(error).splitlines()[0]
    past = f"`podwright data history {dataset}` has what `revert` goes back to"
    hint = f"{past}; a scan with --replace begins again; tags stay"
    return refuse(f"{dataset} cannot be read: {first}", hint=hint)


def _sync(path: Path) -> None:
    # A pipe in its place must not hold up whoever publishes.
    file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISFIFO(os.fstat(file).st_mode):
            os.fsync(file)
    finally:
        os.close(file)
