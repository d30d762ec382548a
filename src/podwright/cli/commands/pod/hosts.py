"""`pod plan`, `pod up` and `pod status`: how hosts become a pod, and whether they still are."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from podwright.cli.commands.pod.pods import PodRef, print_table
from podwright.cli.options import AsJson
from podwright.cli.terminal import output

if TYPE_CHECKING:
    from podwright.bringup import Bringup, HostChanges, PlanResult, StatusResult, UpResult

Only = Annotated[str | None, typer.Option("--only", metavar="STAGE", help="One stage, such as slurm.")]
Limit = Annotated[str | None, typer.Option("--limit", metavar="HOSTS", help="Some hosts, such as n[2-3].")]
_UNREACHABLE = 3
_MAX_LINES = 40


@contextmanager
def opened(ref: str) -> Iterator[Bringup]:
    """Give the bring-up of the pod that is meant; what it says is shown."""
    from podwright import bringup_of
    from podwright.cli.terminal.stages import BringupView

    view = BringupView(sys.stderr, ref)
    try:
        yield bringup_of(ref, view)
    finally:
        view.close()


def pod_plan_command(
    pod: PodRef,
    offline: Annotated[bool, typer.Option("--offline", help="Ask no host.")] = False,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Write it as a project that ansible-playbook runs.")
    ] = None,
    only: Only = None,
    limit: Limit = None,
    as_json: AsJson = False,
) -> int:
    """Show what each host would get; nothing changes."""
    with opened(pod) as bringup:
        result = bringup.plan(only, limit, offline)
        if out is not None:
            output.say("written", f"{out}: {bringup.write_project(out, only, limit)}")
    if as_json:
        output.print_json(result.as_json())
    else:
        _print_plan(result)
    return 0 if result.is_complete else _UNREACHABLE


def _print_plan(result: PlanResult) -> None:
    """Print every host with its files, those that would change line by line, but no change twice."""
    shown: set[tuple[str, ...]] = set()
    for name, host in result.hosts.items():
        if host.reason is not None:
            print(f"{name}  cannot be asked: {host.reason}")
            continue
        plan = host.plan
        print(f"{name}  {_summary(host)}, {len(plan.packages())} packages, {len(plan.services())} services")
        for stage, reason in plan.skipped.items():
            print(f"  {'skipped':<8}{stage}: {reason}")
        for file in plan.files():
            print(f"  {host.changes[file.path]:<8}{file.path}")
            lines = host.diff(file)
            if lines and (file.path, *lines) not in shown:
                shown.add((file.path, *lines))
                print("\n".join(f"    {output.plain(line)}" for line in lines[:_MAX_LINES]))
    sys.stdout.flush()


def _summary(host: HostChanges) -> str:
    counts = Counter(host.changes.values())
    return ", ".join(f"{counts[change]} {change}" for change in ("new", "edit", "same", "unknown") if counts[change])


def pod_up_command(
    pod: PodRef,
    only: Only = None,
    limit: Limit = None,
    rolling: Annotated[
        int | None, typer.Option("--rolling", metavar="N", help="Drain nodes first, N at a time; stop at a failure.")
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Apply the plan, then make the pod known."""
    with opened(pod) as bringup:
        result = bringup.up(only, limit) if rolling is None else bringup.roll(rolling, only, limit)
        if result.is_known and bringup.pod.schedulers:
            output.say("next", f"podwright run WORKLOAD --on {bringup.pod.name}")
    return show_up(result, as_json)


def show_up(result: UpResult, as_json: bool) -> int:
    """Print what was done to hosts where JSON is asked for, and return the exit code."""
    if as_json:
        output.print_json(result.as_json())
    return int(bool(result.faults))


def pod_status_command(pod: PodRef, limit: Limit = None, as_json: AsJson = False) -> int:
    """Ask every host what it has and compare it with the plan; nothing changes."""
    with opened(pod) as bringup:
        result = bringup.status(limit)
    if as_json:
        output.print_json(result.as_json())
    else:
        print_table(("host", "state", "what"), _status_rows(result))
    return int(not result.is_ok)


def _status_rows(result: StatusResult) -> Iterator[tuple[str, str, str]]:
    for name, host in result.hosts.items():
        if not host.drift:
            yield name, host.state, host.reason or ""
        for drift in host.drift:
            yield name, host.state, drift.words
