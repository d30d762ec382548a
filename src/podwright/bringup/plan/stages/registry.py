"""The container registry: TLS by the pod's own authority, one password, and hosts that trust it."""

from __future__ import annotations

import json
from importlib.resources import files

from podwright.bringup.plan.host import HostCommand, HostFile, HostFolder, Step
from podwright.bringup.plan.kubernetes.containerd import USER
from podwright.bringup.plan.site import REGISTRY_PORT, Site
from podwright.bringup.plan.template import text_of
from podwright.bringup.plan.wanted_images import places_of

_FOLDER = "/etc/docker/registry"
_PASSWORDS = f"{_FOLDER}/htpasswd"
_OWNER = "docker-registry"
# Both take the password from standard input. The registry reads the file again whenever it has changed.
_PASSWORD = HostCommand(
    "the registry's password",
    check=("/bin/sh", "-c", f"htpasswd -vi {_PASSWORDS} {USER} 2>&1"),
    sees="correct",
    run=("/bin/sh", "-c", f"umask 027; htpasswd -ciB {_PASSWORDS} {USER} && chgrp {_OWNER} {_PASSWORDS}"),
    secret="registry_password",
)
_IMAGES = "/usr/lib/podwright/registry_images.py"
_CLIENTS = ("/etc/docker/certs.d", "/etc/containers/certs.d")


def password(site: Site, host: str) -> Step | None:
    """Return the registry's programs and its password: it does not start without one."""
    if not site.has("registry") or not site.is_on("registry", host):
        return None
    folders = (HostFolder(_FOLDER), HostFolder(f"{_FOLDER}/tls", "0750", group=_OWNER))
    return Step(packages=("docker-registry", "apache2-utils"), folders=folders, commands=(_PASSWORD,))


def registry(site: Site, host: str) -> Step | None:
    """Return what the registry's host has, and on every host the authority's certificate, where clients look for it."""
    if not site.has("registry"):
        return None
    place = f"{site.roles['registry']}:{REGISTRY_PORT}"
    folders = tuple(HostFolder(f"{folder}/{place}") for folder in _CLIENTS)
    files = tuple(HostFile(f"{folder.path}/ca.crt", secret="ca_certificate") for folder in folders)
    if not site.is_on("registry", host):
        return Step(folders=folders, files=files)
    return Step(
        folders=folders,
        files=(
            *files,
            _file("config.yml", text=text_of("registry.yml", address=site.addresses[host], port=REGISTRY_PORT)),
            _file("tls/registry.crt", secret="registry_certificate"),
            _file("tls/registry.key", secret="registry_key"),
        ),
        services=(_OWNER,),
    )


def images(site: Site, host: str) -> Step | None:
    """Return what puts the images of a site's archive into its registry, before anything starts one of them."""
    archive = site.pod.bringup.archive
    if archive is None or not site.has("registry") or not site.is_on("registry", host):
        return None
    wanted = places_of(site)
    if not wanted:
        return None
    login = HostFile(f"{_FOLDER}/password", mode="0600", secret="registry_password")
    asked = {
        "registry": f"https://{site.registry}",
        "archive": archive,
        "authority": f"{_CLIENTS[0]}/{site.registry}/ca.crt",
        "login": login.path,
        "user": USER,
        "images": [[image.repository, image.tag] for image in wanted],
    }
    program = (files("podwright.bringup.on_host") / "registry_images.py").read_text()
    listed = HostFile(f"{_FOLDER}/images.json", json.dumps(asked, indent=1) + "\n")
    words = ("/usr/bin/python3", _IMAGES)
    given = HostCommand(
        "the archive's images in the registry",
        check=(*words, "check", listed.path),
        sees="same",
        run=(*words, "apply", listed.path),
        tries=3,
    )
    return Step(
        folders=(HostFolder("/usr/lib/podwright"),),
        files=(
            HostFile(_IMAGES, program, "0755"),
            login,
            listed,
        ),
        commands=(given,),
    )


def _file(name: str, text: str = "", secret: str = "") -> HostFile:
    return HostFile(f"{_FOLDER}/{name}", text, "0640", group=_OWNER, secret=secret, restarts=(_OWNER,))
