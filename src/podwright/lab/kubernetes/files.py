"""The files of a Kubernetes lab, written once, before anything of it is started."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from podwright.lab import cgroups, mask, scripts
from podwright.lab.folder import write
from podwright.lab.kubernetes import binaries, configs, pki, programs, shape
from podwright.lab.kubernetes.shape import CONTROL_ADDRESS, KubernetesLabShape, LabPorts
from podwright.lab.machines import ENVIRONMENT, HUB

_FOLDERS = ("bin", "etc", "log", "nodes", "pids", "registry", "run", "volumes")
_SYSTEM = Path("/usr")
# Each file is the kubeconfig of the certificate of that name, for programs on the lab's own network.
_INNER = ("admin", "controller-manager", "scheduler", "proxy")


def write_all(folder: Path, wanted: KubernetesLabShape, ports: LabPorts, built: Mapping[str, Path]) -> None:
    """Write everything; may be repeated, and what says that there is a lab comes last."""
    for name in _FOLDERS:
        (folder / name).mkdir(exist_ok=True, mode=0o755)
    (folder / "etcd").mkdir(exist_ok=True, mode=0o700)
    binaries.keep(built, folder / "parts.json")
    _write_machines(folder, wanted, built.values())
    _write_access(folder, wanted, ports)
    _write_control(folder, ports, built["kwok"].parent / "manifests")
    for host in wanted.hosts():
        _write_node(folder, wanted, ports, host)
    write(folder / "pod.yaml", shape.pod_text(folder, wanted, ports))
    shape.write(folder, wanted, ports)


def _write_machines(folder: Path, wanted: KubernetesLabShape, built: Iterable[Path]) -> None:
    """Write what the machines start as. All is root's here, so only what would be shared is covered: /run and /var."""
    seen = [*mask.needed_folders(), *{path.parent for path in built}, folder]
    covers = mask.veils(seen, lambda _: True, always=[Path("/run"), Path("/var")])
    names = {"localhost": "127.0.0.1", HUB: scripts.BRIDGE_ADDRESS, **wanted.addresses()}
    write(folder / "etc" / "hosts", "".join(f"{address} {name}\n" for name, address in names.items()))
    write(folder / "bin" / scripts.START_SCRIPT, scripts.start_script(folder))
    write(folder / "bin" / scripts.HUB_SCRIPT, scripts.hub_script(folder, covers, {"/etc/hosts": "etc/hosts"}))
    write(folder / "bin" / scripts.MACHINE_SCRIPT, scripts.machine_script(configs.node_lines(wanted)))
    for keeper in programs.KEPT.values():
        write(folder / "bin" / keeper, configs.keeper(), 0o755)
    write(folder / "bin" / configs.SHOW_SCRIPT, configs.show_script(shown_to_containers()), 0o755)


def _write_access(folder: Path, wanted: KubernetesLabShape, ports: LabPorts) -> None:
    keys = folder / "pki"
    pki.make_all(keys, pki.certificates(wanted))
    inner = f"https://{CONTROL_ADDRESS}:{configs.API_PORT}"
    outer = f"https://{pki.LOOPBACK}:{ports.api}"
    for name in (*_INNER, *wanted.hosts()):
        write(folder / "etc" / f"{name}.kubeconfig", pki.kubeconfig(keys, name, inner), 0o600)
    write(folder / "kubeconfig", pki.kubeconfig(keys, "user", outer, wanted.name), 0o600)
    write(folder / "admin.kubeconfig", pki.kubeconfig(keys, "admin", outer, f"{wanted.name}-admin"), 0o600)
    if "SUDO_UID" in os.environ:
        uid, gid = int(os.environ["SUDO_UID"]), int(os.environ.get("SUDO_GID", -1))
        os.chown(folder / "kubeconfig", uid, gid, follow_symlinks=False)
    hook = keys / "webhook"
    hook.mkdir(exist_ok=True, mode=0o700)
    for kind in ("crt", "key"):
        write(hook / f"tls.{kind}", (keys / f"webhook.{kind}").read_text(), 0o600)


def _write_control(folder: Path, ports: LabPorts, manifests: Path) -> None:
    etc = folder / "etc"
    write(etc / "scheduler.yaml", configs.scheduler())
    write(etc / programs.ENDING, configs.ending((manifests / programs.ENDING).read_text()))
    write(etc / "Corefile", configs.corefile())
    write(etc / "registry.yml", configs.registry())
    write(etc / "jobset.yaml", configs.jobset())
    write(etc / "container.json", configs.container(_default_container()))
    registry = etc / "registries" / f"localhost:{ports.registry}"
    registry.mkdir(parents=True, exist_ok=True)
    write(registry / "hosts.toml", configs.registry_hosts())


def _write_node(folder: Path, wanted: KubernetesLabShape, ports: LabPorts, host: str) -> None:
    node = folder / "nodes" / host
    (node / "network").mkdir(parents=True, exist_ok=True)
    write(node / "network" / "10-lab.conflist", configs.network(wanted, host))
    write(node / "containerd.toml", configs.containerd(ports, host))
    write(node / "kubelet.yaml", configs.kubelet(host, cgroups.tree(folder)))


def shown_to_containers() -> list[Path]:
    """Return this Python's folders; the system's own stay the image's, which has a Python of the same release."""
    return mask.outermost(path for path in mask.needed_folders() if path.is_dir() and path != _SYSTEM)


def _default_container() -> dict[str, Any]:
    done = subprocess.run(["ctr", "oci", "spec"], env=ENVIRONMENT, capture_output=True, text=True, check=True)
    container: dict[str, Any] = json.loads(done.stdout)
    return container
