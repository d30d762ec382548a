"""Images that OpenShift builds itself, from the same recipe that podman builds from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from podwright.bringup.kubernetes.openshift import binary_source, build_objects, git_source, inline_source
from podwright.clients.kubernetes.api import Api, ApiError, Away, refusal_of
from podwright.clients.kubernetes.paths import path_of_object
from podwright.spec.problems import refuse

if TYPE_CHECKING:
    from podwright.images.recipe import Recipe
    from podwright.spec import KubernetesScheduler, Pod

Object = dict[str, Any]


def check_dialect(pod: Pod, scheduler: KubernetesScheduler) -> None:
    if scheduler.dialect != "openshift":
        hint = "leave `--on` out to build here, then `podwright image push`"
        raise refuse(f"the pod {pod.name} is no OpenShift, and Kubernetes alone builds no images", hint, "--on")


def recipe_objects(recipe: Recipe, namespace: str, git: str | None = None) -> list[Object]:
    """Return the image stream and its build. Files come from git (URL#REF:FOLDER), or are sent by the user."""
    return build_objects(recipe.workload, namespace, _source(recipe, git), recipe.tag)


def _source(recipe: Recipe, git: str | None) -> Object:
    if git:
        url, _, rest = git.partition("#")
        ref, _, folder = rest.partition(":")
        return {**git_source(url, ref or None, folder or None), "dockerfile": recipe.text}
    if recipe.files:
        return {**binary_source(), "dockerfile": recipe.text}
    return inline_source(recipe.text)


def needs_files(build: Object) -> bool:
    """Return whether somebody must send files for this BuildConfig to be built."""
    return bool(build["spec"]["source"]["type"] == "Binary")


def start_build(api: Api, build: Object) -> str:
    """Start a build and return its name."""
    request = {
        "apiVersion": build["apiVersion"],
        "kind": "BuildRequest",
        "metadata": {"name": build["metadata"]["name"]},
    }
    try:
        started = api.create(f"{path_of_object(build)}/instantiate", request)
    except (ApiError, Away) as error:
        raise refusal_of(error, "start the build") from None
    return str(started["metadata"]["name"])
