"""Runs on one machine: who waits for a place, and who replaces a lost node."""
