"""What came of functions that were started as runs.

Unpickling runs code: whoever reads a value trusts the run that wrote it. It happens here alone, when one is asked for.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from podwright.runs.files import read_untrusted

MOST_BYTES = 1 << 30
"""Of a value that is read back."""
RESULTS = "results/call"


class CallFailed(Exception):
    """A function failed in a run; `remote` is its traceback there, and the cause its error, where that could travel."""

    def __init__(self, run_id: str, rank: int, remote: str) -> None:
        super().__init__(f"rank {rank} of {run_id} failed\n\n{remote}")
        self.run_id, self.rank, self.remote = run_id, rank, remote


def read_value(run_id: str, folder: Path, rank: int, why: Callable[[], str]) -> Any:
    """Return what a function returned on a rank of a run that is over; CallFailed where it failed, or says `why`."""
    kept = folder / RESULTS
    for path in [kept / f"{rank}.error", *sorted(kept.glob("*.error"))]:
        if path.is_file():
            raise _failure(run_id, path)
    try:
        data = read_untrusted(kept, f"{rank}.value", MOST_BYTES)
    except OSError:
        raise CallFailed(run_id, rank, why()) from None
    return pickle.loads(data)


def _failure(run_id: str, path: Path) -> CallFailed:
    kept = pickle.loads(read_untrusted(path.parent, path.name, MOST_BYTES))
    failure = CallFailed(run_id, int(path.stem), kept["text"])
    with suppress(Exception):  # an error's own class may be only there
        failure.__cause__ = pickle.loads(kept["error"])
    return failure
