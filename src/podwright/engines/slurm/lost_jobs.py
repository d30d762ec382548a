"""Jobs that the controller took and lost: it died before it had saved what it did, and nobody knows them any more."""

from __future__ import annotations

from collections.abc import Iterable

from podwright.clients.ssh import Reach

LOOK = """\
age=$(scontrol show config 2>/dev/null | sed -n 's/^MinJobAge *= *\\([0-9]*\\).*/\\1/p')
now=$(date +%s)
for run; do
    if [ ! -e "$run/slurm.log" ]; then
        echo "$run"
    elif [ ! -e "$run/lease/ended" ] && [ ! -e "$run/cancelled" ]; then
        last=$(stat -c %Y "$run/slurm.log" "$run"/start.* "$run"/lease/* 2>/dev/null | sort -n | tail -n 1)
        [ $((now - last)) -ge "${age:-0}" ] || echo "$run"
    fi
done
exit 0
"""
"""A job that never began has left no output. One that began, and is not over, was lost as well where it wrote something
less than MinJobAge ago: a job that had ended since would still be listed."""


def lost(reach: Reach, runs: Iterable[str]) -> list[str]:
    """Return those of the folders on the cluster whose jobs were lost; they are jobs that Slurm does not list."""
    return reach.call(["sh", "-c", LOOK, "podwright", *runs]).text.splitlines()


def give(reach: Reach, runs: Iterable[str]) -> None:
    """Let the next job have runs whose own was lost; one that is still at work somewhere is waited for, and fenced."""
    reach.call(["rm", "-f", "--", *(f"{run}/owner" for run in runs)])
