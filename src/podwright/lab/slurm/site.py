"""What Slurm's files must say otherwise than a real pod's, since one machine only claims the hardware."""

from __future__ import annotations

from podwright.bringup.plan.slurm import Settings, SlurmSite, Version
from podwright.lab.scripts import INSIDE
from podwright.lab.slurm.shape import SlurmLabShape

CONTROLLER = "ctl"
_NO_CGROUPS_SINCE: Version = (23, 2)
_CONSTRAINTS = ("ConstrainCores", "ConstrainDevices", "ConstrainRAMSpace")
# A job of this partition takes nodes from jobs of the others, which are requeued: preemption can be tried.
_URGENT = "PartitionName=urgent Nodes=ALL PriorityTier=10 PreemptMode=OFF MaxTime=INFINITE State=UP"


def site(wanted: SlurmLabShape, version: Version) -> SlurmSite:
    """Return the facts of a lab's site."""
    return SlurmSite(
        controller=CONTROLLER,
        version=version,
        accounting=wanted.accounting,
        slurm_user="root",
        config=f"{INSIDE}/etc",
        state=f"{INSIDE}/state",
        spool=f"{INSIDE}/spool/%n",
        logs=f"{INSIDE}/log",
        run=f"{INSIDE}/run",
        # PMIx keeps its folders here: they must differ from node to node.
        scratch=f"{INSIDE}/tmp/%n",
        devices=f"{INSIDE}/dev/nvidia",
        settings={**_one_machine(), **_quick(wanted)},
        cgroup=_cgroup(version),
        lines=(_URGENT,),
    )


def _one_machine() -> Settings:
    """Return settings that a machine needs which many nodes share."""
    return {
        # Believe this file, not the hardware.
        "SlurmdParameters": "config_overrides",
        "SlurmctldParameters": None,
        "SlurmdPidFile": f"{INSIDE}/run/slurmd-%n.pid",
        "SlurmdLogFile": f"{INSIDE}/log/slurmd-%n.log",
        "ProctrackType": "proctrack/linuxproc",
        "TaskPlugin": "task/none",
        "PrologFlags": None,
        "JobAcctGatherType": "jobacct_gather/linux",
        "MpiDefault": "none",
        "DefMemPerCPU": "64",
        "MailProg": "/bin/true",
    }


def _quick(wanted: SlurmLabShape) -> Settings:
    """Return settings that let a person see within seconds what takes minutes on a real pod."""
    return {
        # How long a requeued job waits, too: two minutes if nothing is said.
        "AuthInfo": "cred_expire=5",
        "SchedulerParameters": "bf_interval=2,sched_interval=2,batch_sched_delay=0,sched_min_interval=100000",
        "ReturnToService": "2",
        # With many nodes on few cores an answer may take long although its node lives.
        "SlurmdTimeout": str(wanted.slurmd_timeout_s or _patience_s(wanted.nodes)),
        "KillWait": "5",
        "MinJobAge": str(wanted.min_job_age_s),
        "GetEnvTimeout": "30",
        "BatchStartTimeout": "120",  # a machine that plays a whole cluster starts a hundred jobs at once slowly
        "PreemptType": "preempt/partition_prio",
        "PreemptMode": "REQUEUE",
    }


def _patience_s(nodes: int) -> int:
    if nodes <= 20:
        return 10
    return 60


def _cgroup(version: Version) -> Settings:
    """Return settings for no control groups: nodes that share a machine would fight over them."""
    off: Settings = dict.fromkeys(_CONSTRAINTS)
    if version >= _NO_CGROUPS_SINCE:
        return {**off, "CgroupPlugin": "disabled"}
    # A plugin must be named; with this mount point it finds nothing to touch.
    return {**off, "CgroupPlugin": "cgroup/v1", "CgroupMountpoint": f"{INSIDE}/none"}
