"""`rebuild`: the index of runs, made anew."""

from __future__ import annotations

from podwright.cli.options import AsJson
from podwright.cli.terminal import output


def rebuild_command(as_json: AsJson = False) -> None:
    """Read every run's folder and write the index from nothing else."""
    from podwright.launch import Session, rebuild

    with Session.open() as session:
        count = rebuild(session)
    if as_json:
        return output.print_json({"runs": count})
    return print(f"{count} runs in the index", flush=True)
