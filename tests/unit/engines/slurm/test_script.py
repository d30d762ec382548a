"""The batch script of a run, whole, for each kind of site; and what is refused, to the letter."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podwright import spec
from podwright.engines.base import Request
from podwright.engines.network import network_env
from podwright.engines.slurm.containers import KINDS, Inside, MountedPath, spell_pyxis
from podwright.engines.slurm.facts import SlurmFacts, parse_probe
from podwright.engines.slurm.mpi import mpi_command
from podwright.engines.slurm.prefetch import render_prefetch
from podwright.engines.slurm.resources import cluster_folder
from podwright.engines.slurm.script import ScriptJob, render_script, script_job
from podwright.engines.staged import StagedData
from tests.fixtures.inputs import inputs
from tests.paths import CASES

FOLDER = CASES / "slurm"
CASES = sorted(path.parent.name for path in FOLDER.glob("*/workload.yaml"))


@cache
def facts_of(name: str) -> SlurmFacts:
    return parse_probe((FOLDER / "probes" / f"{name}.txt").read_text())


def rendered(name: str) -> dict[str, str]:
    case = json.loads((FOLDER / name / "facts.json").read_text())
    workload, pod = spec.load_workload(FOLDER / name / "workload.yaml"), spec.load_pod(FOLDER / name / "pod.yaml")
    facts, scheduler = facts_of(case["probe"]), pod.scheduler("slurm")
    assert isinstance(scheduler, spec.SlurmScheduler)
    points = tuple(dict(point) for point in spec.points(workload) or [{}])
    staged = {"frames": StagedData(b"list", {}, 9, ())} if case.get("staged") else {}
    request = Request(case["run_id"], workload, pod, points, None, inputs(case.get("data", {})), staged=staged)
    runs = f"{cluster_folder(scheduler, facts)}/runs"
    script = script_job(request, pod, scheduler, facts, runs, case.get("after"))
    env = network_env(request, pod, pod.model_of(pod.scheduler_hosts(scheduler)[0]))
    launch = {"env": env, "mpi": mpi_command(request, facts)}
    files = {"batch.sh": render_script(script), "launch.json": json.dumps(launch, indent=2) + "\n"}
    if script.prefetch:
        files["prefetch.sh"] = render_prefetch(script.prefetch)
    return files


def scripts(name: str) -> dict[str, str]:
    return {path: text for path, text in rendered(name).items() if path.endswith(".sh")}


@pytest.mark.parametrize("name", CASES)
def test_case(name: str, golden: Callable[[Path, str], None]) -> None:
    expected = FOLDER / name / "expected"
    files = rendered(name)
    for path, text in files.items():
        golden(expected / path, text)
    assert {path.name for path in expected.iterdir()} == set(files)


@pytest.mark.parametrize("shell", ["dash", "bash"])
@pytest.mark.parametrize("name", CASES)
def test_a_shell_can_read_it(name: str, shell: str) -> None:
    assert shutil.which(shell)
    for text in scripts(name).values():
        subprocess.run([shell, "-n"], input=text, text=True, check=True)


CLIENT = """\
ClusterName=none
SlurmctldHost=none(127.0.0.1)
SlurmctldPort=1
MessageTimeout=1
AuthType=auth/none
GresTypes=gpu
SelectType=select/cons_tres
TaskPlugin=task/affinity
"""


@pytest.mark.slurm
def test_the_installed_sbatch_takes_every_header(tmp_path: Path) -> None:
    """Without a controller it reads all options and their values, and then says that it has nobody to send them to."""
    if not shutil.which("sbatch"):
        pytest.skip("needs Slurm's client: apt-get install slurm-client")
    conf = tmp_path / "slurm.conf"
    conf.write_text(CLIENT)
    environ = {**os.environ, "SLURM_CONF": str(conf)}
    asked = {}
    for name in CASES:
        for path, text in scripts(name).items():
            script = tmp_path / f"{name}-{path}"
            script.write_text(text)
            command = ["sbatch", "--test-only", str(script)]
            asked[script.name] = subprocess.Popen(command, env=environ, stderr=subprocess.PIPE, text=True)
    said = {name: process.communicate()[1].strip() for name, process in asked.items()}
    nobody = "allocation failure: Unable to contact slurm controller (connect failure)"
    assert said == dict.fromkeys(asked, nobody)


def option_names(text: str) -> set[str]:
    """The long options in a command line or in a command's help."""
    return set(re.findall(r"(?<![\w-])--([a-z][a-z-]+)", text))


