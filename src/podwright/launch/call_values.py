"""What came of functions that were started as runs.

Unpickling runs code: whoever reads a value trusts the run that wrote it. It happens here alone, when one is asked for.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from podwright.engines.mirror import Trees
from podwright.engines.site import SiteLost
from podwright.files.untrusted import read_untrusted
from podwright.launch.follow import by_engine
from podwright.launch.session import Session
from podwright.runs import RunFolder
from podwright.spec.problems import Refusal

MAX_BYTES = 1 << 30
"""Of a value that is read back."""
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


def read_value(run_id: str, folder: Path, rank: int, why: Callable[[], str]) -> Any:
    """Return what a function returned on a rank of a run that is over; CallFailed where it failed, or says `why`."""
    kept = folder / RESULTS
    ranks = sorted({int(path.stem) for path in kept.glob(f"*{ERROR}") if path.stem.isdecimal()} - {rank})
    for other in (rank, *ranks):
        left = _left_by(kept, other)
        if left and left.suffix == ERROR:
            raise _failure(run_id, left)
    try:
        data = read_untrusted(kept, f"{rank}{VALUE}", MAX_BYTES)
    except OSError:
        raise CallFailed(run_id, rank, why()) from None
    return pickle.loads(data)


def _left_by(kept: Path, rank: int) -> Path | None:
    """Return what a rank left last: a rank that is tried again replaces it there, and here both may have come."""
    written_at: dict[Path, int] = {}
    for path in (kept / f"{rank}{VALUE}", kept / f"{rank}{ERROR}"):
        with suppress(OSError):  # nothing is there, or it is replaced just now
            written_at[path] = path.lstat().st_mtime_ns
    return max(written_at, key=written_at.__getitem__, default=None)


def _failure(run_id: str, path: Path) -> CallFailed:
    kept = pickle.loads(read_untrusted(path.parent, path.name, MAX_BYTES))
    failure = CallFailed(run_id, int(path.stem), kept["text"])
    with suppress(Exception):  # an error's own class may be only there
        failure.__cause__ = pickle.loads(kept["error"])
    return failure
