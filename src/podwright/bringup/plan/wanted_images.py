"""The images that a site shall have, under the names by which they are asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podwright.bringup.plan.kubernetes import addons
from podwright.bringup.plan.kubernetes.images import cluster_images, images_in
from podwright.clients.registry import Reference, RegistryError, parse
from podwright.spec.problems import refuse

if TYPE_CHECKING:
    from podwright.bringup.plan.site import Site


def images_of(site: Site) -> list[str]:
    """Return the images that the file names, and those of the cluster and add-ons that `up` makes; each once.

    An add-on whose publisher names no registry is taken from whichever the file says.
    """
    pod = site.pod
    named = [scheduler.image for scheduler in pod.schedulers if scheduler.kind == "kubernetes" and scheduler.image]
    named += pod.bringup.images
    if site.kubernetes is None:
        return sorted(set(named))
    given = {path_of(place) for place in _places(named)}
    own = [*cluster_images(site), *images_in(addons.objects(site))]
    return sorted({*named, *(name for name in own if name not in given and _is_whole(name))})


def places_of(site: Site) -> list[Reference]:
    """Return the parts of their names; refuse one that says no registry."""
    return _places(images_of(site))


def path_of(place: Reference) -> str:
    """Return the name without its registry."""
    return f"{place.repository}:{place.tag}"


def _places(names: list[str]) -> list[Reference]:
    try:
        return [parse(name) for name in names]
    except RegistryError as error:
        raise refuse(str(error), field="bringup.images") from None


def _is_whole(name: str) -> bool:
    """Return whether an image of ours says its registry; refuse one that does not, which nobody could fetch."""
    try:
        parse(name)
    except RegistryError:
        hint = f"write it with the registry that it comes from: `images: [registry.example/{name}]`"
        raise refuse(
            f"an archive needs {name}, and nothing says where from", hint=hint, field="bringup.images"
        ) from None
    return True