@pytest.mark.slurm
def test_the_installed_srun_knows_every_option(tmp_path: Path) -> None:
    if not shutil.which("srun"):
        pytest.skip("needs Slurm's client: apt-get install slurm-client")
    conf = tmp_path / "slurm.conf"
    conf.write_text(CLIENT)
    environ = {**os.environ, "SLURM_CONF": str(conf)}
    known = option_names(subprocess.run(["srun", "--help"], env=environ, capture_output=True, text=True).stdout)
    for name in CASES:
        files = rendered(name)
        step = files["batch.sh"].partition("\nsrun ")[2].partition("\n")[0]
        words = json.loads(files["launch.json"])["mpi"]
        assert option_names(step) - known == set(), name
        assert words[:1] != ["srun"] or option_names(" ".join(words)) - known == set(), name


def refusal(tmp_path: Path, probe: str, text: str, scheduler: str = "", data: dict[str, str] | None = None) -> str:
    (tmp_path / "workload.yaml").write_text(f"name: toy\ncommand: train\n{text}\n")
    (tmp_path / "pod.yaml").write_text(
        f"name: site\nnodes: [{{hosts: n1, model: cpu-server}}]\nschedulers: [{{kind: slurm{scheduler}}}]\n"
    )
    workload, pod = spec.load_workload(tmp_path / "workload.yaml"), spec.load_pod(tmp_path / "pod.yaml")
    points = tuple(dict(point) for point in spec.points(workload) or [{}])
    request = Request("toy-2222", workload, pod, points, None, inputs(data or {}))
    one = pod.scheduler("slurm")
    assert isinstance(one, spec.SlurmScheduler)
    with pytest.raises(spec.Refusal) as caught:
        script_job(request, pod, one, facts_of(probe), "/runs")
    assert caught.value.exit_code == 2
    return str(caught.value).replace(f"{tmp_path}/", "")


