"""How the step of the pilots is put into a container: a table from what a site has to words of a command line.

The run's folder, absolute data paths and the checkpoint folder are seen inside at the same paths as outside, so that a
pilot need not know where it runs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from podwright.engines.slurm.facts import SlurmFacts

if TYPE_CHECKING:
    from podwright.engines.base import Request
    from podwright.spec import Pod, SlurmScheduler

Problem = tuple[str, str, str | None]
RUN, JOB = "$run", "$job"
"""Variables of the batch script, in words that name paths of a run: points of a matrix share one script."""
WRITTEN = ("record", "lease", "results")
"""Folders of a run that its ranks and the pilot inside may write, beside that of the checkpoints."""
UNMOUNTABLE = re.compile("[:,$]")
OURS = ("PODWRIGHT_LEADER", "PODWRIGHT_PYTHON", "PODWRIGHT_RESTART", "PODWRIGHT_RUN")


@dataclass(frozen=True)
class Wrapping:
    """What stands around the command of the step."""

    step: tuple[str, ...] = ()
    """Options of srun."""
    before: tuple[str, ...] = ()
    """Words of a command that starts the one that follows it."""
    folders: tuple[str, ...] = ()
    """Folders that must be there before they can be mounted."""
    on_nodes: tuple[str, ...] = ()
    """Such folders on each node's own disk."""
    finds_node: bool = False
    """Slurm's own variables of a task do not get inside: it must find out which node it is on."""


@dataclass(frozen=True)
class MountedPath:
    """A path that is seen inside where it is outside."""

    path: str
    read_only: bool = False

    def words(self) -> str:
        """Return it as most runtimes read it."""
        if self.read_only:
            return f"{self.path}:{self.path}:ro"
        return f"{self.path}:{self.path}"


@dataclass(frozen=True)
class Inside:
    """What a container of a run must hold."""

    image: str
    runs: str
    """The folder on the cluster in which each run has its own."""
    mounts: tuple[MountedPath, ...]
    gpus: bool
    rdma: bool
    secrets: tuple[str, ...]
    facts: SlurmFacts


@dataclass(frozen=True)
class ContainerRuntime:
    """One way to start containers."""

    title: str
    is_there: Callable[[SlurmFacts], bool]
    wrap: Callable[[Inside], Wrapping]
    from_registry: bool = True


def wrap(request: Request, pod: Pod, scheduler: SlurmScheduler, facts: SlurmFacts, runs: str) -> Wrapping:
    """Return what puts the pilots of this run into its image; a bare run has nothing around it.

    What is read or run outside, of this run and of its parent, can only be read inside.
    """
    workload, name = request.workload, chosen(scheduler, facts)
    if workload.runtime == "bare" or name is None or workload.image is None:
        return Wrapping()
    resources, written = workload.resources, _written(workload.checkpoint)
    fixed = [MountedPath(RUN, read_only=True), MountedPath(JOB, read_only=True)]
    caches = [cache_inside(pod, facts)] if request.staged else []
    inside = Inside(
        image=workload.image.removeprefix("docker://"),
        runs=runs,
        mounts=(*fixed, *map(MountedPath, [*written, *_paths(request), *caches])),
        gpus=resources.gpus > 0,
        rdma=resources.rdma,
        secrets=workload.secrets,
        facts=facts,
    )
    if workload.checkpoint.startswith("/"):
        written.append(workload.checkpoint)
    return replace(KINDS[name].wrap(inside), folders=tuple(written), on_nodes=tuple(caches))


def cache_inside(pod: Pod, facts: SlurmFacts) -> str:
    """Return where each node keeps data for runs in containers, in which the user may have no name."""
    path = pod.cache.path or "/tmp/podwright-cache-$USER"
    return re.sub(r"\$(USER\b|\{USER\})", lambda _: facts.user, path)


