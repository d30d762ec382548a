"""Brings the pilots' records here: through a claim by a command in a container, without one from containers' output."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from podwright.clients.kubernetes import names
from podwright.clients.kubernetes.api import Api, ApiError, Away, refusal_of
from podwright.clients.kubernetes.kinds import CONTAINERS
from podwright.clients.kubernetes.paths import path_of
from podwright.engines.frames import assemble
from podwright.engines.kubernetes.claim_reader import Reader, is_ready
from podwright.engines.mirror import Mirror, Trees
from podwright.engines.parts import clear_command, clear_input, cleared
from podwright.files.journal import append
from podwright.files.whole import make_private
from podwright.runs import RunFolder
from podwright.runs.copies import LeftOut
from podwright.spec.problems import Refusal, refuse


class Bounds(NamedTuple):
    """How long a reader is waited for, and a command in a container that says nothing."""

    start_s: float
    run_s: float


LOOK, FETCH = Bounds(8.0, 15.0), Bounds(120.0, 120.0)
"""Of a look that others follow, and of who must have what is on the claim."""
MIRROR = f"head -n 1 | /bin/sh {names.JOB_FOLDER}/pilot.sh mirror"
"""The end of its input cannot be told to a command in a container, so that it is one line."""
MAX_ASKED = 3
"""Containers that are asked before a reader is made."""
AGAIN_S = 5.0
"""Before a reader that did not start is looked for again."""
LOG_S, LOG_EACH_S = 2.0, 0.05
"""Between two looks at the output of containers: two seconds, more when there are many of them."""
STAMP = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\S*Z ")
Pods = Mapping[str, Sequence[dict[str, Any]]]


class Claimed:
    """Runs whose record lies on a claim: one command answers for all of them."""

    def __init__(self, api: Api, namespace: str, claim: str) -> None:
        self._api, self._namespace, self._claim = api, namespace, claim
        self._reader = Reader(api, namespace, claim)
        self._failed_at = -AGAIN_S

    def collect(self, folders: Sequence[RunFolder], pods: Pods, over: bool) -> dict[str, list[str]]:
        """Bring what runs wrote; `over`: one of them has ended, so that a reader is worth its while.

        Return sentences about what is missing, by run.
        """
        if not running(pods) and not over:
            return {}
        with Mirror(folders) as mirror:
            mirror.bring(partial(self._ask, pods, folders[0], LOOK), names.RUNS)
            return mirror.gaps

    def fetch(self, folders: Sequence[RunFolder], trees: Trees, pods: Pods) -> dict[str, list[LeftOut]]:
        """Bring these parts of the runs' folders; return what was too much, by run."""
        with Mirror(folders) as mirror:
            return mirror.bring(partial(self._ask, pods, folders[0], FETCH), names.RUNS, trees)

    def remove(self, folder: RunFolder) -> None:
        """Remove a run's folder by a reader: a container that still runs belongs to another run."""
        self._read(folder, ["rm", "-rf", "--", names.run_folder(folder.id)], b"", FETCH)

    def clear(self, folders: Sequence[RunFolder], name: str, remove: bool) -> dict[str, int]:
        """Return the bytes of a part of the runs' folders, by run, and remove it where that is asked."""
        command = clear_command(names.RUNS, name, remove)
        return cleared(self._read(folders[0], command, clear_input(folders), FETCH), folders)

    def _ask(self, pods: Pods, folder: RunFolder, bounds: Bounds, asked: Mapping[str, Any]) -> bytes:
        given = json.dumps(asked).encode() + b"\n"
        command = ["/bin/sh", "-c", MIRROR]
        deadline = time.monotonic() + bounds.run_s
        for pod in running(pods)[:MAX_ASKED]:
            path, left_s = path_of("Pod", self._namespace, pod["metadata"]["name"]), deadline - time.monotonic()
            with suppress(Away, ApiError):  # it may have ended just now, or its node is gone
                return self._api.run(path, pilot_name(pod), command, given, max(left_s, 1.0))
        return self._read(folder, command, given, bounds)

    def _read(self, folder: RunFolder, command: Sequence[str], given: bytes, bounds: Bounds) -> bytes:
        if time.monotonic() - self._failed_at < AGAIN_S:
            raise refuse(f"the claim {self._claim} cannot be read just now", exit_code=3)
        try:
            return self._reader.run(folder, command, given, bounds.run_s, bounds.start_s)
        except Refusal:
            self._failed_at = time.monotonic()
            raise
        except (Away, ApiError) as error:
            raise refusal_of(error, "let the claim be read") from None


def running(pods: Pods) -> list[dict[str, Any]]:
    """Return Kubernetes pods whose pilot runs, one of each node that is there: all of them see the whole claim."""
    by_node: dict[str, dict[str, Any]] = {}
    for group in pods.values():
        for pod in group:
            statuses = pod["status"].get("containerStatuses") or []
            pilot: dict[str, Any] = next((status for status in statuses if status["name"] in CONTAINERS), {})
            if "running" in pilot.get("state", {}) and is_ready(pod):
                by_node.setdefault(str(pod["spec"].get("nodeName")), pod)
    return list(by_node.values())


