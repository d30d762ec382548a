"""The draft of a workload, guessed from a script."""
