"""Where the programs of a Kubernetes lab come from: what this machine has, a cache, else a build from source.

Nothing ready-made is downloaded: Go fetches the modules that `build/go.mod` and `go.sum` pin, and compiles them once.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from podwright.files.whole import whole_path
from podwright.lab import caches
from podwright.lab.base import Say
from podwright.spec.problems import refuse

Progress = Callable[[int, int], None]
"""Called with the packages compiled and the packages in all."""

SOURCES = Path(__file__).parent / "build"
_NEWER = SOURCES / "newer"
_KUBERNETES = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy", "kubectl")
PROGRAMS = (*_KUBERNETES, "kubeadm", "etcd", "coredns", "mpi-operator", "jobset", "kwok", "pause", "devices")
_OLDEST_GO = (1, 26)
_MAX_JOBS = 8
_EVERY_S = 15.0
LOWEST = 19
"""The niceness of what must not disturb whoever works on this machine."""
_OWN_MAINS = ("./etcd", "./coredns", "./pause", "./devices")
_HINT = "install it with `pip install 'podwright[lab]'`, or put Go 1.26 or newer on PATH"

MPI_JOBS = "kubeflow.org_mpijobs.yaml"
JOB_SETS = "jobset.x-k8s.io_jobsets.yaml"
CONSTRAINTS = "0000_03_config-operator_01_securitycontextconstraints.crd.yaml"
# Module -> folder in it -> the files that a lab, or a test of OpenShift's objects, takes from it
_Wanted = Mapping[str, Mapping[str, tuple[str, ...]]]
_MANIFESTS: _Wanted = {
    "github.com/kubeflow/mpi-operator": {"manifests/base": (MPI_JOBS,)},
    "github.com/openshift/api": {"payload-manifests/crds": (CONSTRAINTS,), "openapi": ("openapi.json",)},
}
_NEWER_MANIFESTS: _Wanted = {
    "sigs.k8s.io/jobset": {"config/components/crd/bases": (JOB_SETS,)},
    "sigs.k8s.io/kwok": {
        "kustomize/stage/node/fast": ("node-initialize.yaml",),
        "kustomize/stage/node/heartbeat-with-lease": ("node-heartbeat-with-lease.yaml",),
        "kustomize/stage/pod/fast": ("pod-ready.yaml", "pod-complete.yaml", "pod-delete.yaml"),
    },
}


class BuildOutput:
    """Reports the progress of a build in a line now and then, as a log wants it."""

    def __init__(self, say: Say) -> None:
        self._say = say
        self._last_s = -_EVERY_S

    def __call__(self, done: int, total: int) -> None:
        """Say how far it is."""
        if done == total or time.monotonic() - self._last_s > _EVERY_S:
            self._last_s = time.monotonic()
            self._say("build", f"{done} of {total} packages")


def version() -> str:
    """Return the version of Kubernetes that the sources pin."""
    pinned = re.search(r"^\s*k8s\.io/kubernetes (v[\d.]+)", (SOURCES / "go.mod").read_text(), re.MULTILINE)
    assert pinned is not None
    return pinned[1]


def cache() -> Path:
    """Return the folder of the programs built from these very sources."""
    digest = hashlib.sha256()
    for path in sorted(path for path in SOURCES.rglob("*") if path.is_file()):
        digest.update(f"{path.relative_to(SOURCES)}\0".encode() + path.read_bytes())
    return cache_root() / f"{version()}-{digest.hexdigest()[:8]}"


def cache_root() -> Path:
    """Return the folder for what labs of this kind make once."""
    return caches.folder("kubernetes")


def find(environ: Mapping[str, str]) -> dict[str, Path] | None:
    """Return every program; those that $KUBEBUILDER_ASSETS or PATH have of the same release go before the cache.

    None while the cache is not there: it also holds what no machine has at hand.
    """
    built = cache()
    if not built.is_dir():
        return None
    programs = {name: built / name for name in PROGRAMS}
    there = f"{environ.get('KUBEBUILDER_ASSETS', '')}:{environ.get('PATH', '')}".strip(":")
    for name in _KUBERNETES:
        path = shutil.which(name, path=there)
        if path and _release(path) == version().rpartition(".")[0]:
            programs[name] = Path(path).resolve()
    return programs


def _release(program: str) -> str:
    """Ask a program of Kubernetes for its release, such as v1.35."""
    asked = ["version", "--client"] if Path(program).name == "kubectl" else ["--version"]
    answer = subprocess.run([program, *asked], capture_output=True, text=True, check=False).stdout
    release = re.search(r"v\d+\.\d+", answer)
    return release[0] if release else ""


def keep(programs: Mapping[str, Path], file: Path) -> None:
    """Note the programs that a lab was started with: it keeps them when newer ones come."""
    file.write_text(json.dumps({name: str(path) for name, path in programs.items()}, indent=1) + "\n")


def kept(file: Path) -> dict[str, Path] | None:
    """Return the programs that were noted; None where one of them is gone."""
    programs = {name: Path(path) for name, path in json.loads(file.read_text()).items()}
    if not all(path.is_file() for path in programs.values()):
        return None
    return programs


def get(say: Say, progress: Progress, niceness: int = LOWEST) -> dict[str, Path]:
    """Return every program, and build them first where there is no cache yet.

    A user works meanwhile: that is done at the lowest priority, unless another `niceness` is given.
    """
    if not cache().is_dir():
        with locked("parts"):
            if not cache().is_dir():
                build(cache(), say, progress, niceness)
    programs = find(os.environ)
    assert programs is not None
    return programs


@contextmanager
def locked(what: str) -> Iterator[None]:
    """Let one process at a time make something for the cache; the others wait and find it made."""
    with caches.locked(cache_root() / f"{what}.lock"):
        yield


def build(folder: Path, say: Say, progress: Progress, niceness: int = LOWEST) -> None:
    """Build all programs into a folder, which appears only when it is complete."""
    go = GoBuild(_go(), cache_root() / "go", niceness)
    say("build", f"Kubernetes {version()} from source, once: 8 to 20 minutes on 2 cores, 1.5 GB to fetch")
    with whole_path(folder) as part:
        (part / "manifests").mkdir(parents=True)
        go.compile(SOURCES, part, (*_OWN_MAINS, "tool"), progress)
        go.compile(_NEWER, part, ("tool",), progress)
        go.copy_manifests(SOURCES, _MANIFESTS, part / "manifests")
        go.copy_manifests(_NEWER, _NEWER_MANIFESTS, part / "manifests")
    go.clean()


def _go() -> str:
    """Find Go: the one that pip brought, else the machine's own when it is new enough."""
    for program in (str(Path(sys.prefix) / "bin" / "go"), shutil.which("go")):
        if program and Path(program).is_file():
            answer = subprocess.run([program, "version"], capture_output=True, text=True, check=False).stdout
            number = re.search(r"go(\d+)\.(\d+)", answer)
            if number and (int(number[1]), int(number[2])) >= _OLDEST_GO:
                return program
    raise refuse("Kubernetes is built with Go, and this machine has none that is new enough", hint=_HINT)


