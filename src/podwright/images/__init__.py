"""Images of workloads: what `build:` becomes, and what podman or buildah makes of it."""

from podwright.images.recipe import Recipe, containerfile, recipe_of

__all__ = ["Recipe", "containerfile", "recipe_of"]
