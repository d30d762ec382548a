"""What management controllers measure, by tables as makers have them: a small server stands for the controllers."""

from __future__ import annotations

import http.server
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from podwright.bringup.apply.vault import vault_of
from podwright.bringup.bmc.poller import BmcPoller, controllers_of
from podwright.bringup.bmc.program import bmc_program
from podwright.bringup.plan.hosts import plan
from podwright.bringup.plan.site import site_of
from podwright.bringup.plan.stages.monitoring import jobs
from podwright.spec import Refusal, load_pod

LOGIN = "admin:pass-7f3k"
_SYSTEM = {"Name": "x", "Links": {"Chassis": [{"@odata.id": "/redfish/v1/Chassis/1"}]}}
NEW = {
    "/redfish/v1/Chassis/1": {
        "EnvironmentMetrics": {"@odata.id": "/redfish/v1/Chassis/1/EnvironmentMetrics"},
        "Thermal": {"@odata.id": "/redfish/v1/Chassis/1/Thermal"},
    },
    "/redfish/v1/Chassis/1/EnvironmentMetrics": {"PowerWatts": {"Reading": 5310.5}},
    "/redfish/v1/Chassis/1/Thermal": {
        "Temperatures": [
            {"Name": "CPU0", "PhysicalContext": "CPU", "ReadingCelsius": 61},
            {"Name": "Inlet Temp", "PhysicalContext": "Intake", "ReadingCelsius": 24},
        ]
    },
}
OLD = {
    "/redfish/v1/Chassis/1": {
        "Power": {"@odata.id": "/redfish/v1/Chassis/1/Power"},
        "Thermal": {"@odata.id": "/redfish/v1/Chassis/1/Thermal"},
    },
    "/redfish/v1/Chassis/1/Power": {"PowerControl": [{"PowerConsumedWatts": 410}]},
    "/redfish/v1/Chassis/1/Thermal": {"Temperatures": [{"Name": "Ambient", "ReadingCelsius": None}, {"Name": None}]},
}


@contextmanager
def controller(tables: dict[str, Any]) -> Iterator[str]:
    """Serves tables to who has the password; gives the address."""
    known = {
        "/redfish/v1/Systems": {"Members": [{"@odata.id": "/redfish/v1/Systems/1"}]},
        "/redfish/v1/Systems/1": _SYSTEM,
        **tables,
    }

    class Answer(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            is_known = self.headers.get("Authorization", "").startswith("Basic ")
            found = known.get(self.path) if is_known else None
            body = json.dumps(found).encode()
            self.send_response(200 if found is not None else 401)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()


def settings(folder: Path, **addresses: str) -> dict[str, Any]:
    (folder / "login").write_text(f"{LOGIN}\n")
    row = {"login": str(folder / "login"), "certificates": None}
    return {host: {"address": address, **row} for host, address in addresses.items()}


def values(poller: BmcPoller) -> dict[str, float]:
    rows = [line.rpartition(" ") for line in poller.text().splitlines() if not line.startswith("#")]
    return {name.removeprefix("podwright_bmc_"): float(value) for name, _, value in rows}


def test_power_and_inlet_by_the_tables_of_all_years(tmp_path: Path) -> None:
    with controller(NEW) as new, controller(OLD) as old:
        poller = BmcPoller(controllers_of(settings(tmp_path, g1=new, g2=old, g3="http://127.0.0.1:1")))
        assert poller.text().strip() == ""
        poller.round()
        assert values(poller) == {
            'up{host="g1"}': 1,
            'up{host="g2"}': 1,
            'up{host="g3"}': 0,
            'power_watts{host="g1"}': 5310.5,
            'power_watts{host="g2"}': 410,
            'inlet_celsius{host="g1"}': 24,
        }


def test_what_was_said_long_ago_is_not_told(tmp_path: Path) -> None:
    now = [0.0]
    with controller(OLD) as address:
        poller = BmcPoller(controllers_of(settings(tmp_path, g1=address)), lambda: now[0])
        poller.round()
        now[0] = 90.0
        assert values(poller)['up{host="g1"}'] == 1
        now[0] = 91.0
        assert values(poller) == {'up{host="g1"}': 0}
    poller.round()
    assert values(poller) == {'up{host="g1"}': 0}


def test_one_that_speaks_something_else_is_away(tmp_path: Path) -> None:
    with controller({"/redfish/v1/Chassis/1": {"Power": {"@odata.id": "/redfish/v1/Nowhere"}}}) as address:
        poller = BmcPoller(controllers_of(settings(tmp_path, g1=address)))
        poller.round()
        assert values(poller) == {'up{host="g1"}': 0}


POD = """\
name: adas
nodes:
  - {hosts: m1, model: cpu-server, roles: [management], addresses: [10.0.0.1]}
  - hosts: "g[1-2]"
    model: dgx-a100
    addresses: [10.0.1.1, 10.0.1.2]
    bmc: {address: "https://{host}-bmc", secret: BMC_LOGIN, WATCHED}
schedulers: [{kind: slurm}]
services: [monitoring]
"""


def test_the_monitoring_host_alone_asks(tmp_path: Path) -> None:
    file = tmp_path / "pod.yaml"
    file.write_text(POD.replace(", WATCHED", ""))
    assert "monitoring.controllers" not in plan(load_pod(file))["m1"].steps
    file.write_text(POD.replace("WATCHED", "watched: true"))
    pod = load_pod(file)
    plans = plan(pod)
    assert [host for host in plans if "monitoring.controllers" in plans[host].steps] == ["m1"]
    step = plans["m1"].steps["monitoring.controllers"]
    found = {each.path.rpartition("/")[2]: each for each in step.files}
    assert (found["BMC_LOGIN"].secret, found["BMC_LOGIN"].mode) == ("given_BMC_LOGIN", "0600")
    rows = json.loads(found["settings.json"].text)
    assert {host: row["address"] for host, row in rows.items()} == {"g1": "https://g1-bmc", "g2": "https://g2-bmc"}
    assert [(job.name, job.tells_of_others) for job in jobs(site_of(pod)) if job.name == "bmc"] == [("bmc", True)]
    with pytest.raises(Refusal, match="BMC_LOGIN is not set, which management controllers are asked with"):
        vault_of(tmp_path / "home", "adas").fill(site_of(pod))


def test_the_file_for_hosts_needs_nothing_beside_it(tmp_path: Path) -> None:
    program = tmp_path / "bmcs.py"
    program.write_text(bmc_program())
    command = [sys.executable, "-I", "-S", str(program), "--settings", str(tmp_path / "none")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"bmcs.py: [Errno 2] No such file or directory: '{tmp_path}/none'\n"
