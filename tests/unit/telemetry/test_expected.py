"""What a host should be: the ports of its design, the ends of its certificates; and what is no certificate."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from podwright.pilot.sensors.proc import Scope
from podwright.telemetry.exporter.expected import expected_samples
from podwright.telemetry.server import Guard


def scope(root: Path) -> Scope:
    return Scope(root=str(root), environ={})


def test_ports_as_the_design_cables_them(tmp_path: Path) -> None:
    port = {"device": "mlx5_0", "port": "1", "bytes_per_second": 25e9, "leaf": "leaf-u01-r1"}
    (tmp_path / "etc" / "podwright").mkdir(parents=True)
    (tmp_path / "etc" / "podwright" / "expected.json").write_text(json.dumps({"ports": [port]}))
    samples = expected_samples(scope(tmp_path))
    labels = (("device", "mlx5_0"), ("port", "1"), ("leaf", "leaf-u01-r1"))
    assert [tuple(each) for each in samples] == [("podwright_port_design_bytes_per_second", labels, 25e9)]


def test_certificates_say_when_they_end_and_keys_are_none(tmp_path: Path, guard: Guard) -> None:
    folder = tmp_path / "etc" / "prometheus"
    folder.mkdir(parents=True)
    (folder / "server.crt").write_bytes(Path(guard.certificate).read_bytes())
    (folder / "server.pem").write_bytes(Path(guard.key).read_bytes())
    (folder / "server.key").write_bytes(Path(guard.key).read_bytes())
    (sample,) = expected_samples(scope(tmp_path))
    assert sample.labels == (("file", "/etc/prometheus/server.crt"),)
    # Made for two days, by this machine's clock.
    assert 0 < sample.value - time.time() <= 2 * 86400


def test_a_host_of_which_nothing_is_said_has_nothing_to_tell(tmp_path: Path) -> None:
    assert expected_samples(scope(tmp_path)) == []


def test_a_damaged_file_is_a_sensor_that_fails(tmp_path: Path) -> None:
    (tmp_path / "etc" / "podwright").mkdir(parents=True)
    (tmp_path / "etc" / "podwright" / "expected.json").write_text('{"ports": [')
    with pytest.raises(ValueError, match="Expecting"):
        expected_samples(scope(tmp_path))
