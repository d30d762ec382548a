"""Runs in a tracking server of MLflow, over its REST interface: nothing of MLflow's own is needed here."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlencode, urlsplit

from podwright.clients.http_client import ErrorAnswer, HttpClient, HttpError, basic, is_loopback, request_of
from podwright.launch.exchange.told_points import Point
from podwright.launch.exchange.tracked import Tracked
from podwright.spec.problems import Refusal, refuse

USER, PASSWORD, TOKEN = "MLFLOW_TRACKING_USERNAME", "MLFLOW_TRACKING_PASSWORD", "MLFLOW_TRACKING_TOKEN"
"""The variables that MLflow's own client reads too."""
RUN_TAG = "podwright.run"
STATES = {"succeeded": "FINISHED", "failed": "FAILED", "lost": "FAILED", "cancelled": "KILLED"}
BATCH, PAGE, MAX_TEXT, MAX_TAG, TIMEOUT_S = 1000, 25_000, 6000, 5000, 60.0
MAX_ANSWER_BYTES = 256 << 20
NOT_A_NAME = re.compile(r"[^\w\-. :/]")
Known = tuple[str, int, int, float]


class MlflowServer:
    """A tracking server; making this object touches nothing. Name, password and token come by variables alone."""

    def __init__(self, place: str) -> None:
        parts = urlsplit(place)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise refuse(f"{place} is no address of a server", hint="mlflow=http://127.0.0.1:5000", field="--to")
        if parts.username or parts.password:
            raise refuse("a password does not belong into an address", hint=f"set {USER} and {PASSWORD}", field="--to")
        self._root = f"{place.rstrip('/')}/api/2.0/mlflow"
        self._authorization = _authorization()
        if self._authorization and parts.scheme != "https" and not is_loopback(parts.netloc):
            raise refuse(f"{place} would be sent the password in clear", hint="https://", field="--to")
        self._http = HttpClient("refused", TIMEOUT_S)
        self._known: dict[str, set[Known]] = {}
        """By run of MLflow what it has: asked once, as a run at work is written again and again."""

    def write(self, run: Tracked) -> int:
        """Add what the server does not have yet; return how many values that were."""
        mlflow_run = self._run(run)
        if mlflow_run not in self._known:
            self._known[mlflow_run] = set(self._values(mlflow_run, {_name(point.name) for point in run.points}))
        known = self._known[mlflow_run]
        fresh = [point for point in run.points if _key(point) not in known]
        tags = [{"key": f"podwright.{name}", "value": text[:MAX_TAG]} for name, text in run.facts.items()]
        self._ask("runs/log-batch", {"run_id": mlflow_run, "tags": tags})
        for first in range(0, len(fresh), BATCH):
            batch = fresh[first : first + BATCH]
            self._ask("runs/log-batch", {"run_id": mlflow_run, "metrics": list(map(_metric, batch))})
            known.update(map(_key, batch))
        state = {"run_id": mlflow_run, "status": STATES.get(run.record.state, "RUNNING")}
        if run.record.is_final and run.record.ended_at is not None:
            state["end_time"] = str(_milliseconds(run.record.ended_at))
        self._ask("runs/update", state)
        return len(fresh)

    def _run(self, run: Tracked) -> str:
        """Return MLflow's id of a run, which is made when it is not there."""
        experiment = self._experiment(run.asked.name)
        found = {"experiment_ids": [experiment], "filter": f"tags.`{RUN_TAG}` = '{run.id}'", "max_results": 1}
        for row in self._ask("runs/search", found).get("runs", []):
            return str(row["info"]["run_id"])
        made = {
            "experiment_id": experiment,
            "run_name": run.id,
            "start_time": _milliseconds(run.record.created_at),
            "tags": [{"key": RUN_TAG, "value": run.id}],
        }
        run_id = str(self._ask("runs/create", made)["run"]["info"]["run_id"])
        given = [{"key": _name(key), "value": str(value)[:MAX_TEXT]} for key, value in run.parameters.items()]
        for first in range(0, len(given), 100):
            self._ask("runs/log-batch", {"run_id": run_id, "params": given[first : first + 100]})
        return run_id

    def _experiment(self, name: str) -> str:
        try:
            found = self._ask("experiments/get-by-name?" + urlencode({"experiment_name": name}))
            return str(found["experiment"]["experiment_id"])
        except _NotThere:
            return str(self._ask("experiments/create", {"name": name})["experiment_id"])

    def _values(self, run_id: str, names: set[str]) -> Iterator[Known]:
        """Yield what the server has of these curves, page by page."""
        for name in sorted(names):
            asked = {"run_id": run_id, "metric_key": name, "max_results": PAGE}
            while True:
                page = self._ask("metrics/get-history?" + urlencode(asked))
                for row in page.get("metrics", []):
                    yield row["key"], int(row.get("step", 0)), int(row["timestamp"]), float(row["value"])
                if not page.get("next_page_token"):
                    break
                asked["page_token"] = page["next_page_token"]

    def _ask(self, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        method = "GET" if body is None else "POST"
        request = request_of(f"{self._root}/{path}", method, data, headers, self._authorization)
        try:
            answer = json.loads(self._http.ask(request, MAX_ANSWER_BYTES)[1] or b"{}")
            return dict(answer)
        except ErrorAnswer as error:
            if b"RESOURCE_DOES_NOT_EXIST" in error.body:
                raise _NotThere from None
            raise self._refusal(_words(error)) from None
        except HttpError as error:
            raise self._refusal(str(error)) from None
        except (ValueError, TypeError):
            raise self._refusal("it does not answer as MLflow does") from None

    def _refusal(self, why: str) -> Refusal:
        return refuse(f"{self._root.removesuffix('/api/2.0/mlflow')}: {why}", field="--to", exit_code=3)


class _NotThere(Exception):
    pass


def _authorization() -> str:
    token, user = os.environ.get(TOKEN), os.environ.get(USER)
    if token:
        return f"Bearer {token}"
    return basic(f"{user}:{os.environ.get(PASSWORD, '')}") if user else ""


def _words(error: ErrorAnswer) -> str:
    try:
        return str(json.loads(error.body)["message"])[:300]
    except (ValueError, TypeError, KeyError):
        return f"{error.status} {error.reason}"


def _name(name: str) -> str:
    """Return a name as MLflow takes it."""
    return NOT_A_NAME.sub("_", name)[:250]


def _milliseconds(t: float) -> int:
    return int(t * 1000)


def _key(point: Point) -> Known:
    return _name(point.name), point.step, _milliseconds(point.t), point.value


def _metric(point: Point) -> dict[str, Any]:
    return dict(zip(("key", "step", "timestamp", "value"), _key(point), strict=True))
