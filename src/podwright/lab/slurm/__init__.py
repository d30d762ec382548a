"""A real Slurm cluster on this machine."""
