"""What hosts get that become a Kubernetes cluster: whole hosts compared with golden files, and what is refused."""

from __future__ import annotations

import base64
import json
import subprocess
import time
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from podwright.bringup.apply.vault import Vault
from podwright.bringup.plan.hosts import plan
from podwright.bringup.plan.kubernetes import addons, kubeadm
from podwright.bringup.plan.kubernetes.charts import charts
from podwright.bringup.plan.kubernetes.containerd import config_text, registry_text
from podwright.bringup.plan.site import Site, site_of
from podwright.bringup.plan.stages.kubernetes import chart_text
from podwright.clients.kubernetes.manifest import yaml_text
from podwright.spec import Refusal, load_pod
from tests.fixtures.hosts import managed_pod, told
from tests.paths import CASES

CASE = CASES / "bringup" / "kubeadm"


def site_with(folder: Path, managers: int) -> Site:
    return site_of(load_pod(managed_pod(folder, managers)))


@pytest.mark.parametrize("host", ["m1", "m2", "g1"])
def test_a_host_of_a_cluster_with_three_managers(host: str, golden: Callable[[Path, str], None]) -> None:
    golden(CASE / "expected" / f"{host}.txt", told(plan(load_pod(CASE / "pod.yaml"), only="kubernetes")[host]))


def test_add_ons_are_what_an_api_server_takes(golden: Callable[[Path, str], None]) -> None:
    """The golden file is among those that the tests of the Kubernetes lab give a real API server."""
    text = yaml_text(addons.objects(site_of(load_pod(CASE / "pod.yaml"))))
    golden(CASES / "kubernetes" / "addons" / "addons.yaml", text)


OIDC = '{kind: oidc, issuer: "https://login.example", client: podwright}'
LDAP = '{kind: ldap, server: "ldaps://ldap.example", base: "ou=people,dc=example"}'


def with_login(folder: Path, login: str) -> Site:
    path = folder / "pod.yaml"
    path.write_text((CASE / "pod.yaml").read_text().replace(OIDC, login))
    return site_of(load_pod(path))


def test_people_of_an_ldap_are_known_by_dex(tmp_path: Path, golden: Callable[[Path, str], None]) -> None:
    """The API server asks the issuer that Dex is, and Dex the LDAP."""
    site = with_login(tmp_path, LDAP)
    chart = next(chart for chart in charts(site) if chart.name == "dex")
    golden(CASE / "expected" / "dex.yaml", chart_text(chart))
    arguments = yaml.safe_load_all(kubeadm.init_text(site))
    server = next(part["apiServer"] for part in arguments if part["kind"] == "ClusterConfiguration")
    given = {each["name"]: each["value"] for each in server["extraArgs"]}
    assert given["oidc-issuer-url"] == chart.values["config"]["issuer"] == "https://m1:32000"
    assert given["oidc-client-id"] == chart.values["config"]["staticClients"][0]["id"]


@pytest.mark.parametrize(
    ("login", "field"), [("{kind: oidc, client: a}", "issuer"), (LDAP.split(", base")[0] + "}", "base")]
)
def test_a_login_that_lacks_something_is_refused_with_its_place(tmp_path: Path, login: str, field: str) -> None:
    with pytest.raises(Refusal, match=rf"pod.yaml:\d+:\d+: bringup.login.{field}: is missing"):
        plan(with_login(tmp_path, login).pod)


def test_a_single_manager_is_asked_directly(tmp_path: Path) -> None:
    site = site_with(tmp_path, 1)
    assert kubeadm.endpoint(site) == "m1:6443"
    files = [file.path for file in plan(site.pod)["g1"].files()]
    assert "/etc/haproxy/haproxy.cfg" not in files


def test_five_managers_are_behind_each_nodes_own_balancer(tmp_path: Path) -> None:
    site = site_with(tmp_path, 5)
    assert kubeadm.endpoint(site) == "kubernetes.kube:8443"
    balanced = [line.split()[1] for line in kubeadm.balancer_text(site).splitlines() if "server m" in line]
    assert balanced == ["m1", "m2", "m3", "m4", "m5"]


