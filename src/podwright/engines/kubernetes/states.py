"""What Kubernetes says of a run, in words a researcher understands: tables of conditions and of reasons to wait."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from podwright.clients.kubernetes import names
from podwright.clients.kubernetes.kinds import CONTAINERS
from podwright.clients.kubernetes.quantities import amount_of
from podwright.engines.base import Status
from podwright.engines.kubernetes.hold import MAKING, PARALLEL, TOGETHER, held_reason, held_run
from podwright.theme.words import clock

Object = Mapping[str, Any]

ROLE = "training.kubeflow.org/job-role"
CREATION_FAILED = ("FailedCreate", "MPIJobFailed")
"""What Jobs, and MPIJobs, call the events that say why their Kubernetes pods could not be made."""
DONE = ("Complete", "Succeeded", "Completed")
"""What Jobs, MPIJobs and JobSets call the same."""
FAILURES = {
    "BackoffLimitExceeded": "lost nodes too often",
    "MaxFailedIndexesExceeded": "lost a node too often",
    "FailedIndexes": "lost a node too often",
    "DeadlineExceeded": "reached its time limit in Kubernetes",
    "FailedJobs": "lost nodes too often",
    "PodFailurePolicy": "was ended by a rule of its own",
}
BEING_MADE = "has its nodes; its container is being made"
WAITS = {
    "ContainerCreating": BEING_MADE,
    "PodInitializing": BEING_MADE,
    "ErrImagePull": "waits: the image {image} cannot be fetched: {message}",
    "ImagePullBackOff": "waits: the image {image} cannot be fetched: {message}",
    "ErrImageNeverPull": "waits: the image {image} is not on the node, and may not be fetched",
    "InvalidImageName": 'waits: "{image}" is no name of an image',
    "CreateContainerConfigError": "waits: its container cannot be made: {message}",
    "CreateContainerError": "waits: its container cannot be made: {message}",
    "RunContainerError": "waits: its container cannot be started: {message}",
    "CrashLoopBackOff": "waits a little before it is started again: {message}",
}
LACKS = {
    "nvidia.com/gpu": "free GPUs",
    "nvidia.com/gpu.shared": "free shares of a GPU",
    "cpu": "free cores",
    "memory": "free memory",
    "pods": "room for another Kubernetes pod",
}
"""What the scheduler says that nodes are short of. Several may hold for one node."""
OTHERWISE = (
    (r"(\d+) node\(s\) had untolerated taints?(?: \{([^}]*)\})?", "{0} are kept for others"),
    (r"(\d+) node\(s\) were unschedulable", "{0} take no work"),
    (r"(\d+) node\(s\) didn't match Pod's node affinity/selector", "{0} are not of the kind asked for"),
    (r"(\d+) node\(s\) didn't find available persistent volumes? to bind", "{0} cannot reach a volume"),
    (r"(\d+) node\(s\) had volume node affinity conflict", "{0} cannot reach its volume"),
)


def seen(job: Object, pods: Sequence[Object], events: Iterable[Object] = ()) -> Status:
    """Return what a run's own object means for it, whatever its kind; the Kubernetes pods say why it waits."""
    if job["metadata"].get("deletionTimestamp"):
        return Status("there", "is being ended")
    rows = job.get("status", {}).get("conditions", [])
    conditions = {row["type"]: row for row in rows if row["status"] == "True"}
    if any(name in conditions for name in DONE):
        return Status("gone", _last_words(pods) or "it ended without a last word", "succeeded")
    if "Failed" in conditions:
        return Status("gone", _failure(conditions["Failed"], pods), "failed")
    held = held_reason(job)
    if held:
        return _held(job, held)
    if is_suspended(job):  # what we have just resumed is still called so by its conditions
        return Status("waiting", _suspended(job))
    if _all_ended(job, pods):
        return Status("gone", _last_words(pods) or "it ended without a last word", "succeeded")
    return _alive(job, pods, list(events))


def _held(job: Object, reason: str) -> Status:
    if reason == MAKING:
        return Status("waiting", "is being submitted", unfinished=True)
    if reason == PARALLEL:
        return Status("waiting", "waits until fewer points of its sweep run")
    if reason == TOGETHER:
        again = clock(float(job["metadata"]["annotations"].get(names.HELD_UNTIL, 0)))
        return Status("waiting", f"gave its nodes back, as not all of them were free; tries again at {again}")
    held_for = held_run(job)
    return Status("waiting", f"waits for {held_for} to succeed", held_for=held_for)


