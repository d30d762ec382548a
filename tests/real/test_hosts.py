"""Bare hosts become a pod, and stay one: what `podwright pod` does to real systems with systemd, sshd and apt.

One lab for all: the tests build on each other in the order in which they stand here.
"""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from podwright.bringup.apply.vault import vault_of
from podwright.bringup.on_host import inspect_host as look_program
from podwright.bringup.plan.hosts import plan
from podwright.bringup.plan.site import site_of
from podwright.bringup.plan.stages.slurm import slurm_site
from podwright.design.topology import topology_conf, topology_of
from podwright.lab import cgroups, processes
from podwright.lab.hosts import lab as hosts
from podwright.spec import load_pod
from tests.paths import ROOT
from tests.real.clients import BIN, Client, until
from tests.real.hosts_bench import (
    EXAMPLE,
    ON_HOSTS,
    Bench,
    changed,
    is_installing,
    killed_up,
    secret_lines,
    watched_arguments,
    where_secrets_are_seen,
)
from tests.real.labs import aloud, hosts_lab

pytestmark = ON_HOSTS
ASK_A_PAGE = """
import ssl, sys, urllib.error, urllib.request
shown = {"Authorization": "Bearer " + open(sys.argv[2]).read().strip()} if sys.argv[2:] else {}
asked = urllib.request.Request("https://%s/metrics" % sys.argv[1], headers=shown)
try:
    print(urllib.request.urlopen(asked, context=ssl._create_unverified_context()).status)
except urllib.error.HTTPError as error:
    print(error.code)
"""
SHORT = "--epochs 1 --size 48x32 --width 4 --batch 2 --tell-every-s 0"


