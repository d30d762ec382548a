"""What Slurm says of a job, in words a researcher understands: tables of states and of reasons to wait."""

from __future__ import annotations

import re
from itertools import chain
from typing import NamedTuple

from podwright.engines.base import Status

NOT_STARTED = "is held: a node could not start it; `scontrol release` lets it go on"


class Meaning(NamedTuple):
    """A state of Slurm: what it means for a run, how the run ended if it did, and words."""

    seen: str
    outcome: str
    words: str


STATES = {
    # base states
    "PENDING": Meaning("waiting", "", "waits in the queue"),
    "RUNNING": Meaning("there", "", ""),
    "SUSPENDED": Meaning("there", "", "is suspended; its nodes may be used by others"),
    "COMPLETED": Meaning("gone", "succeeded", ""),
    "CANCELLED": Meaning("gone", "cancelled", "was cancelled"),
    "FAILED": Meaning("gone", "failed", "ended with an error"),
    "TIMEOUT": Meaning("gone", "failed", "reached its time limit in Slurm"),
    "NODE_FAIL": Meaning("gone", "failed", "lost a node, and was not put back into the queue"),
    "PREEMPTED": Meaning("gone", "failed", "had to make room for another job, and was not put back into the queue"),
    "BOOT_FAIL": Meaning("gone", "failed", "could not start: a node did not boot"),
    "DEADLINE": Meaning("gone", "failed", "could not end before its deadline"),
    "OUT_OF_MEMORY": Meaning("gone", "failed", "used more memory than it had asked for"),
    # flags, which Slurm shows in the place of the base state
    "COMPLETING": Meaning("there", "", "is ending: its last processes are being cleared away"),
    "STAGE_OUT": Meaning("there", "", "is ending: its files are being copied out"),
    "CONFIGURING": Meaning("waiting", "", "has its nodes, which are still starting"),
    "POWER_UP_NODE": Meaning("waiting", "", "has its nodes, which are being switched on"),
    "RESIZING": Meaning("there", "", "is changing its size"),
    "REQUEUED": Meaning("waiting", "", "is back in the queue"),
    "REQUEUE_FED": Meaning("waiting", "", "is back in the queue of another cluster"),
    "REQUEUE_HOLD": Meaning("waiting", "", "is back in the queue and held; `scontrol release` lets it go on"),
    "SPECIAL_EXIT": Meaning("waiting", "", "is back in the queue and held by a rule of the site"),
    "EXPEDITING": Meaning("waiting", "", "is being put back into the queue, ahead of others"),
    "STOPPED": Meaning("there", "", "is stopped and keeps its nodes"),
    "REVOKED": Meaning("gone", "", "was taken over by another cluster"),
    "RESV_DEL_HOLD": Meaning("waiting", "", "is held: its reservation was deleted"),
    "SIGNALING": Meaning("there", "", "is being sent a signal"),
    "LAUNCH_FAILED": Meaning("waiting", "", "could not be started on a node"),
    "RECONFIG_FAIL": Meaning("waiting", "", "waits for nodes that could not be set up"),
    "UPDATE_DB": Meaning("there", "", ""),
}
"""Every state of Slurm 22.05 to 26.05 by its long name, as `squeue -o %T`, `sacct -o State` and JSON give it."""

BASE = frozenset(list(STATES)[: list(STATES).index("COMPLETING")])

