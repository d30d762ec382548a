"""What a run can be to Kubernetes: one row for each kind of object, and everything that differs between them."""

from __future__ import annotations

from dataclasses import dataclass

from podwright.clients.kubernetes.names import PILOT

NODE = "node"
"""The one replicated Job of a JobSet; of a TrainJob also the container, by which its runtime knows it."""


@dataclass(frozen=True)
class ObjectKind:
    """`first` is the name of node 0 in the network, `job` that of the Job which makes the Kubernetes pods."""

    name: str
    version: str
    plural: str
    first: str
    job: str | None = None
    container: str = PILOT
    field: str = "kubernetes.kind"
    made_by: str = ""
    """Who brings it into a cluster; nobody where it is Kubernetes' own."""
    suspend: str = "/spec/suspend"
    """The field that keeps it from starting, as a JSON pointer."""

    @property
    def group(self) -> str:
        """Return the API group, without its version."""
        return self.version.rpartition("/")[0]


KINDS = {
    "job": ObjectKind("Job", "batch/v1", "jobs", "{run}-0", "{run}"),
    "mpi": ObjectKind(
        "MPIJob",
        "kubeflow.org/v2beta1",
        "mpijobs",
        "{run}-worker-0",
        field="launcher",
        made_by="MPI Operator",
        suspend="/spec/runPolicy/suspend",
    ),
    "jobset": ObjectKind(
        "JobSet", "jobset.x-k8s.io/v1alpha2", "jobsets", "{run}-node-0-0", "{run}-node-0", made_by="JobSet controller"
    ),
    "trainjob": ObjectKind(
        "TrainJob",
        "trainer.kubeflow.org/v1alpha1",
        "trainjobs",
        "{run}-node-0-0",
        "{run}-node-0",
        container=NODE,
        made_by="Kubeflow Trainer",
    ),
}
BY_NAME = {kind.name: kind for kind in KINDS.values()}
CONTAINERS = tuple(dict.fromkeys(kind.container for kind in KINDS.values()))
"""Of pilots."""
