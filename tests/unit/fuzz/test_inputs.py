"""Whatever stands in a file or an answer that others wrote: it is read, or refused in words, within bounds."""

from __future__ import annotations

import hashlib
import io
import json
import random
import shutil
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from podwright import launch, spec
from podwright.analysis.reported import summed_up
from podwright.clients.redfish import Redfish
from podwright.clients.redfish_channel import RedfishAnswer
from podwright.engines.kubernetes.states import seen
from podwright.engines.slurm.queue import parse_queue
from podwright.launch.exchange.bundle import LIST
from podwright.launch.shared_runs import listed, open_shared
from podwright.launch.sharing import publish
from podwright.mlperf.log import entries_of, score_run
from podwright.prove.suite_file import parse_suite
from podwright.reading.event_folder import values_of_event_files
from podwright.reading.run_data import gather
from podwright.runs import Home
from podwright.spec.filters import parse_filter
from podwright.spec.loader import workload_of
from podwright.spec.problems import Refusal
from tests.fixtures import tensorboard
from tests.fixtures.bad_runs import add_run
from tests.fixtures.damage import bounded, twist
from tests.paths import CASES, ROOT
from tests.unit.launch.test_fuzz import CHANGES, damage, seeds

IN_CI, BY_NIGHT = 28, 3200
"""How often each kind is damaged."""
Damage = Callable[[random.Random, Path], None]


@cache
def tree_of(name: str) -> Any:
    return yaml.safe_load((ROOT / "examples" / name).read_text())


def hostile(name: str, chance: random.Random) -> str:
    """Return an example that is valid YAML still, with values that nobody expects."""
    return yaml.safe_dump(twist(tree_of(name), chance), allow_unicode=True)


def changed(data: bytes, chance: random.Random) -> bytes:
    for _ in range(chance.randrange(1, 4)):
        data = chance.choice(CHANGES)(data, chance)
    return data


def workloads(chance: random.Random, folder: Path) -> None:
    """Planned and rendered where it is not refused."""
    name = chance.choice(["segmentation.yaml", "sweep.yaml", "allreduce.yaml", "vectoradd.yaml"])
    tree = {**twist({**tree_of(name), "code": None, "data": None}, chance)}
    workload = workload_of({key: value for key, value in tree.items() if value is not None}, folder)
    on = chance.choice(["local", str(folder / "both.yaml:slurm"), str(folder / "both.yaml:kubernetes")])
    launch.render(workload, on)


def pods(chance: random.Random, folder: Path) -> None:
    path = folder / "pod.yaml"
    path.write_text(hostile(chance.choice(["superpod-20.yaml", "lab-pod.yaml"]), chance), errors="surrogatepass")
    pod = spec.load_pod(path)
    for scheduler in pod.schedulers:
        assert pod.scheduler_hosts(scheduler) is not None


def broken_yaml(chance: random.Random, folder: Path) -> None:
    path = folder / "workload.yaml"
    path.write_bytes(changed((ROOT / "examples" / "sweep.yaml").read_bytes(), chance))
    spec.load_workload(path)


def suites(chance: random.Random, folder: Path) -> None:
    parse_suite(hostile("suite.yaml", chance), "suite.yaml")


def mllogs(chance: random.Random, folder: Path) -> None:
    data = changed((CASES / "mlperf" / chance.choice(["bert.txt", "resnet.txt"])).read_bytes(), chance)
    score_run(entries_of(data.decode("utf-8", "replace").splitlines()))


def event_files(chance: random.Random, folder: Path) -> None:
    data = b"".join(tensorboard.record(tensorboard.simple(1.0 + n, n, "loss", 0.5)) for n in range(20))
    path = folder / "results" / "events.out.tfevents.1.x"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(changed(data, chance))
    unread: list[str] = []
    summed_up(values_of_event_files(folder, unread))
    assert all(unread)


class _Answers:
    """A controller that answers anything."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance

    def ask(self, *_: object) -> RedfishAnswer:
        members = {"Members": [{"@odata.id": "/redfish/v1/Systems/1"}]}
        name = {"Name": "n1", "@odata.id": "/redfish/v1/Systems/1", "RelatedItem": [{"@odata.id": "/redfish/v1/x"}]}
        tree = {**members, **name, "Actions": {"#ComputerSystem.Reset": {"target": "/x"}}}
        return RedfishAnswer(200, {}, json.loads(json.dumps(twist(tree, self._chance))))


def redfish(chance: random.Random, folder: Path) -> None:
    client = Redfish("https://bmc.example", "root:x")
    vars(client)["_channel"] = _Answers(chance)
    system = client.system("n1")
    client.reset(system, "on")
    client.boot_next(system, "Pxe")
    client.firmware(system)


JOB = {
    "metadata": {"name": "toy-2222", "annotations": {}},
    "spec": {"completions": 2, "parallelism": 2, "suspend": False},
    "status": {
        "conditions": [{"type": "Failed", "status": "False", "reason": "x", "message": "y"}],
        "active": 1,
        "completedIndexes": "0",
    },
}
POD = {
    "metadata": {"name": "toy-2222-0-x", "labels": {"batch.kubernetes.io/job-completion-index": "0"}},
    "spec": {"nodeName": "n1"},
    "status": {
        "phase": "Pending",
        "conditions": [{"type": "PodScheduled", "status": "False", "message": "0/3 nodes: 3 Insufficient cpu."}],
        "containerStatuses": [
            {"name": "pilot", "state": {"waiting": {"reason": "ErrImagePull", "message": "no"}}},
            {"name": "ranks", "state": {"terminated": {"exitCode": 1, "message": "x"}}},
        ],
    },
}
EVENT = {"type": "Warning", "reason": "FailedCreate", "message": "exceeded quota: x", "involvedObject": {"name": "toy"}}


def kubernetes_objects(chance: random.Random, folder: Path) -> None:
    which = chance.randrange(3)
    job, pod, event = (twist(row, chance) if which == place else row for place, row in enumerate((JOB, POD, EVENT)))
    assert seen(job, [pod, POD], [event]).state


def queues(chance: random.Random, folder: Path) -> None:
    text = "7_1|RUNNING|None|toy|2026-01-01T00:00:00|n1\n8|PENDING|Priority|toy2|N/A|\n" * 3
    parse_queue(changed(text.encode(), chance).decode("utf-8", "replace"))


def filters(chance: random.Random, folder: Path) -> None:
    text = b'camera=front_center and (Pedestrian>0 or not "RD normal street">=1.5) and size>=1MB and path~x'
    parse_filter(changed(text, chance).decode("utf-8", "replace"))


def shared_runs(chance: random.Random, folder: Path) -> None:
    """A colleague's folder that may hold anything: it is listed, opened and shown by its copy."""
    home = Home(folder / "home")
    place = folder / "shared" / "me" / "all" / "good-2222"
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(folder / "kept", place)
    for _ in range(chance.randrange(1, 4)):
        damage(place, chance)
    assert len(list(listed(home, "me"))) in (0, 1)
    run = open_shared(home, "me/good-2222")
    launch.overview_of(run).as_json()
    list(run.folder.log_lines())
    gather(run.folder.path)


