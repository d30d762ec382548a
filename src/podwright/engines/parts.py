"""A part of runs' folders on a cluster, such as their checkpoints: its size and its removal, in one question."""

from __future__ import annotations

from collections.abc import Sequence

from podwright.pilot.protocol import whole_number
from podwright.runs import RunFolder

CLEAR = """\
cd "$1" || exit 0
IFS= read -r runs
for run in $runs; do
    part="$run/$2"
    [ -d "$part" ] && [ ! -L "$run" ] && [ ! -L "$part" ] || continue
    size=$(du -sk "$part" 2>/dev/null)
    [ "$3" = look ] || rm -rf -- "$part" || exit 1
    echo "$run ${size%%[!0-9]*}"
done
"""
"""Takes the runs as one line: the end of its input cannot be told to a command in a container. Follows no link."""


def clear_command(root: str, name: str, remove: bool) -> list[str]:
    """Return the command that looks at this part of each run below a folder, and may remove it."""
    return ["/bin/sh", "-c", CLEAR, "podwright", root, name, "remove" if remove else "look"]


def clear_input(folders: Sequence[RunFolder]) -> bytes:
    """Return what the command is given."""
    return " ".join(folder.id for folder in folders).encode() + b"\n"


def cleared(answer: bytes, folders: Sequence[RunFolder]) -> dict[str, int]:
    """Return the bytes by run, of those that have the part."""
    asked = {folder.id for folder in folders}
    sizes = {}
    for line in answer.decode("utf-8", "replace").splitlines():
        run, _, kilobytes = line.partition(" ")
        size = whole_number(kilobytes)
        if run in asked and size is not None:
            sizes[run] = size << 10
    return sizes
