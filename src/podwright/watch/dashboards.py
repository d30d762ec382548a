"""Six dashboards for Grafana: pod, node, GPU, run, fabric, cost; what each panel asks is a row of a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from podwright.watch.recording import GPU_HOUR_PRICE

if TYPE_CHECKING:
    from podwright.spec import Pod

SCHEMA_VERSION = 39
SOURCE = "${source}"
MONEY = "money"
"""Stands for the pod's currency among units."""
_COLUMNS = 24
_HEIGHT = 8


@dataclass(frozen=True)
class DashboardPanel:
    """One panel: its title, the unit Grafana knows, what it asks, how each line is called, and its form."""

    title: str
    unit: str
    query: str
    legend: str
    form: str
    width: int


def _lines(title: str, unit: str, query: str, legend: str) -> DashboardPanel:
    return DashboardPanel(title, unit, query, legend, "timeseries", 12)


def _stat(title: str, unit: str, query: str) -> DashboardPanel:
    return DashboardPanel(title, unit, query, "", "stat", 6)


@dataclass(frozen=True)
class Variable:
    """A choice above a dashboard: the values of a label that a series has."""

    name: str
    series: str


@dataclass(frozen=True)
class Dashboard:
    """One dashboard."""

    name: str
    title: str
    variables: Sequence[Variable]
    panels: Sequence[DashboardPanel]

    @property
    def uid(self) -> str:
        """Return what links between dashboards know it by."""
        return f"podwright-{self.name}"


_HOST = Variable("host", "podwright_gpu_info")
_ON_HOST = '{host=~"$host"}'
_OF_RUN = '{run=~"$run"}'
_GPU_NAME = "{{host}} GPU {{gpu}}"
_PORT_NAME = "{{host}} {{device}}/{{port}}"

