"""The Slurm engine: one sbatch script per job, reached on this machine or through the user's own ssh."""

from podwright.engines.slurm.engine import SlurmEngine

__all__ = ["SlurmEngine"]
