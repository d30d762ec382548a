"""`pod power`, `pod firmware`, `pod nodes`, `pod validate`: hosts as machines, and what they can do."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from podwright import launch, usage
from podwright.cli.commands.pod.hosts import Limit, opened
from podwright.cli.commands.pod.pods import PodRef, is_approved, print_table
from podwright.cli.options import AsJson, Yes
from podwright.cli.terminal import output

if TYPE_CHECKING:
    from podwright.bringup import MachinesResult
    from podwright.usage import LemonNode

_FAILED = 1
# Below this nobody takes a row of failures for chance, even of some hundred nodes.
_ODD = 0.001


def pod_power_command(
    pod: PodRef,
    action: Annotated[
        str | None, typer.Argument(metavar="[on|off|force-off|cycle]", help="Left out: only say how they are.")
    ] = None,
    limit: Limit = None,
    boot: Annotated[
        str | None, typer.Option("--boot", metavar="DEVICE", help="What they boot from next: pxe, disk, setup, none.")
    ] = None,
    as_json: AsJson = False,
    yes: Yes = False,
) -> int:
    """Ask management controllers, or have them switch hosts; what runs there ends, so that a person is asked."""
    from podwright.bringup import PowerChange

    change = PowerChange(action, boot)
    with opened(pod) as bringup:
        machines = bringup.machines(limit)
        question = f"Switch {len(machines.hosts)} hosts: {action or f'boot from {boot}'}?"
        if (action or boot) and not is_approved(question, yes):
            return _FAILED
        result = machines.power(change)
    columns = ("host", "power", "boots from")
    return _show(result, as_json, columns, lambda answer: (answer["power"] or "?", answer["boot"] or "its own order"))


def pod_firmware_command(
    pod: PodRef,
    limit: Limit = None,
    update: Annotated[
        str | None, typer.Option("--update", metavar="NAME", help="A firmware to write, by its name in the list.")
    ] = None,
    image: Annotated[
        str | None, typer.Option("--image", metavar="URL", help="What is written: where controllers fetch it.")
    ] = None,
    digest: Annotated[
        str | None, typer.Option("--digest", metavar="sha256:...", help="What the image must be; another is refused.")
    ] = None,
    wave: Annotated[
        int, typer.Option("--wave", metavar="N", min=1, help="How many at once, after the first one went well.")
    ] = 16,
    as_json: AsJson = False,
    yes: Yes = False,
) -> int:
    """List firmware, or have one written: only what was approved, and only an image that is what it should be."""
    from podwright.spec.problems import refuse

    with opened(pod) as bringup:
        machines = bringup.machines(limit)
        if update is None:
            return _show(machines.firmware(), as_json, ("host", "model", "firmware"), _firmware_cells)
        if image is None or digest is None:
            missing = "--image" if image is None else "--digest"
            raise refuse(f"{missing} is missing: an update needs an image and its digest", field=missing)
        if not is_approved(f"Write {update} of {len(machines.hosts)} hosts from {image}?", yes):
            return _FAILED
        result = machines.update(update, image, digest, wave)
    return _show(result, as_json, ("host", "versions", "answer"), _update_cells)


def _update_cells(answer: dict[str, Any]) -> tuple[str, str]:
    return f"{answer['before'] or '?'}, then {answer['after'] or '?'}", answer["said"]


def _firmware_cells(answer: dict[str, Any]) -> tuple[str, str]:
    versions = ", ".join(f"{name} {version or '?'}" for name, version in answer["firmware"].items())
    return answer["model"] or "?", versions or answer.get("firmware_error", "none is listed")


def pod_nodes_command(
    pod: PodRef,
    install: Annotated[
        str | None, typer.Option("--install", metavar="HOSTS", help="Install these again when they boot next.")
    ] = None,
    as_json: AsJson = False,
    yes: Yes = False,
) -> int:
    """Show how far hosts are on their way from a box to a system, and machines that nobody knows yet."""
    with opened(pod) as bringup:
        if install is not None:
            hosts = bringup.hosts(install)
            if not is_approved(f"Write over the disks of {', '.join(hosts)} when they boot next?", yes):
                return _FAILED
            bringup.reinstall(hosts)
        result = bringup.nodes()
        with launch.Session.open() as session:
            lemons = {lemon.host: lemon for lemon in usage.lemon_nodes(session, bringup.pod)}
    if as_json:
        known = result.as_json()
        for name, row in known["hosts"].items():
            row["failures"] = lemons[name].as_json() if name in lemons else None
        output.print_json(known)
        return 0
    rows = [
        (name, host.state, host.mac or "", host.address or "", _failures(lemons.get(name)))
        for name, host in result.hosts.items()
    ]
    print_table(("host", "state", "mac", "address", "failures"), rows)
    return 0


def _failures(lemon: LemonNode | None) -> str:
    """Return in how many of the last failed runs a node took part, and whether that is more than chance."""
    if lemon is None:
        return ""
    part = f"{lemon.failures} of {lemon.of}"
    return f"{part}, by chance {lemon.odds:.1%}" if lemon.odds < _ODD else part


def pod_validate_command(pod: PodRef, limit: Limit = None, as_json: AsJson = False) -> int:
    """Measure what a pod does, and compare it with what it should; nothing changes."""
    with opened(pod) as bringup:
        result = bringup.validate(limit)
    if as_json:
        output.print_json(result.as_json())
    else:
        rows = [(check.state, check.host, check.name, check.value, check.expected or "") for check in result.checks]
        print_table(("state", "host", "check", "value", "expected"), rows)
        output.say("validated", result.summary())
    return int(not result.is_ok)


def _show(
    result: MachinesResult, as_json: bool, columns: tuple[str, ...], cells: Callable[[dict[str, Any]], tuple[str, str]]
) -> int:
    """Print what each host answered; return 1 where one did not do what was asked."""
    if as_json:
        output.print_json(result.as_json())
    else:
        rows = []
        for host, answer in result.hosts.items():
            rows.append((host, answer["error"], "") if "error" in answer else (host, *cells(answer)))
        print_table(columns, rows)
    return int(not result.is_ok)
