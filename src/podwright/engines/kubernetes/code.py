"""Code that is too much for ConfigMaps: sent to the registry of the image, before the run exists."""

from __future__ import annotations

from io import BufferedIOBase

from podwright.clients.kubernetes.names import CODE_FILE
from podwright.clients.registry import RegistryError
from podwright.engines.kubernetes.checks import LESS_CODE
from podwright.images.layer import prepare, send
from podwright.spec.problems import Refusal, refuse


def send_code(image: str, code: BufferedIOBase, wanted: str) -> None:
    """Send the image with this code to the registry, under the name that the plan counted on."""
    try:
        with prepare(image, code, CODE_FILE) as layered:
            if layered.image != wanted:
                raise refuse(f"the image {image} was changed just now", hint="start the run again")
            send(layered)
    except RegistryError as error:
        raise _refusal(error, image) from None


def _refusal(error: RegistryError, image: str) -> Refusal:
    host = image.partition("/")[0]
    message = f"{host} does not take the code as a layer of {image}: {error}"
    hint = LESS_CODE
    if error.status in (401, 403):
        hint = f"`podman login {host}` as somebody who may push there; or {LESS_CODE}"
    return refuse(message, hint=hint, field="code", exit_code=2 if 400 <= error.status < 500 else 3)
