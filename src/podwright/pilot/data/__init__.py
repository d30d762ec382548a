"""The data of a run, brought to its nodes and given to its ranks."""
