"""A host watched by the real Prometheus and Alertmanager: every panel has something to show, and alerts arrive."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from podwright.watch import DASHBOARDS
from tests.contract.sites import until
from tests.fixtures.nvml import nvml_builds  # noqa: F401
from tests.fixtures.watched import RUN, WatchedHost, watched_host

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("watched")]


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory, nvml_builds: dict[str, Path]) -> Iterator[WatchedHost]:  # noqa: F811
    with watched_host(tmp_path_factory.mktemp("watched"), nvml_builds["new"]) as host:
        yield host


# The stand-in for NVIDIA's library has no GPM, which reads these: a real card must show them.
_NOT_MADE = {"Multiprocessors at work", "Tensor cores at work"}


def test_every_panel_has_something_to_show(watched: WatchedHost) -> None:
    watched.xid(13, gpu=5)
    watched.told('podwright_gpu_xid_errors_total{xid="13"}')
    steps = count(200)

    def is_all_told() -> bool:
        # A pilot speaks again and again; one that falls silent is gone with all that was heard of it.
        watched.say(next(steps), time.time() - 300)
        return empty_panels(watched) == _NOT_MADE

    until(is_all_told, "an answer to every panel, but those of what is not made here")


def test_goodput_is_what_programs_say_of_their_time(watched: WatchedHost) -> None:
    steps, gpus = count(100_000, 10), dict[str, float]()

    def is_told() -> bool:
        watched.say(next(steps), time.time() - 300)
        gpus.update({row["metric"]["class"]: float(row["value"][1]) for row in watched.ask("class:gpus:rate15m")})
        return gpus.get("productive", 0) > 0

    until(is_told, "what the run's GPU does")
    assert gpus["productive"] / gpus["data_wait"] == pytest.approx(9)
    assert [row["metric"]["run"] for row in watched.told("run:goodput:ratio15m")] == [RUN]


def empty_panels(watched: WatchedHost) -> set[str]:
    """Return the panels that show nothing for all hosts, GPUs and runs."""
    empty = set()
    for dashboard in DASHBOARDS:
        for panel in dashboard.panels:
            query = panel.query
            for variable in dashboard.variables:
                query = query.replace(f"${variable.name}", ".*")
            if not watched.ask(query):
                empty.add(panel.title)
    return empty


def test_gpus_say_whose_they_are_and_host_series_join(watched: WatchedHost) -> None:
    (used,) = watched.told(f'podwright_gpu_utilization_ratio{{run="{RUN}"}}')
    assert (used["metric"]["gpu"], used["metric"]["host"], used["metric"]["team"]) == ("0", "n1", "vision")
    joined = watched.told("podwright_host_load1 * on (host) group_right podwright_run_info")
    assert [row["metric"]["run"] for row in joined] == [RUN]


def test_both_vocabularies_of_dcgm_are_there(watched: WatchedHost) -> None:
    old = watched.told("count by (__name__, Hostname) (DCGM_FI_DEV_GPU_TEMP)")
    new = watched.told("count by (__name__, hostname) (DCGM_FI_DEV_GPU_TEMP_CELSIUS)")
    assert [(row["metric"], row["value"][1]) for row in (*old, *new)] == [
        ({"__name__": "DCGM_FI_DEV_GPU_TEMP", "Hostname": "n1"}, "8"),
        ({"__name__": "DCGM_FI_DEV_GPU_TEMP_CELSIUS", "hostname": "n1"}, "8"),
    ]


def test_an_xid_reaches_whom_it_concerns_with_what_to_do(watched: WatchedHost) -> None:
    watched.xid(79, gpu=0)
    until(lambda: any(alert["labels"]["alertname"] == "GpuXidReboot" for alert in watched.heard), "the webhook hears")
    alert = next(alert for alert in watched.heard if alert["labels"]["alertname"] == "GpuXidReboot")
    wanted = {"host": "n1", "gpu": "0", "xid": "79", "run": RUN, "team": "vision", "remedy": "xid", "pod": "adas"}
    assert {name: alert["labels"].get(name) for name in wanted} == wanted
    assert alert["annotations"]["command"] == "ssh n1 dmesg --since -1hour"
    assert json.dumps(alert).count("token") == 0
