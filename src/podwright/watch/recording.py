"""Recording rules: what dashboards and people ask for again and again, by run, user, team, node and pod."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from podwright.spec import Pod

_OWNERS = (("run", "run, user"), ("user", "user"), ("team", "team"))
# Name after the colon, function, and of what: all of it is of GPUs that a run holds.
_OF_OWNER = (
    ("gpus:count", "count", "podwright_gpu_utilization_ratio{run!=''}"),
    ("gpu_utilization:avg", "avg", "podwright_gpu_utilization_ratio{run!=''}"),
    ("gpu_sm_active:avg", "avg", "podwright_gpu_sm_active_ratio{run!=''}"),
    ("gpu_power_watts:sum", "sum", "podwright_gpu_power_watts{run!=''}"),
    ("gpu_memory_used_bytes:sum", "sum", "podwright_gpu_memory_used_bytes{run!=''}"),
)
_OF_PLACE = (
    ("gpus:count", "count", "podwright_gpu_utilization_ratio"),
    ("gpus_held:count", "count", "podwright_gpu_utilization_ratio{run!=''}"),
    ("gpu_utilization:avg", "avg", "podwright_gpu_utilization_ratio"),
    ("gpu_power_watts:sum", "sum", "podwright_gpu_power_watts"),
    ("gpu_temperature_celsius:max", "max", "podwright_gpu_temperature_celsius"),
    ("port_received_bytes:rate5m", "sum", "rate(podwright_port_received_bytes_total[5m])"),
    ("port_sent_bytes:rate5m", "sum", "rate(podwright_port_sent_bytes_total[5m])"),
)
# What programs say of their own time: each host of a run has its lowest rank's word, and counts with its GPUs.
_SPENT = "rate(podwright_run_spent_seconds_total{}[15m])"
_GPUS_OF_RUN = "on (host, run, user) group_left () count by (host, run, user) (podwright_run_info)"
_GOODPUT = (
    ("run:goodput:ratio15m", "avg by (run, user) (" + _SPENT.format("{class='productive'}") + ")"),
    ("class:gpus:rate15m", f"sum by (class) ({_SPENT.format('')} * {_GPUS_OF_RUN})"),
)
GPU_HOUR_PRICE = "pod:gpu_hour_price"


def recording_rules(pod: Pod) -> Iterator[dict[str, object]]:
    """Yield the rules; money only where the pod's file has a price."""
    for level, by in _OWNERS:
        for name, function, series in _OF_OWNER:
            yield _rule(f"{level}:{name}", f"{function} by ({by}) ({series})")
    for level, by in (("node", "host"), ("pod", "")):
        for name, function, series in _OF_PLACE:
            grouping = f" by ({by})" if by else ""
            yield _rule(f"{level}:{name}", f"{function}{grouping} ({series})")
    for name, expression in _GOODPUT:
        yield _rule(name, expression)
    price = pod.costs.gpu_hour_price
    if price is not None:
        yield _rule(GPU_HOUR_PRICE, f"vector({float(price):g})")


def _rule(name: str, expression: str) -> dict[str, object]:
    return {"record": name, "expr": expression.replace("'", '"')}
