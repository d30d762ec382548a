"""The life of one node of a run: joining, leading or following, and the end."""
