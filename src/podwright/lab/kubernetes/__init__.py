"""A real Kubernetes on this machine: control plane, nodes that run containers, and nodes that are only played."""

from podwright.lab.kubernetes.borrowed import BorrowedLab, borrow
from podwright.lab.kubernetes.cluster import KubernetesLab, find, up
from podwright.lab.kubernetes.shape import DEFAULT, KubernetesLabShape

__all__ = ["DEFAULT", "BorrowedLab", "KubernetesLab", "KubernetesLabShape", "borrow", "find", "up"]