REFUSALS: dict[str, tuple[str, str, str]] = {
    "unknown partition": (
        "25.05-mixed",
        "slurm: {partition: gpus}",
        'workload.yaml:3:20: slurm.partition: the cluster has no partition "gpus"\n\n'
        "hint: partitions are gpu, mig, cpu; did you mean `gpu`?",
    ),
    "partition of a verbatim option": (
        "25.05-mixed",
        "slurm: {options: [-p fast]}",
        'workload.yaml:3:8: slurm.partition: the cluster has no partition "fast"\n\nhint: partitions are gpu, mig, cpu',
    ),
    "no default partition": (
        "24.05-linear",
        "nodes: 1",
        "workload.yaml:1:1: slurm.partition: the cluster has no default partition\n\nhint: name one of gpu, old",
    ),
    "closed partition": (
        "24.05-linear",
        "slurm: {partition: old}",
        "workload.yaml:3:20: slurm.partition: the partition old is closed",
    ),
    "a name that sbatch would change": (
        "25.05-mixed",
        'slurm: {account: "a b"}',
        'workload.yaml:3:18: slurm.account: "a b" is no name that Slurm takes',
    ),
    "more nodes than there are": (
        "25.05-mixed",
        "nodes: 33",
        "workload.yaml:3:8: nodes: 33 nodes are asked for; gpu gives 32 nodes",
    ),
    "more nodes than allowed": (
        "23.11-dgx",
        "nodes: 65",
        "workload.yaml:3:8: nodes: 65 nodes are asked for; batch gives 64 such nodes",
    ),
    "more big nodes than there are": (
        "24.05-linear",
        "nodes: 2\nresources: {gpus: 8}\nslurm: {partition: gpu}",
        "workload.yaml:3:8: nodes: 2 nodes are asked for; gpu gives 1 such nodes",
    ),
    "more of everything than a node has": (
        "22.05-lab",
        "resources: {gpus: 9, cpus: 17, memory: 5GiB}",
        "workload.yaml:3:19: resources.gpus: a node of gpu has 8 GPUs, and 9 GPUs are asked for\n"
        "workload.yaml:3:28: resources.cpus: a node of gpu has 16 cores, and 17 cores are asked for\n"
        "workload.yaml:3:40: resources.memory: a node of gpu has 4 GiB, and 5 GiB are asked for",
    ),
    "longer than the partition allows": (
        "25.05-mixed",
        "time_limit: 3d",
        "workload.yaml:3:13: time_limit: gpu lets a job run for 2d\n\n"
        "hint: let it go on in slices: `slurm: {time: 2d}`",
    ),
    "a slice longer than the partition allows": (
        "25.05-mixed",
        "time_limit: 3d\nslurm: {time: 60h}",
        "workload.yaml:4:15: slurm.time: gpu lets a job run for 2d\n\nhint: write `time: 2d`",
    ),
    "too short a slice": (
        "25.05-mixed",
        "slurm: {time: 2m}",
        "workload.yaml:3:15: slurm.time: is too short a slice: its last 120 s go to the checkpoint\n\n"
        "hint: it must be longer than 4m, as `time: 5m` is",
    ),
    "a slice that less grace makes long enough": (
        "25.05-mixed",
        "slurm: {time: 4m}",
        "workload.yaml:3:15: slurm.time: is too short a slice: its last 120 s go to the checkpoint\n\n"
        "hint: it must be longer than 4m, as `time: 5m` is; or shorten `grace`",
    ),
    "a matrix larger than an array": (
        "23.11-dgx",
        f"matrix: {{a: {list(range(1001))}}}",
        "workload.yaml:3:9: matrix: has 1001 points, and the cluster takes 1000 in one array\n\n"
        "hint: split it into several workloads",
    ),
    "no MPI": (
        "24.05-linear",
        "launcher: mpi\nslurm: {partition: gpu}",
        "workload.yaml:3:11: launcher: the cluster's Slurm has no PMIx, and mpirun is not on its login node\n\n"
        "hint: load your site's MPI: `setup: [module load openmpi]`",
    ),
    "MPI in containers": (
        "23.11-dgx",
        "launcher: mpi\nnodes: 2\nimage: a/b:1",
        "workload.yaml:3:11: launcher: ranks of MPI in containers on several nodes cannot be started from inside one of"
        " them\n\nhint: set `runtime: bare`, or `launcher: ranks` or `torchrun`",
    ),
    "no such slices": (
        "25.05-mixed",
        "resources: {gpus: 1, mig: 2g.20gb}",
        'workload.yaml:3:27: resources.mig: the cluster has no slices "2g.20gb"\n\nhint: it has h100_1g.10gb',
    ),
    "no containers": (
        "22.05-lab",
        "image: registry.example/train:1",
        "workload.yaml:1:1: runtime: the cluster has nothing that starts containers\n\n"
        "hint: set `runtime: bare`, or name one with `container:` of the scheduler; looked for Pyxis, Apptainer,"
        " Podman, Charliecloud, an OCI bundle",
    ),
    "an image that is not made yet": (
        "23.11-dgx",
        "build: {base: python}",
        "workload.yaml:3:8: build: Slurm needs an image that is made already\n\n"
        "hint: build it, then name it with `image:`",
    ),
    "an image of a registry for Charliecloud": (
        "26.05-cloud",
        "image: registry.example/train:1",
        "workload.yaml:3:8: image: Charliecloud starts a folder or a file, not an image of a registry\n\n"
        "hint: unpack it where all nodes see it, and name that path with `image:`",
    ),
}


@pytest.mark.parametrize(("probe", "text", "words"), REFUSALS.values(), ids=REFUSALS)
def test_refusals(probe: str, text: str, words: str, tmp_path: Path) -> None:
    assert refusal(tmp_path, probe, text) == words


