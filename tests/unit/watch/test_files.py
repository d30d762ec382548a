"""All files of `pod watch`: whole, against golden ones."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import kubernetes_validate
import pytest
import yaml

from podwright.spec import Refusal, load_pod
from podwright.telemetry.exporter.main import parser
from podwright.telemetry.host_files import host_program
from podwright.watch import DASHBOARDS, ScrapeJob, Target, alerts_of, watch_files
from tests.paths import CASES, ROOT

CASE = CASES / "watch"
JOBS = (
    ScrapeJob("node", (Target("n1", "10.0.0.1", 9100), Target("c1", "10.0.0.9", 9100))),
    ScrapeJob("gpu", (Target("n1", "10.0.0.1", 9835),), is_guarded=True),
)


def test_the_files_of_a_pod(golden: Callable[[Path, str], None]) -> None:
    made = watch_files(load_pod(CASE / "pod.yaml"), JOBS)
    for path, text in made.texts.items():
        golden(CASE / "expected" / path, text)
    assert sorted(made.texts) == sorted(
        str(file.relative_to(CASE / "expected")) for file in (CASE / "expected").rglob("*.*")
    )


def test_prometheus_takes_the_folder_as_it_was_written(tmp_path: Path) -> None:
    """With what no file of ours holds put beside it, as docs say: the authority and the token."""
    watch_files(load_pod(CASE / "pod.yaml"), JOBS).write(tmp_path / "watch")
    (tmp_path / "watch" / "secrets").mkdir()
    for name in ("ca.crt", "secrets/scrape_token"):
        (tmp_path / "watch" / name).write_text("made by a test\n")
    command = ["promtool", "check", "config", str(tmp_path / "watch" / "prometheus.yml")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "SUCCESS: 1 rule files found" in done.stdout


def test_kubernetes_takes_what_is_its_own() -> None:
    made = watch_files(load_pod(CASE / "pod.yaml"), JOBS).texts["kubernetes.yaml"]
    own = [each for each in yaml.safe_load_all(made) if each["apiVersion"] == "v1"]
    assert [each["kind"] for each in own] == ["Namespace", "Service", "Endpoints"]
    for each in own:
        kubernetes_validate.validate(each, "1.31", strict=True)


def test_on_clusters_of_others_the_exporter_is_a_daemon_set() -> None:
    """Checked by Kubernetes' own schema; the program in it is the one that hosts get."""
    pod = load_pod(CASE / "openshift.yaml")
    objects = list(yaml.safe_load_all(watch_files(pod, ()).texts["kubernetes.yaml"]))
    by_kind = {each["kind"]: each for each in objects if each["metadata"]["name"] == "podwright-exporter"}
    assert list(by_kind) == [
        *("ServiceAccount", "ClusterRole", "ClusterRoleBinding", "ConfigMap", "DaemonSet", "Service"),
        "ServiceMonitor",
    ]
    for kind, each in by_kind.items():
        if kind != "ServiceMonitor":
            kubernetes_validate.validate(each, "1.31", strict=True)
    assert by_kind["ConfigMap"]["data"]["exporters.py"] == host_program()
    assert len(json.dumps(by_kind["ConfigMap"])) < 1 << 20
    (container,) = by_kind["DaemonSet"]["spec"]["template"]["spec"]["containers"]
    words = [word.replace("$(HOST_IP)", "127.0.0.1") for word in container["command"][3:]]
    assert parser().parse_args(words).token == "/keys/token"


def test_logs_go_elsewhere_by_the_paths_of_runs() -> None:
    texts = watch_files(load_pod(CASE / "pod.yaml"), JOBS).texts
    loki, fluent = texts["logs/loki.alloy"], texts["logs/opensearch.fluent-bit.conf"]
    path = "/home/*/podwright/runs/*/record/*/merged.log"
    assert f'__path__ = "{path}", pod = "adas"' in loki
    assert f"path          {path}\n" in fluent
    line = "1731700000.123 3 o step 12"
    (form,) = re.findall(r"regex         (.*)", texts["logs/parsers.conf"])
    found = re.match(form.replace("(?<", "(?P<"), line)
    assert found is not None
    assert found.groupdict() == {"at": "1731700000.123", "rank": "3", "stream": "o", "text": "step 12"}
    (same,) = re.findall(r'expression = "(\^.*)"', loki)
    assert re.match(same, line)


def test_a_folder_with_other_things_is_left_alone(tmp_path: Path) -> None:
    made = watch_files(load_pod(CASE / "pod.yaml"), JOBS)
    made.write(tmp_path / "watch")
    made.write(tmp_path / "watch")
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(Refusal, match="holds other things"):
        made.write(tmp_path)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["mine.txt", "watch"]


def test_openshift_is_told_to_look_at_users_work() -> None:
    pod = load_pod(CASE / "openshift.yaml")
    objects = list(yaml.safe_load_all(watch_files(pod, ()).texts["kubernetes.yaml"]))
    assert [each["kind"] for each in objects][:2] == ["Namespace", "PrometheusRule"]
    assert objects[-1]["metadata"]["name"] == "cluster-monitoring-config"
    assert objects[0]["metadata"]["labels"] == {"openshift.io/user-monitoring": "true"}
    assert "slurm" not in json.dumps(objects[1]).lower()


def test_panels_lie_side_by_side_and_none_over_another() -> None:
    made = watch_files(load_pod(CASE / "pod.yaml"), JOBS)
    for dashboard in DASHBOARDS:
        taken = set()
        for panel in json.loads(made.texts[f"dashboards/{dashboard.name}.json"])["panels"]:
            place = panel["gridPos"]
            cells = {
                (x, y)
                for x in range(place["x"], place["x"] + place["w"])
                for y in range(place["y"], place["y"] + place["h"])
            }
            assert max(x for x, _ in cells) < 24
            assert not taken & cells
            taken |= cells


def test_the_table_of_the_docs_is_that_of_the_rules() -> None:
    page = (ROOT / "docs" / "alerts.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| ([\w ]+) \|", page, re.M)
    assert rows == [(each.name, each.severity, each.lasting or "at once") for each in alerts_of(has_slurm=True)]
