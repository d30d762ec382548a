"""Real images: built, pushed, pulled and run by podman; and the contract of every engine, kept in a container.

Everything lies in a store of its own, so that nobody's images are touched.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from podwright import launch, spec
from podwright.images.builder import build, inspect, push, read_recipe
from podwright.images.squashfs import export
from scripts import small_image
from tests.contract import test_contract as contract
from tests.contract.sites import END_S, LocalSite, until
from tests.fixtures.counted import counted
from tests.paths import CASES
from tests.real.test_staging import PROGRAM, expected, make_files, seen, select

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("images")]

BASE = "localhost/base:1"
PODWRIGHT = Path(sys.executable).parent / "podwright"
REGISTRY = """\
version: 0.1
storage: {{filesystem: {{rootdirectory: {folder}}}}}
http: {{addr: "127.0.0.1:{port}"}}
log: {{level: error, accesslog: {{disabled: true}}}}
"""


def podman(*words: str) -> str:
    done = subprocess.run(["podman", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture(scope="module")
def base() -> Iterator[str]:
    """A small Debian with a Python, under a name that no registry has, in a store that goes with the tests."""
    with small_image.store(BASE) as variables, pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        yield BASE


class ContainerSite(LocalSite):
    """The local engine, each node in a container of the base image."""

    def workload(self, arguments: str = "", **fields: Any) -> spec.Workload:
        fields = {"command": f"python3 count.py {arguments}", "image": BASE, **fields}
        return super().workload(arguments, **fields)

    def containers(self) -> list[str]:
        return podman("ps", "--all", "--quiet").split()


@pytest.fixture
def site(base: str, tmp_path: Path) -> Iterator[ContainerSite]:
    site = ContainerSite("local", tmp_path)
    yield site
    site.close()
    podman("rm", "--all", "--force")


CONTRACT: tuple[Callable[..., None], ...] = (
    contract.test_a_run_succeeds_and_leaves_its_record,
    contract.test_mpirun_starts_the_ranks,
    contract.test_a_failed_rank_fails_the_run_and_is_named,
    contract.test_a_command_that_is_not_there_is_said,
    contract.test_a_retry_goes_on_from_the_checkpoint,
    contract.test_cancel_asks_the_ranks_first,
    contract.test_after_the_grace_period_the_whole_tree_is_killed,
    contract.test_a_daemon_does_not_outlive_a_run_that_succeeds,
    contract.test_a_lost_node_comes_back_and_spends_no_retry,
    contract.test_a_leader_that_dies_is_replaced,
    contract.test_a_killed_rank_resumes,
    contract.test_without_its_keeper_a_run_ends_well,
    contract.test_a_matrix_is_one_run_with_points,
)


@pytest.mark.parametrize("case", CONTRACT, ids=lambda case: case.__name__.removeprefix("test_"))
def test_the_contract_in_a_container(site: ContainerSite, case: Callable[..., None]) -> None:
    case(site)
    until(lambda: site.containers() == [], "no container is left")


def test_when_all_is_killed_nothing_stays(site: ContainerSite) -> None:
    contract.test_when_all_is_killed_the_run_is_lost_and_nothing_stays(site)
    until(lambda: site.containers() == [], "the store holds nothing of the run")


def test_a_cancel_that_comes_while_the_container_starts_is_not_lost(site: ContainerSite) -> None:
    run = site.start("--steps 9999", nodes=2)
    run.cancel()
    assert run.wait(END_S).state == "cancelled"
    assert site.processes(run) == []


def test_podman_that_dies_is_a_lost_node(site: ContainerSite) -> None:
    run = site.start("--steps 6 --hold-at 3", nodes=2, retries=1)
    site.wait_step(run, 3)
    os.kill(_child(site.pilot(run, 1), b"podman"), signal.SIGKILL)
    record = run.wait(END_S)
    assert (record.state, record.attempts) == ("succeeded", 2)
    until(lambda: site.containers() == [], "no container is left")


def _child(parent: int, name: bytes) -> int:
    for pid in map(int, Path(f"/proc/{parent}/task/{parent}/children").read_text().split()):
        if Path(f"/proc/{pid}/cmdline").read_bytes().startswith(name + b"\0"):
            return pid
    raise AssertionError(f"{parent} has no child {name!r}")


def test_what_a_rank_sees_inside(site: ContainerSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its own root, which cannot be written; a home that can; data where it is outside, only to be read."""
    data, kept = tmp_path / "some data", tmp_path / "kept"
    data.mkdir()
    (data / "frame").write_text("frame")
    monkeypatch.setenv("TOKEN_OF_MINE", "tell-nobody")
    code = (
        "import os, pathlib as p, sys; d = p.Path(sys.argv[1]); print((d / 'frame').read_text(), os.getuid())\n"
        "def may(path):\n"
        "    try: path.write_text('x'); return True\n"
        "    except OSError: return False\n"
        "places = ('/usr', d, p.Path.home(), '/tmp', os.environ['PODWRIGHT_CHECKPOINT'])\n"
        "print([may(p.Path(place, 'new')) for place in places])\n"
        "print(len(os.environ['TOKEN_OF_MINE']), 'VIRTUAL_ENV' in os.environ, p.Path('/work').exists())\n"
    )
    run = site.start(
        command=json.dumps(["python3", "-c", code, "{data.frames}"]),
        data=json.dumps({"frames": str(data)}),
        checkpoint=str(kept),
        secrets="[TOKEN_OF_MINE]",
    )
    assert run.wait(END_S).state == "succeeded", run.explain()
    lines = [line.text for line in run.logs()]
    assert lines == [f"frame {os.getuid()}", "[False, False, True, True, True]", "11 False False"]
    assert (kept / "new").stat().st_uid == os.getuid()
    texts = [path.read_bytes() for path in run.folder.path.rglob("*") if path.is_file()]
    assert not any(b"tell-nobody" in text for text in texts)


