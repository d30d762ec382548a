"""`pod power`, `pod firmware` and `pod nodes`: hosts as machines, below any system that runs on them."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from podwright.cli.commands.pod.hosts import Limit, bringup_pod
from podwright.cli.commands.pod.pods import PodRef, read_pod
from podwright.cli.options import AsJson, Yes
from podwright.cli.terminal import output

if TYPE_CHECKING:
    from podwright.bringup.plan.site import Site

_FAILED, _UNREACHABLE = 1, 3
_LOOK = "cat {leases} 2>/dev/null; echo ---; cat {log} 2>/dev/null; echo ---; ls {root}/done 2>/dev/null; true"


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
    from podwright.bringup.apply.controllers import ask_all, controllers, power_of
    from podwright.clients.redfish import DEVICES, RESETS, Redfish
    from podwright.spec.nearest import one_of
    from podwright.spec.problems import refuse

    if action is not None and action not in RESETS:
        raise refuse(f'"{action}" is not an action', hint=one_of(action, "action", RESETS), field="ACTION")
    if boot is not None and boot not in DEVICES:
        raise refuse(f'"{boot}" is not a device', hint=one_of(boot, "device", DEVICES), field="--boot")
    wanted, hosts = _hosts(pod, limit)
    known = controllers(wanted, hosts)
    if (action or boot) and not _approved(f"Switch {len(hosts)} hosts: {action or f'boot from {boot}'}?", yes):
        return _FAILED

    def change(host: str, controller: Redfish) -> dict[str, Any]:
        system = controller.system(host)
        if boot is not None:
            controller.boot_next(system, DEVICES[boot])
        if action is not None:
            controller.reset(system, RESETS[action])
        return power_of(host, controller)

    answers = ask_all(known, change)
    columns = ("host", "power", "boots from")
    return _tell(answers, as_json, columns, lambda answer: (answer["power"] or "?", answer["boot"] or "its own order"))


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
    as_json: AsJson = False,
    yes: Yes = False,
) -> int:
    """List firmware, or have one written: only what was approved, and only an image that is what it should be."""
    from podwright.bringup.apply.controllers import ask_all, controllers, inventory_of, update_of
    from podwright.clients.download import check_digest
    from podwright.spec.problems import refuse

    wanted, hosts = _hosts(pod, limit)
    known = controllers(wanted, hosts)
    if update is None:
        answers = ask_all(known, inventory_of)
        return _tell(answers, as_json, ("host", "model", "firmware"), _firmware_cells)
    if image is None or digest is None:
        missing = "--image" if image is None else "--digest"
        raise refuse(f"{missing} is missing: an update needs an image and its digest", field=missing)
    if not _approved(f"Write {update} of {len(hosts)} hosts from {image}?", yes):
        return _FAILED
    check_digest(image, digest)
    answers = ask_all(known, partial(update_of, component=update, image=image))
    columns = ("host", "before", "answer")
    return _tell(answers, as_json, columns, lambda answer: (answer["before"] or "?", answer["said"]))


def _firmware_cells(answer: dict[str, Any]) -> tuple[str, str]:
    versions = ", ".join(f"{name} {version or '?'}" for name, version in answer["firmware"].items())
    return answer["model"] or "?", versions


def pod_nodes_command(
    pod: PodRef,
    install: Annotated[
        str | None, typer.Option("--install", metavar="HOSTS", help="Install these anew when they boot next.")
    ] = None,
    as_json: AsJson = False,
    yes: Yes = False,
) -> int:
    """Show how far hosts are on their way from a box to a system, and machines that nobody knows yet."""
    from podwright.bringup.apply.boot_progress import node_states
    from podwright.bringup.apply.observe import shell_on
    from podwright.bringup.plan.netboot import NetbootPlaces
    from podwright.bringup.plan.site import site_of

    site = site_of(bringup_pod(pod))
    places = NetbootPlaces()
    if install is not None and not _forget_done(site, places.root, install, yes):
        return _FAILED
    said = shell_on(site, site.roles["netboot"], _LOOK.format(leases=places.leases, log=places.log, root=places.root))
    leases, requests, done = said.split("---\n")
    states = node_states(site, leases, requests, done.split())
    if as_json:
        output.print_json({"hosts": {name: state.as_json() for name, state in states.items()}})
        return 0
    rows = [(name, state.state, state.mac or "", state.address or "") for name, state in states.items()]
    print("\n".join(output.table(("host", "state", "mac", "address"), rows, output.width_of(sys.stdout))), flush=True)
    return 0


def pod_validate_command(pod: PodRef, limit: Limit = None, as_json: AsJson = False) -> int:
    """Measure what a pod does, and compare it with what it should; nothing changes."""
    from concurrent.futures import ThreadPoolExecutor

    from podwright.bringup.apply.observe import shell_answer
    from podwright.bringup.apply.validate import ValidationCheck, checks, summary
    from podwright.bringup.plan.hosts import limited
    from podwright.bringup.plan.site import site_of
    from podwright.spec.problems import Refusal

    site = site_of(bringup_pod(pod))
    hosts = set(limited(site.addresses, limit))
    wanted = [check for check in checks(site) if check.host in hosts]

    def measure(check: ValidationCheck) -> dict[str, Any]:
        try:
            answer = shell_answer(site, check.host, check.line)
        except Refusal as refusal:
            return check.result(_UNREACHABLE, "", refusal.problems[0].message)
        return check.result(answer.code, answer.text, answer.err)

    with ThreadPoolExecutor(max_workers=16) as threads:
        results = list(threads.map(measure, wanted))
    if as_json:
        output.print_json({"checks": results})
    else:
        rows = [(row["state"], row["host"], row["name"], row["value"], row["expected"] or "") for row in results]
        columns = ("state", "host", "check", "value", "expected")
        print("\n".join(output.table(columns, rows, output.width_of(sys.stdout))), flush=True)
        output.say("validated", summary(results))
    return int(any(row["state"] == "failed" for row in results))


def _forget_done(site: Site, root: str, install: str, yes: bool) -> bool:
    """Have hosts go into their installer again; return whether that was approved: it writes over their disks."""
    from podwright.bringup.apply.observe import shell_on
    from podwright.bringup.plan.hosts import limited
    from podwright.bringup.plan.netboot import hyphens, machines

    hosts = limited(site.addresses, install)
    if not _approved(f"Write over the disks of {', '.join(hosts)} when they boot next?", yes):
        return False
    files = [f"{root}/done/{hyphens(mac)}.ipxe" for mac, host in machines(site).items() if host in hosts]
    shell_on(site, site.roles["netboot"], f"rm -f -- {' '.join(files)}")
    return True


def _hosts(ref: str, limit: str | None) -> tuple[Any, list[str]]:
    from podwright.bringup.plan.hosts import limited

    pod = read_pod(ref)
    having: list[str] = []
    for group in pod.nodes:
        if group.bmc is not None:
            having += group.hosts
    if limit:
        return pod, limited(pod.hosts(), limit)
    return pod, having or pod.hosts()


def _approved(question: str, yes: bool) -> bool:
    """Return whether a person agreed; without one to ask, only `--yes` says so."""
    from podwright.spec.problems import refuse

    if not yes and not sys.stdin.isatty():
        raise refuse(question.replace("?", ", which nobody approved"), hint="say so with --yes", field="--yes")
    return output.confirm(question, yes)


def _tell(answers: dict[str, dict[str, Any]], as_json: bool, columns: tuple[str, ...], cells: Any) -> int:
    """Print what each host answered; return 1 where one did not do what was asked."""
    if as_json:
        output.print_json({"hosts": answers})
    else:
        rows = [
            (host, answer["error"], "") if "error" in answer else (host, *cells(answer))
            for host, answer in answers.items()
        ]
        print("\n".join(output.table(columns, rows, output.width_of(sys.stdout))), flush=True)
    return int(any("error" in answer for answer in answers.values()))
