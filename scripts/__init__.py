"""What the `make` verbs run."""