def test_data_that_lies_elsewhere_is_brought_inside(site: ContainerSite, tmp_path: Path) -> None:
    frames = make_files(tmp_path / "frames")
    (tmp_path / "look").mkdir()
    (tmp_path / "look" / "look.py").write_text(PROGRAM)
    with counted(tmp_path / "frames") as server:
        select(site.session, server.address, frames)
        data, code = "{frames: 'selection:far'}", str(tmp_path / "look")
        run = site.start(command="python3 look.py {data.frames}", code=code, data=data, nodes=2)
        assert run.wait(END_S).state == "succeeded", run.explain()
        assert server.sent_bytes == sum(path.stat().st_size for path in frames)
    assert seen(run) == {expected(frames)}


def test_a_rank_inside_cannot_rewrite_what_is_run_outside(site: ContainerSite) -> None:
    """It tries each file of its run, then kills its pilot, so that all of it is read again."""
    code = (
        "import os, pathlib as p, signal, sys, time; run = p.Path(os.environ['PODWRIGHT_FOLDER'])\n"
        "def may(path):\n"
        "    try: path.exists() and path.unlink(); path.write_text('touch /tmp/escaped'); return True\n"
        "    except OSError: return False\n"
        "files = [path for path in run.iterdir() if path.is_file()]\n"
        "outside = [*files, *(run / 'job').iterdir(), *(run / 'spec').iterdir()]\n"
        "print(sorted(path.name for path in [*outside, run / 'new', run / 'job' / 'new'] if may(path)))\n"
        "folders = ('results', 'checkpoints', 'scratch', 'record', 'lease')\n"
        "print([may(run / name / 'new') for name in folders], flush=True)\n"
        "def heard(): return any(b'True, True' in f.read_bytes() for f in (run / 'record').rglob('*') if f.is_file())\n"
        "if os.environ['PODWRIGHT_ATTEMPT'] == '1':\n"
        "    while not heard(): time.sleep(0.05)\n"
        "    shim = p.Path(f'/proc/{os.getppid()}/stat').read_text().rpartition(')')[2].split()\n"
        "    os.kill(int(shim[1]), signal.SIGKILL); signal.pause()\n"
    )
    run = site.start(command=json.dumps(["python3", "-c", code]))
    record = run.wait(END_S)
    assert (record.state, record.attempts) == ("succeeded", 2), run.explain()
    lines = [line.text for line in run.logs()]
    assert lines == ["[]", "[True, True, True, True, True]"] * 2


