"""Images of workloads: what `build:` becomes, and what podman or buildah makes of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podwright.spec.late import late_names

if TYPE_CHECKING:
    from podwright.images.builder import Pushed, build, inspect, push, read_recipe
    from podwright.images.recipe import Recipe
    from podwright.images.squashfs import export
    from podwright.images.storage import StoredImage

__all__ = [
    "Pushed",
    "Recipe",
    "StoredImage",
    "build",
    "export",
    "inspect",
    "push",
    "read_recipe",
]

__getattr__ = late_names(__name__, __file__)
