"""Selections: samples that are chosen, frozen, and brought to a training."""