@dataclass(frozen=True)
class GoBuild:
    """Go, the folder for what it leaves behind, and how far it steps back behind other work."""

    program: str
    leftovers: Path
    niceness: int

    def compile(self, sources: Path, out: Path, packages: tuple[str, ...], progress: Progress) -> None:
        """Compile the packages of one module, and count what the compiler names."""
        total = len(self.run(sources, "list", "-deps", *packages).splitlines())
        jobs = str(max(1, min(os.cpu_count() or 1, _MAX_JOBS)))
        names = ["gitVersion", "gitMajor", "gitMinor"]
        numbers = [version(), *version().lstrip("v").split(".")[:2]]
        flags = " ".join(f"-X k8s.io/component-base/version.{n}={v}" for n, v in zip(names, numbers, strict=True))
        command = ["nice", "-n", str(self.niceness), self.program, "build", "-v", "-p", jobs, "-buildvcs=false"]
        command += ["-trimpath", "-ldflags", f"-s -w {flags}", "-o", f"{out}/", *packages]
        env = self._environment()
        with subprocess.Popen(command, cwd=sources, env=env, stderr=subprocess.PIPE, text=True) as running:
            assert running.stderr is not None
            said: list[str] = []
            for count, line in enumerate(running.stderr, 1):
                said = [*said[-9:], line]
                progress(min(count, total), total)
        if running.returncode:
            message = "Kubernetes could not be built:\n" + "".join(said)
            raise refuse(message, hint="the next `up` goes on where this ended")
        progress(total, total)

    def copy_manifests(self, sources: Path, manifests: _Wanted, to: Path) -> None:
        """Copy files of the modules that a module pins."""
        for module, folders in manifests.items():
            root = Path(json.loads(self.run(sources, "mod", "download", "-json", module))["Dir"])
            for folder, names in folders.items():
                for name in names:
                    (to / name).write_bytes((root / folder / name).read_bytes())

    def clean(self) -> None:
        """Remove what the build left."""
        if self.leftovers.exists():
            self.run(SOURCES, "clean", "-modcache")
            shutil.rmtree(self.leftovers)

    def run(self, sources: Path, *arguments: str) -> str:
        """Run Go in the folder of a module; return what it printed."""
        command, env = [self.program, *arguments], self._environment()
        done = subprocess.run(command, cwd=sources, env=env, capture_output=True, text=True, check=False)
        if done.returncode:
            failed = f"{' '.join(command[:3])} failed: {done.stderr.strip()[-500:]}"
            raise refuse(failed, hint="is the network reachable?")
        return done.stdout

    def _environment(self) -> dict[str, str]:
        """Return Go's environment. Gigabytes of build leftovers stay only where someone works with Go anyway."""
        env = {**os.environ, "GOTOOLCHAIN": "local", "GOFLAGS": "", "CGO_ENABLED": "0"}
        if self.program.startswith(sys.prefix):
            env |= {"GOCACHE": str(self.leftovers / "build"), "GOMODCACHE": str(self.leftovers / "modules")}
        return env
