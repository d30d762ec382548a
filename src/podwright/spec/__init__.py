"""The pod, the workload and the hardware library."""
