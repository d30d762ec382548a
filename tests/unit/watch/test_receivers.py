"""Who is told: Alertmanager's configuration, as its own amtool reads and routes it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from podwright.spec import load_pod
from podwright.watch import alertmanager_config, secret_names, yaml_file
from tests.paths import CASES

POD = CASES / "watch" / "pod.yaml"


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("receivers") / "alertmanager.yml"
    file.write_text(yaml_file(alertmanager_config(load_pod(POD))))
    return file


def amtool(*arguments: str) -> str:
    done = subprocess.run(["amtool", *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_alertmanager_takes_it(config: Path) -> None:
    assert "SUCCESS" in amtool("check-config", str(config))


@pytest.mark.parametrize(
    ("labels", "receivers"),
    [
        (["severity=warning"], "mail-1"),
        (["severity=critical"], "mail-1,pagerduty-3"),
        (["severity=warning", "team=vision"], "mail-1,slack-2,team-vision-1"),
        (["severity=critical", "team=maps"], "mail-1,pagerduty-3,webhook-4"),
    ],
)
def test_an_alert_reaches_whom_it_concerns(config: Path, labels: list[str], receivers: str) -> None:
    said = amtool("config", "routes", "test", f"--config.file={config}", f"--verify.receivers={receivers}", *labels)
    assert said.strip() == receivers


def test_secrets_are_files_and_stand_in_no_configuration(config: Path) -> None:
    assert secret_names(load_pod(POD)) == ["SLACK_URL", "PAGERDUTY_KEY", "MAIL_PASSWORD"]
    text = config.read_text()
    for name in secret_names(load_pod(POD)):
        assert f"_file: /etc/prometheus/secrets/{name}" in text


def test_without_receivers_alerts_go_to_nobody(tmp_path: Path) -> None:
    (tmp_path / "pod.yaml").write_text('name: adas\nnodes: [{hosts: "n[1-2]", model: dgx-a100}]\n')
    made = alertmanager_config(load_pod(tmp_path / "pod.yaml"))
    assert json.dumps(made["receivers"]) == '[{"name": "nobody"}]'
    (tmp_path / "alertmanager.yml").write_text(yaml_file(made))
    assert "SUCCESS" in amtool("check-config", str(tmp_path / "alertmanager.yml"))
