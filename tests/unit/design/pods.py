"""Pods for the tests of the design."""

from __future__ import annotations

from typing import Any

from podwright.design import Design
from podwright.spec import Pod


def designed(count: int, model: str = "dgx-a100", **more: Any) -> Design:
    """The design of so many nodes; further fields of the pod file by name."""
    return Design.of(Pod.model_validate({"name": "pod", "nodes": [group(count, model)], **more}))


def group(nodes: int, model: str = "dgx-a100") -> dict[str, Any]:
    """One group of nodes, dgx0001 and on."""
    return {"hosts": f"dgx[0001-{nodes:04d}]", "model": model}