def _written(checkpoint: str) -> list[str]:
    """Return the folders of the run that can be written inside; one inside another comes with it."""
    names = list(WRITTEN)
    if PurePosixPath(checkpoint).parts[0] not in ("/", *WRITTEN):
        names.append(checkpoint)
    return [f"{RUN}/{name}" for name in names]


def chosen(scheduler: SlurmScheduler, facts: SlurmFacts) -> str | None:
    """Return what starts containers: the pod file's word, else the first that the site has, in the table's order."""
    if scheduler.container:
        return scheduler.container
    return next((name for name, kind in KINDS.items() if kind.is_there(facts)), None)


def problems(request: Request, pod: Pod, scheduler: SlurmScheduler, facts: SlurmFacts) -> list[Problem]:
    """Return what stands in the way of this run's container, if it has one."""
    workload, name = request.workload, chosen(scheduler, facts)
    if workload.runtime == "bare":
        return []
    if workload.image is None:
        return [("build", "Slurm needs an image that is made already", "build it, then name it with `image:`")]
    if name is None:
        titles = ", ".join(kind.title for kind in KINDS.values())
        hint = f"set `runtime: bare`, or name one with `container:` of the scheduler; looked for {titles}"
        return [("runtime", "the cluster has nothing that starts containers", hint)]
    unmountable = [*_path_problems(request), *_cache_problems(request, pod, facts)]
    return [*_image_problems(workload.image, KINDS[name]), *unmountable]


def _image_problems(image: str, kind: ContainerRuntime) -> list[Problem]:
    if kind.from_registry or image.startswith("/"):
        return []
    hint = "unpack it where all nodes see it, and name that path with `image:`"
    return [("image", f"{kind.title} starts a folder or a file, not an image of a registry", hint)]


def _path_problems(request: Request) -> list[Problem]:
    """Return the paths that cannot be mounted: a colon or a comma ends a path wherever mounts are listed."""
    paths = [(f"data.{name}", path) for name, path in request.target_paths()]
    paths.append(("checkpoint", request.workload.checkpoint))
    message = "a path with `:`, `,` or `$` cannot be mounted into a container"
    return [
        (field, message, "give it another name, or a link to it") for field, path in paths if UNMOUNTABLE.search(path)
    ]


def _cache_problems(request: Request, pod: Pod, facts: SlurmFacts) -> list[Problem]:
    if not request.staged or not UNMOUNTABLE.search(path := cache_inside(pod, facts)):
        return []
    hint = "give `cache: path:` of the pod a name that is the same on all nodes; `$USER` is filled in"
    return [("data", f"the cache {path} of the nodes cannot be mounted into a container", hint)]


def _paths(request: Request) -> list[str]:
    """Return the absolute paths the run needs; one inside another comes with it."""
    paths = {PurePosixPath(path) for _, path in request.target_paths()}
    if request.workload.checkpoint.startswith("/"):
        paths.add(PurePosixPath(request.workload.checkpoint))
    return sorted(str(path) for path in paths if not paths.intersection(path.parents))


def spell_pyxis(image: str) -> str:
    """Return an image's name as Enroot reads it, with `#` between the registry and the rest."""
    first, slash, rest = image.partition("/")
    is_registry = re.search(r"[.:]|^localhost$", first) is not None
    if image.startswith("/") or not slash or not is_registry:
        return image
    return f"{first}#{rest}"


def _pyxis(inside: Inside) -> Wrapping:
    """Wrap with options of srun.

    A home folder would bring its own packages along; the image's own entry point is not ours to run.
    """
    pairs = ",".join(mount.words() for mount in inside.mounts)
    names = ",".join([*OURS, *inside.secrets])
    return Wrapping(
        step=(
            f"--container-image={spell_pyxis(inside.image)}",
            f"--container-mounts={pairs}",
            f"--container-workdir={RUN}",
            f"--container-env={names}",
            "--no-container-mount-home",
            "--no-container-remap-root",
            "--no-container-entrypoint",
            "--container-writable",
        )
    )


