"""The releases of Kubernetes that objects are held against, and what each says of one."""

from __future__ import annotations

from functools import cache
from typing import Any
from unittest.mock import patch

import kubernetes_validate

RELEASES = [f"1.{minor}" for minor in range(28, int(kubernetes_validate.latest_version().split(".")[1]) + 1)]
_contents = cache(kubernetes_validate.utils.schema_contents)
"""A release's definitions are several megabytes, and the validator would read them for every object."""


def validate(made: dict[str, Any], release: str) -> None:
    """Strict: a field that the release does not know is wrong."""
    with patch.object(kubernetes_validate.utils, "schema_contents", _contents):
        kubernetes_validate.validate(made, release, strict=True)
