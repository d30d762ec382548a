"""`pod plan`, `pod up` and `pod status`: how hosts become a pod, and whether they still are."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from podwright.cli.commands.pod.pods import PodRef, print_table
from podwright.cli.options import AsJson, seconds_of
from podwright.cli.terminal import output

if TYPE_CHECKING:
    from podwright.bringup import Bringup, ChangeWindow, HostChanges, PlanResult, StatusResult, UpResult

Only = Annotated[str | None, typer.Option("--only", metavar="STAGE", help="One stage, such as slurm.")]
Limit = Annotated[str | None, typer.Option("--limit", metavar="HOSTS", help="Some hosts, such as n[2-3].")]
_UNREACHABLE = 3
_MAX_LINES = 40


@contextmanager
def opened(ref: str, untested: bool = False) -> Iterator[Bringup]:
    """Give the bring-up of the pod that is meant; what it says is shown."""
    from podwright import bringup_of
    from podwright.cli.terminal.stages import BringupView

    view = BringupView(sys.stderr, ref)
    try:
        yield bringup_of(ref, view, untested)
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
        if bringup.unchecked:
            output.say("untested", f"{bringup.pod.bringup.os}: {bringup.unchecked}")
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
        for change, what in host.others:
            print(f"  {change:<8}{what}")
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
    at: Annotated[
        str | None, typer.Option("--at", metavar="TIME", help="Reserve the nodes, and wait until then: 22:00.")
    ] = None,
    lasting: Annotated[str, typer.Option("--for", metavar="TIME", help="How long they stay reserved.")] = "4h",
    untested: Annotated[bool, typer.Option("--untested", help="Also on a system that it never ran on.")] = False,
    as_json: AsJson = False,
) -> int:
    """Apply the plan, then make the pod known."""
    with opened(pod, untested) as bringup:
        if at is not None:
            result = bringup.up_at(window_of(at, lasting), only, limit)
        else:
            result = bringup.up(only, limit) if rolling is None else bringup.roll(rolling, only, limit)
        if result.is_known and bringup.pod.schedulers:
            output.say("next", f"podwright run WORKLOAD --on {bringup.pod.name}")
        if result.is_known and bringup.site.has("registry"):
            place = bringup.site.registry
            output.say("registry", f"{place}: user podwright, `podwright pod secrets show {bringup.pod.name}`")
    return show_up(result, as_json)


def window_of(at: str, lasting: str) -> ChangeWindow:
    """Return the window of time that is meant, by this machine's own clock."""
    from podwright.bringup import ChangeWindow, start_of

    return ChangeWindow(start_of(at, datetime.now().astimezone()), seconds_of(lasting, "--for"))


def pod_upgrade_command(
    pod: PodRef,
    rolling: Annotated[int, typer.Option("--rolling", metavar="N", min=1, help="How many nodes at a time.")] = 1,
    as_json: AsJson = False,
) -> int:
    """Bring a pod to the releases that its file names; a jump that would lose jobs is refused."""
    with opened(pod) as bringup:
        return show_up(bringup.upgrade(rolling), as_json)


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
        for foreign in host.foreign:
            yield name, "foreign", foreign.words


def pod_watch_command(
    pod: PodRef,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="The folder to write to.")],
    as_json: AsJson = False,
) -> int:
    """Write what watches the pod: rules, alerts, receivers, targets, dashboards."""
    with opened(pod) as bringup:
        result = bringup.watch()
    result.write(out)
    if as_json:
        output.print_json(result.as_json())
    else:
        count = f"{len(result.alerts)} alerts, {len(result.dashboards)} dashboards"
        output.say("written", f"{out}: {len(result.texts)} files, {count}")
    return 0
