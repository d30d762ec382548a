"""The door with hand-made parts: no Ansible, no ssh; what is done to which hosts, in which order, and where it ends."""

from __future__ import annotations

import fcntl
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from podwright.bringup import Bringup, BringupParts, BringupProgress, UpResult
from podwright.bringup.apply.faults import Fault
from podwright.bringup.apply.observe import Answer, Question
from podwright.bringup.apply.playbook import ApplyProgress, HostCount, PlaybookRun
from podwright.bringup.apply.vault import Secrets
from podwright.bringup.plan.host import HostPlan
from podwright.bringup.plan.site import Site
from podwright.clients.ssh import Answer as SshAnswer
from podwright.spec import Pod, Refusal, load_pod
from podwright.spec.problems import refuse
from tests.fixtures.drifts import as_planned
from tests.paths import CASES

POD = CASES / "bringup" / "hosts" / "small" / "pod.yaml"
MANAGER, NODES = "m1", ["g1", "g2", "g3", "g4"]


@dataclass
class FakeVault:
    """Keeps secrets in memory."""

    file: Path
    key_file: Path
    rotated: list[str] = field(default_factory=list)
    secrets: Secrets = field(default_factory=Secrets)

    def read(self) -> Secrets:
        return self.secrets

    def fill(self, site: Site, rotate: Sequence[str] = (), *, also: Sequence[str] = ()) -> Secrets:
        self.rotated += rotate
        return self.secrets


@dataclass
class Bench:
    """The parts of a bring-up, which write down what happens; hosts become as planned by being applied to."""

    folder: Path
    happened: list[tuple[str, list[str]]] = field(default_factory=list)
    applied: set[str] = field(default_factory=set)
    failing: set[str] = field(default_factory=set)
    """Hosts whose playbook fails."""
    drifting: set[str] = field(default_factory=set)
    """Hosts that are not as planned even when their playbook did not fail."""
    releases: dict[str, str] = field(default_factory=dict)
    """Packages that hosts have in another version than they should."""
    drained: dict[str, str] = field(default_factory=dict)
    """Nodes that somebody drained, with the reason."""
    saved: dict[str, bytes] = field(default_factory=dict)
    lines: list[tuple[str, str]] = field(default_factory=list)
    says: str = ""
    """What a line of shell prints."""
    runs: list[PlaybookRun] = field(default_factory=list)
    progress: list[BringupProgress] = field(default_factory=list)
    vault: FakeVault = field(init=False)

    def __post_init__(self) -> None:
        self.vault = FakeVault(self.folder / "vault.yml", self.folder / "key")

    def play(self, run: PlaybookRun, on_progress: Callable[[ApplyProgress], None]) -> ApplyProgress:
        self.happened.append(("apply", list(run.hosts)))
        self.runs.append(run)
        with (self.folder / "lock").open() as lock, pytest.raises(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        progress = ApplyProgress({host: HostCount(changed=1) for host in run.hosts})
        progress.faults += [Fault(host, "slurm", "files", "refused") for host in run.hosts if host in self.failing]
        on_progress(progress)
        self.applied |= set(run.hosts)
        return progress

    def observe(
        self, pod: Pod, plans: Mapping[str, HostPlan], on_answer: Callable[[str], None], asked: Question
    ) -> dict[str, Answer]:
        self.happened.append(("observe", list(plans)))
        answers: dict[str, Answer] = {}
        for name, plan in plans.items():
            is_right = name in self.applied and name not in self.drifting
            answers[name] = as_planned(plan) if is_right else refuse(f"{name} is away")
            if is_right and self.releases:
                answers[name] = {**as_planned(plan), "packages": {**as_planned(plan)["packages"], **self.releases}}
            on_answer(name)
        return answers

    def shell(self, site: Site, host: str, line: str) -> SshAnswer:
        self.lines.append((host, line))
        return SshAnswer(0, self.says.encode(), "")

    def drain(self, hosts: Sequence[str]) -> None:
        self.happened.append(("drain", list(hosts)))

    def resume(self, hosts: Sequence[str]) -> dict[str, str]:
        self.happened.append(("resume", list(hosts)))
        return {}

    def closed(self, hosts: Sequence[str]) -> dict[str, str]:
        return {host: self.drained[host] for host in hosts if host in self.drained}

    def access(self, name: str) -> Pod | None:
        return None

    def save(self, name: str, source: bytes) -> None:
        self.saved[name] = source

    def bringup(self, pod: Pod) -> Bringup:
        parts = BringupParts(self.vault, self, self, self.play, lambda asked: self)
        return Bringup(pod, parts, self.progress.append)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path / "bringup")


@pytest.fixture
def pod(tmp_path: Path) -> Pod:
    """The small pod, with four nodes instead of two."""
    text = POD.read_text().replace("g[1-2]", "g[1-4]")
    path = tmp_path / "pod.yaml"
    path.write_text(text.replace("10.0.1.2]", "10.0.1.2, 10.0.1.3, 10.0.1.4]"))
    return load_pod(path)


