"""Questions to a dataset: conditions, the indexes that answer them, and SQL."""
