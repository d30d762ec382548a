"""What hosts get where a pod asks for remedies, and what is refused; without the section nothing of it is anywhere."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from podwright.bringup.plan.host import Step
from podwright.bringup.plan.hosts import plan
from podwright.bringup.plan.site import site_of
from podwright.bringup.plan.stages.remedy import remedy
from podwright.bringup.remedy.hands import SchedulerPlace
from podwright.bringup.remedy.main import unit_of
from podwright.bringup.remedy.policy import RemedyPolicy
from podwright.bringup.remedy.unit import DryActing
from podwright.spec import Refusal, load_pod
from podwright.watch import alertmanager_config

POD = """\
name: adas
nodes:
  - {hosts: m1, model: cpu-server, roles: [management], addresses: [10.0.0.1]}
  - {hosts: "g[1-2]", model: dgx-a100, addresses: [10.0.1.1, 10.0.1.2]}
schedulers: [{kind: slurm}]
services: [monitoring]
alerts: {receivers: [{kind: webhook, to: "https://tickets.site.example/"}]}
"""
POLICY = "remediation: {drain: [xid], max: 1}\n"


def steps(folder: Path, text: str) -> dict[str, Step]:
    (folder / "pod.yaml").write_text(text)
    site = site_of(load_pod(folder / "pod.yaml"))
    found = {host: remedy(site, host) for host in ("m1", "g1", "g2")}
    return {host: step for host, step in found.items() if step is not None}


def test_it_is_off_unless_the_pods_file_says_otherwise(tmp_path: Path) -> None:
    assert steps(tmp_path, POD) == {}
    pod = load_pod(tmp_path / "pod.yaml")
    assert "remedy" not in str(alertmanager_config(pod))
    assert not [file.path for host in plan(pod).values() for file in host.files() if "hand" in file.path]


def test_nodes_have_hands_and_the_monitoring_host_the_unit(tmp_path: Path) -> None:
    found = steps(tmp_path, POD + POLICY)
    assert {host: step.services for host, step in found.items()} == {
        "m1": ("podwright-hand", "podwright-remedy"),
        "g1": ("podwright-hand",),
        "g2": ("podwright-hand",),
    }
    files = {host: {file.path: file for file in step.files} for host, step in found.items()}
    words = {host: files[host]["/etc/default/podwright-hand"].text.splitlines()[-1] for host in files}
    assert words == {
        "m1": 'ARGS="--listen=10.0.0.1:9837 --commands=slurm"',
        "g1": 'ARGS="--listen=10.0.1.1:9837"',
        "g2": 'ARGS="--listen=10.0.1.2:9837"',
    }
    secret = {path: (file.secret, file.mode, file.group) for path, file in files["m1"].items() if file.secret}
    assert secret["/etc/podwright/podwright-remedy/remedy.token"] == ("remedy_token", "0600", "root")
    hook = "/etc/prometheus/secrets/remedy_hook_token"
    assert secret[hook] == ("remedy_hook_token", "0640", "prometheus")
    assert [path for path, (name, _, group) in secret.items() if group != "root"] == [hook]


def test_the_unit_reads_what_the_plan_writes(tmp_path: Path) -> None:
    found = steps(tmp_path, POD + "remediation: {dry_run: true, reset: never}\n")
    (file,) = [each for each in found["m1"].files if each.path.endswith("settings.json")]
    settings = json.loads(file.text)
    settings["token"] = str(tmp_path / "token")
    (tmp_path / "token").write_text("t\n")
    unit = unit_of(settings, tmp_path / "journal")
    assert unit.hosts == {"g1", "g2"}
    assert unit.policy == RemedyPolicy(frozenset({"xid", "remap", "link"}), resets=False, most=2)
    assert isinstance(unit.acting, DryActing)
    hands = unit.acting.acting
    assert getattr(hands, "schedulers", None) == (SchedulerPlace("slurm", "m1", frozenset({"g1", "g2"})),)
    assert (tmp_path / "journal").stat().st_mode & 0o777 == 0o700


def test_alertmanager_tells_the_unit_first_and_everybody_else_too(tmp_path: Path) -> None:
    (tmp_path / "pod.yaml").write_text(POD + POLICY)
    config = alertmanager_config(load_pod(tmp_path / "pod.yaml"))
    first, second = config["route"]["routes"]
    assert (first["receiver"], first["matchers"], first["continue"]) == ("remedy", ['remedy=~"xid"'], True)
    assert second["receiver"] == "webhook-1"
    (hook,) = next(each for each in config["receivers"] if each["name"] == "remedy")["webhook_configs"]
    assert hook["url"] == "http://127.0.0.1:9836/"
    assert hook["http_config"]["authorization"]["credentials_file"] == "/etc/prometheus/secrets/remedy_hook_token"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("remediation: {drain: [heat]}\n", "remediation.drain[0]: "),
        ("remediation: {max: 0}\n", "remediation.max: "),
        ("remediation: {reset: now}\n", '"now" is not a reset'),
        ("remediation: {drian: [xid]}\n", "remediation.drian: unknown field"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "pod.yaml").write_text(POD + text)
    with pytest.raises(Refusal) as refused:
        load_pod(tmp_path / "pod.yaml")
    assert said in str(refused.value)


def test_somebody_must_tell_of_alerts(tmp_path: Path) -> None:
    (tmp_path / "pod.yaml").write_text(POD.replace("services: [monitoring]\n", "") + POLICY)
    with pytest.raises(Refusal, match="remediation: nothing tells of alerts"):
        load_pod(tmp_path / "pod.yaml")