_POD = Dashboard(
    "pod",
    "Pod",
    (),
    (
        _stat("GPUs", "short", "pod:gpus:count"),
        _stat("GPUs held by runs", "short", "pod:gpus_held:count or vector(0)"),
        _stat("Power of all GPUs", "watt", "pod:gpu_power_watts:sum"),
        _stat("Alerts", "short", 'count(ALERTS{alertstate="firing"}) or vector(0)'),
        _lines("GPU utilisation", "percentunit", "pod:gpu_utilization:avg", "all GPUs"),
        _lines("GPUs by user", "short", "user:gpus:count", "{{user}}"),
        _lines("Warmest GPU of each node", "celsius", "topk(10, node:gpu_temperature_celsius:max)", "{{host}}"),
        _lines("Throttled GPUs", "short", "sum by (reason) (podwright_gpu_throttled)", "{{reason}}"),
        _lines(
            "XID errors",
            "short",
            "sum by (host, gpu, xid) (podwright_gpu_xid_errors_total)",
            f"{_GPU_NAME} XID {{{{xid}}}}",
        ),
        _lines("Exporters that answer", "short", "sum by (job) (up)", "{{job}}"),
    ),
)
_NODE = Dashboard(
    "node",
    "Node",
    (_HOST,),
    (
        _lines("CPU", "percentunit", f"podwright_host_cpu_ratio{_ON_HOST}", "{{host}}"),
        _lines("Memory used", "bytes", f"podwright_host_memory_used_bytes{_ON_HOST}", "{{host}}"),
        _lines("GPU utilisation", "percentunit", f"podwright_gpu_utilization_ratio{_ON_HOST}", _GPU_NAME),
        _lines("GPU power", "watt", f"podwright_gpu_power_watts{_ON_HOST}", _GPU_NAME),
        _lines("Received from fabrics", "Bps", f"node:port_received_bytes:rate5m{_ON_HOST}", "{{host}}"),
        _lines("Sent to fabrics", "Bps", f"node:port_sent_bytes:rate5m{_ON_HOST}", "{{host}}"),
        _lines("Load", "short", f"podwright_host_load1{_ON_HOST}", "{{host}}"),
        _lines("Sensors that fail", "short", f"podwright_exporter_sensor_up{_ON_HOST} == bool 0", "{{sensor}}"),
        _lines(
            "CPU of the exporter",
            "percentunit",
            f"rate(podwright_exporter_cpu_seconds_total{_ON_HOST}[5m])",
            "{{host}}",
        ),
    ),
)
_GPU = Dashboard(
    "gpu",
    "GPU",
    (_HOST, Variable("gpu", "podwright_gpu_info")),
    tuple(
        _lines(title, unit, f'{series}{{host=~"$host", gpu=~"$gpu"}}', " ".join(filter(None, (_GPU_NAME, label))))
        for title, unit, series, label in (
            ("Utilisation", "percentunit", "podwright_gpu_utilization_ratio", ""),
            ("Multiprocessors at work", "percentunit", "podwright_gpu_sm_active_ratio", ""),
            ("Tensor cores at work", "percentunit", "podwright_gpu_tensor_active_ratio", ""),
            ("Memory used", "bytes", "podwright_gpu_memory_used_bytes", ""),
            ("Temperature", "celsius", "podwright_gpu_temperature_celsius", ""),
            ("Margin to slowdown", "celsius", "podwright_gpu_temperature_margin_celsius", ""),
            ("Power", "watt", "podwright_gpu_power_watts", ""),
            ("Clock of multiprocessors", "hertz", "podwright_gpu_sm_clock_hertz", ""),
            ("Throttled", "short", "podwright_gpu_throttled", "{{reason}}"),
            ("Memory errors", "short", "podwright_gpu_ecc_errors_total", "{{error}}"),
            ("NVLinks that are up", "short", "podwright_gpu_nvlink_links_active", ""),
            ("Lanes of PCIe", "short", "podwright_gpu_pcie_link_width", ""),
        )
    ),
)
_RANK_NAME = "rank {{rank}}"
_RUN_PAGE = Dashboard(
    "run",
    "Run",
    (Variable("run", "podwright_run_info"),),
    (
        _stat("GPUs", "short", f"run:gpus:count{_OF_RUN}"),
        _stat("Mean utilisation", "percentunit", f"run:gpu_utilization:avg{_OF_RUN}"),
        _stat("Power", "watt", f"run:gpu_power_watts:sum{_OF_RUN}"),
        _stat("Time of a step", "s", f"podwright_run_step_seconds{_OF_RUN}"),
        _lines("Utilisation by rank", "percentunit", f"podwright_gpu_utilization_ratio{_OF_RUN}", _RANK_NAME),
        _lines("Memory by rank", "bytes", f"podwright_gpu_memory_used_bytes{_OF_RUN}", _RANK_NAME),
        _lines("Temperature by rank", "celsius", f"podwright_gpu_temperature_celsius{_OF_RUN}", _RANK_NAME),
        _lines("Power by rank", "watt", f"podwright_gpu_power_watts{_OF_RUN}", _RANK_NAME),
        _lines(
            "Sent to fabrics by its hosts",
            "Bps",
            f"node:port_sent_bytes:rate5m and on (host) podwright_run_info{_OF_RUN}",
            "{{host}}",
        ),
    ),
)
_FABRIC = Dashboard(
    "fabric",
    "Fabric",
    (Variable("host", "podwright_port_info"),),
    (
        _stat("Links that are down", "short", "count(podwright_port_up == 0) or vector(0)"),
        _stat("Links that are up", "short", "count(podwright_port_up == 1)"),
        _stat("Went down in a day", "short", "sum(increase(podwright_port_link_downed_total[1d]))"),
        _lines("Speed of links", "Bps", f"podwright_port_rate_bytes_per_second{_ON_HOST}", _PORT_NAME),
        _lines("Sent", "Bps", f"rate(podwright_port_sent_bytes_total{_ON_HOST}[5m])", _PORT_NAME),
        _lines("Received", "Bps", f"rate(podwright_port_received_bytes_total{_ON_HOST}[5m])", _PORT_NAME),
        _lines("Errors", "short", f"rate(podwright_port_errors_total{_ON_HOST}[5m])", f"{_PORT_NAME} {{{{error}}}}"),
        _lines("Congestion", "short", f"rate(podwright_port_ecn_total{_ON_HOST}[5m])", f"{_PORT_NAME} {{{{event}}}}"),
        _lines("NVLink errors", "short", "sum by (host, gpu) (rate(podwright_gpu_nvlink_errors_total[5m]))", _GPU_NAME),
    ),
)
# Of what held GPUs do, that which no program told is other, as in the goodput of a run.
_UNTOLD = "clamp_min(pod:gpus_held:count - (sum(class:gpus:rate15m) or vector(0)), 0)"
_BY_CLASS = f'class:gpus:rate15m or label_replace({_UNTOLD}, "class", "other", "", "")'
_PRODUCTIVE = 'sum(class:gpus:rate15m{class="productive"}) / pod:gpus_held:count'
_HELD_IDLE = 'sum by (user) (podwright_gpu_utilization_ratio{run!=""} < bool 0.01)'
_COST = Dashboard(
    "cost",
    "Cost and goodput",
    (),
    (
        _lines("Goodput of runs", "percentunit", "run:goodput:ratio15m", "{{run}} of {{user}}"),
        _lines("Goodput of all held GPUs", "percentunit", _PRODUCTIVE, "all GPUs"),
        _lines("What held GPUs do, as programs say", "short", _BY_CLASS, "{{class}}"),
        _lines("GPUs by team", "short", "team:gpus:count", "{{team}}"),
        _lines("Spent an hour", MONEY, f"user:gpus:count * on () group_left {GPU_HOUR_PRICE}", "{{user}}"),
        _lines("Held and idle", "short", _HELD_IDLE, "{{user}}"),
        _lines("Held by nobody", "short", "pod:gpus:count - (pod:gpus_held:count or vector(0))", "free"),
        _lines("Energy in a day", "joule", "sum(increase(podwright_gpu_energy_joules_total[1d]))", "all GPUs"),
    ),
)
DASHBOARDS = (_POD, _NODE, _GPU, _RUN_PAGE, _FABRIC, _COST)