def test_a_roll_drains_applies_validates_and_resumes_each_batch(bench: Bench, pod: Pod) -> None:
    """What runs no jobs comes first; nodes are then asked what differs, and only those are drained."""
    result = bench.bringup(pod).roll(2)
    batches = []
    for batch in (NODES[:2], NODES[2:]):
        batches += [("drain", batch), ("apply", batch), ("observe", batch), ("resume", batch)]
    assert bench.happened == [("apply", [MANAGER]), ("observe", NODES), *batches]
    assert result.as_json()["hosts"].keys() == {MANAGER, *NODES}
    assert [each.kind for each in bench.progress if each.kind in ("up", "drain", "resumed")] == [
        "up",
        *(["drain", "up", "resumed"] * 2),
    ]


def ends_after_the_second_node(bench: Bench, result: UpResult) -> None:
    """The first node went through, the second stays drained, the others were not touched."""
    assert [step for step in bench.happened if step[0] in ("drain", "apply", "resume")] == [
        ("apply", [MANAGER]),
        ("drain", ["g1"]),
        ("apply", ["g1"]),
        ("resume", ["g1"]),
        ("drain", ["g2"]),
        ("apply", ["g2"]),
    ]
    assert [fault.host for fault in result.faults] == ["g2"]
    assert list(result.as_json()["hosts"]) == [MANAGER, "g1", "g2"]
    assert bench.saved == {}


def test_a_roll_stops_at_a_fault_and_leaves_the_other_nodes_alone(bench: Bench, pod: Pod) -> None:
    bench.failing = {"g2"}
    ends_after_the_second_node(bench, bench.bringup(pod).roll(1))


def test_a_node_that_is_not_as_planned_afterwards_stays_drained_and_ends_a_roll(bench: Bench, pod: Pod) -> None:
    bench.drifting = {"g2"}
    result = bench.bringup(pod).roll(1)
    ends_after_the_second_node(bench, result)
    assert (result.faults[0].stage, result.faults[0].reason) == ("validate", "g2 is away")
    assert [each.applied.faults for each in bench.progress if each.kind == "invalid" and each.applied] == [
        result.faults
    ]


def test_a_roll_goes_to_no_node_when_what_runs_no_jobs_failed(bench: Bench, pod: Pod) -> None:
    bench.failing = {MANAGER}
    result = bench.bringup(pod).roll(1)
    assert bench.happened == [("apply", [MANAGER])]
    assert [fault.host for fault in result.faults] == [MANAGER]


def test_a_node_that_is_as_planned_is_not_drained(bench: Bench, pod: Pod) -> None:
    bench.applied = {"g1", "g2", "g4"}
    bench.bringup(pod).roll(2, limit="g[1-4]")
    drained = [step for step in bench.happened if step[0] in ("drain", "apply")]
    assert drained == [("drain", ["g3"]), ("apply", ["g3"])], "no hosts at all would be all of them to Ansible"


def test_up_plays_under_the_lock_and_makes_the_pod_known(bench: Bench, pod: Pod) -> None:
    result = bench.bringup(pod).up()
    assert (result.is_known, result.faults) == (True, [])
    assert list(bench.saved) == [pod.name]
    (run,) = bench.runs
    assert (run.hosts, run.playbook) == ([MANAGER, *NODES], "site.yml")
    assert (run.folder / "project" / "site.yml").exists()
    assert [each.kind for each in bench.progress] == ["up", "applying", "applied"]


def test_no_line_of_a_secret_is_written_into_the_project(bench: Bench, pod: Pod, tmp_path: Path) -> None:
    """A key has several lines, and stands in JSON or YAML in another form than in a file of its own."""
    lines = [f"{index:02d}keylinethatnobodymaysee{index:02d}" for index in range(3)]
    values = {name: "\n".join(lines) for name in ("registry_key", "munge_key", "registry_password")}
    bench.vault.secrets = Secrets(values, dict.fromkeys(values, 1))
    bench.bringup(pod).up()
    bench.bringup(pod).write_project(tmp_path / "out")
    for project in (bench.folder / "runner" / "project", tmp_path / "out"):
        texts = [path.read_text() for path in project.rglob("*") if path.is_file()]
        assert len(texts) > 5
        assert [text for text in texts if any(line in text for line in lines)] == []


def test_a_part_or_a_failure_makes_nothing_known(bench: Bench, pod: Pod) -> None:
    assert not bench.bringup(pod).up(only="base").is_known
    bench.failing = {"g1"}
    result = bench.bringup(pod).up()
    assert (result.is_known, len(result.faults), bench.saved) == (False, 1, {})


def test_one_host_is_replaced_and_no_other_touched(bench: Bench, pod: Pod) -> None:
    bench.bringup(pod).replace("g3")
    assert bench.happened == [("apply", ["g3"])]


