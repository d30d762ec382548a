"""What the user may do in a cluster, by the cluster's own word."""

from __future__ import annotations

from podwright.clients.kubernetes.api import Api


def may(api: Api, namespace: str, verb: str, group: str, resource: str) -> bool:
    """Return whether the user has this right in the namespace."""
    name, _, part = resource.partition("/")
    asked = {"namespace": namespace, "verb": verb, "group": group, "resource": name}
    if part:
        asked["subresource"] = part
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": asked},
    }
    answer = api.create("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review)
    return bool(answer["status"]["allowed"])
