"""Real pilots as processes of a test: no engine stands between."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from podwright.engines.payload import pilot_zip
from podwright.pilot.protocol import Order, record_folders, rows_of
from podwright.runs import Asked, Fold
from podwright.runs.event_reader import parse_event
from tests.contract.sites import PROGRAMS, until


class Cast:
    """One run's folder, and its pilots as processes of this test."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.run = f"join-{secrets.token_hex(4)}"
        (folder / "job").mkdir(parents=True)
        (folder / "job" / "pilot.pyz").write_bytes(pilot_zip())
        (folder / "token").write_text("a token of this test\n")
        self.processes: list[subprocess.Popen[bytes]] = []

    def order(self, arguments: str, **fields: Any) -> None:
        command = [sys.executable, str(PROGRAMS / "count.py"), *arguments.split()]
        order = Order(
            run=self.run,
            engine="local",
            nodes=2,
            ranks_per_node=1,
            launcher="ranks",
            command=command,
            folder="..",
            scratch="../scratch",
            shared=True,
            bind="127.0.0.1",
            checkpoint="checkpoints",
            beat_s=0.2,
            silence_s=3.0,
            retries=1,
        )
        (self.folder / "job" / "order.json").write_text(order._replace(**fields).text())

    def pilot(
        self, node: int, restart: int = 0, job: str = "a", within: Sequence[str] = (), **extra: str
    ) -> subprocess.Popen[bytes]:
        """Start the pilot of a node; `within` are the words before its own that say where it runs, or with what."""
        environ = {
            **os.environ,
            "PODWRIGHT_NODE": str(node),
            "PODWRIGHT_RESTART": str(restart),
            "PODWRIGHT_JOB": job,
            "PODWRIGHT_HOST": f"{job}{node}",
            "PODWRIGHT_TOKEN_FILE": str(self.folder / "token"),
            **extra,
        }
        job_folder = self.folder / "job"
        command = [
            *within,
            sys.executable,
            "-I",
            "-S",
            str(job_folder / "pilot.pyz"),
            "node",
            str(job_folder / "order.json"),
        ]
        process = subprocess.Popen(command, env=environ, stdin=subprocess.DEVNULL)
        self.processes.append(process)
        return process

    def events(self, kind: str) -> list[dict[str, Any]]:
        rows = [row for *_, path in record_folders(str(self.folder / "record")) for row in self._rows(path)]
        return [row for row in sorted(rows, key=lambda row: row["t"]) if row["k"] == kind]

    def _rows(self, path: str) -> list[dict[str, Any]]:
        return list(rows_of(f"{path}/events.jsonl"))

    def wait_step(self, step: int, attempt: int = 1) -> None:
        def told() -> bool:
            return len(self.events("go")) >= attempt and any(
                row["values"].get("step", 0) >= step and row["e"] == self.events("go")[attempt - 1]["e"]
                for row in self.events("result")
            )

        until(told, f"step {step} in attempt {attempt}")

    def record(self) -> Any:
        fold = Fold(Asked(self.run, "join", "local", "local", 0.0, 2, 1, {}), str(self.folder))
        for *_, path in record_folders(str(self.folder / "record")):
            events = [parse_event(row) for row in self._rows(path)]
            fold.take(event for event in events if event is not None)
        return fold.record(0.0)

    def close(self) -> None:
        for process in self.processes:
            with suppress(ProcessLookupError):
                process.kill()
            process.wait()


@pytest.fixture
def cast(tmp_path: Path) -> Iterator[Cast]:
    """A run of two nodes whose pilots the test starts."""
    pilots = Cast(tmp_path)
    yield pilots
    pilots.close()
