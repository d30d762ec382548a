"""What a pod needs once it is up: a host replaced, secrets made again, its services taken off."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from podwright.cli.commands.pod.hosts import opened, show_up
from podwright.cli.commands.pod.pods import PodRef, is_approved
from podwright.cli.options import AsJson, Yes
from podwright.cli.terminal import output


def pod_replace_command(
    pod: PodRef,
    host: Annotated[str, typer.Argument(metavar="HOST", help="The host that is new.")],
    as_json: AsJson = False,
) -> int:
    """Bring up one host with all stages."""
    with opened(pod) as bringup:
        return show_up(bringup.replace(host), as_json)


def pod_secrets_command(
    action: Annotated[Literal["rotate"], typer.Argument(metavar="rotate", help="What to do.")],
    pod: PodRef,
    only: Annotated[str | None, typer.Option("--only", metavar="NAME", help="One secret, such as munge_key.")] = None,
    as_json: AsJson = False,
    yes: Yes = False,
) -> int:
    """Make secrets again, and bring them to the hosts."""
    with opened(pod) as bringup:
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
        output.say("down", f"{name}: services are off; data, packages and files stay")
    return int(bool(result.progress.faults))
