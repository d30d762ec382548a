"""How the local engine puts the pilot of a node into a container: a podman command line around the same stub.

The container is there for its software: network, processes, shared memory and limits stay this machine's, so that a run
in it is as fast and as easy to look at as one without it. It is a fence for files: its root cannot be written, nor can
anything of the run's folder that is read or run outside, and only what `WRITTEN` names can.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from podwright.engines.payload import STUB
from podwright.images.builder import image_name
from podwright.images.storage import CGROUPS_V2, find_image, limit_options, own_limits, runtime_options

if TYPE_CHECKING:
    from podwright.engines.base import Request
    from podwright.spec import Workload

Problem = tuple[str, str, str | None]

LABEL = "podwright.run"
PASSED = ("RUN", "NODE", "RESTART", "JOB", "HOST", "LEADER", "TOKEN_FILE")
"""Variables of ours that the pilot needs; which Python to take is the image's own affair."""
INFINIBAND = "/dev/infiniband"
WRITTEN = ("record", "lease", "scratch", "results")
"""Folders of a run that its ranks and the pilot inside may write, beside that of the checkpoints.

Frames are written outside, from the record.
"""

CACHE = '"${run%/*/*}/cache"'
"""In the home that the run's folder is in, as node.sh finds it."""

NODE = """\
#!/bin/sh
# Starts the pilot of one node in a container, where the run's folder lies at the same path; inside.sh goes on there.
job=$(CDPATH= cd -- "${{0%/*}}" && pwd)
order=${{1:-$job/order.json}}
run=$(CDPATH= cd -- "${{order%/*}}/.." && pwd)
cd -- "$run" && mkdir -p -m 0700 -- {folders} || exit 73
exec "$PODWRIGHT_PYTHON" -I -S "${{PODWRIGHT_PILOT:-$job/pilot.pyz}}" contain "$order" \\
    {command}
"""

INSIDE = STUB.replace("#!/bin/sh\n", '#!/bin/sh\nmkdir -p -m 0700 "$HOME" || exit 1\n', 1)


@dataclass(frozen=True)
class ContainerFacts:
    """What this machine has for containers, and which image the run would get."""

    podman: bool
    options: tuple[str, ...]
    """Of every podman command here."""
    user: tuple[int, int]
    counts_processes: bool
    """Whether podman can limit the number of processes, and so must be told not to."""
    limits: Mapping[str, Sequence[int]]
    image: Mapping[str, Any] | None
    image_name: str
    gpu_list: bool
    infiniband: bool


def probe(request: Request) -> ContainerFacts | None:
    """Look at what this machine has for containers; None for a bare run, which needs none."""
    workload = request.workload
    if workload.runtime == "bare":
        return None
    name = image_name(workload)
    image = find_image(name)
    return ContainerFacts(
        podman=shutil.which("podman") is not None,
        options=tuple(runtime_options()),
        user=(os.getuid(), os.getgid()),
        counts_processes=os.getuid() == 0 or CGROUPS_V2.exists(),
        limits=own_limits(),
        image=image.document() if image else None,
        image_name=name,
        gpu_list=_gives_gpus(),
        infiniband=Path(INFINIBAND).is_dir(),
    )


def _gives_gpus() -> bool:
    """Return whether podman knows the GPUs: by a file that NVIDIA's container toolkit writes."""
    return any(any(Path(folder).glob("*nvidia*")) for folder in ("/etc/cdi", "/var/run/cdi"))


def problems(request: Request, facts: ContainerFacts) -> list[Problem]:
    """Return what stands in the way of this run's container."""
    workload = request.workload
    if not facts.podman:
        hint = "apt-get install podman runc, or set `runtime: bare` to run without the image"
        return [("runtime", "containers on this machine need podman, which is not there", hint)]
    problems: list[Problem] = []
    if facts.image is None:
        problems.append(_missing_image(workload, facts.image_name))
    if workload.resources.gpus and not facts.gpu_list:
        hint = "nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml   (of NVIDIA's container toolkit, as root)"
        problems.append(("resources.gpus", "podman does not know the GPUs of this machine", hint))
    paths = [(f"data.{name}", path) for name, path in request.target_paths()]
    paths.append(("checkpoint", workload.checkpoint))
    message = "a path with `:` cannot be mounted into a container"
    return problems + [
        (field, message, "give it another name, or a link to it")
        for field, path in paths
        if path.startswith("/") and ":" in path
    ]


def _missing_image(workload: Workload, name: str) -> Problem:
    if workload.build:
        return "build", "its image is not built yet", f"podwright image build {shlex.quote(workload.path.name)}"
    return "image", f"{name} is not on this machine", f"podman pull {shlex.quote(name)}"


