"""The files that the programs of a Kubernetes lab read; pure text, so that a lab can be read before it is started."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from podwright.lab.kubernetes.shape import CONTROL, CONTROL_ADDRESS, KubernetesLabShape, LabPorts
from podwright.lab.machines import ENVIRONMENT
from podwright.lab.scripts import INSIDE

ETC = f"{INSIDE}/etc"
PKI = f"{INSIDE}/pki"
REGISTRY_PORT = 5000
API_PORT = 6443
WEBHOOK_PORT = 9443
POD_NETWORKS = "10.78.0.0/16"
SERVICE_NETWORK = "10.96.0.0/16"
DOMAIN = "cluster.local"
CONTAINERD = "/run/containerd/containerd.sock"
PAUSE_IMAGE = "lab/pause:1"
PLAYED_FOR = "pod-complete.stage.kwok.x-k8s.io/delay"
"""The annotation that says how long a Kubernetes pod of a job is played on a virtual node, such as 5m."""
_PLAYED_S = 10
SHOW_SCRIPT = "show"

# The folders that kubelet, containerd and the network plugins keep under /var.
_STATE = ("lib/kubelet", "lib/containerd", "lib/cni", "log/pods", "log/containers")
# What kubelet would set for the whole machine: it finds it set so, and changes only this node's copies.
_SETTINGS = {
    "vm/overcommit_memory": 1,
    "vm/panic_on_oom": 0,
    "kernel/panic": 10,
    "kernel/panic_on_oops": 1,
    "kernel/keys/root_maxkeys": 1_000_000,
    "kernel/keys/root_maxbytes": 25_000_000,
}


def node_lines(shape: KubernetesLabShape) -> str:
    """Return what a node does as it starts: own /run, own places under /var, own kernel settings, and its routes.

    The control plane shares these lines; it only needs the way to the Kubernetes pods.
    """
    networks = {host: shape.pod_network(host) for host in shape.hosts()}
    routes = "".join(
        f'[ "$1" = {host} ] || ip route add {network} via {shape.addresses()[host]}\n'
        for host, network in networks.items()
    )
    settings = " ".join(f"{name}={value}" for name, value in _SETTINGS.items())
    return f"""\
