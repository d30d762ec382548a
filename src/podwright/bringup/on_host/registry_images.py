"""Puts the images of a site's archive into the pod's registry, or says which it lacks; every part by its digest.

It is sent to the registry's host as it is, as `registry_images.py check FILE` or `registry_images.py apply FILE`:
standard library only, Python 3.8. FILE names both places, the authority that they are known by, the file of the
registry's password and the images. What the registry has beside these stays.
"""

from __future__ import annotations

import base64
import hashlib
import json
import ssl
import sys
import urllib.error
import urllib.request
from typing import Any, Dict, Iterator, List, Optional, Tuple
from urllib.parse import urlencode, urljoin

PATIENCE_S = 120
OCI, DOCKER = "application/vnd.oci.image", "application/vnd.docker.distribution"
INDEXES = (OCI + ".index.v1+json", DOCKER + ".manifest.list.v2+json")
ACCEPTED = ", ".join((*INDEXES, OCI + ".manifest.v1+json", DOCKER + ".manifest.v2+json"))


class ImageServer:
    """One server of images; only the one that knows us gets the password."""

    def __init__(self, root: str, authority: str, login: str = "") -> None:
        self.root = root
        context = ssl.create_default_context(cafile=authority)
        self._opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context)
        )
        self._headers = {"Accept": ACCEPTED}
        if login:
            self._headers["Authorization"] = "Basic " + base64.b64encode(login.encode()).decode()

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        """Return the open answer; none where the server has no such thing."""
        more = {name.replace("_", "-"): value for name, value in headers.items()}
        url = urljoin(self.root + "/v2/", path)
        request = urllib.request.Request(url, body, {**self._headers, **more}, method=method)
        try:
            return self._opener.open(request, timeout=PATIENCE_S)
        except urllib.error.HTTPError as error:
            if error.code == 404 and method in ("GET", "HEAD"):
                return None
            raise OSError("%s answers %d to %s %s" % (self.root, error.code, method, path)) from None
        except urllib.error.URLError as error:
            raise OSError("%s cannot be reached: %s" % (self.root, error.reason)) from None

    def digest(self, repository: str, tag: str) -> Optional[str]:
        """Return the digest that a tag stands for; none where there is no such image."""
        answer = self.ask("HEAD", "%s/manifests/%s" % (repository, tag))
        return None if answer is None else str(answer.headers["Docker-Content-Digest"])

    def manifest(self, repository: str, digest: str) -> Optional[Tuple[bytes, str]]:
        """Return the bytes of a manifest and their kind, checked by its digest."""
        answer = self.ask("GET", "%s/manifests/%s" % (repository, digest))
        if answer is None:
            return None
        raw = answer.read()
        if "sha256:" + hashlib.sha256(raw).hexdigest() != digest:
            raise OSError("%s gives other bytes for %s of %s" % (self.root, digest, repository))
        return raw, str(answer.headers["Content-Type"]).partition(";")[0].strip()


def lacking(archive: ImageServer, registry: ImageServer, images: List[List[str]]) -> Iterator[Tuple[str, str, str]]:
    """Yield the images that the registry has not, or another one under that name: each with its digest."""
    for repository, tag in images:
        wanted = archive.digest(repository, tag)
        if wanted is None:
            raise OSError("%s has no image %s:%s" % (archive.root, repository, tag))
        if registry.digest(repository, tag) != wanted:
            yield repository, tag, wanted


def give(archive: ImageServer, registry: ImageServer, repository: str, tag: str, digest: str) -> None:
    """Copy an image with all its parts; the tag comes last, so that nobody sees half of one."""
    found = archive.manifest(repository, digest)
    if found is None:
        return
    raw, kind = found
    document = json.loads(raw)
    for part in document.get("manifests", []):
        give(archive, registry, repository, part["digest"], part["digest"])
    parts = document.get("layers", [])
    if "config" in document:
        parts.append(document["config"])
    for part in parts:
        give_blob(archive, registry, repository, part["digest"])
    registry.ask("PUT", "%s/manifests/%s" % (repository, tag), raw, Content_Type=kind)


def give_blob(archive: ImageServer, registry: ImageServer, repository: str, digest: str) -> None:
    """Copy a part that the registry lacks, which looks at its digest."""
    path = "%s/blobs/%s" % (repository, digest)
    if registry.ask("HEAD", path) is not None:
        return
    source = archive.ask("GET", path)
    if source is None:
        raise OSError("%s has no part %s of %s" % (archive.root, digest, repository))
    begun = registry.ask("POST", "%s/blobs/uploads/" % repository, b"")
    location = urljoin(registry.root, begun.headers["Location"])
    url = location + ("&" if "?" in location else "?") + urlencode({"digest": digest})
    kind, size = "application/octet-stream", source.headers["Content-Length"]
    registry.ask("PUT", url, source, Content_Type=kind, Content_Length=size)


def main(verb: str, file: str) -> int:
    """Look, or copy what is lacking; what is wrong is one line."""
    with open(file) as stream:
        asked: Dict[str, Any] = json.load(stream)
    with open(asked["login"]) as stream:
        login = "%s:%s" % (asked["user"], stream.read().strip())
    archive = ImageServer(asked["archive"], asked["authority"])
    registry = ImageServer(asked["registry"], asked["authority"], login)
    try:
        missing = list(lacking(archive, registry, asked["images"]))
        if verb == "apply":
            for repository, tag, digest in missing:
                give(archive, registry, repository, tag, digest)
                print("given %s:%s" % (repository, tag))
            return 0
    except OSError as error:
        print(error, file=sys.stderr)
        return 1
    print("missing %s" % ", ".join("%s:%s" % row[:2] for row in missing) if missing else "same")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