def dashboard_json(dashboard: Dashboard, pod: Pod) -> dict[str, Any]:
    """Return a dashboard as Grafana imports it; whoever does says which Prometheus is its source."""
    source = {"type": "prometheus", "uid": SOURCE}
    return {
        "uid": dashboard.uid,
        "title": f"{pod.name}: {dashboard.title}",
        "tags": ["podwright"],
        "schemaVersion": SCHEMA_VERSION,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "timezone": "browser",
        "templating": {"list": [_source_choice(), *(_choice(each, source) for each in dashboard.variables)]},
        "links": [{"type": "dashboards", "title": "Podwright", "tags": ["podwright"], "asDropdown": True}],
        "panels": list(_panels(dashboard, source, pod.costs.currency)),
    }


def _source_choice() -> dict[str, Any]:
    return {"type": "datasource", "name": "source", "label": "Prometheus", "query": "prometheus"}


def _choice(variable: Variable, source: dict[str, str]) -> dict[str, Any]:
    return {
        "type": "query",
        "name": variable.name,
        "label": variable.name,
        "datasource": source,
        "query": {"query": f"label_values({variable.series}, {variable.name})", "refId": variable.name},
        "refresh": 2,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"text": ["All"], "value": ["$__all"]},
    }


def _panels(dashboard: Dashboard, source: dict[str, str], currency: str) -> Iterator[dict[str, Any]]:
    x = y = 0
    for number, panel in enumerate(dashboard.panels, 1):
        if x + panel.width > _COLUMNS:
            x, y = 0, y + _HEIGHT
        unit = f"suffix: {currency}" if panel.unit == MONEY else panel.unit
        yield {
            "id": number,
            "type": panel.form,
            "title": panel.title,
            "datasource": source,
            "gridPos": {"x": x, "y": y, "w": panel.width, "h": _HEIGHT},
            "fieldConfig": {"defaults": {"unit": unit}, "overrides": []},
            "targets": [{"refId": "A", "expr": panel.query, "legendFormat": panel.legend}],
        }
        x += panel.width
