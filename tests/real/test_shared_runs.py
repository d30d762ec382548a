"""Real users of one machine: neither sees, changes nor stops what is the other's; what is shared is only looked at."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from podwright.files.people import let_read
from tests.fixtures.people import Person, people

pytestmark = [pytest.mark.netns, pytest.mark.slow]
HIDDEN, SECRET = "value-of-an-environment-9c1", "secret-that-is-named-4d2"
PROGRAM = """
echo a line of the log
echo '{"podwright": {"step": 1, "loss": 0.25}}'
"""
NEVER = {"job", "token", "settings.yaml", "notify.log", "client.jsonl"}


@dataclass(frozen=True)
class Office:
    """Three people and a pod that two of them are a team of."""

    alice: Person
    bob: Person
    carol: Person
    shared: Path

    def joins(self, person: Person) -> None:
        """Have a person know the pod."""
        pod = person.write(
            "pod.yaml",
            f"name: adas\nnodes: [{{hosts: n1, model: cpu-server}}]\nshared_runs: {self.shared}\n"
            f"teams: [{{name: research, members: [{self.alice.name}, {self.bob.name}]}}]\n",
        )
        assert person.podwright("pod", "add", str(pod)).returncode == 0

    def share(self, person: Person, share: str) -> None:
        """Have a person share so much from now on."""
        person.write("podwright/settings.yaml", f"share: {share}\nwebhook: https://127.0.0.1:9/{SECRET}\n")

    def run_of(self, person: Person) -> str:
        """Have a person run a small training to its end; return its id."""
        person.write("code/train.sh", PROGRAM)
        workload = {"name": "toy", "code": "code", "command": "sh train.sh", "env": {"SETTING": HIDDEN}}
        path = person.write("toy.yaml", json.dumps(workload))
        done = person.podwright("run", str(path), "--json", "--notify", "true")
        assert done.returncode == 0, done.stderr
        return str(json.loads(done.stdout)["id"])

    def listed(self, person: Person, user: str = "all") -> list[str]:
        """Return the ids that a person's `ps --user` lists."""
        done = person.podwright("ps", "--user", user, "--json")
        assert done.returncode == 0, done.stderr
        return [row["id"] for row in json.loads(done.stdout)]


@pytest.fixture(scope="module")
def office() -> Iterator[Office]:
    shared = Path(tempfile.mkdtemp(prefix="podwright-shared-runs-"))
    shared.chmod(0o1777)
    try:
        with people(["a", "b", "c"]) as (alice, bob, carol):
            made = Office(alice, bob, carol, shared)
            for person in (alice, bob, carol):
                made.joins(person)
            yield made
    finally:
        shutil.rmtree(shared)


def test_nothing_is_shared_that_nobody_shares(office: Office) -> None:
    run_id = office.run_of(office.alice)
    assert list(office.shared.iterdir()) == []
    for words in (("show", run_id), ("logs", run_id), ("cancel", run_id), ("rm", "--yes", run_id)):
        done = office.bob.podwright(*words)
        assert (done.returncode, f"there is no run '{run_id}'" in done.stderr) == (2, True), done.stderr
    assert office.bob.do("ls", office.alice.home).returncode == 2
    assert office.listed(office.alice, office.alice.name) == [run_id]


def test_a_run_at_work_is_not_seen_nor_stopped_by_another_user(office: Office) -> None:
    sleeper = office.alice.write("sleep.yaml", '{"name": "long", "command": ["sleep", "1000"]}')
    started = office.alice.podwright("run", str(sleeper), "--detach")
    run_id = started.stdout.strip()
    try:
        assert office.bob.podwright("cancel", run_id).returncode == 2
        assert office.listed(office.bob) == []
        mine = subprocess.run(["pgrep", "-u", office.alice.name], capture_output=True, text=True, check=True)
        for pid in mine.stdout.split():
            assert office.bob.do("cat", f"/proc/{pid}/environ").returncode != 0
            assert "not permitted" in office.bob.do("sh", "-c", f"kill {pid}").stderr.lower()
        state = json.loads(office.alice.podwright("show", run_id, "--json").stdout)["state"]
        assert state in ("pending", "starting", "running")
    finally:
        assert office.alice.podwright("cancel", run_id).returncode == 0
        assert office.alice.podwright("wait", run_id).returncode == 4


