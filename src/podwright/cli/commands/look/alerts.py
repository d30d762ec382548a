"""`alerts`: what fires on a pod, since when, and what to do."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from podwright.cli.commands.pod.hosts import opened
from podwright.cli.commands.pod.pods import PodOrOnly, only_pod
from podwright.cli.options import AsJson
from podwright.cli.terminal import output

if TYPE_CHECKING:
    from podwright.watch import AlertsResult


def alerts_command(pod: PodOrOnly = None, as_json: AsJson = False) -> int:
    """Ask the pod's Prometheus; exit 1 where anything critical fires."""
    with opened(pod or only_pod()) as bringup:
        result = bringup.alerts()
    if as_json:
        output.print_json(result.as_json())
    else:
        width = output.width_of(sys.stdout)
        print("\n".join(output.clip(line, width) for line in page(result)))
    return int(result.is_critical)


def page(result: AlertsResult) -> Iterator[str]:
    """Lay out what fires: what is wrong, since when, what is likely behind it, where to look."""
    if not result.alerts:
        yield f"{result.pod}: nothing fires"
        return
    for alert in result.alerts:
        yield f"{alert.severity:<8}  {alert.name}  since {alert.since}"
        yield f"  {output.plain(alert.reason)}"
        yield f"  likely: {output.plain(alert.cause)}"
        yield f"  look:   {output.plain(alert.command)}"
