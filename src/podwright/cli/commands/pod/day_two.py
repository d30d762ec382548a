"""What a pod needs once it is up: a host replaced, secrets made anew, its services taken off."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import Annotated, Literal

import typer

from podwright.cli.commands.pod.hosts import bring_up, bringup_pod, play, up_document, vault_for
from podwright.cli.commands.pod.pods import PodRef
from podwright.cli.options import AsJson, Yes
from podwright.cli.terminal import output


def pod_replace_command(
    pod: PodRef,
    host: Annotated[str, typer.Argument(metavar="HOST", help="The host that is new.")],
    as_json: AsJson = False,
) -> int:
    """Bring up one host with all stages."""
    from podwright.bringup.plan.hosts import limited, plan

    wanted = bringup_pod(pod)
    plans = plan(wanted)
    hosts = limited(plans, host)
    progress = bring_up(wanted, plans, hosts)
    if as_json:
        output.print_json(up_document(progress, hosts))
    return int(bool(progress.faults))


def pod_secrets_command(
    action: Annotated[Literal["rotate"], typer.Argument(metavar="rotate", help="What to do.")],
    pod: PodRef,
    only: Annotated[str | None, typer.Option("--only", metavar="NAME", help="One secret, such as munge_key.")] = None,
    as_json: AsJson = False,
    yes: Yes = False,
) -> int:
    """Make secrets anew, and bring them to the hosts."""
    from podwright.bringup.apply.vault import rotated_for
    from podwright.bringup.plan.hosts import plan
    from podwright.bringup.plan.site import site_of

    wanted = bringup_pod(pod)
    names = [only] if only else rotated_for(site_of(wanted))
    if not output.confirm(f"Make {', '.join(names)} of {wanted.name} anew?", yes):
        return 1
    vault_for(wanted).fill(site_of(wanted), rotate=names)
    plans = plan(wanted)
    progress = bring_up(wanted, plans, list(plans))
    if as_json:
        output.print_json(up_document(progress, list(plans)))
    return int(bool(progress.faults))


def pod_down_command(pod: PodRef, as_json: AsJson = False, yes: Yes = False) -> int:
    """Stop the services of all hosts, and keep them from starting."""
    from podwright.bringup.apply.ansible import DOWN
    from podwright.bringup.plan.hosts import plan

    wanted = bringup_pod(pod)
    plans = plan(wanted)
    if not _may_take_down(wanted.name, yes):
        return 1
    progress = play(wanted, plans, list(plans), lambda progress: None, DOWN)
    if as_json:
        output.print_json({"hosts": {name: asdict(count) for name, count in progress.hosts.items()}})
    for fault in progress.faults:
        output.say("failed", f"{fault.host}: {fault.task}: {fault.reason}")
    if not progress.faults:
        output.say("down", f"{wanted.name}: services are off; data, packages and files stay")
    return int(bool(progress.faults))


def _may_take_down(name: str, yes: bool) -> bool:
    """Return whether services may be taken off; without a person to ask, only `--yes` says so."""
    from podwright.spec.problems import refuse

    if not yes and not sys.stdin.isatty():
        raise refuse("services would be taken off the pod's hosts", hint="say so with --yes", field="--yes")
    return output.confirm_destroying(f"Take all services of {name} off its hosts?", yes)
