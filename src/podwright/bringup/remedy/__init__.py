"""Remediation by policy: what a pod does by itself with a node whose alerts say that it should get no further runs.

`policy` decides and `unit` acts, on the monitoring host; a `hand` on every host does there what it is told.
"""
