"""`sync`: curves as trackers have them; again, torn and live; what is refused."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from podwright.analysis.event_files import Scalar, scalars
from podwright.launch import Session, find, start, sync_runs
from podwright.launch.exchange.tensorboard import TensorBoardFolder
from podwright.launch.exchange.told_points import Point, points_of
from podwright.launch.exchange.tracked import Tracked
from podwright.runs import Home
from podwright.runs.series import ToldValue
from podwright.spec.problems import Refusal
from tests.contract.sites import until
from tests.fixtures.bad_runs import add_run, bad_home, call
from tests.fixtures.launching import Load
from tests.unit.runs.made import write_lines

__all__ = ["bad_home"]


def told(name: str, value: float, rank: int = 0, step: float | None = 1.0, t: float = 10.0) -> ToldValue:
    return ToldValue(t, 0, 0, 0, rank, step, None, 1, name, value)


def test_each_curve_is_that_of_one_rank_and_has_whole_steps() -> None:
    rows = [
        told("loss", 0.5, rank=1),
        told("loss", 0.6),
        told("loss", 0.4, step=2.0, t=11.0),
        told("step", 2.0),
        told("accuracy", 0.9, rank=1, step=None, t=17.9),
    ]
    assert [tuple(point) for point in points_of(rows, began=5.0)] == [
        ("loss", 1, 10.0, 0.6),
        ("loss", 2, 11.0, 0.4),
        ("accuracy", 12, 17.9, 0.9),
    ]


def written(folder: Path) -> list[Scalar]:
    (path,) = folder.glob("*/events.out.tfevents.*")
    with path.open("rb") as file:
        return list(scalars(file))


def test_tensorboard_gets_each_value_once_also_after_a_torn_write(bad_home: Home, tmp_path: Path) -> None:
    to = tmp_path / "curves"
    code, out, err = call("sync", "good-2222", "--to", f"tensorboard={to}", "--json")
    assert code == 0, err
    assert json.loads(out) == {"runs": ["good-2222"], "to": f"tensorboard={to}", "written": 2, "open": []}
    first = written(to)
    assert [(scalar.tag, scalar.step, scalar.value) for scalar in first] == [("loss", 3, 0.5), ("loss", 3, 0.5)]
    assert json.loads(call("sync", "good-2222", "--to", f"tensorboard={to}", "--json")[1])["written"] == 0
    (path,) = to.glob("*/events.out.tfevents.*")
    whole = path.read_bytes()
    path.write_bytes(whole[:-5])
    assert json.loads(call("sync", "good-2222", "--to", f"tensorboard={to}", "--json")[1])["written"] == 1
    assert path.read_bytes() == whole
    path.write_bytes(whole[:20] + b"\0" + whole[21:])
    code, _, err = call("sync", "good-2222", "--to", f"tensorboard={to}")
    assert code == 2
    assert "a record is damaged" in err


def test_a_run_at_work_is_added_to_as_it_goes_on(bad_home: Home, tmp_path: Path) -> None:
    with Session(bad_home) as session:
        run = find(session, "good-2222")
        now = Tracked.of(run.record(), run.folder)
    tracker = TensorBoardFolder(str(tmp_path))
    points = [Point("loss", n, 1.7e9 + n, 1e300 if n == 2 else 0.25 * n) for n in range(5)]
    assert [tracker.write(replace(now, points=points[:upto])) for upto in (0, 2, 2, 5)] == [0, 2, 0, 3]
    curve = [(scalar.step, scalar.t, scalar.value) for scalar in written(tmp_path)]
    assert curve == [(n, 1.7e9 + n, float("inf") if n == 2 else 0.25 * n) for n in range(5)]


@pytest.mark.parametrize(
    ("to", "said"),
    [
        ("tensorbord=x", '"tensorbord=x" names no tracker'),
        ("tensorboard=", "names no tracker"),
        ("mlflow=ftp://x", "no address of a server"),
        ("mlflow=http://me:secret@127.0.0.1:1", "a password does not belong into an address"),
        ("mlflow=http://127.0.0.1:1", "refused"),
        ("wandb=there", "wandb is not installed"),
    ],
)
def test_what_cannot_be_written_to_is_said(
    to: str, said: str, bad_home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, _, err = call("sync", "good-2222", "--to", to)
    assert code in (2, 3)
    assert said in err
    assert "secret" not in err


def test_no_password_goes_over_a_network_in_clear(bad_home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_TOKEN", "abcdefgh")
    with Session(bad_home) as session, pytest.raises(Refusal, match="the password in clear"):
        list(sync_runs(session, [], "mlflow=http://tracking.example:5000"))


class FakeMlflow(BaseHTTPRequestHandler):
    """A small server that answers as MLflow's does (its real one is asked by night), and keeps what it was told."""

    kept: dict[str, Any]

    def do_GET(self) -> None:
        path, _, query = self.path.removeprefix("/api/2.0/mlflow/").partition("?")
        if path == "experiments/get-by-name":
            if self.kept["experiment"] is None:
                return self._answer({"error_code": "RESOURCE_DOES_NOT_EXIST", "message": "no"}, 404)
            return self._answer({"experiment": {"experiment_id": "1", "name": self.kept["experiment"]}})
        first = "page_token=2" not in query
        rows = self.kept["metrics"]
        half = rows[: len(rows) // 2] if first else rows[len(rows) // 2 :]
        return self._answer({"metrics": half, **({"next_page_token": "2"} if first and rows else {})})

    def do_POST(self) -> None:
        path = self.path.removeprefix("/api/2.0/mlflow/")
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.kept["authorization"] = self.headers.get("Authorization")
        if path == "experiments/create":
            self.kept["experiment"] = body["name"]
            return self._answer({"experiment_id": "1"})
        if path == "runs/search":
            return self._answer({"runs": [{"info": {"run_id": "m1"}}]} if self.kept["run"] else {})
        if path == "runs/create":
            self.kept["run"] = body
            return self._answer({"run": {"info": {"run_id": "m1"}}})
        self.kept["metrics"] += body.get("metrics", [])
        self.kept["params"] += body.get("params", [])
        self.kept["status"] = body.get("status", self.kept["status"])
        return self._answer({})

    def _answer(self, row: dict[str, Any], status: int = 200) -> None:
        data = json.dumps(row).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def mlflow() -> Iterator[tuple[str, dict[str, Any]]]:
    kept: dict[str, Any] = {"experiment": None, "run": None, "metrics": [], "params": [], "status": None}
    handler = type("Handler", (FakeMlflow,), {"kept": kept})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"mlflow=http://127.0.0.1:{server.server_port}", kept
        finally:
            server.shutdown()
            thread.join()


def test_mlflow_is_asked_what_it_has_and_gets_the_rest(
    bad_home: Home, mlflow: tuple[str, dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    to, kept = mlflow
    monkeypatch.setenv("MLFLOW_TRACKING_TOKEN", "abcdefgh")
    folder = add_run(bad_home, "tuned-2222", matrix={"lr": 0.1})
    lines = [{"t": 1.7e9 + n, "e": [0, 0], "v": {"train/loss (x)": 1 / (n + 1), "step": n}} for n in range(1500)]
    write_lines(folder / "record" / "n0.r0" / "rank0.series.jsonl", *lines)
    assert json.loads(call("sync", "tuned-2222", "--to", to, "--json")[1])["written"] == 1502
    assert (kept["experiment"], kept["status"], kept["authorization"]) == ("toy", "FINISHED", "Bearer abcdefgh")
    assert {"key": "lr", "value": "0.1"} in kept["params"]
    curve = [(row["step"], row["value"]) for row in kept["metrics"] if row["key"] == "train/loss _x_"]
    assert curve == [(n, 1 / (n + 1)) for n in range(1500)]
    del kept["metrics"][700:]
    assert json.loads(call("sync", "tuned-2222", "--to", to, "--json")[1])["written"] == 802


WAITS = """
import os, sys, time
print("step 1 loss=0.5", flush=True)
print("step 2 loss=0.4", flush=True)
while not os.path.exists(sys.argv[1]):
    time.sleep(0.05)
print("step 3 loss=0.3", flush=True)
"""


def test_whoever_looks_next_writes_what_came_of_a_run_since(home: Home, tmp_path: Path, load: Load) -> None:
    """Also another command, in another folder than the one that named the place."""
    to, go_on = tmp_path / "curves", tmp_path / "go-on"
    (tmp_path / "waits.py").write_text(WAITS)
    with Session(home) as session:
        run = start(session, load(f"command: {sys.executable} {tmp_path}/waits.py {go_on}"))
        until(lambda: len(list(run.folder.series())) >= 4, "two steps were told")
        (synced,) = sync_runs(session, [run], f"tensorboard={to}")
    assert (synced.written, synced.open) == (2, (run.id,))
    go_on.touch()
    with Session(home) as session:
        find(session, run.id).wait()
        until(lambda: find(session, run.id).folder.is_sealed, "the run is closed")
        find(session, run.id).record()
    curve = [(scalar.tag, scalar.step, round(scalar.value, 3)) for scalar in written(to)]
    assert curve == [("loss", 1, 0.5), ("loss", 2, 0.4), ("loss", 3, 0.3)]
    rows = [json.loads(line) for line in (home.path / "syncs.jsonl").read_text().splitlines()]
    assert [row.get("done", False) for row in rows] == [False, True]


def test_a_tracker_that_is_away_is_left_to_a_later_look_and_holds_nobody_up(bad_home: Home) -> None:
    with Session(bad_home) as session:
        session.syncs.begin("good-2222", "mlflow=http://127.0.0.1:1")
        find(session, "good-2222").record()
        find(session, "good-2222").record()
    rows = [json.loads(line) for line in (bad_home.path / "syncs.jsonl").read_text().splitlines()]
    assert [sorted(row) for row in rows] == [["run", "to"], ["failed_at", "run", "to"]]
    assert call("show", "good-2222")[0] == 0
