"""The pilot: the small program beside the workload on every node of a run. Standard library only, Python >= 3.8."""

__version__ = "0.3.0.dev0"
