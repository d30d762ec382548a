"""`pod plan`, `pod up` and `pod status`: how hosts become a pod, and whether they still are."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from podwright.cli.commands.pod.pods import PodRef, read_pod
from podwright.cli.options import AsJson
from podwright.cli.terminal import figures, output

if TYPE_CHECKING:
    from podwright.bringup.apply.observe import Answer
    from podwright.bringup.apply.playbook import ApplyProgress
    from podwright.bringup.apply.vault import Vault
    from podwright.bringup.plan.host import HostPlan
    from podwright.spec import Pod

Only = Annotated[str | None, typer.Option("--only", metavar="STAGE", help="One stage, such as slurm.")]
Limit = Annotated[str | None, typer.Option("--limit", metavar="HOSTS", help="Some hosts, such as n[2-3].")]
_UNREACHABLE = 3
_MAX_LINES = 40


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
    from podwright.bringup.apply.drift import changes

    wanted = bringup_pod(pod)
    plans = _plans(wanted, only, limit)
    secrets = vault_for(wanted).read()
    answers: dict[str, Answer] = {} if offline else _observe(wanted, plans, show=True)
    if out is not None:
        _write_project(wanted, plans, out)
    rows = {name: changes(plan, answers.get(name), secrets.values) for name, plan in plans.items()}
    if as_json:
        output.print_json(_plan_document(plans, rows))
    else:
        _print_plan(plans, rows, answers)
    return _unreachable(answers)


def _plan_document(plans: dict[str, HostPlan], rows: dict[str, list[dict[str, str]]]) -> dict[str, Any]:
    hosts, changed = {}, 0
    for name, plan in plans.items():
        hosts[name] = {
            "files": rows[name],
            "packages": plan.packages(),
            "services": plan.services(),
            "skipped": dict(plan.skipped),
        }
        changed += sum(row["change"] in ("new", "edit") for row in rows[name])
    return {"hosts": hosts, "changes": changed}


def _print_plan(plans: dict[str, HostPlan], rows: dict[str, list[dict[str, str]]], answers: dict[str, Answer]) -> None:
    """Print every host with its files, those that would change line by line, but no change twice."""
    from podwright.bringup.apply.drift import diff
    from podwright.spec.problems import Refusal

    shown: set[tuple[str, ...]] = set()
    for name, plan in plans.items():
        answer = answers.get(name)
        if isinstance(answer, Refusal):
            print(f"{name}  cannot be asked: {answer.problems[0].message}")
            continue
        print(f"{name}  {_summary(rows[name])}, {len(plan.packages())} packages, {len(plan.services())} services")
        for stage, reason in plan.skipped.items():
            print(f"  {'skipped':<8}{stage}: {reason}")
        for file, row in zip(plan.files(), rows[name], strict=True):
            print(f"  {row['change']:<8}{file.path}")
            if answer is None or row["change"] != "edit":
                continue
            lines = diff(file, answer["files"].get(file.path))
            if (file.path, *lines) not in shown:
                shown.add((file.path, *lines))
                print("\n".join(f"    {output.plain(line)}" for line in lines[:_MAX_LINES]))
    sys.stdout.flush()


def _summary(rows: list[dict[str, str]]) -> str:
    counts = Counter(row["change"] for row in rows)
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
    from podwright.bringup.plan.hosts import limited, plan

    wanted = bringup_pod(pod)
    plans = plan(wanted, only)
    hosts = limited(plans, limit)
    progress = bring_up(wanted, plans, hosts) if rolling is None else _roll(wanted, plans, hosts, rolling)
    if as_json:
        output.print_json(up_document(progress, hosts))
    if progress.faults:
        return 1
    if only is None:
        _make_known(wanted)
    return 0


def _roll(pod: Pod, plans: dict[str, HostPlan], hosts: list[str], size: int) -> ApplyProgress:
    """Apply plans to what runs no jobs, then to nodes that differ, some at a time: drained before, taken back after."""
    from functools import partial

    from podwright.bringup.apply.observe import shell_on
    from podwright.bringup.apply.playbook import ApplyProgress
    from podwright.bringup.apply.rolling import batches, drain_of, split
    from podwright.bringup.plan.site import site_of

    site = site_of(pod)
    first, nodes = split(site, hosts)
    # No hosts at all would be all of them to Ansible; and no node is touched before it is drained.
    progress = bring_up(pod, plans, first) if first else ApplyProgress({})
    drain = drain_of(site, partial(shell_on, site))
    differing = _differing(pod, {host: plans[host] for host in nodes})
    for batch in batches(differing, max(size, 1)):
        if progress.faults:
            break
        output.say("drain", ", ".join(batch))
        drain.drain(batch)
        progress.add(bring_up(pod, plans, batch))
        if not progress.faults:
            drain.resume(batch)
            output.say("resumed", ", ".join(batch))
    return progress


def _differing(pod: Pod, plans: dict[str, HostPlan]) -> list[str]:
    """Return the hosts that are not as planned; those that do not answer are found out when their turn comes.

    A GPU or a link that is away is no reason to drain a node: `up` mends neither.
    """
    from podwright.bringup.apply.drift import drifts
    from podwright.spec.problems import Refusal

    differing = []
    secrets = vault_for(pod).read().values
    for host, answer in _observe(pod, plans).items():
        if isinstance(answer, Refusal) or drifts(plans[host], answer, secrets):
            differing.append(host)
    return differing


def bring_up(pod: Pod, plans: dict[str, HostPlan], hosts: list[str]) -> ApplyProgress:
    """Apply plans to some of the hosts, with a view of the stages; say how it ended."""
    import time

    from podwright.cli.terminal.stages import StageView

    started = time.monotonic()
    output.say("up", f"{pod.name}, {len(hosts)} host{'s' if len(hosts) > 1 else ''}")
    with StageView(sys.stderr) as view:
        progress = play(pod, plans, hosts, view.show)
    _tell_end(pod, progress, time.monotonic() - started)
    return progress


def up_document(progress: ApplyProgress, hosts: list[str]) -> dict[str, Any]:
    """Return what `pod up --json` prints."""
    from dataclasses import asdict

    stages = [{"name": run.name, "took_s": round(run.took_s, 1), "state": run.state} for run in progress.stages]
    counts = {name: asdict(progress.hosts[name]) for name in hosts if name in progress.hosts}
    return {"hosts": counts, "stages": stages}


def _tell_end(pod: Pod, progress: ApplyProgress, took_s: float) -> None:
    for fault in progress.faults:
        output.say("failed", f"{fault.host}: {fault.stage}, {fault.task}: {fault.reason}")
    for step, hosts in _next_steps(progress).items():
        output.say("next", f"{hosts}: {step}")
    if progress.faults:
        return output.say("then", f"`podwright pod up` again: what is done stays done\n{_look(pod)}")
    changed = sum(host.changed for host in progress.hosts.values())
    what = f"{changed} changes" if changed else "nothing had to change"
    return output.say("done", f"{pod.name}: {what}, in {figures.duration(took_s)}")


def _next_steps(progress: ApplyProgress) -> dict[str, str]:
    """Return what helps, each once, with the hosts that need it."""
    from podwright.spec.hostlist import fold_hosts

    hosts: dict[str, list[str]] = {}
    for fault in progress.faults:
        hosts.setdefault(fault.next_step, []).append(fault.host)
    return {step: fold_hosts(dict.fromkeys(names)) for step, names in hosts.items()}


def _look(pod: Pod) -> str:
    return f"podwright pod status {pod.path if pod.path.exists() else pod.name}"


def pod_status_command(pod: PodRef, limit: Limit = None, as_json: AsJson = False) -> int:
    """Ask every host what it has and compare it with the plan; nothing changes."""
    from podwright.bringup.apply.drift import status_of

    wanted = bringup_pod(pod)
    plans = _plans(wanted, None, limit)
    secrets = vault_for(wanted).read().values
    document: dict[str, Any] = {"hosts": {}}
    for name, answer in _observe(wanted, plans).items():
        document["hosts"][name] = status_of(plans[name], answer, secrets, wanted.model_of(name))
    if as_json:
        output.print_json(document)
    else:
        print("\n".join(_status_lines(document)), flush=True)
    return int(any(entry["state"] != "ok" for entry in document["hosts"].values()))


def _status_lines(document: dict[str, Any]) -> list[str]:
    rows = []
    for name, entry in document["hosts"].items():
        if not entry["drift"]:
            rows.append((name, entry["state"], entry.get("reason", "")))
        rows += [
            (name, entry["state"], f"{row['what']}: {row['found']}, not {row['expected']}") for row in entry["drift"]
        ]
    return output.table(("host", "state", "what"), rows, output.width_of(sys.stdout))


def bringup_pod(ref: str) -> Pod:
    """Return the pod that is meant; what its file leaves out of how hosts are reached, its lab or a known pod has."""
    from podwright.bringup.plan.site import with_access
    from podwright.runs import Home
    from podwright.spec import load_pod

    pod = read_pod(ref)
    home = Home.open().path
    for path in (home / "labs" / pod.name / "pod.yaml", home / "pods" / f"{pod.name}.yaml"):
        if path.exists():
            return with_access(pod, load_pod(path))
    return pod


def _plans(pod: Pod, only: str | None, limit: str | None) -> dict[str, HostPlan]:
    from podwright.bringup.plan.hosts import limited, plan

    plans = plan(pod, only)
    return {host: plans[host] for host in limited(plans, limit)}


def vault_for(pod: Pod) -> Vault:
    """Return the vault of a pod."""
    from podwright.bringup.apply.vault import vault_of
    from podwright.runs import Home

    return vault_of(Home.open().path, pod.name)


def _observe(pod: Pod, plans: dict[str, HostPlan], show: bool = False) -> dict[str, Answer]:
    from podwright.bringup.apply.observe import observe
    from podwright.cli.terminal.stages import counting

    with counting(sys.stderr, "asked", len(plans)) as on_answer:
        return observe(pod, plans, on_answer, show)


def _unreachable(answers: dict[str, Answer]) -> int:
    from podwright.spec.problems import Refusal

    return _UNREACHABLE if any(isinstance(answer, Refusal) for answer in answers.values()) else 0


def _write_project(pod: Pod, plans: dict[str, HostPlan], out: Path) -> None:
    from podwright.bringup.apply import ansible, playbook
    from podwright.bringup.plan.site import site_of
    from podwright.spec.problems import refuse

    if out.exists() and any(out.iterdir()) and not (out / ansible.PLAYBOOK).exists():
        raise refuse(f"{out} is there already, and is no such project", hint="name a new folder", field="--out")
    vault = vault_for(pod)
    secrets = vault.fill(site_of(pod))
    playbook.write_project(out.absolute(), ansible.project_files(pod, plans, secrets.revisions), vault.file)
    output.say("written", f"{out}: ansible-playbook {ansible.PLAYBOOK} --vault-password-file {vault.key_file}")


def play(
    pod: Pod, plans: dict[str, HostPlan], hosts: list[str], show: Callable[[ApplyProgress], None], playbook: str = ""
) -> ApplyProgress:
    """Write the project of a pod and run a playbook of it, by default the one that brings up."""
    from podwright.bringup.apply import ansible
    from podwright.bringup.apply import playbook as runner
    from podwright.bringup.plan.site import site_of

    vault = vault_for(pod)
    folder = vault.file.parent
    with runner.alone(folder, lambda: output.say("waits", "another bring-up of this pod is at work")) as lock:
        secrets = vault.fill(site_of(pod))
        texts = ansible.project_files(pod, plans, secrets.revisions)
        runner.write_project(folder / "runner" / "project", texts, vault.file)
        run = runner.PlaybookRun(folder / "runner", hosts, vault.key_file, lock, playbook or ansible.PLAYBOOK)
        return runner.run(run, show)


def _make_known(pod: Pod) -> None:
    """Make the pod known with what was filled in, so that runs find their way."""
    from podwright.bringup.apply.known_pods import known_text
    from podwright.files.whole import write_whole
    from podwright.launch import pods
    from podwright.runs import Home

    home = Home.open()
    pods.folder(home).mkdir(mode=0o700, exist_ok=True)
    write_whole(pods.folder(home) / f"{pod.name}.yaml", known_text(pod).encode())
    if pod.schedulers:
        output.say("next", f"podwright run WORKLOAD --on {pod.name}")
