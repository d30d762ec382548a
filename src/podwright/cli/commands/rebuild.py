"""`rebuild`: the index of runs, made anew."""

from __future__ import annotations

from podwright.cli.options import AsJson
from podwright.cli.terminal import output


def rebuild_command(as_json: AsJson = False) -> None:
    """Reads every run's folder and writes the index from nothing else."""
    from podwright import launch
    from podwright.launch import Session

    count = launch.rebuild(Session.open())
    if as_json:
        return output.print_json({"runs": count})
    return print(f"{count} runs in the index", flush=True)