@pytest.fixture(scope="module")
def bench(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    with hosts_lab(say=aloud(pytestconfig), nodes=4) as lab:
        folder = tmp_path_factory.mktemp("hosts")
        bench = Bench(lab, Client(folder, lab.pod_file), folder)
        with watched_arguments(bench.arguments):
            bench.first = bench.up()
        yield bench


def test_every_stage_is_done_on_every_host(bench: Bench) -> None:
    names = [(stage["name"], stage["state"]) for stage in bench.first["stages"]]
    assert names == [(name, "done") for name in ("base", "mirror", "storage", "registry", "slurm", "monitoring")]
    assert all(counts["changed"] and not counts["failed"] for counts in bench.first["hosts"].values())
    assert bench.on("n2", "dpkg --audit") == ""


def test_a_second_time_nothing_changes_and_no_host_differs(bench: Bench) -> None:
    assert changed(bench.up()) == dict.fromkeys(["n1", "n2", "n3", "n4"], 0)
    assert {host: (entry["state"], entry["drift"]) for host, entry in bench.status().items()} == dict.fromkeys(
        ["n1", "n2", "n3", "n4"], ("ok", [])
    )
    assert bench.pod("plan")["changes"] == 0


def test_slurms_topology_and_gpus_are_the_designs(bench: Bench) -> None:
    pod = load_pod(bench.home / "pods" / "lab-hosts.yaml")
    units = topology_of(pod).part(["n2", "n3", "n4"])
    assert bench.on("n1", "cat /etc/slurm/topology.conf") == topology_conf(units)
    assert "SwitchName=su1 Level=0 LinkSpeed=1 Nodes=n[2-3]" in bench.on("n1", "scontrol show topology")
    assert bench.on("n1", "sinfo -h -N -o '%N %G'").split("\n")[:3] == [f"n{i} gpu:a100:2" for i in (2, 3, 4)]
    assert slurm_site(site_of(pod)).version == (22, 5)


def test_a_run_on_three_nodes_succeeds_and_is_accounted(bench: Bench) -> None:
    example = bench.folder / "examples" / "segmentation.yaml"
    example.parent.mkdir()
    shutil.copytree(ROOT / "programs", bench.folder / "programs")
    shutil.copy(ROOT / "examples" / "segmentation.yaml", example)
    maker = [sys.executable, str(ROOT / "programs" / "segmentation" / "scenes.py"), str(example.parent / "a2d2-small")]
    subprocess.run([*maker, "--frames", "48", "--scenes", "3", "--size", "96x64"], check=True, capture_output=True)
    command = f"command=python programs/segmentation/train.py --data {{data.frames}} {SHORT}"
    sets = ("--set", "nodes=3", "--set", command, "--set", "goal={metric: mean_iou, at_least: 0}")
    run = bench.client.run(example, "lab-hosts", *sets)
    assert (run["state"], run["world_size"], sorted(run["hosts"])) == ("succeeded", 3, ["n2", "n3", "n4"])
    query = f"sacct --noheader --parsable2 --allocations --name={run['id']} --format=state,nnodes,user"
    user = bench.lab.user.name
    until(lambda: bench.on("n1", query) == f"COMPLETED|3|{user}\n", "the run in Slurm's accounting")


def test_prometheus_sees_every_host_and_slurm(bench: Bench) -> None:
    ask = "import urllib.request; print(urllib.request.urlopen('http://127.0.0.1:9090/api/v1/targets').read().decode())"

    def healthy() -> bool:
        targets = json.loads(bench.on("n1", f'python3 -c "{ask}"'))["data"]["activeTargets"]
        rows = {(each["labels"]["job"], each["labels"]["host"]): each["health"] for each in targets}
        nodes = {("node", f"n{i}"): "up" for i in (1, 2, 3, 4)}
        return rows == {
            **nodes,
            **{("gpu", f"n{i}"): "up" for i in (2, 3, 4)},
            ("slurm", "n1"): "up",
            ("prometheus", "n1"): "up",
        }

    until(healthy, "all targets of Prometheus up")
    # Who runs what is told to Prometheus alone.
    token = "/etc/podwright/podwright-exporter/scrape.token"
    place = bench.on("n2", "cat /etc/default/podwright-exporter").split("--listen=")[1].split()[0].strip('"')
    assert [bench.on("n2", shlex.join(["python3", "-c", ASK_A_PAGE, place, *more])) for more in ([], [token])] == [
        "401\n",
        "200\n",
    ]
    assert bench.on("n2", f"runuser -u nobody -- cat {token} 2>&1 || true").endswith("Permission denied\n")
    bench.on("n1", "promtool check config /etc/prometheus/prometheus.yml")
    bench.on("n1", "amtool check-config /etc/prometheus/alertmanager.yml")


def test_what_the_pod_does_is_measured(bench: Bench) -> None:
    rows = bench.pod("validate")["checks"]
    states = {(row["name"], row["host"]): row["state"] for row in rows}
    assert states["a job on all nodes", "n1"] == "passed"
    assert [states["GPUs", host] for host in ("n2", "n3", "n4")] == ["passed"] * 3
    assert states["shared is written, MB/s", "n4"] == "measured"
    assert states["GPUs of the driver", "n2"] == "skipped"


REGISTRY = """\
import base64, ssl, sys, urllib.error, urllib.request
context = ssl.create_default_context(cafile="/etc/containers/certs.d/n1:5000/ca.crt")
for password in ("", "wrong", sys.stdin.readline().strip()):
    request = urllib.request.Request("https://n1:5000/v2/")
    if password:
        request.add_header("Authorization", "Basic " + base64.b64encode(f"podwright:{password}".encode()).decode())
    try:
        print(urllib.request.urlopen(request, context=context).status)
    except urllib.error.HTTPError as error:
        print(error.code)
try:
    urllib.request.urlopen("https://n1:5000/v2/")
except urllib.error.URLError as error:
    print(error.reason.verify_message)
"""


def test_the_registry_wants_a_login_and_is_known_by_the_pods_authority(bench: Bench) -> None:
    password = vault_of(bench.home, "lab-hosts").read().values["registry_password"]
    line = ["ssh", "-F", str(bench.lab.ssh_config), "n2", f"python3 -c '{REGISTRY}'"]
    done = subprocess.run(line, input=password + "\n", capture_output=True, text=True, check=False)
    assert done.stdout.split("\n")[:3] == ["401", "401", "200"], done.stderr
    assert "certificate" in done.stdout.split("\n")[3]


def test_no_secret_is_seen_anywhere(bench: Bench) -> None:
    """In arguments of processes while hosts were brought up, in what Ansible left, in journals, in what we print."""
    secrets = secret_lines(bench)
    assert {"munge_key", "registry_password", "ca_key", "registry_key"} <= set(secrets)
    assert all(secrets.values()), "a secret of which there is nothing to look for"
    assert any(b"ansible" in line for line in bench.arguments)
    assert where_secrets_are_seen(bench, ["n1", "n2"]) == []
    assert bench.on("n1", "stat -c %a /etc/munge/munge.key").strip() == "400"


def test_a_file_that_was_edited_by_hand_is_found_and_mended_on_that_host_alone(bench: Bench) -> None:
    bench.on("n3", "echo '# by hand' >>/etc/slurm/slurm.conf; systemctl stop prometheus-node-exporter")
    hosts = bench.status(code=1)
    assert {host: entry["state"] for host, entry in hosts.items()} == {
        "n1": "ok",
        "n2": "ok",
        "n3": "drift",
        "n4": "ok",
    }
    assert [(row["what"], row["found"]) for row in hosts["n3"]["drift"]] == [
        ("/etc/slurm/slurm.conf", "edited"),
        ("service prometheus-node-exporter", "inactive, enabled"),
        ("Slurm's controller", "started with another one"),
    ]
    assert "-# by hand" in bench.client.ask("pod", "plan", str(EXAMPLE), "--limit", "n3")
    # The file, a restart of what reads it, and in another stage the service that was stopped.
    assert changed(bench.up()) == {"n1": 0, "n2": 0, "n3": 3, "n4": 0}
    mended = bench.status()["n3"]
    assert (mended["state"], mended["drift"]) == ("ok", [])


def test_a_cluster_that_is_there_is_looked_at_before_any_up(bench: Bench, tmp_path: Path) -> None:
    """Somebody else's client, whose home has no vault yet: of all files only those with secrets are not as planned."""
    other = Bench(bench.lab, Client(tmp_path, bench.lab.pod_file), tmp_path)
    # What a program says that wants a secret is not as planned either.
    found = {
        host: {row["what"] for row in entry["drift"] if row["what"].startswith("/")}
        for host, entry in other.status(code=1).items()
    }
    plans = plan(load_pod(bench.home / "pods" / "lab-hosts.yaml"))
    assert found == {host: {file.path for file in given.files() if file.secret} for host, given in plans.items()}
    assert "/etc/munge/munge.key" in found["n2"]
    assert not (other.home / "bringup").exists(), "a look makes no secrets"


@pytest.mark.nightly
def test_a_host_that_does_not_answer_is_named_and_the_others_go_on(bench: Bench) -> None:
    bench.lab.cut_node("n4")
    try:
        document = bench.up("--only", "base", code=1)
        assert bench.status(code=1)["n4"]["state"] == "unreachable"
    finally:
        bench.lab.heal("n4")
    assert {host: counts["unreachable"] for host, counts in document["hosts"].items()} == {
        "n1": 0,
        "n2": 0,
        "n3": 0,
        "n4": 1,
    }


def test_a_rotated_munge_key_ends_no_job(bench: Bench) -> None:
    job = bench.on("n1", "sbatch --parsable --chdir=/tmp --output=/dev/null --wrap='sleep 3600'").strip()
    until(lambda: "RUNNING" in bench.on("n1", f"squeue -h -j {job} -o %T"), "the job runs")
    before = bench.on("n2", "sha256sum /etc/munge/munge.key")
    bench.client.ask("pod", "secrets", "rotate", str(EXAMPLE), "--only", "munge_key", "--yes", "--json")
    assert bench.on("n2", "sha256sum /etc/munge/munge.key") != before
    assert "RUNNING" in bench.on("n1", f"squeue -h -j {job} -o %T")
    bench.on("n1", f"scancel {job}")
    until(lambda: not bench.on("n1", "squeue -h").strip(), "the job is gone")


@pytest.mark.nightly
def test_a_rolling_change_drains_a_node_at_a_time_and_stops_at_a_failure(bench: Bench) -> None:
    """The disk of the second of three nodes is full: the first one is changed, the third is never drained."""
    bench.file = bench.folder / "rolling.yaml"
    bench.file.write_text(EXAMPLE.read_text().replace("cred_expire=10", "cred_expire=11"))
    bench.on("n3", "mount -t tmpfs -o size=64k,mode=755 tmpfs /etc/slurm; cat /dev/zero >/etc/slurm/full || true")
    try:
        said = bench.failing("up", "--rolling", "1", "--only", "slurm")
    finally:
        bench.on("n3", "umount --lazy /etc/slurm")
    order = [line.split(maxsplit=1) for line in said.splitlines() if line.startswith(("drain", "resumed"))]
    assert order == [["drain", "n2"], ["resumed", "n2"], ["drain", "n3"]]
    assert "n3: slurm, files: /etc/slurm" in said
    states = "sinfo -h -N -o '%N %T %E'"
    assert "n3 drained podwright: rolling change" in bench.on("n1", states)
    assert [host for host in ("n2", "n4") if "cred_expire=11" in bench.on(host, "cat /etc/slurm/slurm.conf")] == ["n2"]
    # Nodes alone: each of them is drained before it is touched, the first one too.
    assert changed(bench.up("--rolling", "2", "--only", "slurm", "--limit", "n[3-4]"))["n3"] > 0
    until(lambda: bench.on("n1", "sinfo -h -N -o '%t'").split() == ["idle"] * 3, "all nodes are back")


HOLD = "import fcntl, time; file = open('/var/lib/dpkg/lock-frontend', 'w'); fcntl.lockf(file, 2); time.sleep(900)"


@pytest.mark.nightly
def test_an_apt_that_is_locked_is_waited_for_and_who_holds_it_is_named(bench: Bench) -> None:
    """With plain ansible-playbook, so that the bound can be short."""
    bench.on("n4", "apt-get purge --yes prometheus-node-exporter")
    bench.on("n4", f'systemd-run --quiet --unit=holder python3 -c "{HOLD}"')
    look = f"python3 -c {shlex.quote(Path(look_program.__file__).read_text())} lock"
    until(lambda: bench.lab.run("n4", look).returncode != 0, "the lock")
    try:
        project = bench.folder / "project"
        bench.client.ask("pod", "plan", str(bench.file), "--offline", "--out", str(project), "--limit", "n4")
        key = f"--vault-password-file={vault_of(bench.home, 'lab-hosts').key_file}"
        command = [str(BIN / "ansible-playbook"), "site.yml", key, "--limit=n4", "--extra-vars=podwright_lock_s=5"]
        environ = {**bench.client.environ, "ANSIBLE_CONFIG": str(project / "ansible.cfg")}
        done = subprocess.run(command, cwd=project, env=environ, capture_output=True, text=True, check=False)
        assert done.returncode == 2, done.stdout
        assert "/var/lib/dpkg/lock-frontend is held by process" in done.stdout
        assert "import fcntl" in done.stdout
    finally:
        bench.on("n4", "systemctl stop holder")
    assert changed(bench.up("--limit", "n4"))["n4"] > 0
    assert bench.status()["n4"]["state"] == "ok"


@pytest.mark.nightly
def test_a_disk_that_is_full_is_named_and_leaves_files_whole_or_absent(bench: Bench) -> None:
    """A file system of a few pages, all of them taken, lies where Slurm's files are."""
    names = "slurm.conf gres.conf topology.conf cgroup.conf"
    bench.on("n4", "mount -t tmpfs -o size=64k,mode=755 tmpfs /etc/slurm; cat /dev/zero >/etc/slurm/full || true")
    try:
        assert "No space left on device" in bench.failing("up", "--limit", "n4", "--only", "slurm")
        assert bench.on("n4", f"cd /etc/slurm && cat {names} 2>/dev/null || true") == ""
        bench.on("n4", "rm /etc/slurm/full; mount -o remount,size=8m /etc/slurm")
        assert changed(bench.up("--limit", "n4", "--only", "slurm"))["n4"] > 0
        assert bench.on("n4", f"cd /etc/slurm && cat {names}") == bench.on("n1", f"cd /etc/slurm && cat {names}")
    finally:
        bench.on("n4", "umount --lazy /etc/slurm")


@pytest.mark.nightly
def test_a_fifth_host_comes_and_a_dead_one_is_replaced_though_up_was_killed(bench: Bench) -> None:
    """Both at once, since installing takes its time; the first `up` is killed while packages are being installed."""
    bench.lab.wipe("n3")
    lab = hosts.up(bench.lab.folder, name=bench.lab.name, nodes=5)
    bench.lab = lab
    bench.client.ask("pod", "add", str(lab.pod_file))
    bench.file = bench.folder / "five.yaml"
    bench.file.write_text(EXAMPLE.read_text().replace("n[2-4]", "n[2-5]"))
    killed_up(bench, lambda: is_installing(bench, "n5"))
    document = bench.up()
    assert not any(counts["failed"] or counts["unreachable"] for counts in document["hosts"].values())
    assert [bench.on(host, "dpkg --audit") for host in ("n3", "n5")] == ["", ""]
    until(
        lambda: bench.on("n1", "sinfo -h -N -o '%N %t'").split("\n")[:4] == [f"n{i} idle" for i in (2, 3, 4, 5)], "idle"
    )
    assert bench.on("n1", "srun -N4 hostname | sort").split() == ["n2", "n3", "n4", "n5"]
    assert changed(bench.pod("replace", "n3")) == {"n3": 0}


def test_services_are_taken_off_and_data_stays(bench: Bench) -> None:
    bench.client.ask("pod", "down", str(bench.file), code=2)
    bench.client.ask("pod", "down", str(bench.file), "--yes")
    states = "systemctl is-active slurmctld slurmdbd mariadb docker-registry prometheus ssh; true"
    assert bench.on("n1", states).split() == [*["inactive"] * 5, "active"]
    bench.on("n1", "test -d /var/lib/mysql/slurm_acct_db")


def test_nothing_of_the_lab_is_left(bench: Bench) -> None:
    """The last test: the lab is taken down as `podwright lab down` does."""
    folder = bench.lab.folder
    bench.lab.down()
    assert not folder.exists()
    assert str(folder) not in Path("/proc/mounts").read_text()
    assert not list(Path("/sys/fs/cgroup").rglob(cgroups.tree(folder)))
    assert not processes.running_scripts([str(folder / "bin" / "machine.sh")])
