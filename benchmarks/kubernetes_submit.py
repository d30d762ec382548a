"""A matrix of 1,000 points on Kubernetes: accepted through the Python API, against kubectl; and what following it asks.

    python benchmarks/kubernetes_submit.py [--pairs 5] [--json OUT] [--points 1000]

A lab of one real and forty virtual nodes is started for it, which needs root. While submitting is measured the lab's
controllers stand still, so that nothing but submitting is measured: `podwright.run` of a matrix (a Job, a ConfigMap
and a Secret for each point), kubectl with the very same objects, and kubectl with as many bare Jobs. Then the points
are followed, first while they wait for nodes that nobody gives them, then until they have ended. Virtual nodes only say
that they ran something: without a word of a pilot the points end as failed, and are closed like any others. All
requests are counted by the API server itself.
"""

from __future__ import annotations

import json
import os
import re
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import podwright
from measure import Row, alternate, bootstrap, compare, conclude, machine, mean_of_middle, parser, say, start
from podwright import launch
from podwright.lab import kubernetes, processes
from podwright.lab.kubernetes import KubernetesLab
from podwright.lab.kubernetes.shape import CONTROL, NAMESPACE
from podwright.launch import pods
from podwright.runs import Home

VIRTUAL = 40
OBJECTS = 3
"""What a point is to Kubernetes: a Job, its order as a ConfigMap, its token as a Secret."""
GOAL_EACH = OBJECTS + 0.1
"""Requests for each point: one for each of its objects, and a few for all points together."""
GOAL_WAITING, GOAL_ENDING, FLOOR_S = 1.0, 4.0, 2.0
"""Requests in this time, however many points are followed: waiting ones are watched, of others the record comes."""
WINDOW_S = 20.0
COUNTED = frozenset({"configmaps", "events", "jobs", "pods", "secrets", "services"})
READING = frozenset({"CONNECT", "GET", "LIST", "WATCH"})
TOTAL = re.compile(r"^apiserver_request_total\{([^}]*)\} (\S+)$", re.MULTILINE)
OPEN = re.compile(r"^apiserver_longrunning_requests\{([^}]*)\} (\S+)$", re.MULTILINE)
LABEL = re.compile(r'(\w+)="([^"]*)"')
OURS, SAME, JOBS = "podwright.run", "kubectl, the same objects", "kubectl, bare Jobs"
# At first the selector fits no node: the points wait, as on a cluster that is full.
WORKLOAD = """\
name: sweep
command: "true"
resources: {{cpus: 1, memory: 64MiB}}
matrix: {{point: [{points}]}}
kubernetes:
  patch:
    spec:
      nodeSelector: {{benchmark: free}}
      tolerations: [{{key: kwok.x-k8s.io/node, operator: Exists}}]
"""
SPACE = f"namespaces/{NAMESPACE}"
OWN = "app.kubernetes.io/managed-by%3Dpodwright"
Asked = Counter[tuple[str, str]]


def counted(text: str) -> Asked:
    """The API server's own count of requests by verb and kind of object; it counts a watch only once it has ended."""
    found = Asked()
    for pattern in (TOTAL, OPEN):
        for labels, value in pattern.findall(text):
            told = dict(LABEL.findall(labels))
            if told["resource"] in COUNTED:
                found[told["verb"], told["resource"]] += int(float(value))
    return found


class Site:
    """The lab's API server as its administrator sees it, beside the user whose arms are measured."""

    def __init__(self, lab: KubernetesLab, folder: Path) -> None:
        self.lab, self.folder = lab, folder

    def call(self, verb: str, path: str) -> str:
        """One request as it is written, which kubectl adds none to; gives the answer's text."""
        done = self.lab.kubectl(verb, f"--raw={path}", admin=True)
        if done.returncode:
            raise SystemExit(f"kubectl {verb} {path}: {done.stderr.strip()[-500:]}")
        return done.stdout

    def asked(self) -> Asked:
        """Requests that were begun until now."""
        return counted(self.call("get", "/metrics"))

    def kubectl(self, *words: str) -> None:
        done = self.lab.kubectl("--namespace", NAMESPACE, *words)
        if done.returncode:
            raise SystemExit(f"kubectl {' '.join(words)}: {done.stderr.strip()[-500:]}")

    def clear(self) -> None:
        """What was submitted goes, before the next arm begins; not what the namespace has of its own."""
        for kind in (f"apis/batch/v1/{SPACE}/jobs", f"api/v1/{SPACE}/configmaps", f"api/v1/{SPACE}/secrets"):
            mine = "" if kind.endswith("jobs") else f"&labelSelector={OWN}"
            self.call("delete", f"/{kind}?propagationPolicy=Background{mine}")

    def free_nodes(self) -> None:
        """The virtual nodes take the points from now on."""
        self.lab.kubectl("label", "nodes", "--selector=type=kwok", "benchmark=free", admin=True)

    def pods(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self.call("get", f"/api/v1/{SPACE}/pods"))["items"]
        return found

    @contextmanager
    def standing_still(self) -> Iterator[None]:
        """Nothing is made of what is submitted, so that only submitting takes the machine's time."""
        (pid,) = self.lab.machines.running(CONTROL)["kube-controller"]
        os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(pid, signal.SIGCONT)


