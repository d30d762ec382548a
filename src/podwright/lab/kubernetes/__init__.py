"""A real Kubernetes on this machine: control plane, nodes that run containers, and nodes that are only played."""

from podwright.lab.kubernetes.borrowed import BorrowedLab, borrow
from podwright.lab.kubernetes.cluster import Lab, find, up
from podwright.lab.kubernetes.shape import DEFAULT, Shape

__all__ = ["DEFAULT", "BorrowedLab", "Lab", "Shape", "borrow", "find", "up"]
