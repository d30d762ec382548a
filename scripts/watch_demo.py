"""The demonstration of watching: a lab of hosts with Prometheus and Alertmanager, made faults, and what is done.

A GPU gets hot, the kernel tells of an XID, a link is slow, a run hangs. Each must reach a webhook within its `for:`,
two scrapes, one evaluation and the wait of its group, and clear. By the pod's policy one host is drained, its GPUs are
reset and it is taken back; another, which a person drained, stays. Root is needed. What stands in for hardware is made:
NVIDIA's library (tests/fakes/fakenvml.c), a card of InfiniBand, the kernel's log, and `nvidia-smi --gpu-reset`.

    python -m scripts.watch_demo [--lab lab-watch] [--out FOLDER] [--keep]
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from podwright.lab.hosts import lab as hosts
from podwright.lab.hosts.lab import HostsLab
from podwright.runs.store import default_home
from scripts.demo import BIN, ROOT, environment

POD = "scripts/watch_pod.yaml"
SCRAPE_S = EVALUATION_S = 15.0
GROUP_WAIT_S = 30.0
PATIENCE_S = 1800.0
RUNS_ON, REMEDIED, FOREIGN = "n2", "n3", "n4"
_MADE = "/var/lib/lab"
_PORT = {"state": "4: ACTIVE", "rate": "200 Gb/sec (4X HDR)", "link_layer": "InfiniBand"}
_KEYS = "/etc/podwright/podwright-exporter"
_COMMAND = (
    "/usr/bin/python3 /usr/lib/podwright/exporters.py gpu $ARGS",
    *(f"--certificate {_KEYS}/exporters.crt", f"--key {_KEYS}/exporters.key", f"--token {_KEYS}/scrape.token"),
    *(f"--root {_MADE}/root", f"--nvml {_MADE}/libnvidia-ml.so.1", f"--kernel-log {_MADE}/kern.log", "--bridge off"),
)
_UNIT = f"[Service]\nEnvironment=FAKE_NVML={_MADE}/gpus\nExecStart=\nExecStart={' '.join(_COMMAND)}\n"
_RESET = f"""\
#!/bin/sh
# Made for the demonstration: there is no GPU here.
echo "$(date +%s) $(hostname) $*" >>{_MADE}/resets
echo "GPU 00000000:07:00.0 was successfully reset. (made)"
"""
_HOOK = """\
import http.server, json, time
class Hook(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with open("/shared/watch-demo/heard.jsonl", "a") as file:
            for alert in message["alerts"]:
                row = [time.time(), alert["status"], alert["labels"]["alertname"], alert["labels"].get("host", "")]
                file.write(json.dumps(row) + "\\n")
        self.send_response(200)
        self.end_headers()
    def log_message(self, *words):
        pass
http.server.ThreadingHTTPServer(("127.0.0.1", 9099), Hook).serve_forever()
"""
_PROGRAM = """\
import json, os, time
for step in range(1, 100000):
    while os.path.exists("/shared/watch-demo/hang"):
        time.sleep(0.2)
    print(json.dumps({"podwright": {"step": step, "loss": 1 / step}}), flush=True)
    if os.path.exists("/shared/watch-demo/end"):
        break
    time.sleep(1)
"""


@dataclass(frozen=True)
class MadeFault:
    """A fault: the alert that it must raise where, its `for:`, and what makes it and takes it away."""

    alert: str
    host: str
    lasting_s: float
    make: str
    heal: str = "true"

    @property
    def bound_s(self) -> float:
        """After how long a webhook must have heard of it, at the latest."""
        return self.lasting_s + 2 * SCRAPE_S + EVALUATION_S + GROUP_WAIT_S


def _xid() -> str:
    # Its alert lasts a quarter of an hour; this one was told twelve minutes ago, so that nobody waits for that.
    stamp = "$(($(date +%s) - 720)).000000 $(hostname) kernel: NVRM: Xid (PCI:0000:07:00): 119"
    return f"echo \"{stamp}, pid='<unknown>', name=<unknown>, made\" >>{_MADE}/kern.log"


_RATE = f"{_MADE}/root/sys/class/infiniband/mlx5_0/ports/1/rate"
FAULTS = (
    MadeFault(
        "GpuTooHot", REMEDIED, 60, f"echo '1 temperature 91' >>{_MADE}/gpus", f"sed -i /temperature/d {_MADE}/gpus"
    ),
    MadeFault("GpuXidReset", REMEDIED, 0, _xid()),
    MadeFault("GpuXidReset", FOREIGN, 0, _xid()),
    MadeFault("LinkSlow", RUNS_ON, 300, f"echo '100 Gb/sec (2X HDR)' >{_RATE}", f"echo '{_PORT['rate']}' >{_RATE}"),
    # A minute without a step, and the alert's own minute.
    MadeFault("RunHangs", RUNS_ON, 120, "touch /shared/watch-demo/hang", "rm -f /shared/watch-demo/hang"),
)


@dataclass
class WatchDemo:
    """The lab while the demonstration lasts."""

    lab: HostsLab
    shared: Path
    out: Path | None
    made_at: dict[MadeFault, float] = field(default_factory=dict)

    def on(self, host: str, line: str) -> str:
        """Runs a line on a host; one that fails ends it all."""
        done = self.lab.run(host, line)
        if done.returncode:
            raise SystemExit(f"{host}: {line}\n{done.stderr}")
        return done.stdout

    def heard(self) -> list[tuple[float, str, str, str]]:
        """Gives what the webhook heard: when, whether it fires, which alert, of which host."""
        file = self.shared / "heard.jsonl"
        return [tuple(json.loads(line)) for line in file.read_text().splitlines()] if file.exists() else []

    def when(self, fault: MadeFault, status: str) -> float | None:
        """Gives when the webhook first heard this of a fault."""
        times = [
            at for at, word, alert, host in self.heard() if (word, alert, host) == (status, fault.alert, fault.host)
        ]
        return min(times, default=None)

    def hears(self, fault: MadeFault, status: str) -> None:
        """Waits until the webhook has heard this of a fault."""
        until(lambda: self.when(fault, status) is not None, f"{fault.alert} of {fault.host}, {status}")

    def state(self, host: str) -> tuple[str, str]:
        """Gives Slurm's state of a node and its reason."""
        state, _, reason = self.on("n1", f"sinfo --noheader --nodes={host} --format='%T|%E'").strip().partition("|")
        return state, reason


def until(holds: Callable[[], bool], what: str) -> None:
    """Waits for what must come."""
    end = time.monotonic() + PATIENCE_S
    while not holds():
        if time.monotonic() > end:
            raise SystemExit(f"did not come: {what}")
        time.sleep(1)


def podwright(*words: str, catch: bool = False) -> str:
    """Shows a command and runs it; gives what it printed where that is wanted."""
    print(f"\n$ podwright {shlex.join(words)}", flush=True)
    stdout = subprocess.PIPE if catch else None
    done = subprocess.run(
        [BIN / "podwright", *words], cwd=ROOT, env=environment(), stdout=stdout, text=True, check=False
    )
    if done.returncode and words[0] != "alerts":
        raise SystemExit(done.returncode)
    return done.stdout or ""


def furnish(demo: WatchDemo) -> None:
    """Gives each host made GPUs, a made card and a made log, and the first one a webhook."""
    library = demo.shared / "libnvidia-ml.so.1"
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, ROOT / "tests" / "fakes" / "fakenvml.c"], check=True)
    for name, text in (("unit.conf", _UNIT), ("nvidia-smi", _RESET), ("hook.py", _HOOK), ("train.py", _PROGRAM)):
        (demo.shared / name).write_text(text)
    folder = f"{_MADE}/root/sys/class/infiniband/mlx5_0/ports/1"
    lines = [
        f"mkdir -p {folder}/counters {_MADE}/root/sys/devices/system /etc/systemd/system/podwright-exporter.service.d",
        *(f"ln -sfn /{name} {_MADE}/root/{name}" for name in ("proc", "run", "etc", "shared")),
        *(f"echo {shlex.quote(text)} >{folder}/{name}" for name, text in _PORT.items()),
        f"printf -- '-1 count 2\\n-1 driver 580.159.04\\n-1 utilization 0\\n' >{_MADE}/gpus; : >{_MADE}/kern.log",
        f"cp /shared/watch-demo/libnvidia-ml.so.1 {_MADE}/",
        "install -m 0755 /shared/watch-demo/nvidia-smi /usr/local/sbin/nvidia-smi",
        "cp /shared/watch-demo/unit.conf /etc/systemd/system/podwright-exporter.service.d/lab.conf",
        "systemctl daemon-reload && systemctl restart podwright-exporter",
    ]
    for host in (RUNS_ON, REMEDIED, FOREIGN):
        demo.on(host, " && ".join(lines))
    hook = "systemctl reset-failed lab-hook 2>/dev/null; systemctl stop lab-hook 2>/dev/null; "
    demo.on("n1", f"{hook}systemd-run --unit=lab-hook /usr/bin/python3 /shared/watch-demo/hook.py")


