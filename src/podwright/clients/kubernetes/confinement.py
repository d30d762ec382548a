"""What a container may do under Pod Security `restricted`."""

from __future__ import annotations

from typing import Any


def confined(added: list[str]) -> dict[str, Any]:
    """Return what Pod Security `restricted` demands, and a root file system that nobody writes to."""
    capabilities = {"drop": ["ALL"]}
    if added:
        capabilities["add"] = added
    return {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": capabilities,
    }