def is_alive(job: Object) -> bool:
    """Return whether an object is neither over nor being deleted."""
    rows = job.get("status", {}).get("conditions") or []
    ended = any(row["type"] in (*DONE, "Failed") and row["status"] == "True" for row in rows)
    return not ended and not job["metadata"].get("deletionTimestamp")


def is_suspended(job: Object) -> bool:
    """Return whether an object is kept from starting, by whomever; of an MPIJob its policy says it."""
    spec = job["spec"]
    return bool(spec.get("suspend") or (spec.get("runPolicy") or {}).get("suspend"))


def _suspended(job: Object) -> str:
    queue = (job["metadata"].get("labels") or {}).get(names.QUEUE)
    if queue:
        return f"waits in the queue {queue}"
    return "is suspended"


def kueue_reason(workload: Object) -> str:
    """Return why Kueue lets a job wait, with its own message; nothing for what it has admitted."""
    conditions = {row["type"]: row for row in workload.get("status", {}).get("conditions") or []}
    head = f"waits in the queue {workload['spec'].get('queueName', '')}"
    # Quota comes first, then the checks of the site; the first of them that is missing is the reason.
    for name in ("QuotaReserved", "Admitted"):
        condition = conditions.get(name, {})
        if condition.get("status") != "True":
            message = _shorter(str(condition.get("message") or ""))
            return ": ".join(filter(None, [head, message]))
    return ""


def is_launcher(pod: Object) -> bool:
    """Return whether it is an MPIJob's launcher, which is no node of the run."""
    return bool((pod["metadata"].get("labels") or {}).get(ROLE) == "launcher")


def _all_ended(job: Object, pods: Sequence[Object]) -> bool:
    """Return whether every node's containers have ended well: the Job itself says so some seconds later."""
    done = {_index(pod) for pod in pods if _is_done(pod)}
    parts = [part["template"]["spec"] for part in job["spec"].get("replicatedJobs", ())] or [job["spec"]]
    indexed = [part for part in parts if part.get("completionMode") == "Indexed"]
    return bool(indexed) and len(done - {""}) == sum(int(part["completions"]) for part in indexed)


def _index(pod: Object) -> str:
    return str(pod["metadata"].get("annotations", {}).get("batch.kubernetes.io/job-completion-index", ""))


def _is_done(pod: Object) -> bool:
    statuses = [*(pod["status"].get("initContainerStatuses") or []), *(pod["status"].get("containerStatuses") or [])]
    ends = [status.get("state", {}).get("terminated") for status in statuses]
    return bool(ends) and all(end is not None and end.get("exitCode") == 0 for end in ends)


def _alive(job: Object, pods: Sequence[Object], events: Sequence[Object]) -> Status:
    live = [pod for pod in pods if pod["status"].get("phase") in ("Pending", "Running", "Unknown")]
    reasons = list(filter(None, map(waiting_words, live)))
    if reasons:
        state = "waiting" if len(reasons) == len(live) else "there"
        # What most of them wait for; of equals always the same, so that the reason does not change with every look.
        return Status(state, max(set(reasons), key=lambda reason: (reasons.count(reason), reason)))
    if live:
        return Status("there")
    refused = [str(event.get("message", "")) for event in events if event.get("reason") in CREATION_FAILED]
    if refused:
        return Status("waiting", creation_words(refused[-1]))
    return Status("waiting", "waits for its nodes")


def _failure(condition: Object, pods: Sequence[Object]) -> str:
    parts = [FAILURES.get(str(condition.get("reason")), ""), _last_words(pods)]
    reason = ": ".join(filter(None, parts))
    return reason or str(condition.get("message") or "ended with an error")


def _last_words(pods: Sequence[Object]) -> str:
    """Return what the pilots' containers left behind: a reason of their own, or how they were killed."""
    ends: list[tuple[str, str]] = []
    for pod in pods:
        for status in pod["status"].get("containerStatuses") or []:
            ended = status.get("state", {}).get("terminated") or status.get("lastState", {}).get("terminated")
            if status["name"] in CONTAINERS and ended:
                ends.append((str(ended.get("finishedAt") or ""), _end_words(ended)))
        if pod["status"].get("reason") == "Evicted":
            ends.append(("", f"was evicted: {pod['status'].get('message', '')}"))
    last_words = [reason for _, reason in sorted(ends) if reason]
    return last_words[-1] if last_words else ""


