"""The rules of a pod, by Prometheus' own promtool: each alert fires on what it is about, and clears."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from podwright.spec import load_pod
from podwright.watch import alerts_of, rule_groups, yaml_file
from tests.unit.watch.fires import CLEARS_AT, FIRES_AT, SERIES

POD = """\
name: adas
nodes: [{hosts: "n[1-2]", model: dgx-a100}]
schedulers: [{kind: slurm}]
teams: [{name: vision, members: [alice, bob]}]
costs: {gpu_hour_price: 2.5}
"""
ALERTS = list(alerts_of(has_slurm=True))


@pytest.fixture(scope="module")
def rules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rules")
    (folder / "pod.yaml").write_text(POD)
    (folder / "rules.yml").write_text(yaml_file(rule_groups(load_pod(folder / "pod.yaml"))))
    return folder / "rules.yml"


def promtool(*arguments: str) -> str:
    done = subprocess.run(["promtool", *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def check(rules: Path, blocks: list[dict[str, Any]]) -> str:
    file = rules.parent / "tests.yml"
    file.write_text(yaml.safe_dump({"rule_files": [str(rules)], "evaluation_interval": "10m", "tests": blocks}))
    return promtool("test", "rules", str(file))


def firing(name: str, minute: int, count: int) -> dict[str, Any]:
    samples = [{"labels": "{}", "value": count}] if count else []
    query = f'count(ALERTS{{alertname="{name}", alertstate="firing"}})'
    return {"expr": query, "eval_time": f"{minute}m", "exp_samples": samples}


def test_promtool_takes_the_rules(rules: Path) -> None:
    said = promtool("check", "rules", "--lint=all", "--lint-fatal", str(rules))
    assert f"{len(yaml.safe_load(rules.read_text())['groups'][0]['rules']) + len(ALERTS)} rules found" in said


def test_every_alert_has_its_case() -> None:
    assert [alert.name for alert in ALERTS] == list(SERIES)


def test_every_alert_fires_and_clears(rules: Path) -> None:
    blocks = []
    for name, series in SERIES.items():
        rows = [each.row() for each in series]
        asked = [firing(name, FIRES_AT, 1), firing(name, CLEARS_AT, 0)]
        blocks.append({"interval": "1m", "input_series": rows, "promql_expr_test": asked})
    check(rules, blocks)


@pytest.mark.parametrize(
    ("quiet", "series"),
    [
        ("GpuThrottled", 'podwright_gpu_throttled{host="n1", gpu="3", reason="power_cap"}'),
        ("GpuHeldIdle", 'podwright_gpu_utilization_ratio{host="n1", gpu="3"}'),
        ("LinkDown", 'podwright_port_up{host="n1", device="mlx5_9", port="1"}'),
    ],
)
def test_what_is_no_fault_fires_nothing(rules: Path, quiet: str, series: str) -> None:
    """Check a power cap at full load, an idle GPU that nobody holds, and a port that the design does not cable."""
    value = "1x320" if quiet == "GpuThrottled" else "0x320"
    rows = [{"series": series, "values": value}]
    check(rules, [{"interval": "1m", "input_series": rows, "promql_expr_test": [firing(quiet, FIRES_AT, 0)]}])


def test_an_alert_says_what_is_wrong_what_is_likely_and_where_to_look(rules: Path) -> None:
    expected = {
        "exp_labels": {"host": "n1", "gpu": "3", "severity": "critical", "remedy": "xid", "cure": "reboot"},
        "exp_annotations": {
            "summary": "GPU 3 of n1 is gone: the driver does not see it any more",
            "cause": "it has fallen off the bus (XID 79), or was taken out",
            "command": "ssh n1 dmesg --since -1hour",
        },
    }
    asked = [{"eval_time": "90m", "alertname": "GpuGone", "exp_alerts": [expected]}]
    rows = [each.row() for each in SERIES["GpuGone"]]
    check(rules, [{"interval": "1m", "input_series": rows, "alert_rule_test": asked}])


def test_records_by_run_user_team_node_and_pod(rules: Path) -> None:
    gpus = [
        {"series": f'podwright_gpu_utilization_ratio{{host="n1", gpu="{gpu}"{owner}}}', "values": f"{use}x20"}
        for gpu, use, owner in (
            (0, 0.5, ', run="a", user="alice", team="vision"'),
            (1, 0.7, ', run="a", user="alice", team="vision"'),
            (2, 0.2, ', run="b", user="carol"'),
            (3, 0.0, ""),
        )
    ]
    wanted = {
        "run:gpus:count": {'{run="a", user="alice"}': 2, '{run="b", user="carol"}': 1},
        "user:gpu_utilization:avg": {'{user="alice"}': 0.6, '{user="carol"}': 0.2},
        'team:gpus:count{team!=""}': {'{team="vision"}': 2},
        "node:gpus_held:count": {'{host="n1"}': 3},
        "pod:gpus:count": {"{}": 4},
        "pod:gpu_hour_price": {"{}": 2.5},
    }
    asked = []
    for query, values in wanted.items():
        name = query.partition("{")[0]
        samples = [{"labels": f"{name}{labels if labels != '{}' else ''}", "value": v} for labels, v in values.items()]
        asked.append({"expr": query, "eval_time": "10m", "exp_samples": samples})
    check(rules, [{"interval": "1m", "input_series": gpus, "promql_expr_test": asked}])
