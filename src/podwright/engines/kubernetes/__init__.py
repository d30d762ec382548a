"""Runs on Kubernetes and OpenShift: plain objects that the cluster's own controllers bring to life."""

from podwright.engines.kubernetes.engine import KubernetesEngine

__all__ = ["KubernetesEngine"]