def _end_words(ended: Object) -> str:
    if ended.get("reason") == "OOMKilled":
        return "used more memory than it had asked for"
    lines = [line for line in str(ended.get("message") or "").splitlines() if line.strip()]
    if not lines:
        return ""
    return lines[-1].strip()


def waiting_words(pod: Object) -> str:
    """Return why a Kubernetes pod does not run; nothing when it does."""
    for condition in pod["status"].get("conditions") or []:
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            return scheduling_words(str(condition.get("message") or ""))
    statuses = [*(pod["status"].get("initContainerStatuses") or []), *(pod["status"].get("containerStatuses") or [])]
    for status in statuses:
        waits = status.get("state", {}).get("waiting")
        if waits:
            row = WAITS.get(str(waits.get("reason")), "waits: Kubernetes says {message}")
            message = _shorter(str(waits.get("message") or waits.get("reason") or ""))
            return row.format(image=status.get("image", ""), message=message)
    if pod["status"].get("phase") == "Pending" and not statuses:
        return "waits for a node"
    return ""


def is_being_made(pod: Object) -> bool:
    """Return whether a Kubernetes pod has its node, and a container of it is still being made."""
    return waiting_words(pod) == BEING_MADE


def scheduling_words(message: str) -> str:
    """Return `0/140 nodes are available: 140 Insufficient nvidia.com/gpu.` as a sentence without its subject."""
    if not message:
        return "waits for nodes to become free"
    match = re.match(r"0/(\d+) nodes are available: (.*?)(?: preemption:.*)?$", message, re.S)
    if match is None:
        return f"waits: {_shorter(message)}"
    nodes, rest = int(match[1]), match[2]
    short = [_lack(name) for name in re.findall(r"Insufficient ([\w./-]+\w)", rest)]
    others = [_filled(pattern, text, rest) for pattern, text in OTHERWISE if re.search(pattern, rest)]
    if not short and not others:
        return f"waits: {_shorter(message)}"
    head = f"waits: {nodes} nodes" if nodes != 1 else "waits: one node"
    if short:
        head += f", none with enough {' and '.join(dict.fromkeys(short))}"
    return "; ".join([head, *dict.fromkeys(others)])


def _lack(name: str) -> str:
    if name.startswith("nvidia.com/mig-"):
        return f"free slices {name.removeprefix('nvidia.com/mig-')}"
    if name.startswith("rdma/"):
        return f"free RDMA devices ({name.removeprefix('rdma/')})"
    return LACKS.get(name, f"free {name}")


def _filled(pattern: str, text: str, message: str) -> str:
    match = re.search(pattern, message)
    assert match is not None
    return text.format(*(group or "" for group in match.groups()))


def creation_words(message: str) -> str:
    """Return why a Job could not make its Kubernetes pods."""
    quota = re.search(
        r"exceeded quota: ([\w.-]+), requested: ([^,]+(?:,[^:]+=[^,]+)*?), used: (.+?), limited: (.+)$", message
    )
    if quota:
        return _quota_words(*quota.groups())
    secure = re.search(r'violates PodSecurity "([\w:-]+)": (.*)$', message, re.S)
    if secure:
        return f"waits: the namespace's Pod Security ({secure[1]}) forbids it: {_shorter(secure[2])}"
    account = re.search(r'serviceaccount "([\w.-]+)" not found', message)
    if account:
        return f"waits: there is no service account {account[1]}; `podwright pod grant` makes it"
    return f"waits: its Kubernetes pods cannot be made: {_shorter(message)}"


def _quota_words(name: str, asked: str, used: str, limit: str) -> str:
    """Say whether others use a quota up, or whether it never lets a node of the run in."""
    if _exceeds(asked, limit):
        return f"waits: the quota {name} is too small for a node of it (asked {asked}, limit {limit})"
    return f"waits: the quota {name} is used up (asked {asked}, used {used}, limit {limit})"


def _exceeds(asked: str, limit: str) -> bool:
    try:
        most, wanted = _amounts(limit), _amounts(asked)
    except ArithmeticError:  # not as Kubernetes writes amounts
        return False
    return any(amount > most.get(resource, amount) for resource, amount in wanted.items())


def _amounts(text: str) -> dict[str, Decimal]:
    pairs = (part.partition("=") for part in text.split(","))
    return {resource.strip(): amount_of(quantity) for resource, _, quantity in pairs}


def _shorter(text: str, limit: int = 200) -> str:
    line = " ".join(text.split())
    if len(line) <= limit:
        return line
    return line[: limit - 3] + "..."
