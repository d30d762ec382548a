"""What is missing of a run's record or results: sentences, each noted once, however often it is seen."""

from __future__ import annotations

from collections.abc import Sequence

from podwright.engines.mirror import TOO_LARGE
from podwright.launch.journal import note
from podwright.runs import Home, RunFolder
from podwright.runs.copies import LeftOut

NOT_UNDERSTOOD = "could not be understood"


def sentence_of(folder: RunFolder, gap: LeftOut) -> str:
    """Return what is said of a file that did not come."""
    if gap.why == TOO_LARGE:
        return f"{gap.path} is {gap.why}: `podwright pull {folder.id} {gap.path}`"
    return f"{gap.path} did not come: it is {gap.why}"


def note_left_out(home: Home, folder: RunFolder) -> None:
    """Note once that events could not be understood; a sealed folder is closed and stays as it is."""
    count = home.left_out(folder.id)
    if not count or folder.is_sealed:
        return
    if any(NOT_UNDERSTOOD in sentence for sentence in folder.gaps()):
        return
    if count == 1:
        sentence = f"1 event {NOT_UNDERSTOOD} and was left out"
    else:
        sentence = f"{count} events {NOT_UNDERSTOOD} and were left out"
    note(folder, "gap", text=sentence)


def note_gaps(folder: RunFolder, gaps: Sequence[str]) -> None:
    """Note each gap once, however often it is seen."""
    if not gaps:
        return
    known = folder.gaps()
    for sentence in gaps:
        if sentence not in known:
            note(folder, "gap", text=sentence)
