"""kubeadm itself takes what hosts are given: for one, three and five managers, with the keys of the pod's vault."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from podwright.bringup.apply.vault import Vault
from podwright.bringup.plan.hosts import plan
from podwright.bringup.plan.kubernetes import addons, kubeadm
from podwright.bringup.plan.kubernetes.containerd import config_text
from podwright.bringup.plan.kubernetes.images import cluster_images, images_in
from podwright.bringup.plan.site import Site, site_of
from podwright.bringup.plan.stages.kubernetes import KEYS
from podwright.bringup.plan.wanted_images import images_of
from podwright.lab.kubernetes import binaries
from podwright.spec import load_pod
from tests.fixtures.hosts import managed_pod
from tests.real.labs import ON_KUBERNETES, aloud

pytestmark = ON_KUBERNETES


@pytest.fixture(scope="module")
def program(pytestconfig: pytest.Config) -> str:
    """The kubeadm that is built with the programs of the Kubernetes lab."""
    say = aloud(pytestconfig)
    return str(binaries.get(say, binaries.BuildOutput(say))["kubeadm"])


def site_with(folder: Path, managers: int) -> Site:
    return site_of(load_pod(managed_pod(folder, managers)))


def done(command: list[str], **environ: str) -> str:
    """Runs a command that must succeed; gives what it said."""
    answer = subprocess.run(command, env={**os.environ, **environ}, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    return answer.stdout + answer.stderr


@pytest.mark.parametrize("managers", [1, 3, 5])
def test_kubeadm_takes_the_files_of_every_host(tmp_path: Path, program: str, managers: int) -> None:
    site = site_with(tmp_path, managers)
    values = Vault(tmp_path / "vault.yml", tmp_path / "key").fill(site).values
    known = tmp_path / "discovery.conf"
    known.write_text(values["kubernetes_discovery"])
    texts = {"m1": kubeadm.init_text(site)}
    for host in (*kubeadm.management_hosts(site)[1:], "g1", "g2"):
        texts[host] = kubeadm.join_text(site, host).replace(kubeadm.DISCOVERY, str(known))
    for host, text in texts.items():
        file = tmp_path / f"{host}.yaml"
        file.write_text(text)
        assert done([program, "config", "validate", f"--config={file}"]).split() == ["ok"]


def test_the_images_of_kubeadm_are_those_that_an_archive_carries_and_containerd_knows(
    tmp_path: Path, program: str
) -> None:
    site = site_with(tmp_path, 1)
    file = tmp_path / "init.yaml"
    file.write_text(kubeadm.init_text(site))
    version = f"--kubernetes-version=v{site.kubernetes_version}"
    published = done([program, "config", "images", "list", version]).split()
    named = done([program, "config", "images", "list", f"--config={file}"]).split()
    assert sorted(named) == sorted(published) == sorted(cluster_images(site))
    own = images_in(addons.objects(site))
    registries = [f"registry.example/{image}" for image in own if "." not in image.partition("/")[0]]
    bringup = site.pod.bringup.model_copy(update={"images": tuple(registries)})
    carried = images_of(site_of(site.pod.model_copy(update={"bringup": bringup})))
    assert set(cluster_images(site)) | set(registries) <= set(carried)
    assert f'"{next(name for name in named if "/pause:" in name)}"' in config_text(False)


@pytest.mark.parametrize("managers", [1, 3, 5])
def test_kubeadm_would_make_the_cluster_with_the_pods_own_authority(
    tmp_path: Path, program: str, managers: int
) -> None:
    """A dry run: it writes into a folder of its own what a first manager would have."""
    site = site_with(tmp_path, managers)
    values = Vault(tmp_path / "vault.yml", tmp_path / "key").fill(site).values
    keys, out = tmp_path / "pki", tmp_path / "out"
    # A dry run looks for some authorities where it writes, and for others where they are.
    for folder in (keys, out):
        (folder / "etcd").mkdir(parents=True)
        for name, secret in KEYS.items():
            (folder / name).write_text(values[secret])
    file = tmp_path / "init.yaml"
    own = f"kind: ClusterConfiguration\ncertificatesDir: {keys}\n"
    file.write_text(kubeadm.init_text(site).replace("kind: ClusterConfiguration\n", own))
    (begun,) = plan(site.pod)["m1"].steps["kubernetes.first"].commands
    words = [word.replace("/etc/kubernetes/podwright/init.yaml", str(file)) for word in begun.run]
    more = ["--dry-run", "--ignore-preflight-errors=all"]
    answer = done([program, *words[1:], *more], KUBEADM_INIT_DRYRUN_DIR=str(out))
    assert "--token <value withheld>" in answer, "no token is where output is written down"
    assert "Using existing ca certificate authority" in answer
    assert "Using existing etcd/ca certificate authority" in answer
    assert f"server: https://{kubeadm.endpoint(site)}" in (out / "admin.conf").read_text()
    server = (out / "kube-apiserver.yaml").read_text()
    assert "--oidc-issuer-url=https://login.example" in server
