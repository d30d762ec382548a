"""Podwright takes a GPU pod from drawing board to trained model."""

from podwright.pilot import __version__

__all__ = ["__version__"]
