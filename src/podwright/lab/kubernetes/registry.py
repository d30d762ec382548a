"""Puts images into the lab's registry."""

from __future__ import annotations

import io

from podwright.clients.registry import Manifest, Registry, RegistryError
from podwright.lab.kubernetes.image import MANIFEST, Image
from podwright.spec.problems import refuse


def answers(port: int) -> bool:
    """Say whether the registry at a port of the loopback takes requests."""
    try:
        Registry(f"localhost:{port}", "lab").manifest("none")
    except RegistryError:
        return False
    return True


def put(port: int, name: str, image: Image) -> None:
    """Store an image under a name with a tag; what is there already is not sent again."""
    repository, _, tag = name.partition(":")
    registry = Registry(f"localhost:{port}", repository)
    try:
        with image.layer.file.open("rb") as layer:
            registry.put_blob(layer)
        registry.put_blob(io.BytesIO(image.config))
        registry.put_manifest(tag, Manifest(image.manifest(), MANIFEST))
    except RegistryError as error:
        raise refuse(f"the lab's registry does not take {name}: {error}", hint="see its log in the lab") from None