REASONS = {
    "None": "waits to be looked at by the scheduler",
    "Resources": "is next: it waits for nodes to become free",
    "Priority": "waits behind jobs of higher priority",
    "Dependency": "waits for another run to end",
    "DependencyNeverSatisfied": "will never start: the run it waits for did not succeed",
    "BeginTime": "may not start yet: a job that was put back waits a little",
    "Cleaning": "waits until its last attempt is cleared away",
    "Prolog": "has its nodes, which are being prepared",
    "Reservation": "waits for its reservation to begin",
    "ReservationDeleted": "is held: its reservation was deleted",
    "ReservationInvalid": "waits: its reservation cannot be used",
    "Licenses": "waits for a licence",
    "ReqNodeNotAvail": "waits for nodes that are down, drained or reserved",
    "Nodes required for job are DOWN": "waits for nodes that are down, drained or reserved",
    "JobHeldAdmin": "is held by an administrator",
    "JobHeldUser": "is held; `scontrol release` lets it go on",
    "JobHoldMaxRequeue": "is held: it was put back too often; `scontrol release` lets it go on",
    "launch failed requeued held": NOT_STARTED,
    "JobArrayTaskLimit": "waits: no more points of this matrix may run at once",
    "PartitionNodeLimit": "asks for more nodes than its partition allows",
    "PartitionTimeLimit": "asks for more time than its partition allows",
    "PartitionDown": "waits: its partition is closed",
    "PartitionInactive": "waits: its partition is not active",
    "PartitionConfig": "asks for something its partition does not allow",
    "NodeDown": "waits: a node it needs is down",
    "FrontEndDown": "waits: no front end node is up",
    "BadConstraints": "will never start: no node is as it asks for",
    "Constraints": "waits: the nodes it asks for are not available together",
    "SystemFailure": "failed: Slurm, a file system or the network had a fault",
    "JobLaunchFailure": "could not be started: a program or its folder was not found on the node",
    "NonZeroExitCode": "ended with an error",
    "RaisedSignal": "was ended by a signal",
    "TimeLimit": "reached its time limit in Slurm",
    "InactiveLimit": "was idle for too long",
    "OutOfMemory": "used more memory than it had asked for",
    "DeadLine": "could not end before its deadline",
    "InvalidAccount": "will never start: its account is not known to Slurm",
    "InvalidQOS": "will never start: its quality of service is not known to Slurm",
    "AccountNotAllowed": "may not run in this partition with its account",
    "QOSNotAllowed": "may not run in this partition with its quality of service",
    "QOSUsageThreshold": "waits: its quality of service is used up beyond its threshold",
    "AccountingPolicy": "waits: a rule of the site's accounting holds it",
    "AssociationJobLimit": "waits: the account has as many jobs as it may",
    "AssociationResourceLimit": "waits: the account uses as much as it may",
    "AssociationTimeLimit": "waits: the account has used its time",
    "QOSJobLimit": "waits: the quality of service has as many jobs as it may",
    "QOSResourceLimit": "waits: the quality of service is used as much as it may be",
    "QOSTimeLimit": "waits: the quality of service has used its time",
    "BurstBufferResources": "waits for room in the burst buffer",
    "BurstBufferStageIn": "waits: its files are being copied in",
    "BurstBufferOperation": "failed: the burst buffer had a fault",
    "MaxMemPerLimit": "asks for more memory than the site allows",
    "PowerNotAvail": "waits: the machine has no power to spare",
    "PowerReserved": "waits: the power is reserved",
    "SchedDefer": "waits: the scheduler has put it off",
    "FedJobLock": "waits for the other clusters to agree",
}
"""A reason that has a meaning of its own."""

LIMIT = re.compile(
    r"(?P<owner>QOS|Assoc|)(?P<scope>Grp|Max|Min)(?P<what>Submit|[A-Z][A-Za-z]*?)(?:Jobs?)?(?P<time>RunMinutes|Minutes)?"
    r"(?P<of>PerJob|PerUser|PerAccount|PerNode)?(?:Limit|NotSatisfied)?"
)
OWNERS = {"QOS": "the quality of service", "Assoc": "the account", "": "the account"}
KINDS = {
    "Cpu": "cores",
    "CPU": "cores",
    "GRES": "GPUs",
    "Mem": "memory",
    "Memory": "memory",
    "Node": "nodes",
    "Jobs": "jobs",
    "Job": "jobs",
    "Submit": "waiting jobs",
    "SubmitJobs": "waiting jobs",
    "Wall": "running time",
    "WallDuration": "time",
    "License": "licences",
    "Energy": "energy",
    "BB": "burst buffer",
    "Billing": "budget",
    "Unknown": "something",
}


def seen(state: str, reason: str = "") -> Status:
    """Return what Slurm's state and reason mean for a run; a state that nobody knows leaves it where it is."""
    meaning = STATES.get(_chosen(state))
    if meaning is None:
        return Status("there", f"is {state.lower()}" if state else "")
    sentence = meaning.words
    if meaning.seen == "waiting" and _plain(reason) not in ("", "None"):
        sentence = waiting_words(reason)
    # The batch script leaves with 0 only where all pilots did.
    return Status(meaning.seen, sentence, meaning.outcome, told=meaning.outcome == "succeeded")


def _chosen(state: str) -> str:
    """Return the one of several states that counts: Slurm itself shows a flag before the base state.

    `CANCELLED by 1000` is how accounting says it; JSON gives a list, which the caller joins with commas.
    """
    names = [part.split()[0].rstrip("+").upper() for part in state.split(",") if part.strip()]
    flags = (name for name in STATES if name in names and name not in BASE)
    bases = (name for name in names if name in BASE)
    return next(chain(flags, bases), "")


def waiting_words(reason: str) -> str:
    """Return why a job waits, as a sentence without its subject; a reason that nobody knows is quoted."""
    plain = _plain(reason)
    if plain in REASONS:
        return REASONS[plain]
    match = LIMIT.fullmatch(plain)
    if match is None or match["what"] not in KINDS:
        return f"waits: Slurm says {plain}"
    return _limit_words(match)


def _plain(reason: str) -> str:
    """Return the plain reason: Slurm writes `(Resources)`, names nodes after a comma, or joins words by underscores."""
    return reason.strip().strip("()").split(",")[0].strip().replace("_", " ")


def _limit_words(match: re.Match[str]) -> str:
    owner, what, of = OWNERS[match["owner"]], KINDS[match["what"]], match["of"]
    if match["scope"] == "Min":
        return f"asks for less than {owner} demands ({what})"
    if match["time"]:
        what = f"minutes of {what}"
    if of in ("PerJob", "PerNode"):
        return f"asks for more {what} than {owner} allows for one {of[3:].lower()}"
    if of == "PerUser":
        return f"waits: you use as much as {owner} allows one user ({what})"
    return f"waits: {owner} is at its limit ({what})"
