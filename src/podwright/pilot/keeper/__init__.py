"""Runs on one machine: who waits for a slot, and who replaces a lost node."""
