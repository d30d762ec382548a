"""What a pod needs once it is up: a host replaced, secrets made again, its services taken off."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from podwright.cli.commands.pod.hosts import opened, show_up
from podwright.cli.commands.pod.pods import PodRef, is_approved
from podwright.cli.options import AsJson, Yes
from podwright.cli.terminal import figures, output


def pod_replace_command(
    pod: PodRef,
    host: Annotated[str, typer.Argument(metavar="HOST", help="The host that is new.")],
    as_json: AsJson = False,
) -> int:
    """Bring up one host with all stages."""
    with opened(pod) as bringup:
        return show_up(bringup.replace(host), as_json)


def pod_remove_command(
    pod: PodRef,
    host: Annotated[str, typer.Argument(metavar="HOST", help="The host that leaves.")],
    as_json: AsJson = False,
    yes: Yes = False,
) -> int:
    """Drain a host, take it out of the pod, and the pod's services and keys off it."""
    with opened(pod) as bringup:
        if not is_approved(f"Take {host} out of {bringup.pod.name}?", yes, f"{host} would leave the pod"):
            return 1
        result = bringup.remove(host)
        path = bringup.pod.path
    if as_json:
        output.print_json(result.as_json())
    for fault in result.progress.faults:
        output.say("failed", f"{fault.host}: {fault.task}: {fault.reason}")
    if not result.progress.faults:
        output.say(
            "removed", f"{host}: {bringup.pod.name} is known without it; accounts, homes and data are left there"
        )
        output.say("next", f"take {host} out of {path}: `pod up` of that file would bring it back")
    return int(bool(result.progress.faults))


def pod_backup_command(
    pod: PodRef,
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="The file to write.")],
    as_json: AsJson = False,
) -> int:
    """Write what of a pod cannot be made again into one file, encrypted to the key of its vault."""
    with opened(pod) as bringup:
        result = bringup.backup(out)
    if as_json:
        output.print_json(result.as_json())
    else:
        output.say("written", f"{out}: {', '.join(result.parts)}, {figures.size(result.bytes)}, {result.digest}")
        output.say("next", "keep the vault's key elsewhere: without it nobody opens this file")
    return 0


def pod_restore_command(
    pod: PodRef,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What `pod backup` wrote.")],
    as_json: AsJson = False,
    yes: Yes = False,
) -> int:
    """Bring fresh hosts up as a pod, and put a backup back on them."""
    with opened(pod) as bringup:
        name = bringup.pod.name
        if not is_approved(f"Put {file} back on the hosts of {name}?", yes, "what the hosts have would be lost"):
            return 1
        result = bringup.restore(file)
    if as_json:
        output.print_json(result.as_json())
    if not result.progress.faults:
        output.say("restored", f"{name}: {', '.join(result.parts)}")
    return int(bool(result.progress.faults))


def pod_secrets_command(
    action: Annotated[
        Literal["rotate", "show"], typer.Argument(metavar="rotate|show", help="Make them again, or print one.")
    ],
    pod: PodRef,
    only: Annotated[str | None, typer.Option("--only", metavar="NAME", help="One secret, such as munge_key.")] = None,
    as_json: AsJson = False,
    yes: Yes = False,
) -> int:
    """Make secrets again and bring them to the hosts, or print the one that people need."""
    with opened(pod) as bringup:
        if action == "show":
            print(bringup.secret(only or "registry_password"), flush=True)
            return 0
        names = [only] if only else bringup.secrets()
        if not output.confirm(f"Make {', '.join(names)} of {bringup.pod.name} again?", yes):
            return 1
        return show_up(bringup.rotate(names), as_json)


def pod_down_command(pod: PodRef, as_json: AsJson = False, yes: Yes = False) -> int:
    """Stop the services of all hosts, and keep them from starting."""
    with opened(pod) as bringup:
        name = bringup.pod.name
        question = f"Take all services of {name} off its hosts?"
        if not is_approved(question, yes, "services would be taken off the pod's hosts"):
            return 1
        result = bringup.down()
    if as_json:
        output.print_json(result.as_json())
    for fault in result.progress.faults:
        output.say("failed", f"{fault.host}: {fault.task}: {fault.reason}")
    if not result.progress.faults:
        output.say("down", f"{name}: services are off; homes, data and packages stay, apt works without the mirror")
        output.say("next", f"{name} is still known: `podwright pod forget {name}`, or `podwright pod up` again")
    return int(bool(result.progress.faults))
