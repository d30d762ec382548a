"""Names that a run has on Kubernetes: labels, paths inside its containers, and how often a node is replaced."""

from __future__ import annotations

MANAGER = "podwright"
"""Of the fields of an object: what others set beside us stays theirs."""
DOMAIN = "podwright.dev"
RUN, JOB = f"{DOMAIN}/run", f"{DOMAIN}/job"
UNIT, NVLINK_DOMAIN = f"{DOMAIN}/unit", f"{DOMAIN}/nvlink-domain"
"""The labels of a node that say to which scalable unit and to which NVLink domain it belongs, as it was designed."""
CLIQUE = "nvidia.com/gpu.clique"
"""What NVIDIA's GPU feature discovery finds: the part of an NVLink domain that a node is in."""
OWNER = f"{DOMAIN}/owner"
"""A digest of the run's token: tells our own object from one of the same name that somebody else made."""
HELD = f"{DOMAIN}/held"
"""The annotation of an object that we suspended, with the reason: nothing else is ever resumed by us."""
HELD_THEN = f"{DOMAIN}/held-then"
"""What it waits for afterwards."""
HELD_FOR = f"{DOMAIN}/held-for"
"""The run that must succeed first."""
HELD_UNTIL, HELD_TIMES = f"{DOMAIN}/held-until", f"{DOMAIN}/held-times"
"""When a run that gave its nodes back tries again, in Unix seconds, and how often it did give them back."""
HELD_QUEUE = f"{DOMAIN}/held-queue"
"""The Kueue queue of such an object, which it joins when it is released: Kueue would resume it before."""
GROUP = "scheduling.k8s.io/group-name"
"""The annotation by which Volcano knows the group of a Kubernetes pod."""
QUEUE = "kueue.x-k8s.io/queue-name"
"""The label by which Kueue knows the queue of an object."""
REASON = f"{DOMAIN}/reason"
"""Why an administrator's object says what it says."""
OURS = f"app.kubernetes.io/managed-by={MANAGER}"

JOB_FOLDER, WORK, CLAIM = "/podwright/job", "/podwright/work", "/podwright/claim"
CODE_FILE = "/podwright/code/code.tar"
"""In an image that holds the code as its last layer."""
TOKEN, SSH = "/podwright/token", "/podwright/ssh"
CACHE = "/podwright/cache"
"""What holds data that is staged; below it a folder of the user's own."""
RUNS = f"{CLAIM}/podwright/runs"
"""On the claim: each run has a folder of its own there."""

PILOT, SHIP, LAUNCHER = "pilot", "ship", "launcher"
"""Containers."""
ACCOUNT = "podwright"
"""The service account that may use the security context for RDMA, on OpenShift."""
USER = 1000
"""Of all processes, where nobody else decides it: an image that would run as root runs all the same."""
SSH_PORT = 2222

MAX_LOST, MAX_GIVEN_BACK = 20, 100
"""How often the place of one node is filled anew; and how often nodes of a run of several may be given back, which must
not use that up: Kubernetes counts both together."""
MAX_STARTS = 500
"""How often a node of several begins where the claim tells lost copies from those that were given back: there the
leader ends a run that loses a node again and again, and this bounds only what never comes so far."""
KEPT_S = 7 * 86400
"""Objects of a run that is over go after a week, so that nobody must clean up after a client that never came back."""
UNREACHABLE_S = 30
PIECE_BYTES, MAX_PIECES = 900 * 1024, 5
"""Of the code, compressed: a ConfigMap holds one MiB."""


def labels(run_id: str, parent: str, workload: str) -> dict[str, str]:
    """Return the labels of everything that belongs to a run: those that tools for Kubernetes know, and our own."""
    return {
        "app.kubernetes.io/managed-by": MANAGER,
        "app.kubernetes.io/name": workload,
        "app.kubernetes.io/instance": run_id,
        "app.kubernetes.io/part-of": parent,
        JOB: parent,
        RUN: run_id,
    }


def run_folder(run_id: str) -> str:
    """Return the folder of a run on its claim, as containers see it."""
    return f"{RUNS}/{run_id}"


def code_names(digest: str, pieces: int) -> list[str]:
    """Return the names of the code's pieces; equal code has equal names, and is stored once, whoever brings it."""
    return [f"podwright-code-{digest}-{index}" for index in range(pieces)]


def payload_name(digest: str) -> str:
    """Return the name of the ConfigMap that holds the pilot and its scripts."""
    return f"podwright-pilot-{digest}"
