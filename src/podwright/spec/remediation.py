"""What a pod may do by itself with nodes whose alerts say that they should get no further runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import Field

from podwright.spec.findings import Finding
from podwright.spec.types import Strict

Remedy = Literal["xid", "remap", "link"]


class Remediation(Strict):
    """What is done with such nodes; without this section nothing is."""

    drain: tuple[Remedy, ...] = Field(
        default=("xid", "remap", "link"),
        description="what a node is drained for: xid (errors of a GPU), remap (its memory), link (ports, NVLinks)",
    )
    reset: Literal["after-run", "never"] = Field(
        default="after-run", description="whether it is reset or started anew when nothing runs there any more"
    )
    max: Annotated[int, Field(ge=1, le=10)] = Field(
        default=2, description="how often in a day, before the node stays drained and needs service"
    )
    dry_run: bool = Field(default=False, description="only write into the journal what would be done")


def remediation(tree: dict[str, Any]) -> Iterator[Finding]:
    """Check that somebody tells of alerts where something is to be done about them."""
    if tree.get("remediation") is None:
        return
    services, kinds = tree.get("services"), tree.get("schedulers")
    listed = kinds if isinstance(kinds, list) else []
    on_kubernetes = any(isinstance(each, dict) and each.get("kind") == "kubernetes" for each in listed)
    if not on_kubernetes and "monitoring" not in (services if isinstance(services, list) else []):
        yield Finding(("remediation",), "nothing tells of alerts", "write `services: [monitoring]`")
