"""The hands of the fault campaign: how each kind of fault is done to a run. What is not there cannot be struck."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress

from podwright.engines.local.engine import lock_holder
from podwright.lab import processes
from podwright.lab.base import StartedLab
from podwright.launch import Run
from podwright.spec import Refusal
from scripts.fault_plan import Fault
from tests.contract.sites import ClusterSite, KubernetesSite, LocalSite, Site, SlurmSite

Strike = Callable[[Site, Run, Fault], bool]
SLOW = "tc qdisc add dev $dev root tbf rate 256kbit burst 16kbit latency 400ms"
SLOW_MENDED = "tc qdisc del dev $dev root"
LOSS = "iptables -A INPUT -m statistic --mode random --probability 0.2 -j DROP"
LOSS_MENDED = "iptables -D INPUT -m statistic --mode random --probability 0.2 -j DROP"
DEVICE = "dev=$(ip -o link | awk -F'[ :@]+' '$2 != \"lo\" {print $2; exit}'); "


def last_node(run: Run) -> int:
    """The node that is struck: the last that trains."""
    return int(run.record().nodes) - 1


def send(site: Site, run: Run, pid: int | None, number: int) -> bool:
    """Signal a process of the run, and no other that has its number by now."""
    if pid is None or pid not in site.processes(run):
        return False
    with suppress(ProcessLookupError):
        os.kill(pid, number)
        return True
    return False


def pilot_of(site: Site, run: Run, node: int) -> int | None:
    """The process that stands for a node, where it lives; nothing is waited for."""
    if isinstance(site, LocalSite):
        pids = [event["pid"] for event in site.events(run, "node") if event["node"] == node]
        return pids[-1] if pids else None
    assert isinstance(site, ClusterSite)
    return site.find(run, f"{site.node_variable}={node}", b"\0node\0")


def rank_of(site: Site, run: Run, rank: int) -> int | None:
    """The process of a rank, where it lives."""
    if isinstance(site, LocalSite):
        pids = [event["pid"] for event in site.events(run, "rank") if event["rank"] == rank]
        return pids[-1] if pids else None
    assert isinstance(site, ClusterSite)
    return site.find(run, f"RANK={rank}", b"count.py")


def kill_rank(site: Site, run: Run, fault: Fault) -> bool:
    return send(site, run, rank_of(site, run, last_node(run)), signal.SIGKILL)


def kill_pilot(site: Site, run: Run, fault: Fault) -> bool:
    return send(site, run, pilot_of(site, run, last_node(run)), signal.SIGKILL)


def kill_leader(site: Site, run: Run, fault: Fault) -> bool:
    return send(site, run, pilot_of(site, run, 0), signal.SIGKILL)


def kill_keeper(site: Site, run: Run, fault: Fault) -> bool:
    return send(site, run, lock_holder(run.folder), signal.SIGKILL)


def freeze(site: Site, run: Run, fault: Fault) -> bool:
    """A pilot stands still for a while, as on a machine that swaps."""
    pid = pilot_of(site, run, last_node(run))
    is_stopped = send(site, run, pid, signal.SIGSTOP)
    if is_stopped:
        time.sleep(fault.lasts_s)
        send(site, run, pid, signal.SIGCONT)
    return is_stopped


def with_host(strike: Callable[[StartedLab, str, Fault], None]) -> Strike:
    """Do it to the machine of the run's last node, and mend that after a while."""

    def done(site: Site, run: Run, fault: Fault) -> bool:
        assert isinstance(site, SlurmSite | KubernetesSite)
        hosts = run.record().hosts
        if run.record().is_final or not hosts or not site.processes(run):
            return False
        host = hosts[last_node(run)]
        try:
            strike(site.lab, host, fault)
        except Refusal:  # another fault of the round has switched it off
            return False
        time.sleep(fault.lasts_s)
        site.lab.heal(host)
        return True

    return done


def power_off(lab: StartedLab, host: str, fault: Fault) -> None:
    lab.kill_node(host)


def cut_off(lab: StartedLab, host: str, fault: Fault) -> None:
    lab.cut_node(host)


def kill_daemon(lab: StartedLab, host: str, name: str) -> None:
    for pid in lab.machines.running(host).get(name, []):
        processes.kill(pid)


def kill_slurmd(lab: StartedLab, host: str, fault: Fault) -> None:
    kill_daemon(lab, host, "slurmd")


def kill_kubelet(lab: StartedLab, host: str, fault: Fault) -> None:
    kill_daemon(lab, host, "kubelet")


def slow_down(lab: StartedLab, host: str, fault: Fault) -> None:
    spoil(lab, host, fault, SLOW, SLOW_MENDED)


def lose_packets(lab: StartedLab, host: str, fault: Fault) -> None:
    spoil(lab, host, fault, LOSS, LOSS_MENDED)


def spoil(lab: StartedLab, host: str, fault: Fault, command: str, mended: str) -> None:
    """Spoil the link of a machine for as long as the fault lasts."""
    lab.machines.run(host, ["sh", "-c", f"{DEVICE}{command}"])
    time.sleep(fault.lasts_s)
    lab.machines.run(host, ["sh", "-c", f"{DEVICE}{mended}"])


def kill_slurmctld(site: Site, run: Run, fault: Fault) -> bool:
    assert isinstance(site, SlurmSite)
    site.lab.kill_controller()
    time.sleep(fault.lasts_s)
    site.lab.restart_controller()
    return True


def kill_server(site: Site, run: Run, fault: Fault) -> bool:
    assert isinstance(site, KubernetesSite)
    site.lab.kill_controller()
    return True


def requeue(site: Site, run: Run, fault: Fault) -> bool:
    """Somebody puts the job back into the queue by hand."""
    assert isinstance(site, SlurmSite)
    jobs = site.slurm("squeue", "--noheader", f"--name={run.id}", "--states=RUNNING", "--format=%F").split()
    for job in set(jobs):
        site.lab.machines.run("ctl", ["scontrol", "requeue", job])
    return bool(jobs)


def delete_pod(site: Site, run: Run, fault: Fault) -> bool:
    """Somebody deletes a Kubernetes pod of the run."""
    assert isinstance(site, KubernetesSite)
    selector = f"--selector=podwright.dev/run={run.id}"
    phase = "--field-selector=status.phase=Running"
    names = site.lab.kubectl("get", "pods", "--namespace=lab", selector, phase, "--output=name").stdout.split()
    for name in names[-1:]:
        site.lab.kubectl("delete", name, "--namespace=lab", "--wait=false")
    return bool(names)


STRIKES: dict[str, Strike] = {
    "rank": kill_rank,
    "pilot": kill_pilot,
    "leader": kill_leader,
    "keeper": kill_keeper,
    "frozen": freeze,
    "power": with_host(power_off),
    "cut": with_host(cut_off),
    "slurmd": with_host(kill_slurmd),
    "kubelet": with_host(kill_kubelet),
    "slow-link": with_host(slow_down),
    "loss": with_host(lose_packets),
    "slurmctld": kill_slurmctld,
    "server": kill_server,
    "requeue": requeue,
    "deleted": delete_pod,
}
"""All but the client, which is struck as it starts its run."""
