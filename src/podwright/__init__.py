"""Podwright takes a GPU pod from drawing board to trained model."""

__version__ = "0.1.0"
