"""Near-duplicates among the images of a dataset, wherever they lie: by hashes of their looks, or by vectors."""