def test_a_run_that_takes_more_memory_than_it_asked_for_is_ended(site: ContainerSite) -> None:
    """No control group can be made inside: the pilot sums up what its ranks use."""
    code = "import time; kept = bytearray(b'x') * (300 << 20); time.sleep(600)"
    command = json.dumps(["python3", "-c", code])
    record = site.start(command=command, nodes=2, resources="{memory: 200MiB}").wait(END_S)
    assert record.state == "failed"
    assert re.fullmatch(r"node\d: used more memory than the 200 MiB it had asked for", record.reason)


def test_a_container_that_cannot_start_is_said(site: ContainerSite) -> None:
    empty = site.folder / "empty"
    empty.mkdir()
    (empty / "Containerfile").write_text("FROM scratch\nCOPY Containerfile /\n")
    podman("build", "--quiet", "--tag=localhost/empty:1", str(empty))
    run = site.start(image="localhost/empty:1")
    record = run.wait(END_S)
    assert (record.state, record.reason) == ("failed", "its container could not be started; see pilot.log")
    assert "/bin/sh" in (run.folder.path / "pilot.log").read_text()


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A registry on a free port of this machine's loopback."""
    folder = tmp_path_factory.mktemp("registry")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    (folder / "config.yml").write_text(REGISTRY.format(folder=folder / "data", port=port))
    environ = {name: value for name, value in os.environ.items() if not name.startswith("REGISTRY_")}
    server = subprocess.Popen(
        ["docker-registry", "serve", str(folder / "config.yml")],
        env=environ,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    until(lambda: _answers(port), "the registry answers")
    yield f"127.0.0.1:{port}"
    server.terminate()
    server.wait()


def _answers(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


WORKLOAD = """\
name: toy
command: python3 -c "import own, os; print(own.NAME, open('/etc/toy/words').read().strip(), os.getuid())"
build:
  base: localhost/base:1
  apt: [python3-pip]
  pip: [-r requirements.txt]
  files: {words: /etc/toy/words}
  sshd: true
"""


def write_wheel(file: Path) -> None:
    """A package of one module, as pip takes it."""
    info = "own-1.0.dist-info"
    rows = {
        "own.py": "NAME = 'own'\n",
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: own\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{name},,\n" for name in [*rows, f"{info}/RECORD"])
    with zipfile.ZipFile(file, "w") as archive:
        for name, text in {**rows, f"{info}/RECORD": record}.items():
            archive.writestr(name, text)


@pytest.fixture(scope="module")
def toy(base: str, tmp_path_factory: pytest.TempPathFactory) -> spec.Workload:
    """A workload whose image is built with packages of Debian and of Python, and a file."""
    folder = tmp_path_factory.mktemp("toy")
    (folder / "workload.yaml").write_text(WORKLOAD)
    (folder / "words").write_text("built")
    write_wheel(folder / "own-1.0-py3-none-any.whl")
    text = WORKLOAD.replace("[-r requirements.txt]", '["./own-1.0-py3-none-any.whl"]')
    (folder / "workload.yaml").write_text(text)
    workload = spec.load_workload(folder / "workload.yaml")
    build(workload)
    return workload


def test_an_image_is_built_pushed_pulled_and_run(toy: spec.Workload, registry: str, site: ContainerSite) -> None:
    found = inspect(toy)
    assert (found.user, found.labels["podwright.recipe"]) == ("1000", read_recipe(toy).digest)
    pushed = push(toy, f"{registry}/team/toy")
    assert pushed.name == f"{registry}/team/toy:{read_recipe(toy).tag}"
    podman("pull", "--quiet", "--tls-verify=false", pushed.pinned)
    file = site.folder / "workload.yaml"
    start = toy.source.decode().partition("build:")[0]
    file.write_text(f"{start}image: {pushed.pinned}\n")
    run = launch.start(site.session, spec.load_workload(file))
    assert run.wait(END_S).state == "succeeded", run.explain()
    assert [line.text for line in run.logs()] == [f"own built {os.getuid()}"]


def test_the_image_is_known_by_what_is_in_it(toy: spec.Workload) -> None:
    before = inspect(toy)
    assert build(toy) == before, "it was built already"
    listed = podman(
        "run", "--rm", "--runtime=runc", *limits(), before.id, "sh", "-c", "id -u; ls /etc/ssh; command -v sshd"
    )
    assert listed.split()[0] == "1000"
    assert "ssh_host" not in listed, "an image everybody may pull holds no key"
    assert listed.endswith("/usr/sbin/sshd")


def limits() -> list[str]:
    from podwright.images.storage import limit_options, own_limits

    return limit_options(own_limits())


def test_a_run_of_the_built_image_needs_no_more_than_the_file(toy: spec.Workload, site: ContainerSite) -> None:
    run = launch.start(site.session, toy)
    assert run.wait(END_S).state == "succeeded", run.explain()
    found = inspect(toy)
    assert found.id in (run.folder.path / "job" / "node.sh").read_text(), "the run is pinned to what it found"
    assert run.folder.asked.image == {"name": read_recipe(toy).name, "digest": found.digest, "id": found.id}


def test_the_image_as_one_file(toy: spec.Workload, tmp_path: Path) -> None:
    file = tmp_path / "toy.sqsh"
    assert export(inspect(toy).id, file) == file.stat().st_size
    command = ["unsquashfs", "-cat", str(file), "etc/environment", "etc/rc", "etc/toy/words"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "PATH=/usr/sbin:/usr/bin:/sbin:/bin\n" in shown
    assert "cd /home/podwright 2>/dev/null || cd /\n" in shown
    assert shown.endswith("built")
    assert podman("ps", "--all", "--quiet") == ""


def test_a_build_that_fails_is_said(base: str, tmp_path: Path) -> None:
    file = tmp_path / "workload.yaml"
    file.write_text("name: bad\ncommand: x\nbuild: {base: localhost/base:1, pip: [no-such-package-anywhere]}\n")
    done = subprocess.run([PODWRIGHT, "image", "build", str(file)], capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    assert done.stderr.endswith("the image could not be built\n\nhint: the lines above are those of the build\n")
    assert "Traceback" not in done.stderr


def test_buildah_builds_where_there_is_no_podman(base: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("buildah", "runc"):
        (programs / name).symlink_to(shutil.which(name, path="/usr/bin:/usr/sbin") or name)
    (tmp_path / "words").write_text("built")
    file = tmp_path / "workload.yaml"
    file.write_text(f"name: toy\ncommand: x\nbuild: {{base: {base}, files: {{words: /etc/words}}}}\n")
    workload = spec.load_workload(file)
    with monkeypatch.context() as alone:
        alone.setenv("PATH", str(programs))
        found = build(workload)
    assert (found.user, found.size_bytes) == ("1000", None)
    assert inspect(workload).digest == found.digest, "podman finds the same"


def test_a_script_becomes_a_run_in_its_own_image(base: str, tmp_path: Path, site: ContainerSite) -> None:
    """From a bare script to a container with nothing written by hand."""
    shutil.copytree(CASES / "init" / "plain" / "folder", tmp_path / "code")
    environ = {**os.environ, "PODWRIGHT_HOME": str(site.home.path)}
    said = []
    for words in (
        ["init", "fit_line.py", "--base", base],
        ["image", "build", "workload.yaml"],
        ["run", "workload.yaml", "--set", "runtime=container", "--json"],
    ):
        command = [str(PODWRIGHT), *words]
        done = subprocess.run(command, cwd=tmp_path / "code", env=environ, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        said.append(done.stdout)
    run = json.loads(said[-1])
    assert (run["state"], run["results"]["step"]) == ("succeeded", 50)
    assert json.loads(Path(run["folder"], "run.json").read_text())["image"]["name"] == said[1].strip()
    assert Path(run["folder"], "checkpoints", "slope.txt").is_file()
