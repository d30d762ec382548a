"""What TensorBoard's event files say beyond what a run's ranks told; the client that closes its folder reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podwright.launch.journal import note
from podwright.runs import Record, RunFolder

if TYPE_CHECKING:
    from podwright.runs.series import ToldValue


def take_event_values(folder: RunFolder, record: Record) -> list[ToldValue]:
    """Return the values of event files whose names no rank told, and note the last of each for the record."""
    from podwright.reading.event_folder import guessed_names, values_of_event_files

    read = list(values_of_event_files(folder.path, unread=[]))
    if not read:
        return []
    taken = frozenset(record.results) - guessed_names(folder)
    values = [value for value in read if value.name not in taken]
    if values:
        note(folder, "event_files", values={value.name: value.value for value in values})
    return values
