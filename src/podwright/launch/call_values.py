"""What came of functions that were started as runs.

Unpickling runs code: it happens here alone, when a value is asked for whose run is trusted. Of any other run plain
values are read, and an error's text.
"""

from __future__ import annotations

import base64
import pickle
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from podwright.engines.mirror import Trees
from podwright.engines.site import SiteLost
from podwright.files.untrusted import read_untrusted
from podwright.launch.follow import by_engine
from podwright.launch.plain_values import PICKLE, NotPlain, plain_value
from podwright.launch.session import Session
from podwright.launch.settings import read_settings
from podwright.runs import RunFolder
from podwright.spec.problems import Refusal, refuse

MAX_BYTES = 1 << 30
"""Of a value that is read back."""
MAX_ERROR_BYTES = 64 << 20
TRUST = (
    "give `trust=True`, or write `trust: [{target}]` into settings.yaml, which lets that target run code here; "
    'or have the function return plain types or arrays of numbers, or `values="json"`'
)
RESULTS = "results/call"
VALUE, ERROR = ".value", ".error"
FIRST_VALUE, FIRST_ERROR = f"{RESULTS}/0{VALUE}", f"{RESULTS}/0{ERROR}"


class CallFailed(Exception):
    """A function failed in a run; `remote` is its traceback there, and the cause its error, where that could travel."""

    def __init__(self, run_id: str, rank: int, remote: str) -> None:
        super().__init__(f"rank {rank} of {run_id} failed\n\n{remote}")
        self.run_id, self.rank, self.remote = run_id, rank, remote


def bring_values(session: Session, folders: Sequence[RunFolder]) -> set[str]:
    """Bring the values of runs that are over to this machine, all of a target at once; return whose are here.

    They come before a folder is closed: a scheduler may take its time to let go of a job that has ended.
    """
    closed = {folder.id for folder in folders if folder.is_sealed}
    here = set(closed)
    for engine, members in by_engine(session, [folder for folder in folders if folder.id not in closed]):
        with session.using(engine), suppress(Refusal, SiteLost):
            here.update(engine.fetch(members, Trees((RESULTS,), MAX_BYTES)))
    return here


def early_values(session: Session, folders: Sequence[RunFolder]) -> tuple[set[str], set[str]]:
    """Bring the values of runs that are not over as far as they are written; return whose are here, and who erred.

    Of several ranks the first may have its value long before another fails: such a run is waited for. One that erred
    may be tried again.
    """
    single = [folder for folder in folders if folder.asked.nodes * folder.asked.ranks_per_node == 1]
    here: set[str] = set()
    for engine, members in by_engine(session, single):
        with session.using(engine), suppress(Refusal, SiteLost):
            here |= engine.peek(members, (FIRST_VALUE, FIRST_ERROR), MAX_BYTES)
    left = [(folder.id, _left_by(folder.path / RESULTS, 0)) for folder in single if folder.id in here]
    valued = {run_id for run_id, path in left if path and path.suffix == VALUE}
    return valued, {run_id for run_id, path in left if path} - valued


@dataclass(frozen=True)
class ValueSource:
    """A run whose function left values: where they lie, and whether they may be unpickled."""

    run_id: str
    folder: Path
    target: str
    is_trusted: bool

    def load(self, rank: int, data: bytes) -> Any:
        """Return the value that a rank left; a type that would need trust is refused by name."""
        try:
            if self.is_trusted and data.startswith(PICKLE):
                return pickle.loads(data)
            return plain_value(data)
        except NotPlain as refused:
            if refused.named is None:
                raise refuse(f"the value of rank {rank} of {self.run_id} cannot be read: {refused}") from None
            message = f"rank {rank} of {self.run_id} left a value that is not read without trust: {refused}"
            raise refuse(message, hint=TRUST.format(target=self.target)) from None


def source_of(home: Path, folder: RunFolder, trust: bool) -> ValueSource:
    """Return where a run's values lie; unpickled are those that are trusted, and those of bare runs on this machine.

    An entry that is a link lies where others than this machine write it, whatever its record says. An imported run says
    of itself where it was: no trust in a target holds for it.
    """
    asked = folder.asked
    if asked.imported_from:
        return ValueSource(folder.id, folder.path, asked.target, trust)
    is_here = asked.target == "local" and not folder.path.is_symlink()
    trust = trust or (is_here and asked.workload.get("runtime") != "container")
    if not trust:
        names = {asked.target, asked.target.partition(":")[0]}
        trust = not names.isdisjoint(read_settings(home).trust)
    return ValueSource(folder.id, folder.path, asked.target, trust)


def read_value(source: ValueSource, rank: int, why: Callable[[], str]) -> Any:
    """Return what a function returned on a rank of a run that is over; CallFailed where it failed, or says `why`."""
    kept = source.folder / RESULTS
    ranks = sorted({int(path.stem) for path in kept.glob(f"*{ERROR}") if path.stem.isdecimal()} - {rank})
    for other in (rank, *ranks):
        left = _left_by(kept, other)
        if left and left.suffix == ERROR:
            raise _failure(source, left)
    try:
        data = read_untrusted(kept, f"{rank}{VALUE}", MAX_BYTES)
    except OSError:
        raise CallFailed(source.run_id, rank, why()) from None
    return source.load(rank, data)


def _left_by(kept: Path, rank: int) -> Path | None:
    """Return what a rank left last: a rank that is tried again replaces it there, and here both may have come."""
    written_at: dict[Path, int] = {}
    for path in (kept / f"{rank}{VALUE}", kept / f"{rank}{ERROR}"):
        with suppress(OSError):  # nothing is there, or it is replaced just now
            written_at[path] = path.lstat().st_mtime_ns
    return max(written_at, key=written_at.__getitem__, default=None)


def _failure(source: ValueSource, path: Path) -> CallFailed:
    """Return the failure with its traceback as text; the error itself is unpickled only where its run is trusted."""
    try:
        kept = plain_value(read_untrusted(path.parent, path.name, MAX_ERROR_BYTES))
        text, error = str(kept["text"]), kept["error"]
    except (NotPlain, OSError, TypeError, KeyError) as damage:
        return CallFailed(source.run_id, int(path.stem), f"what it left of its error cannot be read: {damage}")
    failure = CallFailed(source.run_id, int(path.stem), text)
    if source.is_trusted and error:
        with suppress(Exception):  # an error's own class may be only there
            failure.__cause__ = pickle.loads(base64.b64decode(error))
    return failure
