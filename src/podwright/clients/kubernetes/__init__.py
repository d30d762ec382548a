"""Kubernetes as a client sees it: its API, the user's kubeconfig, and how objects are named, written and applied."""
