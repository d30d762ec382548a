"""What was asked of runs, and events of their pilots."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from podwright.runs import Asked
from podwright.runs.event_reader import parse_event
from podwright.runs.events import Event

START = 1_700_000_000.0


def asked(run_id: str = "toy-2222", **changes: Any) -> Asked:
    facts: dict[str, Any] = {
        "id": run_id,
        "name": "toy",
        "target": "local",
        "engine": "local",
        "created_at": START,
        "nodes": 2,
        "ranks_per_node": 2,
        "workload": {"name": "toy", "goal": None},
    }
    return Asked(**{**facts, **changes})


def event(kind: str, t: float = 0.0, e: tuple[int, int] = (0, 0), n: int = 0, **fields: Any) -> dict[str, Any]:
    return {"t": START + t, "e": list(e), "n": n, "q": 0, "k": kind, **fields}


def go(t: float = 1.0, e: tuple[int, int] = (0, 0), hosts: tuple[str, ...] = ("a", "b")) -> dict[str, Any]:
    return event("go", t, e, attempt=1, world_size=4, hosts=list(hosts), took_s=0.5)


def end(t: float = 9.0, e: tuple[int, int] = (0, 0), state: str = "succeeded", **fields: Any) -> dict[str, Any]:
    code = {"succeeded": 0, "failed": 1, "terminated": 143}[state]
    return event("end", t, e, **{"state": state, "reason": "", "exit_code": code, **fields})


def result(t: float, e: tuple[int, int] = (0, 0), rank: int = 0, **values: Any) -> dict[str, Any]:
    return event("result", t, e, n=rank // 2, rank=rank, values=values)


def parsed(*rows: object) -> list[Event]:
    events = (parse_event(row) for row in rows)
    return [event for event in events if event is not None]


def write_lines(path: Path, *rows: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