def test_a_path_that_cannot_be_mounted(tmp_path: Path) -> None:
    text = "image: a/b:1\ndata: {frames: '/data/a,b'}\ncheckpoint: '/ckpt:1'"
    assert refusal(tmp_path, "23.11-dgx", text, data={"frames": "/data/a,b"}) == (
        "workload.yaml:4:16: data.frames: a path with `:`, `,` or `$` cannot be mounted into a container\n"
        "workload.yaml:5:13: checkpoint: a path with `:`, `,` or `$` cannot be mounted into a container\n\n"
        "hint: give it another name, or a link to it"
    )


FOLDERS = {
    "/a b": '"/a b" has a space in it, which Slurm changes',
    "/a%j": '"/a%j" has `%` in it, which Slurm changes',
    "/a'b": "\"/a'b\" has `'` in it, which Slurm changes",
    "/a#b": '"/a#b" has `#` in it, which Slurm changes',
    "/a\\b": '"/a\\b" has `\\` in it, which Slurm changes',
    "relative": '"relative" is not an absolute path',
    "/scratch/$GROUP": '"/scratch/$GROUP" has a variable nobody knows',
}


@pytest.mark.parametrize(("folder", "words"), FOLDERS.items())
def test_folders_that_slurm_would_change(folder: str, words: str) -> None:
    with pytest.raises(spec.Refusal) as caught:
        cluster_folder(spec.SlurmScheduler(kind="slurm", folder=folder), facts_of("22.05-lab"))
    assert caught.value.problems[0].message == words
    assert caught.value.problems[0].field == "folder"


EXPANDED = {
    None: "/home/alice/podwright",
    "~/runs/": "/home/alice/runs",
    "/scratch/$USER/podwright": "/scratch/alice/podwright",
    "${HOME}/x": "/home/alice/x",
}


@pytest.mark.parametrize(("folder", "path"), EXPANDED.items())
def test_the_folder_on_the_cluster(folder: str | None, path: str) -> None:
    assert cluster_folder(spec.SlurmScheduler(kind="slurm", folder=folder), facts_of("22.05-lab")) == path


@given(st.text(min_size=1, max_size=30), st.sampled_from(["pyxis", "apptainer", "podman", "charliecloud", "oci"]))
def test_no_path_breaks_out_of_its_word(name: str, kind: str) -> None:
    """Whatever a path holds, the shell hands it on as it is."""
    mounts = (MountedPath("$run", read_only=True), MountedPath(f"/data/{name}"))
    wrapping = KINDS[kind].wrap(Inside("/image", "/runs", mounts, True, True, (), facts_of("23.11-dgx")))
    job = ScriptJob("toy-2222", "/runs", 1, (), ("--nodes=1",), wrapping.step, wrapping.before)
    line = render_script(job).partition("\nsrun ")[2].partition("/bin/sh -c")[0]
    assert shlex.split(line.replace("\\\n", "")) == ["--nodes=1", *wrapping.step, *wrapping.before]


SPELLED = {
    "ubuntu": "ubuntu",
    "library/ubuntu:24.04": "library/ubuntu:24.04",
    "registry.example/a/b:1": "registry.example#a/b:1",
    "localhost/a": "localhost#a",
    "host:5000/a": "host:5000#a",
    "/images/a.sqsh": "/images/a.sqsh",
}


@pytest.mark.parametrize(("image", "text"), SPELLED.items())
def test_images_as_enroot_spells_them(image: str, text: str) -> None:
    assert spell_pyxis(image) == text


def test_what_a_run_is_given_by_the_script_is_never_a_line_of_shell() -> None:
    value = "/opt/it's python; exit 9 $(exit 9)"
    text = render_script(ScriptJob("r", "/runs", 1, (), ("srun", "true"), environment=(("PODWRIGHT_PYTHON", value),)))
    (line,) = [line for line in text.splitlines() if line.startswith("export PODWRIGHT_PYTHON=")]
    shell = ["sh", "-c", f'{line}\nprintf %s "$PODWRIGHT_PYTHON"']
    assert subprocess.run(shell, capture_output=True, text=True, check=True).stdout == value