def files(request: Request, facts: ContainerFacts) -> dict[str, str]:
    """Return what lies beside the order instead of the stub alone."""
    workload = request.workload
    folders, volumes = shlex.join([*WRITTEN, workload.checkpoint]), []
    if request.staged:
        folders, volumes = f"{folders} {CACHE}", [f"--volume={CACHE}:{CACHE}"]
    command = " \\\n    ".join(podman_arguments(workload, request.shown_paths(), facts, volumes))
    return {"node.sh": NODE.format(folders=folders, command=command), "inside.sh": INSIDE}


def podman_arguments(
    workload: Workload, data: Sequence[str], facts: ContainerFacts, volumes: Sequence[str] = ()
) -> list[str]:
    """Return the command line, word by word as a shell reads it; what only the node knows is a variable of node.sh."""
    assert facts.image is not None, "a run without its image is refused before"
    names = [*(f"PODWRIGHT_{name}" for name in PASSED), "CUDA_VISIBLE_DEVICES", *workload.secrets]
    fixed = [
        *_machine_options(workload, facts),
        *(f"--env={name}" for name in names),
        *_mounts(workload, data),
        "--entrypoint=",
    ]
    return [
        shlex.join(["podman", *facts.options, "run", "--rm", "--replace", "--pull=never", "--sig-proxy=false"]),
        '--name="podwright-$PODWRIGHT_RUN-n$PODWRIGHT_NODE"',
        f'--label={LABEL}="$PODWRIGHT_RUN"',
        '--volume="$run:$run:ro"',
        '--volume="$job:$job:ro"',
        *(f'--volume="$run"/{name}:"$run"/{name}' for name in _written(workload)),
        *volumes,
        '--workdir="$run"',
        '--env=HOME="$run/scratch/n$PODWRIGHT_NODE/home"',
        *(shlex.quote(word) for word in fixed),
        shlex.quote(facts.image["id"]),
        '/bin/sh "$job/inside.sh" "$order"',
    ]


def _written(workload: Workload) -> Iterator[str]:
    """Yield the folders that can be written inside, as a shell reads them."""
    yield from WRITTEN
    checkpoint = PurePosixPath(workload.checkpoint)
    if checkpoint.parts[0] not in ("/", *WRITTEN):
        yield shlex.quote(str(checkpoint))


def _machine_options(workload: Workload, facts: ContainerFacts) -> Iterator[str]:
    """Yield what the container shares with this machine: users, network, processes, memory, limits and devices."""
    resources = workload.resources
    user, group = facts.user
    # Files of the run belong to whoever started it; only root needs no map of users.
    if user != 0:
        yield "--userns=keep-id"
    yield from (f"--user={user}:{group}", "--network=host", "--pid=host")
    if resources.shm_bytes:
        yield f"--shm-size={resources.shm_bytes}"
    else:
        yield "--volume=/dev/shm:/dev/shm"
    if facts.counts_processes:
        yield "--pids-limit=-1"
    yield from ("--security-opt=label=disable", "--security-opt=seccomp=unconfined", "--read-only")
    yield from limit_options(facts.limits)
    if resources.gpus:
        yield "--device=nvidia.com/gpu=all"
    if resources.rdma and facts.infiniband:
        yield from (f"--device={INFINIBAND}", "--cap-add=IPC_LOCK")


def _mounts(workload: Workload, data: Sequence[str]) -> list[str]:
    """Return the options that show absolute paths inside where they are outside; data is only read.

    A path inside another comes with it.
    """
    kept: set[PurePosixPath] = set()
    if workload.checkpoint.startswith("/"):
        kept = {PurePosixPath(workload.checkpoint)}
    read = {PurePosixPath(path) for path in data} - kept
    read = {path for path in read if not read.intersection(path.parents)}
    mounts = [f"--volume={path}:{path}:ro" for path in sorted(read)]
    return mounts + [f"--volume={path}:{path}" for path in sorted(kept)]


def clear(run_id: str) -> None:
    """Remove what a killed container left in podman's store; it holds no process any more."""
    if shutil.which("podman") is None or not re.fullmatch(r"[a-z0-9-]+", run_id):
        return
    podman = ["podman", *runtime_options()]
    command = [*podman, "ps", "-aq", "--filter", f"label={LABEL}={run_id}"]
    containers = subprocess.run(command, capture_output=True, text=True, check=False).stdout.split()
    if containers:
        subprocess.run([*podman, "rm", "-f", *containers], capture_output=True, check=False)


def shell_command(run_id: str, node: int, folder: str, variables: Sequence[str]) -> list[str]:
    """Return the command that opens a shell in the container of a node."""
    names = [f"--env={variable}" for variable in variables]
    where = ["--interactive", "--tty", f"--workdir={folder}"]
    return ["podman", *runtime_options(), "exec", *where, *names, f"podwright-{run_id}-n{node}", "/bin/sh"]
