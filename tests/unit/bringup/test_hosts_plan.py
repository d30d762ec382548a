"""What each host of a pod gets: whole hosts compared with golden files, and what is refused."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from podwright.bringup.apply import ansible
from podwright.bringup.apply.known_pods import known_text
from podwright.bringup.apply.vault import environment, program, vault_of
from podwright.bringup.plan.host import HostFile, Step
from podwright.bringup.plan.hosts import limited, plan
from podwright.bringup.plan.site import site_of, with_access
from podwright.bringup.plan.stages import STAGES
from podwright.launch import pods
from podwright.launch.pods import HomePods
from podwright.runs import Home
from podwright.spec import Pod, Refusal, load_pod
from tests.fixtures.hosts import told
from tests.fixtures.sshd import IN_A_NAMESPACE
from tests.paths import CASES, ROOT

CASE = CASES / "bringup" / "hosts" / "small"


def small() -> Pod:
    return load_pod(CASE / "pod.yaml")


@pytest.mark.parametrize("host", ["m1", "g1"])
def test_a_host(host: str, golden: Callable[[Path, str], None]) -> None:
    golden(CASE / "expected" / f"{host}.txt", told(plan(small())[host]))


def test_sshd_takes_its_settings(tmp_path: Path) -> None:
    file = next(file for file in plan(small())["g1"].files() if file.path.startswith("/etc/ssh/"))
    key = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    config = tmp_path / "sshd_config"
    config.write_text(f"HostKey {key}\n{file.text}")
    command = ["unshare", "--mount", "sh", "-c", IN_A_NAMESPACE, "sh", "/usr/sbin/sshd", "-T", "-f", str(config)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "passwordauthentication no" in done.stdout, done.stderr


def test_hosts_that_are_alike_get_the_same_files() -> None:
    plans = plan(small())
    own = {"/etc/hostname", "/etc/default/prometheus-node-exporter", "/etc/default/podwright-exporter"}
    texts = [{file.path: file.text for file in plans[host].files() if file.path not in own} for host in ("g1", "g2")]
    assert texts[0] == texts[1]


def test_one_stage_is_a_part_of_the_whole() -> None:
    everything = plan(small())
    for stage in STAGES:
        for host, part in plan(small(), only=stage).items():
            wanted = {name: step for name, step in everything[host].steps.items() if name.startswith(f"{stage}.")}
            assert part.steps == wanted


def test_a_stage_that_is_none_is_refused() -> None:
    with pytest.raises(Refusal, match=r'"slum" is not a stage') as caught:
        plan(small(), only="slum")
    assert "did you mean `slurm`?" in str(caught.value)


def test_a_host_that_is_not_in_the_pod_is_refused() -> None:
    with pytest.raises(Refusal, match="g9: not in the pod"):
        limited(plan(small()), "g1,g9")


def test_without_addresses_the_place_in_the_file_is_named() -> None:
    pod = load_pod(ROOT / "examples" / "lab-pod.yaml")
    with pytest.raises(Refusal, match=r"lab-pod.yaml:\d+:\d+: nodes\[?.?0.*addresses"):
        plan(pod)


def test_what_a_file_leaves_out_comes_from_the_known_pod(tmp_path: Path) -> None:
    text = (CASE / "pod.yaml").read_text()
    bare = tmp_path / "pod.yaml"
    lines = [line for line in text.splitlines() if "addresses: [10.0.1.1" not in line]
    bare.write_text("\n".join(lines).replace(", addresses: [10.0.0.1]", "").split("bringup:")[0])
    filled = with_access(load_pod(bare), small())
    assert site_of(filled).addresses == site_of(small()).addresses
    assert (filled.bringup.user, filled.bringup.users) == (small().bringup.user, small().bringup.users)
    assert filled.bringup.settings.conf == {}


def test_a_host_that_nobody_knows_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "pod.yaml"
    path.write_text("name: small\nnodes: [{hosts: g7, model: cpu-server}]\n")
    with pytest.raises(Refusal, match="nobody knows the address of g7"):
        with_access(load_pod(path), small())


def test_the_known_pod_has_all_that_a_run_needs(tmp_path: Path) -> None:
    path = tmp_path / "known.yaml"
    path.write_text(known_text(small()))
    scheduler = load_pod(path).scheduler("slurm")
    assert scheduler.kind == "slurm"
    assert (scheduler.login, scheduler.folder) == ("ada@10.0.0.1", "/data/$USER/podwright")


def test_a_file_that_is_added_again_keeps_what_up_filled_in(tmp_path: Path) -> None:
    """Login, folder and addresses of the last `up`; what the file says itself is its own, and a new host is bare."""
    home = Home.open(tmp_path / "home")
    HomePods(home).save("small", known_text(small()).encode())
    text = (CASES / "bringup" / "hosts" / "small" / "pod.yaml").read_text().split("bringup:")[0]
    bare = tmp_path / "pod.yaml"
    bare.write_text(text.replace("    addresses: [10.0.1.1, 10.0.1.2]\n", "").replace("fast", "faster"))
    added = pods.add(home, bare)
    scheduler = added.scheduler("slurm")
    assert scheduler.kind == "slurm"
    assert (scheduler.login, scheduler.folder) == ("ada@10.0.0.1", "/data/$USER/podwright")
    assert (site_of(added).addresses, added.bringup.user) == (site_of(small()).addresses, "admin")
    assert added.storage[0].name == "faster"
    bare.write_text(bare.read_text().replace("g[1-2]", "g[1-3]").replace("{kind: slurm,", "{kind: slurm, login: m1,"))
    more = pods.add(home, bare)
    assert (more.nodes[1].addresses, more.scheduler("slurm").login) == ((), "m1")  # type: ignore[union-attr]
    pods.forget(home, "small")
    assert pods.add(home, bare).source == bare.read_bytes()


def test_a_service_is_restarted_for_new_files_and_for_rotated_secrets_alone() -> None:
    config = HostFile("/a", "one", restarts=("s",))
    secret = HostFile("/b", secret="key", restarts=("s", "t"))
    before = Step(files=(config, secret)).started_with({"key": 1})
    other_file = Step(files=(HostFile("/a", "two", restarts=("s",)), secret)).started_with({"key": 1})
    rotated = Step(files=(config, secret)).started_with({"key": 2})
    assert before["s"] != other_file["s"]
    assert before["t"] == other_file["t"]
    assert before["s"] != rotated["s"]
    assert before["t"] != rotated["t"]


def test_no_secret_is_in_the_project_and_ansible_takes_it(tmp_path: Path) -> None:
    """Ansible itself reads the playbook, the inventory and the vault."""
    pod = small()
    vault = vault_of(tmp_path / "home", pod.name)
    secrets = vault.fill(site_of(pod))
    texts = ansible.project_files(pod, plan(pod), secrets.revisions)
    from podwright.bringup.apply.playbook import write_project

    write_project(tmp_path / "project", texts, vault.file)
    whole = b"".join(path.read_bytes() for path in (tmp_path / "project").rglob("*") if path.is_file())
    for name in ("munge_key", "registry_password", "ca_key", "registry_key"):
        assert secrets.values[name].splitlines()[1:2] or secrets.values[name]
        assert secrets.values[name].encode() not in whole
    assert vault.key_file.read_bytes().strip() not in whole
    command = [*program("ansible-playbook"), "site.yml", "--list-hosts", f"--vault-password-file={vault.key_file}"]
    env = environment()
    done = subprocess.run(command, cwd=tmp_path / "project", env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("play #") == len(texts["site.yml"].split("- name: ")) - 1
    assert "g2" in done.stdout


def test_what_a_configuration_names_is_there_before_it_is_checked() -> None:
    steps = plan(small())["m1"].steps
    order = {file.path: number for number, step in enumerate(steps.values()) for file in step.files}
    # A step writes plain files first and secret ones after them: promtool looks for both.
    config = order["/etc/prometheus/prometheus.yml"]
    assert order["/etc/prometheus/secrets/scrape_token"] < config
    assert order["/etc/prometheus/ca.crt"] < config


def test_a_project_is_reviewed_by_the_names_of_files_and_a_key_a_line() -> None:
    pod = small()
    texts = ansible.project_files(pod, plan(pod), {}, lines=True)
    assert "ClusterName" in texts["files/etc/slurm/slurm.conf"]
    assert {texts[f"files/etc/hostname@{host}"] for host in ("m1", "g1", "g2")} == {"m1\n", "g1\n", "g2\n"}
    named = {entry["content"] for entry in every_file(json.loads(texts["inventory.json"]))}
    assert {name.removeprefix("files/") for name in texts if name.startswith("files/")} == named
    assert max(map(len, texts["inventory.json"].splitlines())) < 8000
    assert ansible.project_files(pod, plan(pod), {})["inventory.json"].count("\n") == 1


def every_file(inventory: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for host in inventory["all"]["hosts"].values():
        for step in host["podwright_steps"].values():
            yield from step["files"]