@contextmanager
def quiet_lab(folder: Path) -> Iterator[KubernetesLab]:
    """A lab that is made known under its name in a home of its own."""
    lab = kubernetes.up(folder / "lab", nodes=1, virtual_nodes=VIRTUAL, name="bench-kubernetes")
    try:
        os.environ["PODWRIGHT_HOME"] = str(folder / "home")
        pods.add(Home.open(), lab.pod_file)
        yield lab
    finally:
        lab.down()


def write_objects(site: Site, path: Path) -> None:
    """The points' objects as Podwright renders them, and the Jobs among them without what only Podwright needs."""
    files = launch.render(podwright.load(path), on=site.lab.name)
    texts = [text for name, text in files.items() if name.endswith("/objects.yaml")]
    (site.folder / "same.yaml").write_text("---\n".join(texts))
    container = {"name": "main", "image": site.lab.image, "command": ["true"]}
    jobs = [bare_job(f"bare-{number}", container) for number in range(1, len(texts) + 1)]
    (site.folder / "jobs.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": jobs}))


def bare_job(name: str, container: dict[str, Any]) -> dict[str, Any]:
    """The least that runs a command once."""
    spec = {"restartPolicy": "Never", "containers": [container]}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": {"template": {"spec": spec}}}


def measured(site: Site, submit: Callable[[], object], kept: list[Asked]) -> float:
    """Seconds until everything is accepted, and the requests it took; clearing away is not counted."""
    before = site.asked()
    began = time.perf_counter()
    submit()
    took = time.perf_counter() - began
    kept.append(site.asked() - before)
    site.clear()
    return took


def window(site: Site, run: podwright.Run) -> float:
    """Questions for each two seconds, while a run is followed for a while."""
    before, since = site.asked(), time.monotonic()
    run.wait_at_most(WINDOW_S)
    took = time.monotonic() - since
    read = sum(count for (verb, _), count in (site.asked() - before).items() if verb in READING)
    say(f"followed for {took:.0f} s: {read} requests")
    return read * FLOOR_S / took


def followed(site: Site, path: Path, windows: int) -> dict[str, Any]:
    """Questions, window by window, while a matrix waits and while it ends; and the cores that following takes."""
    run = podwright.run(podwright.load(path), on=site.lab.name)
    points = run.folder.asked.points
    if not processes.until(lambda: len(site.pods()) == points, 600, every_s=2):
        raise SystemExit("the controllers did not make all Kubernetes pods within ten minutes")
    run.wait_at_most(10)
    cpu_s, began = time.process_time(), time.monotonic()
    waiting = [window(site, run) for _ in range(windows)]
    cores = (time.process_time() - cpu_s) / (time.monotonic() - began)
    site.free_nodes()
    ending, began = [window(site, run)], time.monotonic()
    while not run.record().is_final:
        ending.append(window(site, run))
    return {"waiting": waiting, "ending": ending, "ended_s": time.monotonic() - began, "cores": cores}


def main() -> int:
    """Start a lab, submit in turn, then follow."""
    made = parser("A matrix on Kubernetes against kubectl.", pairs=5)
    made.add_argument("--points", type=int, default=1000, help="points of the matrix (default: %(default)s)")
    options = made.parse_args()
    facts, count = machine(), options.points
    asked: dict[str, list[Asked]] = {OURS: [], SAME: [], JOBS: []}
    with tempfile.TemporaryDirectory(prefix="pwbench-", dir="/tmp") as name, quiet_lab(Path(name)) as lab:
        path, site = Path(name, "sweep.yaml"), Site(lab, Path(name))
        path.write_text(WORKLOAD.format(points=", ".join(map(str, range(count)))))
        write_objects(site, path)
        submits: dict[str, Callable[[], object]] = {
            OURS: lambda: podwright.run(podwright.load(path), on=lab.name),
            SAME: partial(site.kubectl, "apply", "--server-side", "-f", str(site.folder / "same.yaml")),
            JOBS: partial(site.kubectl, "create", "-f", str(site.folder / "jobs.json")),
        }
        with site.standing_still():
            arms = {name: partial(measured, site, submit, asked[name]) for name, submit in submits.items()}
            taken = alternate(arms, options.pairs, warm_up=options.pairs > 1)
        rates = followed(site, path, options.pairs)
    each = [sum(one.values()) / count for one in asked[OURS][-options.pairs :]]
    rows = [
        compare(f"{count} points / the same objects by kubectl", taken[OURS], taken[SAME], goal=1.0),
        compare(f"{count} points / {count} bare Jobs by kubectl", taken[OURS], taken[JOBS]),
        Row("requests for a point when it is submitted", bootstrap(each, mean_of_middle), "", GOAL_EACH),
        Row(f"requests each 2 s while {count} wait", bootstrap(rates["waiting"], mean_of_middle), "", GOAL_WAITING),
        Row(f"requests each 2 s while {count} end", bootstrap(rates["ending"], mean_of_middle), "", GOAL_ENDING),
    ]
    counts = {name: [{" ".join(what): n for what, n in one.items()} for one in kept] for name, kept in asked.items()}
    raw = {"seconds": taken, "requests": counts, "followed": rates}
    conclude("kubernetes_submit", rows, raw, facts, options.json)
    return 0


if __name__ == "__main__":
    start(main)