def exported_runs(chance: random.Random, folder: Path) -> None:
    """An archive of others: taken up whole, or refused with nothing left; what was taken up is shown."""
    home = Home.open(folder / "importing")
    shutil.rmtree(home.runs)
    home.runs.mkdir()
    path = folder / "hostile.zip"
    path.write_bytes(_hostile_archive((folder / "run.zip").read_bytes(), chance))
    with launch.Session(home) as session:
        try:
            launch.import_runs(session, path)
        except Refusal:
            assert list(home.runs.iterdir()) == []
            raise
        run = launch.find(session, "good-2222")
        launch.overview_of(run).as_json()
        list(run.folder.log_lines())
        gather(run.folder.path)


def _hostile_archive(data: bytes, chance: random.Random) -> bytes:
    """Return an archive with damaged bytes, or with entries that were made to say something else and still agree."""
    if chance.random() < 0.4:
        return changed(data, chance)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        entries = {info.filename: archive.read(info) for info in archive.infolist()}
    listed = json.loads(entries.pop(LIST))
    name = chance.choice(list(entries))
    if name.endswith(".json"):
        entries[name] = json.dumps(twist(json.loads(entries[name]), chance)).encode()
    else:
        entries[name] = changed(entries[name], chance)
    listed["files"][name] = {"bytes": len(entries[name]), "sha256": hashlib.sha256(entries[name]).hexdigest()}
    if chance.random() < 0.3:
        listed = twist(listed, chance)
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for inner, content in {**entries, LIST: json.dumps(listed).encode()}.items():
            archive.writestr(inner, content)
    return made.getvalue()


KINDS: dict[str, Damage] = {
    made.__name__: made
    for made in (
        *(workloads, pods, broken_yaml, suites, mllogs, event_files, redfish),
        *(kubernetes_objects, queues, filters, shared_runs, exported_runs),
    )
}
BOTH = """\
name: both
nodes: [{hosts: "n[1-4]", model: dgx-a100}]
schedulers:
  - {kind: slurm, hosts: "n[1-2]", folder: /scratch/x}
  - {kind: kubernetes, hosts: "n[3-4]", image: "registry.example/x:1"}
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home that knows a pod with shared runs, whose only user is called me, and one run as it is shared."""
    monkeypatch.setenv("PODWRIGHT_HOME", str(tmp_path / "home"))
    for module in ("sharing", "shared_runs"):
        monkeypatch.setattr(f"podwright.launch.{module}.user_name", lambda uid=None: "me")
    (tmp_path / "both.yaml").write_text(BOTH)
    (tmp_path / "shared").mkdir()
    home = Home.open(tmp_path / "home")
    (home.path / "pods").mkdir()
    (home.path / "pods" / "both.yaml").write_text(BOTH + f"shared_runs: {tmp_path / 'shared'}\n")
    settings = home.path / "settings.yaml"
    settings.write_text("share: all\n")
    settings.chmod(0o600)
    folder = add_run(home, "good-2222")
    with launch.Session(home) as session:
        record = launch.find(session, "good-2222").last_known()
        publish(home, home.folder("good-2222"), record)
        launch.export_runs(session, [launch.find(session, "good-2222")], tmp_path / "run.zip")
    shutil.copytree(tmp_path / "shared" / "me" / "all" / "good-2222", tmp_path / "kept")
    assert folder.is_dir()
    return tmp_path


def fuzz(kind: str, place: Path, numbers: range) -> None:
    for name, chance in seeds(numbers):
        try:
            with bounded():
                KINDS[kind](chance, place)
        except BaseException as error:
            error.add_note(f"{kind} {name}")
            raise


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_read_or_refused_in_words(kind: str, place: Path) -> None:
    fuzz(kind, place, range(IN_CI))


@pytest.mark.nightly
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("kind", KINDS)
def test_by_night_it_is_read_or_refused_in_words(kind: str, place: Path) -> None:
    fuzz(kind, place, range(BY_NIGHT))
