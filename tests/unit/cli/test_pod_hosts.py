"""`pod plan`, `up` and `status` as they are typed, without a host to ask."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from podwright.cli.main import main
from tests.paths import CASES, ROOT

POD = str(CASES / "bringup" / "hosts" / "small" / "pod.yaml")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PODWRIGHT_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("PODWRIGHT_VAULT_KEY_FILE", raising=False)
    return tmp_path / "home"


def test_an_offline_plan_asks_nobody(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pod", "plan", POD, "--offline", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert list(document["hosts"]) == ["m1", "g1", "g2"]
    assert document["changes"] == 0
    host = document["hosts"]["g1"]
    assert {"path": "/etc/slurm/slurm.conf", "change": "unknown"} in host["files"]
    assert "slurmd" in host["packages"]
    assert "slurmd" in host["services"]


def test_a_part_is_planned(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pod", "plan", POD, "--offline", "--only", "base", "--limit", "g[1-2]"]) == 0
    out = capsys.readouterr().out
    assert "g2  5 unknown, 2 packages, 1 services" in out
    assert "m1" not in out
    assert "slurm" not in out


def test_a_project_is_written_once_and_over_itself_alone(
    tmp_path: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "project"
    for _ in range(2):
        assert main(["pod", "plan", POD, "--offline", "--out", str(out)]) == 0
    assert (out / "vault.yml").read_text().startswith("$ANSIBLE_VAULT;")
    assert f"--vault-password-file {home / 'vault.key'}" in capsys.readouterr().err
    taken = tmp_path / "taken"
    taken.mkdir()
    (taken / "mine").write_text("kept")
    assert main(["pod", "plan", POD, "--offline", "--out", str(taken)]) == 2
    assert (taken / "mine").read_text() == "kept"


def test_hosts_that_cannot_be_reached_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "config"
    config.write_text("Host *\n\tHostName 127.0.0.1\n\tPort 1\n\tConnectTimeout 5\n")
    file = tmp_path / "pod.yaml"
    text = Path(POD).read_text().replace("  user: admin\n", f"  user: admin\n  ssh_config: {config}\n")
    file.write_text(text)
    assert main(["pod", "status", str(file), "--limit", "g1", "--json"]) == 1
    entry = json.loads(capsys.readouterr().out)["hosts"]["g1"]
    assert (entry["state"], entry["drift"]) == ("unreachable", [])
    assert "Connection refused" in entry["reason"]
    assert main(["pod", "plan", str(file), "--limit", "g1"]) == 3
    assert "g1  cannot be asked" in capsys.readouterr().out


def test_a_pod_without_addresses_is_refused_with_the_place(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pod", "plan", str(ROOT / "examples" / "lab-pod.yaml"), "--offline"]) == 2
    assert "addresses: is missing: bring-up must know where each host is" in capsys.readouterr().err


def test_services_are_not_taken_off_unasked(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pod", "down", POD]) == 2
    assert "say so with --yes" in capsys.readouterr().err
