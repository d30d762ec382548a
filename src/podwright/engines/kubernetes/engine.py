"""The Kubernetes engine: plans and renders plain objects, gives them to the API server, and follows them."""

from __future__ import annotations

import shutil
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, Any

from podwright.clients.kubernetes.api import Api, ApiError, Away, asked_to
from podwright.clients.kubernetes.kubeconfig import read_entry
from podwright.clients.kubernetes.paths import path_of, path_of_object
from podwright.engines.base import NO_ROUTE, Engine, Files, Job, Request, Status
from podwright.engines.kubernetes.claim_reader import site_of
from podwright.engines.kubernetes.cluster import ClusterWatch
from podwright.engines.kubernetes.delete import delete_runs
from podwright.engines.kubernetes.facts import KubernetesFacts
from podwright.engines.kubernetes.hold import AFTER, release
from podwright.engines.kubernetes.outage import Patience
from podwright.engines.kubernetes.plan import KubernetesJob, plan_job, render_job
from podwright.engines.kubernetes.probe import probe
from podwright.engines.kubernetes.records import Claimed, Shipped, pilot_name, running
from podwright.engines.kubernetes.release import Tending
from podwright.engines.kubernetes.route import exposed, route_objects
from podwright.engines.kubernetes.run_spec import namespace_of
from podwright.engines.kubernetes.states import ROLE
from podwright.engines.kubernetes.submit import submit
from podwright.engines.kubernetes.usage import KubernetesUsage
from podwright.engines.mirror import Trees
from podwright.runs import RunFolder
from podwright.runs.copies import LeftOut
from podwright.runs.typed import grace_s_of
from podwright.spec.problems import Refusal, refuse

if TYPE_CHECKING:
    from podwright.spec import KubernetesScheduler, Pod

NO_CLAIM = "retries over several nodes need a checkpoint folder that all of them share: name a `claim:` in the pod file"
INDEXES = ("batch.kubernetes.io/job-completion-index", "training.kubeflow.org/replica-index")
"""Labels that number the nodes of a run."""
SHELL = 'cd "$HOME"; exec "$(command -v bash || command -v sh)" -i'


