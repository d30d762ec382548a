"""The lab's API server as its administrator reaches it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from podwright.clients.kubernetes.api import Api, ApiError, Away
from podwright.clients.kubernetes.kubeconfig import Entry

MERGE = "application/merge-patch+json"
_MANAGER = "podwright-lab"  # what a user applies with Podwright has an owner of its own
_CONFLICT = 409
_ANSWER_S = 3.0
_QUIET_S = 86400.0


def admin_api(host: str, port: int, pki: Path) -> Api:
    """Return the API server at an address, for the administrator whose certificate lies in a folder."""
    cluster = {"server": f"https://{host}:{port}", "certificate-authority": "ca.crt"}
    user = {"client-certificate": "admin.crt", "client-key": "admin.key"}
    return Api(Entry("lab", cluster, user, None, pki, pki), _MANAGER)


def answers(api: Api, path: str) -> bool:
    """Say whether a path can be read; a server that is just starting may take a request and never answer it."""
    try:
        with api.lines(path, _ANSWER_S):
            return True
    except (ApiError, Away):
        return False


def create_missing(api: Api, path: str, thing: dict[str, Any]) -> None:
    """Make an object of the kind at a path; one that is there already stays as it is."""
    try:
        api.create(path, thing)
    except ApiError as error:
        if error.status != _CONFLICT:
            raise


def follow(api: Api, path: str) -> Iterator[dict[str, Any]]:
    """Yield every object of a kind as it is and whenever it changes, until the connection ends."""
    things, version = api.items(path)
    yield from things
    with api.lines(path, _QUIET_S, watch=True, resourceVersion=version) as lines:
        for line in lines:
            event = json.loads(line)
            if event["type"] == "ERROR":
                return
            if event["type"] != "DELETED":
                yield event["object"]
