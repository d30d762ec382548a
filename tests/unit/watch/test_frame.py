"""A moment of a pod out of Prometheus' answer, and as a terminal of 80 columns shows it."""

from __future__ import annotations

import json

import pytest

from podwright.cli.terminal.pod_frame import frame_lines
from podwright.spec import Refusal
from podwright.watch import FRAME_QUESTION, frame_of


def answer(*rows: tuple[str, float]) -> str:
    """Prometheus' answer; a row is `name{label=value,...}` and a value."""
    result = []
    for series, value in rows:
        name, _, rest = series.partition("{")
        labels = dict(pair.split("=", 1) for pair in rest.rstrip("}").split(",") if pair)
        result.append({"metric": {"__name__": name, **labels}, "value": [1.0, str(value)]})
    return json.dumps({"status": "success", "data": {"result": result}})


POD = answer(
    ("up{job=node,host=n1}", 1),
    ("up{job=node,host=n10}", 0),
    ("up{job=node,host=n2}", 1),
    *((f"podwright_gpu_utilization_ratio{{host=n2,gpu={gpu},run=digits-7f3k,user=ada}}", 0.9) for gpu in (1, 0, 10)),
    ("podwright_gpu_utilization_ratio{host=n2,gpu=2}", 0),
    ("node:gpu_power_watts:sum{host=n2}", 2500),
    ("node:gpu_temperature_celsius:max{host=n2}", 61),
    ("podwright_host_cpu_ratio{host=n2}", 0.5),
    ("podwright_host_memory_used_bytes{host=n2}", 2**39),
    ("podwright_host_memory_bytes{host=n2}", 2**40),
    ("node:port_received_bytes:rate5m{host=n2}", 12.3e9),
    ("node:port_sent_bytes:rate5m{host=n2}", 999),
    ("podwright_port_up{host=n2,device=mlx5_0,port=1}", 1),
    ("podwright_port_up{host=n2,device=mlx5_1,port=1}", 0),
    ("ALERTS{alertname=LinkDown,alertstate=firing,severity=critical,host=n2}", 1),
    ("ALERTS{alertname=LinkDown,alertstate=firing,severity=critical,host=n2,device=mlx5_1}", 1),
    ("ALERTS{alertname=NodesDrained,alertstate=firing,severity=warning}", 1),
    ("slurm_jobs{state=running,partition=a}", 3),
    ("slurm_jobs{state=running,partition=b}", 1),
    ("slurm_nodes{state=idle}", 2),
    ("slurm_nodes{state=down}", 0),
)


@pytest.mark.parametrize(
    ("alert", "state"), [("LinkSlow", "slow"), ("LinkFlapping", "flapping"), ("LinkErrors", "errors"), ("Other", "up")]
)
def test_a_port_that_is_up_may_still_be_in_trouble(alert: str, state: str) -> None:
    fires = f"ALERTS{{alertname={alert},alertstate=firing,severity=warning,host=n2,device=mlx5_0,port=1}}"
    frame = frame_of("adas", answer(("podwright_port_up{host=n2,device=mlx5_0,port=1}", 1), (fires, 1)))
    assert [port.state for port in frame.nodes[0].ports] == [state]


def test_nodes_gpus_links_and_the_queue() -> None:
    frame = frame_of("adas", POD)
    assert [node.host for node in frame.nodes] == ["n1", "n2", "n10"]
    node = frame.nodes[1]
    assert ([gpu.gpu for gpu in node.gpus], node.held) == (["0", "1", "2", "10"], 3)
    assert (node.links_up, node.links, node.alerts) == (1, 2, ["LinkDown"])
    assert [(port.port, port.state) for port in node.ports] == [("mlx5_0/1", "up"), ("mlx5_1/1", "down")]
    assert node.ports[1].alerts == ["LinkDown"]
    assert (frame.jobs, frame.states) == ({"running": 4}, {"idle": 2, "down": 0})
    assert (frame.critical, frame.warnings) == (2, 1)
    document = frame.as_json()
    assert document["nodes"][2]["up"] is False
    assert document["nodes"][0]["cpu"] is None


def test_it_fits_80_columns() -> None:
    lines = [text for text, _ in frame_lines(frame_of("adas", POD), 80)]
    assert (
        "\n".join(lines)
        == """\
adas  2 of 3 nodes, 2 critical, 1 warning; `podwright alerts adas`
gpus      3 of 4 held, 68% busy, 2.5 kW
links     1 of 2 up
queue     4 running
slurm     2 idle
runs      digits-7f3k of ada: 3 GPUs

NODE  GPUS  HELD  CPU  MEM  POWER   HEAT  LINKS  IN/OUT
n1    -     -     -    -    -       -     -      -
n2    ██▁█  3/4   50%  50%  2500 W  61 C  1/2    12G/999  LinkDown
n10   -     -     -    -    -       -     -      -        down"""
    )


def test_a_pod_of_which_nothing_is_known() -> None:
    assert [text for text, _ in frame_lines(frame_of("adas", answer()), 80)] == ["adas  0 of 0 nodes, nothing fires"]
    for text in ("", "{}", "[]", '{"data": {"result": [{"metric": 3}]}}'):
        with pytest.raises(Refusal, match="adas: its Prometheus answers what is no list of series"):
            frame_of("adas", text)


def test_it_is_asked_on_the_loopback_in_one_question() -> None:
    assert FRAME_QUESTION.startswith("/usr/bin/python3 -c ")
    assert FRAME_QUESTION.count("http://127.0.0.1:9090") == 1