def start_run(demo: WatchDemo) -> str:
    """Starts a run that makes a step a second on one node; gives its id when its steps are seen."""
    fields: dict[str, Any] = {
        "name": "steps",
        "code": str(demo.shared),
        "command": ["python3", "train.py"],
        "resources": {"cpus": 1, "memory": "256MiB"},
    }
    file = demo.shared / "steps.yaml"
    file.write_text(json.dumps(fields))
    # What a person drained stays, whatever the policy says of it; and the run has one node left.
    demo.on("n1", f"scontrol update NodeName={FOREIGN} State=DRAIN Reason='bad DIMM, do not use'")
    demo.on("n1", f"scontrol update NodeName={REMEDIED} State=DRAIN Reason='kept free for the demonstration'")
    run = podwright("run", str(file), "--on", demo.lab.name, "--detach", catch=True).strip()
    until(lambda: demo.state(RUNS_ON)[0].startswith(("mixed", "allocated")), "the run on its node")
    demo.on("n1", f"scontrol update NodeName={REMEDIED} State=RESUME")
    query = f'podwright_run_step{{run="{run}"}} > 3'
    until(lambda: f'"{run}"' in _asked(demo, query), "the run's steps in Prometheus")
    return run


_ASK = (
    "import sys, urllib.parse as p, urllib.request as u; "
    'print(u.urlopen("http://127.0.0.1:9090/api/v1/query?" + p.urlencode({"query": sys.argv[1]})).read().decode())'
)


