"""Who a job is of: Slurm's record, the Kubernetes pods of a node, and how the API is asked for them."""

from __future__ import annotations

import base64
import http.server
import json
import ssl
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from podwright.pilot.sensors.proc import Scope
from podwright.telemetry.exporter import pods
from podwright.telemetry.exporter.jobs import JobRecord, Owner, Owners, Processes, Slurm, parse_job
from podwright.telemetry.server import Guard

JOB = "JobId=17 JobName=mine-7f3k UserId=ann(1000) GroupId=ann(1000) JobState=RUNNING Comment=podwright "
POINT = "JobId=19 ArrayJobId=18 ArrayTaskId=2 JobName=sweep-9k2p UserId=bob(1001) Comment=podwright"
UID = "0a1b2c3d-0000-1111-2222-333344445555"
LIST = {
    "items": [
        {
            "metadata": {
                "uid": UID,
                "namespace": "vision",
                "name": "mine-7f3k-0-x",
                "labels": {"podwright.dev/run": "mine-7f3k"},
            }
        },
        {"metadata": {"uid": "other", "namespace": "web", "name": "shop"}},
    ]
}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (JOB, JobRecord("ann", "17", "mine-7f3k")),
        (POINT, JobRecord("bob", "18_2", "sweep-9k2p")),
        # A job of somebody else's making is not a run, whatever it is called.
        (JOB.replace("Comment=podwright", "Comment=(null)"), JobRecord("ann", "17", "")),
        (JOB.replace("mine-7f3k", 'a"b'), JobRecord("ann", "17", "")),
        # What a name says of itself behind a blank is not a field: the first one counts.
        ("JobId=1 JobName=x UserId=ann(1) Comment=podwright UserId=root(0) JobName=y", JobRecord("ann", "1", "x")),
        ("slurm_load_jobs error: Invalid job id specified", None),
    ],
)
def test_slurms_record_says_whose_a_job_is(line: str, expected: JobRecord | None) -> None:
    assert parse_job(line) == expected


def test_slurm_is_asked_once_for_a_job_and_a_job_it_cannot_say_is_nobodys() -> None:
    asked: list[str] = []

    def answers(command: list[str]) -> str:
        asked.append(command[-1])
        if command[-1] == "18":
            raise OSError("no scontrol here")
        return JOB

    slurm = Slurm(answers)
    assert (slurm("17"), slurm("17"), slurm("18")) == (JobRecord("ann", "17", "mine-7f3k"),) * 2 + (None,)
    assert asked == ["17", "18"]


def test_a_process_of_a_job_that_nobody_can_say_is_not_believed(tmp_path: Path) -> None:
    folder = tmp_path / "proc" / "7"
    folder.mkdir(parents=True)
    (folder / "cgroup").write_text(f"0::/kubepods.slice/kubepods-pod{UID.replace('-', '_')}.slice/cri-1.scope\n")
    (folder / "environ").write_text("PODWRIGHT_RUN=theirs-1234\0RANK=2\0")
    processes = Processes(Scope(root=str(tmp_path), environ={}))
    unknown = Owners(processes, {}.get, {}.get)
    unknown.look([7])
    assert unknown.of([7]) == []
    known = Owners(processes, {}.get, pods.KubernetesPods(lambda: json.dumps(LIST)))
    known.look([7])
    assert known.of([7]) == [Owner("mine-7f3k", "vision", "vision/mine-7f3k-0-x", "2")]


def test_a_run_that_a_process_outside_any_job_names_is_its_own_users(tmp_path: Path) -> None:
    """Whoever gives a process another's run holds a GPU under that name, and under no other user than himself."""
    folder = tmp_path / "proc" / "7"
    folder.mkdir(parents=True)
    (folder / "environ").write_text("PODWRIGHT_RUN=theirs-1234\0RANK=2\0USER=ann\0")
    (folder / "status").write_text("Name:\tpython\nUid:\t54321\t54321\t54321\t54321\n")
    owners = Owners(Processes(Scope(root=str(tmp_path), environ={})), {}.get, {}.get)
    owners.look([7])
    assert owners.of([7]) == [Owner("theirs-1234", "54321", "", "2")]
    assert owners.users_of("theirs-1234") == ["54321"]


@pytest.fixture
def api(guard: Guard) -> Iterator[tuple[str, list[tuple[str, str, bool]]]]:
    """An API that notes what it was asked for, by whom, and whether a certificate was shown."""
    asked: list[tuple[str, str, bool]] = []

    class Answers(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            shown = bool(self.connection.getpeercert())  # type: ignore[attr-defined]
            asked.append((self.path, self.headers.get("Authorization", ""), shown))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps(LIST).encode())

        def log_message(self, format: str, *arguments: object) -> None:
            pass

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(guard.certificate, guard.key)
    context.load_verify_locations(guard.certificate)
    context.verify_mode = ssl.CERT_OPTIONAL
    with http.server.HTTPServer(("127.0.0.1", 0), Answers) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield f"https://127.0.0.1:{server.server_address[1]}", asked
        server.shutdown()


def test_on_a_node_the_api_is_asked_as_its_kubelet(
    api: tuple[str, list[tuple[str, str, bool]]], guard: Guard, tmp_path: Path
) -> None:
    place, asked = api
    authority = base64.b64encode(Path(guard.certificate).read_bytes()).decode()
    text = (
        f"clusters:\n- cluster:\n    certificate-authority-data: {authority}\n    server: {place}\n"
        f"users:\n- user:\n    client-certificate: {guard.certificate}\n    client-key: {guard.key}\n"
    )
    (tmp_path / "etc/kubernetes").mkdir(parents=True)
    (tmp_path / "etc/kubernetes/kubelet.conf").write_text(text)
    scope = Scope(root=str(tmp_path), environ={})
    assert pods.parse_pods(pods.pods_of_node(scope))[UID].run == "mine-7f3k"
    name = subprocess.run(["hostname"], capture_output=True, text=True, check=True).stdout.strip().lower()
    assert asked == [(f"/api/v1/pods?fieldSelector=spec.nodeName={name}", "", True)]


def test_in_a_container_the_api_is_asked_by_its_account(
    api: tuple[str, list[tuple[str, str, bool]]], guard: Guard
) -> None:
    place, asked = api
    access = pods.ApiAccess(place, "n1", Path(guard.certificate).read_text(), token="t")
    assert set(pods.parse_pods(access.fetch())) == {UID, "other"}
    assert asked == [("/api/v1/pods?fieldSelector=spec.nodeName=n1", "Bearer t", False)]


def test_a_host_of_no_cluster_is_said_to_be_one(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="this host is in no cluster of Kubernetes"):
        pods.pods_of_node(Scope(root=str(tmp_path), environ={}))