def test_a_run_shared_with_a_team_is_looked_at_by_the_team_alone(office: Office) -> None:
    office.share(office.alice, "team")
    run_id = office.run_of(office.alice)
    ref = f"{office.alice.name}/{run_id}"
    assert office.listed(office.bob) == [ref]
    assert office.listed(office.carol) == []
    shown = json.loads(office.bob.podwright("show", ref, "--json").stdout)
    assert (shown["id"], shown["user"], shown["state"], shown["results"]["loss"]) == (
        ref,
        office.alice.name,
        "succeeded",
        0.25,
    )
    assert "a line of the log" in office.bob.podwright("logs", ref).stdout
    report = office.bob.podwright("report", ref, "--out", "alices.html")
    assert report.returncode == 0, report.stderr
    page = (office.bob.folder / "alices.html").read_text()
    assert "loss" in page
    assert HIDDEN not in page
    assert office.carol.podwright("show", ref).returncode == 2


def test_a_shared_run_cannot_be_changed_and_goes_with_the_run(office: Office) -> None:
    office.share(office.alice, "all")
    run_id = office.run_of(office.alice)
    ref, folder = f"{office.alice.name}/{run_id}", office.shared / office.alice.name / "all" / run_id
    assert office.listed(office.carol) == [ref], "what a team sees is not hers"
    for words in (("cancel", ref), ("rm", "--yes", ref), ("pull", ref), ("run", "--like", ref), ("wait", ref)):
        done = office.carol.podwright(*words)
        assert (done.returncode, "is no run of yours" in done.stderr) == (2, True), (words, done.stderr)
    for command in (f"echo x > {folder}/record.json", f"touch {folder}/x", f"rm -r {folder}", f"mv {folder} {folder}2"):
        assert office.carol.do("sh", "-c", command).returncode != 0
    published = [path for path in folder.rglob("*") if path.is_file()]
    assert {path.stat().st_mode & 0o777 for path in published} == {0o644}
    assert {path.name for path in published} >= {"record.json", "series.parquet", "merged.log", "report.html"}
    content = b"".join(path.read_bytes() for path in published)
    token = (office.alice.home / "runs" / run_id / "token").read_bytes().strip()
    for hidden in (HIDDEN.encode(), SECRET.encode(), token):
        assert hidden not in content
    assert not NEVER & {path.name for path in folder.rglob("*")}
    assert office.alice.home.stat().st_mode & 0o777 == 0o700
    assert office.alice.podwright("rm", "--yes", run_id).returncode == 0
    assert office.listed(office.carol) == []


def test_whoever_takes_anothers_place_is_not_believed_and_the_owner_is_told(office: Office) -> None:
    office.share(office.carol, "all")
    place = office.shared / office.carol.name
    assert office.bob.do("mkdir", "-p", place / "all" / "fake-2222").returncode == 0
    run_id = office.run_of(office.carol)
    said = office.carol.home / "runs" / run_id / "client.jsonl"
    assert f"it is not shared: {place} is not a folder of yours" in said.read_text()
    assert office.listed(office.alice, office.carol.name) == []
    office.shared.chmod(0o777)
    run_id = office.run_of(office.carol)
    said = office.carol.home / "runs" / run_id / "client.jsonl"
    assert "could be changed by others" in said.read_text()


def test_without_lists_of_access_a_group_is_used_or_it_is_refused_in_words(office: Office, tmp_path: Path) -> None:
    alice, bob = office.alice, office.bob
    plain = tmp_path / "plain"
    plain.mkdir()
    subprocess.run(["mount", "-t", "ramfs", "ramfs", plain], check=True)
    try:
        refusals = {"nosuchgroup": "there is no group nosuchgroup", bob.name: f"has others in it: {bob.name}"}
        for group, why in refusals.items():
            with pytest.raises(OSError, match=f"takes no list of access, and .*{why}"):
                let_read(plain, [alice.name], group)
        let_read(plain, [alice.name], alice.name)
        status = plain.stat()
        assert (status.st_gid, status.st_mode & 0o777) == (alice.uid, 0o750)
    finally:
        subprocess.run(["umount", plain], check=True)
