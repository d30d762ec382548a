"""What a real Prometheus takes for a whole pod: series of each node, its memory, and how long recording rules take.

    python benchmarks/watch_scale.py [--nodes 2048] [--scrape 30] [--minutes 10] [--json OUT]

Nodes are played: one server gives every node the page of the exporter of eight GPUs (of NVIDIA's made library), with
the node's own name in it and figures that change from scrape to scrape. Configuration and rules are those that `pod
watch` writes. Wants 8 GiB and the night for 2,048 nodes; fewer are the same by the node.
"""

from __future__ import annotations

import http.server
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path
from typing import Any

import yaml

from measure import ROOT, Estimate, Row, conclude, machine, parser, say, start
from podwright.spec import load_pod
from podwright.telemetry.host_files import host_program
from podwright.watch import ScrapeJob, Target, prometheus_config, rule_groups
from podwright.watch.scrape import RULES_FILE

_PORT, _PROMETHEUS = 29840, 29841
_HOST = "node-name-here"


def page_of_a_node(folder: Path) -> str:
    """Give the page of one node's exporter."""
    library, readings = folder / "libnvidia-ml.so.1", folder / "readings"
    source = ROOT / "tests" / "fakes" / "fakenvml.c"
    subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-o", library, source], check=True)
    readings.write_text("-1 count 8\n-1 gpm 1\n-1 field91 18\n-1 utilization 50\n")
    (folder / "kern.log").touch()
    program = folder / "exporters.py"
    program.write_text(host_program())
    words = ["--once", "--host", _HOST, "--gpus", "8", "--bridge", "off", "--nvml", str(library)]
    command = [sys.executable, "-S", str(program), "gpu", *words, "--kernel-log", str(folder / "kern.log")]
    environ = {**os.environ, "FAKE_NVML": str(readings)}
    return subprocess.run(command, env=environ, capture_output=True, text=True, check=True).stdout


class PlayedNodes(http.server.BaseHTTPRequestHandler):
    """Answers `/NODE` with that node's page."""

    page = ""

    def do_GET(self) -> None:
        """Give the page, with another utilisation each second."""
        use = f" {int(time.time()) % 100 / 100}\n"
        body = self.page.replace(_HOST, self.path.strip("/")).replace(" 0.5\n", use).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


def configuration(folder: Path, nodes: int, scrape_s: int) -> None:
    """Write what `pod watch` writes for so many nodes, each with a path of its own on one server."""
    hosts, pod_file = f"n[1-{nodes}]", folder / "pod.yaml"
    pod_file.write_text(f'name: adas\nnodes: [{{hosts: "{hosts}", model: dgx-a100}}]\nschedulers: [{{kind: slurm}}]\n')
    pod = load_pod(pod_file)
    job = ScrapeJob("gpu", [Target(host, "127.0.0.1", _PORT) for host in pod.hosts()], tells_of_others=True)
    config = prometheus_config(pod, [job])
    config["global"] |= {"scrape_interval": f"{scrape_s}s", "evaluation_interval": f"{scrape_s}s"}
    config.pop("alerting")
    rules = json.loads(json.dumps(rule_groups(pod)).replace('"15s"', f'"{scrape_s}s"'))
    (folder / "targets").mkdir()
    rows = [
        {"targets": [f"127.0.0.1:{_PORT}"], "labels": {"host": host, "__metrics_path__": f"/{host}"}}
        for host in pod.hosts()
    ]
    (folder / job.file).write_text(json.dumps(rows))
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
    (folder / RULES_FILE).write_text(yaml.safe_dump(rules))


def own_metrics() -> dict[str, float]:
    """Give what Prometheus says of itself, by name and labels."""
    with urllib.request.urlopen(f"http://127.0.0.1:{_PROMETHEUS}/metrics") as answer:
        lines = answer.read().decode().splitlines()
    rows = (line.rpartition(" ") for line in lines if not line.startswith("#"))
    return {name: float(value) for name, _, value in rows}


def measured(folder: Path, minutes: float, scrape_s: int) -> dict[str, list[float]]:
    """Run Prometheus for so long; give what it says of itself, a value for each scrape interval."""
    command = ["prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/tsdb"]
    command.append(f"--web.listen-address=127.0.0.1:{_PROMETHEUS}")
    taken: dict[str, list[float]] = {"series": [], "mib": [], "records_s": [], "alerts_s": [], "cpu_s": []}
    with (folder / "prometheus.log").open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        try:
            end = time.monotonic() + minutes * 60
            while time.monotonic() < end:
                time.sleep(scrape_s)
                found = own_metrics()
                rules = f'rule_group="{folder}/{RULES_FILE};podwright-'
                rows = {
                    "series": found["prometheus_tsdb_head_series"],
                    "mib": found["process_resident_memory_bytes"] / (1 << 20),
                    "records_s": found[f'prometheus_rule_group_last_duration_seconds{{{rules}records"}}'],
                    "alerts_s": found[f'prometheus_rule_group_last_duration_seconds{{{rules}alerts"}}'],
                    "cpu_s": found["process_cpu_seconds_total"],
                }
                for name, value in rows.items():
                    taken[name].append(value)
                say("  ".join(f"{name} {value:.3g}" for name, value in rows.items()))
        finally:
            process.terminate()
    return taken


def main() -> int:
    """Measure, and write what was found."""
    made = parser("What a real Prometheus takes for a pod.", pairs=1)
    made.add_argument("--nodes", type=int, default=2048, help="how many are played (default: %(default)s)")
    made.add_argument("--scrape", type=int, default=30, help="seconds between scrapes (default: %(default)s)")
    made.add_argument("--minutes", type=float, default=10.0, help="how long (default: %(default)s)")
    options = made.parse_args()
    facts = machine()
    with tempfile.TemporaryDirectory(prefix="podwright-bench-") as name:
        folder = Path(name)
        PlayedNodes.page = page_of_a_node(folder)
        configuration(folder, options.nodes, options.scrape)
        with http.server.ThreadingHTTPServer(("127.0.0.1", _PORT), PlayedNodes) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            taken = measured(folder, options.minutes, options.scrape)
            server.shutdown()
    last = {name: values[-1] for name, values in taken.items()}
    core = 100 * (taken["cpu_s"][-1] - taken["cpu_s"][0]) / (options.scrape * max(len(taken["cpu_s"]) - 1, 1))
    seen = f"{options.nodes:,} nodes of 8 GPUs, scraped every {options.scrape} s"
    figures = (
        ("series of each node", last["series"] / options.nodes, ""),
        ("memory of Prometheus", last["mib"], " MiB"),
        ("memory by the node", last["mib"] / options.nodes, " MiB"),
        ("CPU of Prometheus, of a core", core, "%"),
        ("all recording rules, one evaluation", last["records_s"], " s"),
        ("all alerts, one evaluation", last["alerts_s"], " s"),
    )
    rows = [Row(what, Estimate(value, value, value, 1), unit, None, seen) for what, value, unit in figures]
    conclude("watch_scale", rows, {"nodes": options.nodes, **taken}, facts, options.json)
    return 0


if __name__ == "__main__":
    start(main)
