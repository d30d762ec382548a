"""`rebuild`: the index of runs, made again."""

from __future__ import annotations

from podwright import launch
from podwright.cli.options import AsJson
from podwright.cli.terminal import output


def rebuild_command(as_json: AsJson = False) -> None:
    """Read every run's folder and write the index from nothing else."""
    with launch.Session.open() as session:
        count = launch.rebuild(session)
    if as_json:
        return output.print_json({"runs": count})
    return print(f"{count} runs in the index", flush=True)