def pilot_name(pod: Mapping[str, Any]) -> str:
    """Return the name of the container that a pilot runs in."""
    for container in pod["spec"]["containers"]:
        if container["name"] in CONTAINERS:
            return str(container["name"])
    return names.PILOT


class Shipped:
    """Runs without a claim: side containers send their record as frames, which are kept as they came."""

    def __init__(self, api: Api, namespace: str) -> None:
        self._api, self._namespace = api, namespace
        self._looked_at: dict[str, float] = {}
        self._closed: set[str] = set()

    def collect(self, folders: Sequence[RunFolder], pods: Pods) -> dict[str, list[str]]:
        """Bring what side containers sent since the last look; return what is missing, by run."""
        groups = {folder.id: pods.get(folder.id, ()) for folder in folders}
        pause_s = max(LOG_S, LOG_EACH_S * sum(map(len, groups.values())))
        gaps = {}
        for folder in folders:
            changed = [self._look(folder, pod, pause_s) for pod in groups[folder.id]]
            logs = [log for log in changed if log is not None]
            if logs:
                gaps[folder.id] = assemble(logs, folder.record_path)
        return gaps

    def _look(self, folder: RunFolder, pod: dict[str, Any], pause_s: float) -> Path | None:
        """Return the log of a side container, if something was added to it; one that ended is read once more."""
        name, now = pod["metadata"]["name"], time.monotonic()
        state = _ship(pod).get("state", {})
        ended = "terminated" in state
        recent = now - self._looked_at.get(name, -pause_s) < pause_s and not ended
        if not state or "waiting" in state or recent or name in self._closed:
            return None
        self._looked_at[name] = now
        log = _log_of(folder, pod)
        with suppress(Away, ApiError):
            added = self._read(log, name)
            if ended:
                self._closed.add(name)
            if added:
                return log
        return None

    def _read(self, log: Path, pod: str) -> bool:
        """Append what came since the last line that is here; lines of that second come again, and are left out."""
        query: dict[str, str | int] = {"container": names.SHIP, "timestamps": "true"}
        last = _last_line(log)
        if last:
            query["sinceTime"] = last.split(b" ", 1)[0].decode()
        data = self._api.text(f"{path_of('Pod', self._namespace, pod)}/log", **query)
        _, known, rest = data.partition(last) if last else (b"", b"", b"")
        fresh = rest if known else data
        if fresh:
            make_private(log.parent)
            append(log, fresh)
        return bool(fresh)

    def follow(self, folders: Sequence[RunFolder], pods: Pods, timeout_s: float) -> None:
        """Read on until the side containers have ended: what is deleted takes its output along."""
        from concurrent.futures import ThreadPoolExecutor

        wanted = []
        for folder in folders:
            running = [pod for pod in pods.get(folder.id, ()) if "running" in _ship(pod).get("state", {})]
            wanted += [(folder, pod) for pod in running]
        if not wanted:
            return
        with ThreadPoolExecutor(max_workers=min(len(wanted), 64)) as pool:
            for folder, pod in wanted:
                pool.submit(self._stream, _log_of(folder, pod), pod["metadata"]["name"], timeout_s)
        for folder in folders:
            assemble(sorted((folder.path / "frames").glob("*.log")), folder.record_path)

    def _stream(self, log: Path, pod: str, timeout_s: float) -> None:
        deadline = time.monotonic() + timeout_s
        query: dict[str, str | int] = {"container": names.SHIP, "timestamps": "true", "follow": "true"}
        path = f"{path_of('Pod', self._namespace, pod)}/log"
        make_private(log.parent)
        with suppress(Away, ApiError), self._api.lines(path, timeout_s, **query) as lines:
            for line in lines:
                append(log, line)
                if time.monotonic() > deadline:
                    return


def _ship(pod: Mapping[str, Any]) -> dict[str, Any]:
    statuses = pod["status"].get("initContainerStatuses") or []
    return next((status for status in statuses if status["name"] == names.SHIP), {})


def _log_of(folder: RunFolder, pod: Mapping[str, Any]) -> Path:
    """Return the log of a side container; one that was started anew numbers its pieces anew, and has its own."""
    return folder.path / "frames" / f"{pod['metadata']['name']}.{_ship(pod).get('restartCount', 0)}.log"


def _last_line(log: Path) -> bytes:
    """Return the last whole line that begins with a time; a line is shorter than what is looked at."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - 32768))
            lines = file.read().splitlines(keepends=True)
    except OSError:
        return b""
    return next((line for line in reversed(lines) if line.endswith(b"\n") and STAMP.match(line)), b"")
