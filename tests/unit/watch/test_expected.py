"""What hosts are told of the design: each named card with its speed and the switch that it leads to."""

from __future__ import annotations

from pathlib import Path

from podwright.spec import load_pod
from podwright.watch.expected import expected_ports
from tests.paths import CASES


def test_every_named_card_has_a_speed_and_a_switch() -> None:
    ports = expected_ports(load_pod(CASES / "watch" / "pod.yaml"))
    assert list(ports) == ["n1", "n2"]
    assert [(port["device"], port["leaf"]) for port in ports["n1"]][:2] == [
        ("mlx5_0", "leaf-u01-r1"),
        ("mlx5_1", "leaf-u01-r2"),
    ]
    assert {port["bytes_per_second"] for port in ports["n1"]} == {25e9}


def test_a_pod_whose_fabric_cannot_be_designed_is_told_nothing(tmp_path: Path) -> None:
    text = 'name: a\nnodes: [{hosts: "n[1-2]", model: dgx-a100}]\nfabrics: {compute: {rails: 7}}\n'
    (tmp_path / "pod.yaml").write_text(text)
    assert expected_ports(load_pod(tmp_path / "pod.yaml")) == {}
