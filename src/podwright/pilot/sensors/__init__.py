"""What the pilot reads of a node while its ranks run."""
