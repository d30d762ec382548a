"""What destroys wants `--yes` where nobody can be asked: nothing is asked of a host, and nothing is gone.

`rm`, `prune` and the deletion of a policy have this with their other tests.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from podwright.cli.main import main
from podwright.lab.folder import keep
from tests.paths import CASES

POD = str(CASES / "bringup" / "hosts" / "small" / "pod.yaml")
LAB = "lab-kubernetes"
FIRMWARE = ("--update", "BIOS", "--image", "http://image.example/bios", "--digest", "sha256:" + "0" * 64)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PODWRIGHT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("BMC_LOGIN", "user:password")
    return tmp_path / "home"


@pytest.fixture
def switched(tmp_path: Path) -> str:
    """A pod whose hosts have controllers that nobody answers for."""
    group = {
        "hosts": "g[1-2]",
        "model": "dgx-a100",
        "bmc": {"address": "https://{host}.example:1", "secret": "BMC_LOGIN"},
    }
    path = tmp_path / "switched.yaml"
    path.write_text(json.dumps({"name": "switched", "nodes": [group]}))
    return str(path)


def test_a_lab_goes_only_with_yes(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = home / "labs" / LAB
    folder.mkdir(parents=True)
    keep(folder, "borrowed-kubernetes", loan={"context": "none", "name": LAB})
    assert main(["lab", "down"]) == 2
    question = f"End {LAB} and remove {folder}? Nobody can be asked here"
    assert capsys.readouterr() == ("", f"--yes: {question}\n\nhint: say --yes\n")
    assert folder.exists()
    assert main(["lab", "down", "--yes"]) == 0
    assert not folder.exists()


def test_a_pod_goes_down_only_with_yes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pod", "down", POD]) == 2
    message = "--yes: services would be taken off the pod's hosts\n\nhint: say so with --yes\n"
    assert capsys.readouterr() == ("", message)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("power", "off"), "Switch 2 hosts: off, which nobody approved"),
        (("power", "--boot", "pxe"), "Switch 2 hosts: boot from pxe, which nobody approved"),
        (("firmware", *FIRMWARE), "Write BIOS of 2 hosts from http://image.example/bios, which nobody approved"),
    ],
)
def test_hosts_are_switched_and_written_to_only_with_yes(
    words: tuple[str, ...], message: str, switched: str, capsys: pytest.CaptureFixture[str]
) -> None:
    verb, *rest = words
    assert main(["pod", verb, switched, *rest]) == 2
    assert capsys.readouterr() == ("", f"--yes: {message}\n\nhint: say so with --yes\n")
