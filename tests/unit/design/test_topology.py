"""Scalable units: the last one may be smaller, and a pod without a fabric is one unit."""

from __future__ import annotations

from pathlib import Path

from podwright.design.topology import scalable_units
from podwright.spec import load_pod


def test_units_follow_the_file(tmp_path: Path) -> None:
    path = tmp_path / "pod.yaml"
    path.write_text('name: p\nnodes: [{hosts: "d[1-5]", model: dgx-a100}]\nfabrics: {compute: {scalable_unit: 2}}\n')
    assert scalable_units(load_pod(path)) == [["d1", "d2"], ["d3", "d4"], ["d5"]]


def test_reserved_slots_are_taken_from_the_first_unit(tmp_path: Path) -> None:
    path = tmp_path / "pod.yaml"
    fabric = "fabrics: {compute: {scalable_unit: 3, reserved_slots: 1}}"
    path.write_text(f'name: p\nnodes: [{{hosts: "d[1-6]", model: dgx-a100}}]\n{fabric}\n')
    assert scalable_units(load_pod(path)) == [["d1", "d2"], ["d3", "d4", "d5"], ["d6"]]


def test_a_pod_without_a_fabric_is_one_unit(tmp_path: Path) -> None:
    path = tmp_path / "pod.yaml"
    path.write_text('name: p\nnodes: [{hosts: "c[1-3]", model: cpu-server}]\n')
    assert scalable_units(load_pod(path)) == [["c1", "c2", "c3"]]
