"""Datasets of other formats, read into a catalog, and selections written in them."""
