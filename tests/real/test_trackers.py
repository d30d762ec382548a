"""What `sync` wrote, read back by those it was written for: MLflow's own server, readers of TensorBoard and W&B."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import pytest

import podwright
from podwright.launch import Session, find
from podwright.launch.exchange.tracked import Tracked
from podwright.runs import Home
from tests.fixtures.bad_runs import add_run, call
from tests.fixtures.strangers import environment
from tests.unit.runs.made import write_lines

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(3600)]
RUN = "tuned-2222"
BY_TENSORBOARD = """
import json, sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
read = EventAccumulator(sys.argv[1], size_guidance={"scalars": 0})
read.Reload()
print(json.dumps({tag: [[e.step, e.wall_time, e.value] for e in read.Scalars(tag)] for tag in read.Tags()["scalars"]}))
"""
BY_MLFLOW = """
import json, sys
from mlflow.tracking import MlflowClient
client = MlflowClient(sys.argv[1])
(run,) = client.search_runs([client.get_experiment_by_name("toy").experiment_id])
history = {key: client.get_metric_history(run.info.run_id, key) for key in run.data.metrics}
curves = {key: sorted([row.step, row.value] for row in rows) for key, rows in history.items()}
print(json.dumps({"name": run.info.run_name, "status": run.info.status, "params": run.data.params, "curves": curves}))
"""
TO_WANDB = """
import sys
from podwright import launch
with launch.Session.open() as session:
    (synced,) = launch.sync_runs(session, [launch.find(session, sys.argv[1])], sys.argv[2])
print(synced.written)
"""
BY_WANDB = """
import json, struct, sys
from wandb.proto import wandb_internal_pb2 as pb
data, at, parts, curves = open(sys.argv[1], "rb").read(), 7, b"", {}  # a log of LevelDB behind seven bytes of its own
while at + 7 <= len(data):
    left = 32768 - at % 32768
    if left < 7:
        at += left
        continue
    _, size, kind = struct.unpack_from("<IHB", data, at)
    parts, at = parts + data[at + 7 : at + 7 + size], at + 7 + size
    if kind not in (1, 4):
        continue
    record, parts = pb.Record.FromString(parts), b""
    row = {item.key or item.nested_key[0]: json.loads(item.value_json) for item in record.history.item}
    for name, value in row.items():
        if not name.startswith("_"):
            curves.setdefault(name, []).append([row.get("_step", record.history.step.num), value])
print(json.dumps(curves))
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setenv("PODWRIGHT_HOME", str(tmp_path / "home"))
    made = Home.open()
    folder = add_run(made, RUN, matrix={"lr": 0.1})
    series = folder / "record" / "n0.r0" / "rank0.series.jsonl"
    series.unlink()
    lines = ({"t": 1.7e9 + n, "e": [0, 0], "v": {"train/loss": 1 / (n + 1), "step": n}} for n in range(3000))
    write_lines(series, *lines)
    return made


def told(home: Home) -> list[list[Any]]:
    with Session(home) as session:
        run = find(session, RUN)
        points = Tracked.of(run.record(), run.folder).points
    return [[point.step, point.t, point.value] for point in points if point.name == "train/loss"]


def synced(to: str) -> int:
    code, out, err = call("sync", RUN, "--to", to, "--json")
    assert code == 0, err
    return int(json.loads(out)["written"])


def read(program: str, *words: str, **variables: str) -> Any:
    python = environment("trackers-nightly")
    done = subprocess.run(
        [str(python), "-c", program, *words],
        capture_output=True,
        text=True,
        env={**os.environ, **variables},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_tensorboard_reads_the_curve(home: Home, tmp_path: Path) -> None:
    to = f"tensorboard={tmp_path / 'curves'}"
    assert (synced(to), synced(to)) == (3000, 0)
    curve = read(BY_TENSORBOARD, str(tmp_path / "curves" / RUN))["train/loss"]
    assert [row[:2] for row in curve] == [row[:2] for row in told(home)]
    assert [row[2] for row in curve] == pytest.approx([row[2] for row in told(home)], rel=1e-6)


@contextmanager
def mlflow_server(folder: Path) -> Iterator[str]:
    """MLflow's own server, on the loopback, ended with all it starts."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = ["server", "--host", "127.0.0.1", "--port", str(port), "--workers", "1"]
    store = [
        "--backend-store-uri",
        f"sqlite:///{folder}/mlflow.db",
        "--default-artifact-root",
        str(folder / "artifacts"),
    ]
    python = environment("trackers-nightly")
    with (folder / "mlflow.log").open("wb") as log:
        server = subprocess.Popen(
            [str(python), "-m", "mlflow", *words, *store], stdout=log, stderr=log, cwd=folder, start_new_session=True
        )
    try:
        while True:
            assert server.poll() is None, (folder / "mlflow.log").read_text()
            try:
                urlopen(f"http://127.0.0.1:{port}/health").close()
                break
            except URLError:
                pass
        yield f"http://127.0.0.1:{port}"
    finally:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()


def test_mlflow_has_the_curve_and_what_the_run_was_given(home: Home, tmp_path: Path) -> None:
    with mlflow_server(tmp_path) as url:
        assert (synced(f"mlflow={url}"), synced(f"mlflow={url}")) == (3000, 0)
        kept = read(BY_MLFLOW, url)
    assert (kept["name"], kept["status"], kept["params"]["lr"]) == (RUN, "FINISHED", "0.1")
    assert kept["curves"]["train/loss"] == [[step, value] for step, _, value in told(home)]


def test_wandb_has_the_curve_offline(home: Home, tmp_path: Path) -> None:
    source = str(Path(podwright.__file__).parent.parent)
    for written in (3000, 0):
        assert read(TO_WANDB, RUN, f"wandb={tmp_path / 'wandb'}", PYTHONPATH=source) == written
    (path,) = (tmp_path / "wandb").rglob("run-*.wandb")
    curve = read(BY_WANDB, str(path), PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION="python")["train/loss"]
    assert curve == [[step, value] for step, _, value in told(home)]