def _apptainer(inside: Inside) -> Wrapping:
    """Wrap with Apptainer, or with Singularity where only that is there.

    Devices, /tmp and the environment stay the node's: RDMA, scratch and Slurm's variables are needed inside.
    """
    programs, image = inside.facts.programs, inside.image
    program = "apptainer"
    if "singularity" in programs and "apptainer" not in programs:
        program = "singularity"
    if not re.match(r"/|\w+://", image):
        image = f"docker://{image}"
    return Wrapping(
        before=(
            program,
            "exec",
            *_if(inside.gpus, "--nv"),
            "--no-home",
            "--writable-tmpfs",
            *_each("--bind", (mount.words() for mount in inside.mounts)),
            f"--pwd={RUN}",
            image,
        )
    )


def _podman(inside: Inside) -> Wrapping:
    """Wrap with Podman, on the node's network, shared memory and limits: a rank must not notice the container."""
    # Without a cgroup of its own the container stays in that of the step, which Slurm measures and clears away; only
    # crun can do that.
    runtime = "--cgroups=disabled"
    programs = inside.facts.programs
    if "runc" in programs and "crun" not in programs:
        runtime = "--runtime=runc"
    names = ("SLURM_*", "PODWRIGHT_*", "PMIX_*", "CUDA_VISIBLE_DEVICES", *inside.secrets)
    return Wrapping(
        before=(
            "podman",
            "run",
            "--rm",
            runtime,
            *_if(inside.facts.user != "root", "--userns=keep-id"),
            "--network=host",
            "--ipc=host",
            "--ulimit=host",
            "--security-opt=label=disable",
            *_each("--env", names),
            *_if(inside.gpus, "--device=nvidia.com/gpu=all"),
            *_if(inside.rdma, "--device=/dev/infiniband"),
            *_each("--volume", (mount.words() for mount in inside.mounts)),
            f"--workdir={RUN}",
            "--entrypoint=",
            inside.image,
        )
    )


def _charliecloud(inside: Inside) -> Wrapping:
    """Wrap with ch-run, which cannot mount anything for reading only.

    The node's /tmp is inside already, and nothing can be mounted below it.
    """
    # A place to mount at is made only where something may be written; an older ch-run can write in folders alone.
    is_file = re.search(r"\.(sqfs|sqsh|squashfs)$", inside.image) is not None
    writable = _if(not is_file, "--write")
    if "ch-run --write-fake" in inside.facts.programs:
        writable = ["--write-fake"]
    there: tuple[str, ...] = ("/tmp/", f"{RUN}/")
    if inside.runs.startswith("/tmp/"):
        there = ("/tmp/", RUN, JOB)
    mounts = [mount.path for mount in inside.mounts if not mount.path.startswith(there)]
    return Wrapping(
        before=("ch-run", *writable, *_each("--bind", mounts), f"--cd={RUN}", inside.image, "--"),
    )


def _oci(inside: Inside) -> Wrapping:
    """Wrap with an OCI bundle, which has its own list of mounts: the run's folder must be in it."""
    return Wrapping(step=(f"--container={inside.image}",), finds_node=True)


def _if(wanted: bool, *options: str) -> list[str]:
    return list(options) if wanted else []


def _each(option: str, values: Iterable[str]) -> list[str]:
    return [f"{option}={value}" for value in values]


def _has(*names: str) -> Callable[[SlurmFacts], bool]:
    return lambda facts: any(name in facts.programs for name in names)


KINDS = {
    "pyxis": ContainerRuntime("Pyxis", lambda facts: facts.pyxis, _pyxis),
    "apptainer": ContainerRuntime("Apptainer", _has("apptainer", "singularity"), _apptainer),
    "podman": ContainerRuntime("Podman", _has("podman"), _podman),
    "charliecloud": ContainerRuntime("Charliecloud", _has("ch-run"), _charliecloud, from_registry=False),
    "oci": ContainerRuntime("an OCI bundle", lambda facts: facts.oci, _oci, from_registry=False),
}
"""In the order in which they are looked for: what a site set up for this purpose first."""