class KubernetesEngine(Engine):
    """One pod's Kubernetes. What it asked the cluster a moment ago answers for all runs."""

    name = "kubernetes"
    lag_s = 15.0
    holds = True
    remains = True

    def __init__(
        self, pod: Pod, scheduler: KubernetesScheduler, api: Api | None = None, patience: Patience | None = None
    ) -> None:
        self._pod, self._scheduler, self._given = pod, scheduler, api
        self._patience = patience or Patience()
        self._claimed: dict[tuple[str, str], Claimed] = {}
        self._shipped: dict[str, Shipped] = {}
        self._unread: dict[tuple[str, str], str] = {}

    @cached_property
    def _api(self) -> Api:
        return self._given or Api(read_entry(self._scheduler.kubeconfig, self._scheduler.context))

    @cached_property
    def _tending(self) -> Tending:
        return Tending(self._api, self._cluster, self._patience)

    @cached_property
    def _cluster(self) -> ClusterWatch:
        return ClusterWatch(self._api)

    # pure

    def unsupported(self) -> Mapping[str, str]:
        """Return what is missing without a claim: only a claim is a folder that all nodes share."""
        unsupported: dict[str, str] = {}
        if self._scheduler.dialect != "openshift":
            unsupported["route"] = NO_ROUTE
        if not self._scheduler.claim:
            unsupported["shared"] = NO_CLAIM
        return unsupported

    def plan(self, request: Request, facts: KubernetesFacts) -> KubernetesJob:
        """Plan the objects of every part."""
        return plan_job(request, self._pod, self._scheduler, facts)

    def render(self, job: Job) -> Files:
        assert isinstance(job, KubernetesJob)
        return render_job(job)

    # looking at the cluster

    def probe(self, request: Request) -> KubernetesFacts:
        """Ask the cluster what it has and what the user may do there."""
        with asked_to("answer"):
            home = self._api.entry.namespace or "default"
            namespace = namespace_of(request.workload, self._scheduler, home)
            return probe(self._api, request, namespace, self._scheduler)

    def preflight(self, job: Job) -> None:
        """Let the server look at the run as if it were submitted: what it would refuse never comes to exist."""
        assert isinstance(job, KubernetesJob)
        manifest = job.objects[job.parts[0].run_id][-1]
        with asked_to("take the run"):
            self._api.apply(path_of_object(manifest), manifest, dry=True)
        if job.layer is not None:
            from podwright.engines.kubernetes.code import send_code

            send_code(*job.layer, str(job.site["image"]))

    # starting and ending

    def submit(self, run_id: str, folders: Sequence[RunFolder], again: bool) -> str:
        """Apply the objects of every part; what is there already, by an earlier call, is found."""
        parent = folders[0].path.parent / run_id
        site = site_of(folders[0])
        submit(self._api, site, parent, folders, self._patience.come_back_s)
        self._cluster.forget()
        return f"{site['namespace']}/{run_id}"

    def release(self, folders: Sequence[RunFolder]) -> None:
        """Resume runs that we made suspended, because they come after another."""
        with asked_to("release the run"):
            for folder in folders:
                site = site_of(folder)
                job = self._api.find(path_of(site["kind"], site["namespace"], folder.id))
                if job is not None:
                    release(self._api, site, job, AFTER)
        self._cluster.forget()

    def cancel(self, folders: Sequence[RunFolder], whole: bool = False) -> None:
        """Delete the runs, which lets the pilots give their ranks the grace they were promised.

        Without a claim the record is in the output of containers that are about to go, so that it is taken first.
        """
        shipped = [folder for folder in folders if site_of(folder)["claim"] is None]
        pods = self._cluster.pods(shipped)
        self._delete(folders)
        for (namespace, _), members in _by_claim(shipped):
            grace_s = max(grace_s_of(folder.asked.workload) for folder in members)
            self._ships(namespace).follow(members, pods, grace_s + 60.0)

    def _delete(self, folders: Sequence[RunFolder]) -> None:
        places = [(site_of(folder)["kind"], site_of(folder)["namespace"], folder.id) for folder in folders]
        with asked_to("end the run"):
            delete_runs(self._api, places)
        self._cluster.forget()

    def clean(self, folder: RunFolder) -> None:
        with suppress(Refusal):
            self._delete([folder])

    # following

    def status(self, folders: Sequence[RunFolder]) -> dict[str, Status]:
        return self._cluster.status(folders)

    def unread(self, folders: Sequence[RunFolder]) -> dict[str, str]:
        unread = {}
        for place, members in _by_claim(folders):
            if place in self._unread:
                unread.update(dict.fromkeys((folder.id for folder in members), self._unread[place]))
        return unread

    def tend(self, folders: Sequence[RunFolder]) -> None:
        """Give back nodes that are no use without the others, and resume what waited for its turn."""
        with suppress(Away, ApiError, Refusal):  # the next look does it, or says what is the matter
            self._tending.look(folders)

    def collect(self, folders: Sequence[RunFolder]) -> dict[str, list[str]]:
        gaps: dict[str, list[str]] = {}
        pods = self._cluster.pods(folders)
        for (namespace, claim), members in _by_claim(folders):
            if claim:
                gaps |= self._mirror(namespace, claim, members, pods)
            else:
                gaps |= self._ships(namespace).collect(members, pods)
        return gaps

    def _mirror(self, namespace: str, claim: str, folders: Sequence[RunFolder], pods: Any) -> dict[str, list[str]]:
        """Bring what runs that have begun wrote; those that ended are read once their containers are gone."""
        begun = [folder for folder in folders if self._cluster.has_begun(folder)]
        if begun and self._cluster.is_due(f"{namespace}/{claim}"):
            over = any(self._cluster.is_over(folder) for folder in begun)
            self._unread.pop((namespace, claim), None)
            try:
                return self._claims(namespace, claim).collect(begun, pods, over)
            except Refusal as refusal:  # a cluster that is away for a while has lost nothing
                if self._cluster.has_claim(namespace, claim):
                    self._unread[namespace, claim] = refusal.problems[0].message
        return {}

    def peek(self, folders: Sequence[RunFolder], names: Sequence[str], limit_bytes: int) -> set[str]:
        pods = self._cluster.pods(folders)
        here: set[str] = set()
        for (namespace, claim), members in _by_claim(folders):
            if claim and running(pods):
                here.update(self._claims(namespace, claim).fetch(members, Trees(names, limit_bytes, alone=True), pods))
        return here

    def fetch(self, folders: Sequence[RunFolder], trees: Trees) -> dict[str, list[LeftOut]]:
        pods = self._cluster.pods(folders)
        left: dict[str, list[LeftOut]] = {}
        for (namespace, claim), members in _by_claim(folders):
            if claim:
                left |= self._claims(namespace, claim).fetch(members, trees, pods)
            else:
                left |= {folder.id: [] for folder in members}
        return left

    def remove(self, folder: RunFolder) -> None:
        if folder.asked.points:
            return
        self._delete([folder])
        site = site_of(folder)
        if site["claim"]:
            self._claims(site["namespace"], site["claim"]).remove(folder)

    def clear(self, folders: Sequence[RunFolder], name: str, remove: bool) -> dict[str, int]:
        sizes: dict[str, int] = {}
        for (namespace, claim), members in _by_claim(folders):
            if claim:
                sizes |= self._claims(namespace, claim).clear(members, name, remove)
        return sizes

    def usage(self) -> KubernetesUsage:
        """Return who answers for all jobs of the cluster, as far as the user may see them."""
        namespace = self._scheduler.namespace or self._api.entry.namespace or "default"
        return KubernetesUsage(self._api, namespace)

    def close(self) -> None:
        """Close the connections to the API server."""
        if "_api" in self.__dict__:  # else it was never asked
            self._api.close()

    def shell(self, folder: RunFolder, node: int) -> list[str]:
        pod = self._at_work(folder, node)
        if not shutil.which("kubectl"):
            raise refuse("kubectl is not here, which a shell in a container needs", hint="put it on your PATH")
        reach = ["--context", self._api.entry.context]
        if self._scheduler.kubeconfig:
            reach = ["--kubeconfig", self._scheduler.kubeconfig, *reach]
        place = pod["metadata"]
        where = ["--namespace", place["namespace"], place["name"], "--container", pilot_name(pod)]
        return ["kubectl", *reach, "exec", "-it", *where, "--", "/bin/sh", "-c", SHELL]

    def connect(self, folder: RunFolder, node: int, port: int) -> socket.socket:
        place = self._at_work(folder, node)["metadata"]
        with asked_to("connect to the port"):
            return self._api.port(path_of("Pod", place["namespace"], place["name"]), port)

    def expose(self, folder: RunFolder, node: int, port: int) -> AbstractContextManager[str]:
        """Make a Route, which goes with the run at the latest."""
        pod, site = self._at_work(folder, node), site_of(folder)
        labels = pod["metadata"]["labels"]
        index = {name: labels[name] for name in (*INDEXES, ROLE) if name in labels}
        with asked_to("make the route"):
            owner = self._api.get(path_of(site["kind"], site["namespace"], folder.id))
        return exposed(self._api, route_objects(pod, folder.id, port, index), owner)

    def _at_work(self, folder: RunFolder, node: int) -> Mapping[str, Any]:
        """Return the Kubernetes pod of a node; refuse where none runs."""
        for pod in self._cluster.pods([folder]).get(folder.id, ()):
            if pod["status"].get("phase") == "Running" and _index(pod) == node:
                return pod
        raise refuse(f"node {node} of {folder.id} does not run just now")

    def _claims(self, namespace: str, claim: str) -> Claimed:
        return self._claimed.setdefault((namespace, claim), Claimed(self._api, namespace, claim))

    def _ships(self, namespace: str) -> Shipped:
        return self._shipped.setdefault(namespace, Shipped(self._api, namespace))


def _by_claim(folders: Sequence[RunFolder]) -> Iterator[tuple[tuple[str, str], list[RunFolder]]]:
    """Yield runs of one namespace that have the same claim, or none (""), together."""

    def place(folder: RunFolder) -> tuple[str, str]:
        site = site_of(folder)
        return str(site["namespace"]), str(site["claim"] or "")

    for where, group in groupby(sorted(folders, key=place), place):
        yield where, list(group)


def _index(pod: Mapping[str, Any]) -> int:
    labels = pod["metadata"].get("labels") or {}
    return next((int(labels[name]) for name in INDEXES if name in labels), -1)