def test_haproxy_takes_the_balancer(tmp_path: Path) -> None:
    file = tmp_path / "haproxy.cfg"
    file.write_text(kubeadm.balancer_text(site_with(tmp_path, 3)))
    done = subprocess.run(["/usr/sbin/haproxy", "-c", "-f", str(file)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("with_gpus", [True, False])
def test_containerd_takes_its_configuration(tmp_path: Path, with_gpus: bool) -> None:
    """The containerd of Debian 12 says what it made of the file."""
    file = tmp_path / "config.toml"
    file.write_text(config_text(with_gpus))
    done = subprocess.run(
        ["containerd", f"--config={file}", "config", "dump"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    dumped = tomllib.loads(done.stdout)["plugins"]["io.containerd.grpc.v1.cri"]
    assert dumped["sandbox_image"] == "registry.k8s.io/pause:3.10.1"
    assert dumped["registry"]["config_path"] == "/etc/containerd/certs.d"
    runtimes = dumped["containerd"]["runtimes"]
    assert all(runtime["options"]["SystemdCgroup"] for runtime in runtimes.values())
    assert ("nvidia" in runtimes) is with_gpus


def test_an_even_number_of_managers_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refusal, match="2 management hosts: etcd needs an odd number"):
        plan(site_with(tmp_path, 2).pod)


def test_a_cluster_that_is_there_already_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "pod.yaml"
    path.write_text((CASE / "pod.yaml").read_text().replace("  versions: {kubernetes: 1.35.4}\n", ""))
    assert plan(load_pod(path), only="kubernetes")["g1"].steps == {}


def test_a_host_joins_by_a_certificate_of_the_clusters_own_authority_for_a_day(tmp_path: Path) -> None:
    site = site_of(load_pod(CASE / "pod.yaml"))
    vault = Vault(tmp_path / "vault.yml", tmp_path / "key")
    values = vault.fill(site).values
    joining = yaml.safe_load(values["kubernetes_discovery"])
    cluster, user = joining["clusters"][0]["cluster"], joining["users"][0]["user"]
    files = {
        "ca.crt": cluster["certificate-authority-data"],
        "client.crt": user["client-certificate-data"],
        "client.key": user["client-key-data"],
    }
    for name, coded in files.items():
        (tmp_path / name).write_bytes(base64.b64decode(coded))
    assert (tmp_path / "ca.crt").read_text() == values["kubernetes_ca_certificate"]
    trusted = ["verify", "-CAfile", "ca.crt", "-purpose", "sslclient"]
    openssl(tmp_path, *trusted, "client.crt")
    with pytest.raises(subprocess.CalledProcessError):
        openssl(tmp_path, *trusted, "-attime", str(int(time.time()) + 2 * 86400), "client.crt")
    subject = openssl(tmp_path, "x509", "-in", "client.crt", "-noout", "-subject", "-nameopt", "multiline")
    assert "system:bootstrappers:kubeadm:default-node-token" in subject
    texts = "".join(told(host) for host in plan(site.pod).values())
    assert user["client-key-data"] not in texts
    assert vault.fill(site).values == values, "while it is good it stays"


def openssl(folder: Path, *words: str) -> str:
    return subprocess.run(["openssl", *words], cwd=folder, capture_output=True, text=True, check=True).stdout


def test_what_a_host_joins_with_is_made_anew_on_need_and_the_authorities_never(tmp_path: Path) -> None:
    site = site_of(load_pod(CASE / "pod.yaml"))
    vault = Vault(tmp_path / "vault.yml", tmp_path / "key")
    values = vault.fill(site).values
    tomorrow = time.time() + 86400
    later = vault.fill(site, clock=lambda: tomorrow).values
    assert later["kubernetes_discovery"] != values["kubernetes_discovery"]
    with pytest.raises(Refusal, match='"kubernetes_ca_key" is not a secret that can be made again'):
        vault.fill(site, rotate=["kubernetes_ca_key"])
    rotated = vault.fill(site, rotate=["kubernetes_discovery"]).values
    assert rotated["kubernetes_discovery"] != later["kubernetes_discovery"]
    assert rotated["kubernetes_ca_key"] == values["kubernetes_ca_key"]


def test_only_a_host_that_has_not_joined_is_given_its_certificate_and_it_does_not_stay() -> None:
    """Whatever a host has of it would be other than the vault's the day after, and is no more of use."""
    plans = plan(load_pod(CASE / "pod.yaml"), only="kubernetes")
    for host, step in {"m2": "managers", "m3": "managers", "g1": "nodes", "g2": "nodes"}.items():
        assert kubeadm.DISCOVERY not in [file.path for file in plans[host].files()]
        (given,) = plans[host].steps["kubernetes.credentials"].commands
        (joined,) = plans[host].steps[f"kubernetes.{step}"].commands
        assert (given.secret, given.check) == ("kubernetes_discovery", joined.check)
        assert joined.run[-1].endswith(f"&& rm {kubeadm.DISCOVERY}")
    assert "kubernetes.credentials" not in plans["m1"].steps


def archived(folder: Path, images: str = "") -> Site:
    """The case's pod at a site that has an archive alone."""
    text = (CASE / "pod.yaml").read_text()
    more = f"  archive: https://10.0.0.9:3142\n{images}"
    path = folder / "pod.yaml"
    path.write_text(text.replace("  login:", f"{more}  login:"))
    return site_of(load_pod(path))


NAMED = (
    "  images: [site.example/mpioperator/mpi-operator:0.8.0, site.example/mellanox/k8s-rdma-shared-dev-plugin:v1.5.4]\n"
)


def test_a_site_with_an_archive_has_its_images_in_the_registry_before_the_cluster(tmp_path: Path) -> None:
    site = archived(tmp_path, NAMED)
    steps = plan(site.pod)["m1"].steps
    assert list(steps).index("registry.images") < list(steps).index("kubernetes.first")
    listed = next(file for file in steps["registry.images"].files if file.path.endswith("images.json"))
    names = {":".join(row) for row in json.loads(listed.text)["images"]}
    assert {
        "kube-apiserver:v1.35.4",
        "pause:3.10.1",
        "jobset/jobset:v0.12.0",
        "mpioperator/mpi-operator:0.8.0",
    } <= names
    assert "registry.images" not in plan(site.pod)["g1"].steps
    assert "registry.images" not in plan(site_of(load_pod(CASE / "pod.yaml")).pod)["m1"].steps


def test_only_a_site_with_an_archive_asks_nobody_else_for_images(tmp_path: Path) -> None:
    alone = registry_text(archived(tmp_path, NAMED), "word", is_default=True)
    assert 'server = "https://m1:5000"' in alone
    open_one = registry_text(site_of(load_pod(CASE / "pod.yaml")), "word", is_default=True)
    assert "server" not in open_one
    assert tomllib.loads(open_one)["host"]["https://m1:5000"]["capabilities"] == ["pull", "resolve"]


def test_an_image_that_could_come_from_nowhere_is_refused_with_what_names_it(tmp_path: Path) -> None:
    with pytest.raises(Refusal) as refused:
        plan(archived(tmp_path).pod)
    assert "an archive needs mpioperator/mpi-operator:0.8.0, and nothing says where from" in str(refused.value)
    path = tmp_path / "pod.yaml"
    path.write_text(path.read_text().replace("1.35.4", "1.29.1").replace("  login:", f"{NAMED}  login:"))
    other = load_pod(path)
    with pytest.raises(Refusal, match=r"images of Kubernetes 1\.29\.1 are not known"):
        plan(other)


def test_a_new_password_of_the_registry_reaches_containerd(tmp_path: Path) -> None:
    site = site_of(load_pod(CASE / "pod.yaml"))
    vault = Vault(tmp_path / "vault.yml", tmp_path / "key")
    before = vault.fill(site)
    after = vault.fill(site, rotate=["registry_password"])
    for name in ("registry_hosts", "registry_hosts_default"):
        assert after.values[name] != before.values[name]
        assert after.revisions[name] == before.revisions[name] + 1
    assert vault.fill(site).revisions == after.revisions