def _asked(demo: WatchDemo, query: str) -> str:
    return demo.on("n1", shlex.join(["/usr/bin/python3", "-c", _ASK, query]))


def break_all(demo: WatchDemo) -> None:
    """Makes the faults, and waits until the webhook has heard of each."""
    for fault in FAULTS:
        demo.made_at[fault] = time.time()
        demo.on(fault.host, fault.make)
        print(f"made      {fault.alert} on {fault.host}", flush=True)
    for fault in sorted(FAULTS, key=lambda fault: fault.bound_s):
        demo.hears(fault, "firing")


def heal_all(demo: WatchDemo) -> None:
    """Takes the faults away, and waits until the webhook has heard that each is over."""
    for fault in FAULTS:
        demo.on(fault.host, fault.heal)
    for fault in FAULTS:
        demo.hears(fault, "resolved")


def remedied(demo: WatchDemo) -> list[str]:
    """Waits until the policy has taken its host back; gives what the journal says of it, a line each."""
    journal = "cat /var/lib/podwright-remedy/journal.jsonl"

    def rows() -> list[dict[str, Any]]:
        return [json.loads(line) for line in demo.on("n1", journal).splitlines()]

    def is_open() -> bool:
        ways = [row["to"] for row in rows() if row["k"] == "node" and row["host"] == REMEDIED]
        return bool(ways) and ways[-1] == "open"

    until(is_open, f"{REMEDIED} taken back")
    until(lambda: demo.state(REMEDIED)[0] in ("idle", "mixed", "allocated"), f"{REMEDIED} open in Slurm")
    state, reason = demo.state(FOREIGN)
    if not state.startswith("drain") or reason != "bad DIMM, do not use":
        raise SystemExit(f"{FOREIGN} was drained by a person and is {state} now: {reason}")
    if not demo.on(REMEDIED, f"cat {_MADE}/resets").strip():
        raise SystemExit(f"the GPUs of {REMEDIED} were not reset")
    begin = min(row["t"] for row in rows())
    return [
        f"{row['t'] - begin:6.0f} s  {row['host']}  {row['from']} -> {row['to']}"
        for row in rows()
        if row["k"] == "node"
    ]


def table(demo: WatchDemo) -> tuple[list[str], bool]:
    """Gives how long each alert took and how long it had, and whether all came in time."""
    lines, all_in_time = ["ALERT         HOST  HEARD  BOUND  CLEARED"], True
    for fault in FAULTS:
        began = demo.made_at[fault]
        heard, cleared = demo.when(fault, "firing"), demo.when(fault, "resolved")
        assert heard is not None
        assert cleared is not None
        in_time = heard - began <= fault.bound_s
        all_in_time = all_in_time and in_time
        took = f"{heard - began:4.0f}s  {fault.bound_s:4.0f}s  {cleared - began:6.0f}s"
        late = "" if in_time else "  late"
        lines.append(f"{fault.alert:<12}  {fault.host}    {took}{late}")
    return lines, all_in_time


def demonstrate(demo: WatchDemo) -> int:
    """Runs the demonstration on a lab that is brought up."""
    furnish(demo)
    run = start_run(demo)
    break_all(demo)
    for name, words in (("top", ("top", demo.lab.name)), ("alerts", ("alerts", demo.lab.name))):
        said = podwright(*words, catch=True)
        print(said, flush=True)
        if demo.out is not None:
            demo.out.mkdir(parents=True, exist_ok=True)
            (demo.out / f"{name}.txt").write_text(said)
    heal_all(demo)
    journal = remedied(demo)
    (demo.shared / "end").touch()
    podwright("wait", run)
    lines, in_time = table(demo)
    print("\n" + "\n".join([*lines, "", *journal]), flush=True)
    return 0 if in_time else 1


def main() -> int:
    """Brings the lab up, shows it all, and takes the lab down."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--lab", default="lab-watch")
    parser.add_argument("--out", type=Path, help="a folder for what `top` and `alerts` print")
    parser.add_argument("--keep", action="store_true", help="leave the lab for whoever wants to look")
    given = parser.parse_args()
    podwright("lab", "up", "hosts", "--name", given.lab, "--nodes", "4")
    lab = hosts.find(default_home() / "labs" / given.lab)
    assert lab is not None
    try:
        podwright("pod", "up", POD)
        shared = lab.folder / "shared" / "watch-demo"
        shared.mkdir(exist_ok=True)
        for name in ("heard.jsonl", "hang", "end"):
            (shared / name).unlink(missing_ok=True)
        return demonstrate(WatchDemo(lab, shared, given.out))
    finally:
        if not given.keep:
            podwright("lab", "down", "--name", given.lab, "--yes")


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