umask 022
{routes}if [ "$1" != {CONTROL} ]; then
	node={INSIDE}/nodes/$1
	aside={INSIDE}/run/$1
	mkdir -p "$aside" "$node/settings"
	mount -n -t tmpfs -o mode=755 run "$aside"
	mkdir "$aside/lab" "$aside/lock"
	mount -n --bind {INSIDE} "$aside/lab"
	mount -n --move "$aside" /run
	for place in {" ".join(_STATE)}; do
		mkdir -p "/var/$place" "$node/$place"
		mount -n --bind "$node/$place" "/var/$place"
	done
	for setting in {settings}; do
		name=${{setting%=*}}
		copy=$node/settings/${{name##*/}}
		echo "${{setting#*=}}" >"$copy"
		mount -n --bind "$copy" "/proc/sys/$name"
	done
	ip route add default via {CONTROL_ADDRESS}
	echo 1 >/proc/sys/net/ipv4/ip_forward
	mount -n --make-rshared /
fi
"""


def keeper() -> str:
    """Return the script that starts a program again whenever it ends, unless it is to stay away."""
    return f"""\
#!/bin/sh
# Called by a name of its own for each program that it keeps.
while :; do
	[ -e "{INSIDE}/run/${{0##*/}}.off" ] || "$@"
	sleep 1
done
"""


def corefile() -> str:
    """Return the configuration of the cluster's DNS.

    It answers for addresses too: PyTorch asks for the name behind every connection of its rendezvous, and waits.
    """
    return f"""\
.:53 {{
	bind {CONTROL_ADDRESS}
	errors
	cache 5
	kubernetes {DOMAIN} in-addr.arpa {{
		kubeconfig {ETC}/admin.kubeconfig
		ttl 1
	}}
}}
"""


def registry() -> str:
    """Return the configuration of the registry."""
    config = {
        "version": 0.1,
        "log": {"level": "warn"},
        "storage": {"filesystem": {"rootdirectory": f"{INSIDE}/registry"}, "delete": {"enabled": True}},
        "http": {"addr": f":{REGISTRY_PORT}"},
    }
    return json.dumps(config, indent=1) + "\n"


def registry_hosts() -> str:
    """Tell containerd where the registry is that this machine knows by a port of its loopback."""
    address = f"http://{CONTROL_ADDRESS}:{REGISTRY_PORT}"
    return f'server = "{address}"\n\n[host."{address}"]\n  capabilities = ["pull", "resolve"]\n'


def network(shape: KubernetesLabShape, host: str) -> str:
    """Return the network of a node's Kubernetes pods, for the CNI plugins."""
    addresses = {
        "type": "host-local",
        "ranges": [[{"subnet": shape.pod_network(host)}]],
        "dataDir": "/var/lib/cni/networks",
        "routes": [{"dst": "0.0.0.0/0"}],
    }
    bridge = {"type": "bridge", "bridge": "cni0", "isGateway": True, "hairpinMode": True, "ipam": addresses}
    ports = {"type": "portmap", "capabilities": {"portMappings": True}}
    return json.dumps({"cniVersion": "0.4.0", "name": "lab", "plugins": [bridge, ports]}, indent=1) + "\n"


def containerd(ports: LabPorts, host: str) -> str:
    """Return containerd's configuration on a node; the same words serve its versions 1.6 and 1.7."""
    cri = 'plugins."io.containerd.grpc.v1.cri"'
    return f"""\
version = 2
disabled_plugins = [
  "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper",
  "io.containerd.snapshotter.v1.zfs",
]

[grpc]
  address = "{CONTAINERD}"

[plugins."io.containerd.internal.v1.opt"]
  path = "/var/lib/containerd/opt"

[{cri}]
  sandbox_image = "{ports.image(PAUSE_IMAGE)}"
  netns_mounts_under_state_dir = true
  restrict_oom_score_adj = true
  [{cri}.registry]
    config_path = "{ETC}/registries"
  [{cri}.cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{INSIDE}/nodes/{host}/network"
  [{cri}.containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    base_runtime_spec = "{ETC}/container.json"
"""


def container(default: dict[str, Any]) -> str:
    """Return what every container starts from: the default, and a hook that shows it this machine's Python."""
    # Limits of the default are lower than what containerd itself may use and hands on.
    process = {key: value for key, value in default["process"].items() if key != "rlimits"}
    hook = {"path": f"{INSIDE}/bin/{SHOW_SCRIPT}", "env": [f"PATH={ENVIRONMENT['PATH']}"]}
    return json.dumps({**default, "process": process, "hooks": {"createContainer": [hook]}}, indent=1) + "\n"


def show_script(folders: Iterable[Path]) -> str:
    """Return the hook that shows a container folders of this machine, read-only.

    So nodes show it the Python environment as they show it a GPU's driver: no image of gigabytes, nothing to ask for.
    A mount of the container's own configuration would come before those of its Kubernetes pod, and a pod that has a
    /tmp of its own would cover an environment that lies there. The hook comes last. It runs where the container's root
    is, while the node's file system is still to be seen.
    """
    lines = "".join(f"show {shlex.quote(str(folder))}\n" for folder in folders)
    return f"""\
#!/bin/sh
set -eu
show() {{
	mkdir -p ".$1"
	mount -n --rbind "$1" ".$1"
	mount -n -o remount,bind,ro ".$1"
}}
{lines}"""


def kubelet(host: str, tree: str) -> str:
    """Return kubelet's configuration on a node."""
    config = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": f"{PKI}/ca.crt"},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": f"{PKI}/{host}.crt",
        "tlsPrivateKeyFile": f"{PKI}/{host}.key",
        "containerRuntimeEndpoint": f"unix://{CONTAINERD}",
        "volumePluginDir": "/var/lib/kubelet/volume-plugins",
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{tree}/{host}",
        "failCgroupV1": False,
        "clusterDomain": DOMAIN,
        "clusterDNS": [CONTROL_ADDRESS],
        "resolvConf": "",
        "failSwapOn": False,
        "enforceNodeAllocatable": ["pods"],
        "evictionHard": {"memory.available": "50Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
        "imageGCHighThresholdPercent": 100,
        "serializeImagePulls": False,
        "registryPullQPS": 0,
        "nodeStatusUpdateFrequency": "2s",
        "nodeLeaseDurationSeconds": 20,
    }
    return json.dumps(config, indent=1) + "\n"


def jobset() -> str:
    """Return the configuration of the JobSet controller; its certificate is one of the lab's own."""
    config = {
        "apiVersion": "config.jobset.x-k8s.io/v1alpha1",
        "kind": "Configuration",
        "leaderElection": {"leaderElect": False},
        "internalCertManagement": {"enable": False},
        "metrics": {"bindAddress": "0"},
        "webhook": {"port": WEBHOOK_PORT, "certDir": f"{PKI}/webhook"},
    }
    return json.dumps(config, indent=1) + "\n"


def scheduler() -> str:
    """Return the scheduler's configuration.

    It looks at all nodes. By default it stops once a hundred would do, and may never see the unit that a run is in.
    """
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": f"{ETC}/scheduler.kubeconfig", "qps": 500, "burst": 1000},
        "leaderElection": {"leaderElect": False},
        "percentageOfNodesToScore": 100,
    }
    return json.dumps(config, indent=1) + "\n"


def ending(stage: str) -> str:
    """Return KWOK's stage that ends what a job runs on virtual nodes, with the time that it takes.

    Else the first of a large job would be over, and their nodes free again, before the last have found theirs.
    """
    delay = {
        "durationMilliseconds": _PLAYED_S * 1000,
        "durationFrom": {"expressionFrom": f'.metadata.annotations["{PLAYED_FOR}"]'},
    }
    return stage.replace("\n  next:\n", f"\n  delay: {json.dumps(delay)}\n  next:\n", 1)
