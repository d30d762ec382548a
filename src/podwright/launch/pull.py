"""Copies what a run left to where the user wants it, after it was brought to this machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from podwright.engines.mirror import Trees
from podwright.launch.session import Session
from podwright.runs import RunFolder
from podwright.runs.copies import Copier, LeftOut
from podwright.spec.problems import refuse

CLOSE_S = 10.0
"""How long the closing of a folder is waited for, once the record must have come."""
LEFT = ("results", "checkpoints")
INNER = frozenset({"keeper.lock", "seal.lock", "submit.lock", "token", "cancelled", "lease"})


def pull(
    session: Session, folder: RunFolder, paths: Sequence[str], to: Path, leave_out: Callable[[LeftOut], None]
) -> list[Path]:
    """Copy results and checkpoints, or the named paths of the run's folder: see `Run.pull`."""
    for gap in bring(session, folder, list(paths or LEFT)):
        leave_out(gap)
    root = folder.path.resolve()
    copier, copied = Copier(root, leave_out), []
    for name in paths or [name for name in LEFT if (root / name).exists()]:
        source = (root / name).resolve()
        if not paths and not source.is_relative_to(root):
            # A whole folder that the run made a link: it is left out by name, and the other is copied still.
            copier.copy(root / name, to / folder.id / name)
            continue
        if not source.is_relative_to(root) or not source.exists():
            there = sorted(path.name for path in root.iterdir() if path.name not in INNER)
            raise refuse(f"{folder.id} has no {name}", hint=f"it has {', '.join(there) or 'nothing yet'}")
        target = to / folder.id / source.relative_to(root)
        if copier.copy(source, target):
            copied.append(target)
    return copied


def bring(session: Session, folder: RunFolder, paths: Sequence[str]) -> list[LeftOut]:
    """Bring paths of the run here, and return what did not come.

    A look that another command takes at the run just now is waited for.
    """
    engine, clock = session.engine_of(folder), session.clock
    deadline = clock.monotonic() + CLOSE_S
    while folder.id not in (brought := engine.fetch([folder], Trees(paths))):
        if clock.monotonic() > deadline:
            raise refuse(f"{folder.id} cannot be brought here: another command is at it", exit_code=3)
        clock.sleep(0.2)
    return brought[folder.id]