def test_a_host_that_is_replaced_stays_drained_by_whoever_did_that_and_it_is_told(bench: Bench, pod: Pod) -> None:
    bench.drained = {"g3": "bad DIMM"}
    bench.bringup(pod).replace("g3")
    (told,) = [each for each in bench.progress if each.kind == "stays"]
    assert (told.text, list(told.hosts)) == ("g3: brought up, and takes no jobs: bad DIMM", ["g3"])
    assert bench.happened == [("apply", ["g3"])]


def test_secrets_are_made_again_before_hosts_get_them(bench: Bench, pod: Pod) -> None:
    bringup = bench.bringup(pod)
    assert "munge_key" in bringup.secrets()
    bringup.rotate(["munge_key"])
    assert bench.vault.rotated == ["munge_key"]
    assert bench.happened == [("apply", [MANAGER, *NODES])]


def test_the_registrys_password_is_told_and_no_other_secret(bench: Bench, pod: Pod) -> None:
    with pytest.raises(Refusal, match="has no registry_password yet"):
        bench.bringup(pod).secret("registry_password")
    bench.vault.secrets = Secrets({"registry_password": "word", "munge_key": "other"})
    assert bench.bringup(pod).secret("registry_password") == "word"
    with pytest.raises(Refusal, match='"munge_key" is not shown to anybody'):
        bench.bringup(pod).secret("munge_key")


def test_down_plays_its_own_playbook(bench: Bench, pod: Pod) -> None:
    result = bench.bringup(pod).down()
    assert [run.playbook for run in bench.runs] == ["down.yml"]
    assert result.as_json() == {"hosts": {host: vars(HostCount(changed=1)) for host in (MANAGER, *NODES)}}


def test_status_and_plan_change_nothing(bench: Bench, pod: Pod) -> None:
    bench.applied = {MANAGER, "g1"}
    bringup = bench.bringup(pod)
    status = bringup.status(limit="g[1-2]")
    assert {name: host.state for name, host in status.hosts.items()} == {"g1": "ok", "g2": "unreachable"}
    away = status.as_json()["hosts"]["g2"]
    assert (away["state"], away["drift"], away["foreign"], away["reason"]) == ("unreachable", [], [], "g2 is away")
    plan = bringup.plan(limit="g[1-2]")
    assert (plan.is_complete, plan.as_json()["changes"]) == (False, 0)
    assert bringup.plan(offline=True).is_complete
    assert [step for step, _ in bench.happened] == ["observe", "observe"]
    assert not bench.folder.exists()


def test_nodes_are_asked_at_the_netboot_server(bench: Bench, pod: Pod) -> None:
    bench.says = "---\n---\n"
    states = bench.bringup(pod).nodes().as_json()["hosts"]
    assert list(states) == [MANAGER, *NODES]
    assert [host for host, _ in bench.lines] == [MANAGER]


def test_what_is_not_there_is_refused(bench: Bench, pod: Pod) -> None:
    bringup = bench.bringup(pod)
    with pytest.raises(Refusal, match="not in the pod"):
        bringup.up(limit="g9")
    with pytest.raises(Refusal, match="is not a stage"):
        bringup.roll(1, only="slrum")
    assert bench.happened == []


def test_a_whole_pod_is_asked_there_too(bench: Bench, tmp_path: Path) -> None:
    watched = load_pod(CASES / "watch" / "pod.yaml")
    bench.says = (
        '{"data": {"result": [{"metric": {"__name__": "up", "job": "node", "host": "n1"}, "value": [1, "1"]}]}}'
    )
    frame = bench.bringup(watched).frame()
    assert ([node.host for node in frame.nodes], frame.nodes[0].up) == (["n1"], True)
    assert [host for host, _ in bench.lines] == ["c1"]
    (tmp_path / "pod.yaml").write_text("name: a\nnodes: [{hosts: n1, model: dgx-a100, addresses: [10.0.0.1]}]\n")
    with pytest.raises(Refusal, match="nothing watches the pod a"):
        bench.bringup(load_pod(tmp_path / "pod.yaml")).frame()


def test_alerts_are_asked_on_the_host_that_watches(bench: Bench, tmp_path: Path) -> None:
    watched = load_pod(CASES / "watch" / "pod.yaml")
    bench.says = '{"data": {"alerts": []}}'
    assert bench.bringup(watched).alerts().alerts == []
    assert [host for host, _ in bench.lines] == ["c1"]
    assert "127.0.0.1:9090" in bench.lines[0][1]
    (tmp_path / "pod.yaml").write_text("name: a\nnodes: [{hosts: n1, model: dgx-a100, addresses: [10.0.0.1]}]\n")
    with pytest.raises(Refusal, match="nothing watches the pod a"):
        bench.bringup(load_pod(tmp_path / "pod.yaml")).alerts()
